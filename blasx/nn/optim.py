"""Optimisers: from gradients to steps. Schedules: the rate of step t. Clipping.

`rate` is a number, or a schedule: a function of the step's number, from 0. `step()` moves every
parameter of the model that has a gradient, in place, and forgets the gradients.

Of parameters in half precision an optimiser moves a copy in single, the master, and rounds it: a
step that is small beside the parameter would be lost in half.

Micikevicius et al.: Mixed precision training, 2018.
"""

from collections.abc import Mapping
from math import cos, inf, pi, sqrt
from numbers import Real

import numpy as np

from ._arrays import REALS, fused, module, number, placed, square_sum, whole, wide
from .layer import Layer


class Optimiser:
    """Steps over the parameters of a model; a subclass moves one in `move(w, g, rate, ...)`, with
    what it remembers of each (`MEMORY` names it) as further arguments. g is the gradient of the
    loss + decay/2 |w|^2."""

    MEMORY = ()

    def __init__(self, model, rate, decay=0.0):
        if not isinstance(model, Layer):
            raise TypeError(f"{type(self).__name__}: model must be a layer, got {model!r}")
        if not callable(rate):
            self._least(rate=rate)
        self._least(decay=decay)
        self.parameters, self.rate, self.decay, self.steps = model.parameters(), rate, decay, 0
        self.memory = {}

    def _least(self, least=0, below=inf, **values):
        for name, x in values.items():
            number(type(self).__name__, name, x, least, below)

    def step(self, factor=1.0):
        """One step down `factor` times the gradients, which are forgotten."""
        rate = self.rate(self.steps) if callable(self.rate) else self.rate
        self.steps += 1
        moving = {path: p for path, p in self.parameters.items() if p.grad is not None}
        self.moved([(p, *self._remembered(path, p.master)) for path, p in moving.items()],
                   factor, rate)
        for p in moving.values():
            p.grad = None

    def _remembered(self, path, w):
        """The memory of w, of its precision and where it is: `Layer.to` may have moved w."""
        kept = self.memory.get(path)
        if kept is None:
            kept = self.memory[path] = [module(w).zeros_like(w) for _ in self.MEMORY]
        elif any(type(x) is not type(w) or x.dtype != w.dtype for x in kept):
            kept = self.memory[path] = [placed(x, w) for x in kept]
        return kept

    def moved(self, moving, factor, rate):
        """All of (parameter, its memory), a step on."""
        for p, *memory in moving:
            w, g = p.master, wide(p.grad)
            g = g if factor == 1 else factor * g
            self.move(w, g + self.decay * w if self.decay else g, rate, *memory)
            p.master = w

    def state(self):
        """{name: array} to go on from later, copies."""
        kept = {f"{kind}.{path}": x.copy() for path, memory in self.memory.items()
                for kind, x in zip(self.MEMORY, memory)}
        kept |= {f"master.{path}": p.master.copy() for path, p in self.parameters.items()
                 if p.master is not p.value}
        return kept | {"steps": np.array(self.steps)}

    def load(self, state):
        """Go on from `state()`, in the precision of the parameters and where they are. Nothing is
        changed unless it is that of such an optimiser of such a model."""
        self.check(state)

        def taken(kind, path, p):
            return placed(state[f"{kind}.{path}"], p.master).copy()

        self.steps = int(state["steps"])
        self.memory = {path: [taken(kind, path, p) for kind in self.MEMORY]
                       for path, p in self.parameters.items()
                       if all(f"{kind}.{path}" in state for kind in self.MEMORY)}
        for path, p in self.parameters.items():
            if f"master.{path}" in state:
                p.master = taken("master", path, p)

    def check(self, state):
        """Refuse a state of another kind of optimiser, or of another model's. Parameters that
        never had a gradient have no memory."""
        name, kinds = type(self).__name__, " and ".join(self.MEMORY) or "nothing"
        if not isinstance(state, Mapping):
            raise TypeError(f"{name}: load: state must be {{name: array}}, got "
                            f"{type(state).__name__}")
        shapes = {f"{kind}.{path}": p.value.shape for path, p in self.parameters.items()
                  for kind in (*self.MEMORY, "master")}
        unlike = [f"{at} {_described(x)}" for at, x in state.items() if (
            _whole(x) is None if at == "steps" else at not in shapes
            or getattr(x, "shape", None) != shapes[at] or x.dtype not in REALS)]
        held = [{path for path in self.parameters if f"{kind}.{path}" in state}
                for kind in self.MEMORY]
        lacking = "steps" not in state or any(paths != held[0] for paths in held) or (
            held and not held[0] and _whole(state["steps"]))
        if unlike or lacking:
            raise ValueError(f"{name}: load: must be steps and {kinds} of each parameter of this "
                             f"model, got {', '.join((unlike or sorted(state))[:4]) or 'nothing'}")


def _described(x):
    """Of a number its value, of an array its shape and type."""
    if not hasattr(x, "dtype"):
        return f"a {type(x).__name__}"
    return f"{x.shape} {x.dtype}" if x.shape else str(x)


def _whole(x):
    """What a 0-d array of a whole number of at least 0 holds; None for anything else."""
    if getattr(x, "shape", None) != () or x.dtype.kind not in "iu" or x < 0:
        return None
    return int(x)


class SGD(Optimiser):
    """w := w - rate v, where v := momentum v + g.

    With `nesterov` the step is momentum v + g: the gradient is as if taken where v leads.
    `decay` adds decay w to g.
    """

    def __init__(self, model, rate, momentum=0.0, nesterov=False, decay=0.0):
        super().__init__(model, rate, decay)
        self._least(0, 1, momentum=momentum)
        if nesterov and not momentum:
            raise ValueError("SGD: nesterov must have a momentum, got momentum 0")
        self.momentum, self.nesterov = momentum, nesterov
        self.MEMORY = ("velocity",) if momentum else ()

    def move(self, w, g, rate, v=None):
        if v is not None:
            v *= self.momentum
            v += g
            g = g + self.momentum * v if self.nesterov else v
        w -= rate * g


class Adam(Optimiser):
    """w := w - rate m / (sqrt v + eps), m and v the running means of g and g^2, freed of their
    start at 0, m / (1 - beta1^t) and v / (1 - beta2^t). `decay` adds decay w to g.

    t counts the optimiser's steps, not a parameter's: the means of one that has its first gradient
    late start late, too, and are freed of less than they lack, so that its first steps are larger
    than `rate`, up to 6.6 times with these betas.

    Kingma, Ba: Adam, a method for stochastic optimization, 2015.
    """

    MEMORY, beside = ("mean", "square"), 0.0

    def __init__(self, model, rate=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0):
        super().__init__(model, rate, decay)
        if not isinstance(betas, tuple | list) or len(betas) != 2 or not all(
                isinstance(beta, Real) and 0 <= beta < 1 for beta in betas):
            raise ValueError(f"{type(self).__name__}: betas must be two in [0, 1), got {betas!r}")
        self._least(eps=eps)
        self.betas, self.eps = betas, eps

    def moved(self, moving, factor, rate):
        gpu = next(filter(None, (fused(p.value) for p, *_ in moving)), None)
        if gpu:
            moving = gpu.adam(moving, self.betas, *self.now(rate), self.decay, factor)
        super().moved(moving, factor, rate)

    def now(self, rate):
        """1 / sqrt(1 - beta2^t), eps, rate / (1 - beta1^t), what `beside` leaves of w."""
        beta1, beta2 = self.betas
        return (1 / sqrt(1 - beta2**self.steps), self.eps, rate / (1 - beta1**self.steps),
                1 - rate * self.beside)

    def move(self, w, g, rate, m, v):
        (beta1, beta2), (root, eps, far, keep) = self.betas, self.now(rate)
        if keep != 1:
            w *= keep
        m *= beta1
        m += (1 - beta1) * g
        v *= beta2
        v += (1 - beta2) * (g * g)
        # m / (1 - beta1^t) over sqrt(v / (1 - beta2^t)) + eps
        down = module(w).sqrt(v)
        down *= root
        down += eps
        w -= far * m / down


class AdamW(Adam):
    """Adam with the decay beside the gradient: w := w - rate decay w, untouched by sqrt v.

    Loshchilov, Hutter: Decoupled weight decay regularization, 2019.
    """

    def __init__(self, model, rate=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        super().__init__(model, rate, betas, eps)
        self._least(decay=decay)
        self.beside = decay


# -- half precision


class LossScale:
    """Keeps gradients in the range of half precision: `fit` multiplies the loss by `value`, and
    the step divides by it. A step whose gradients overflow is left out and the scale divided by
    `factor`; after `every` steps without one it is multiplied by it.

    Micikevicius et al.: Mixed precision training, 2018.
    """

    LEAST = 2.0**-14  # below it what overflows is not the scale's fault

    def __init__(self, value=2.0**16, factor=2.0, every=2000):
        if not (all(isinstance(x, Real) for x in (value, factor)) and inf > value > 0 and (
                inf > factor > 1)):
            raise ValueError("LossScale: value and factor must be above 0 and above 1, got "
                             f"{value!r}, {factor!r}")
        self.value, self.factor, self.good = float(value), float(factor), 0
        self.every = whole("LossScale", "every", every)

    def went(self, well):
        """Says of a step whether its gradients were finite. False if it was not and the scale is
        as small as it gets."""
        self.good = self.good + 1 if well else 0
        if not well:
            self.value /= self.factor
        elif self.good == self.every:
            self.value, self.good = self.value * self.factor, 0
        return well or self.value >= self.LEAST

    def state(self):
        """{name: array} to go on from later."""
        return {"value": np.array(self.value), "good": np.array(self.good)}

    def load(self, state):
        """Go on from `state()`."""
        self.check(state)
        self.value, self.good = float(state["value"]), int(state["good"])

    def check(self, state):
        """Refuse what `state()` does not give."""
        if not isinstance(state, Mapping):
            raise TypeError("LossScale: load: state must be {name: array}, got "
                            f"{type(state).__name__}")
        value = state.get("value")
        if getattr(value, "shape", None) != () or value.dtype.kind not in "iuf" or not (
                0 < value < inf) or _whole(state.get("good")) is None:
            got = ", ".join(f"{at} {_described(x)}" for at, x in state.items())
            raise ValueError("LossScale: load: must be a value above 0 and a number of good steps, "
                             f"got {got or 'nothing'}")


# -- clipping


def squares(parameters):
    """The sum of the squares of the gradients of parameters, on their device."""
    return sum(square_sum(p.grad) for p in parameters if p.grad is not None)


def gradient_norm(model):
    """The Euclidean norm of all gradients together."""
    return sqrt(float(squares(model.parameters().values())))


def clip_norm(model, limit):
    """Shrink all gradients together to norm `limit` where theirs is larger. Returns theirs."""
    limit = float(number("clip_norm", "limit", limit, 0))
    norm = gradient_norm(model)
    if norm > limit:
        for p in model.parameters().values():
            if p.grad is not None:
                p.grad = p.grad * (limit / norm)
    return norm


def clip_value(model, limit):
    """Every element of every gradient into [-limit, limit]."""
    limit = float(number("clip_value", "limit", limit, 0))
    for p in model.parameters().values():
        if p.grad is not None:
            p.grad = p.grad.clip(-limit, limit)


# -- schedules


def steps(rate, every, factor=0.1):
    """rate factor^k after k times `every` steps."""
    number("steps", "every", every, 1)
    return lambda t: rate * factor ** (t // every)


def exponential(rate, factor):
    """rate factor^t."""
    return lambda t: rate * factor**t


def cosine(rate, total, warmup=0, last=0.0):
    """Up in a line for `warmup` steps, then down half a cosine to `last` at step `total`."""
    def at(t):
        if t < warmup:
            return rate * (t + 1) / warmup
        done = min((t - warmup) / max(total - warmup, 1), 1)
        return last + (rate - last) * (1 + cos(pi * done)) / 2
    return at


def inverse_sqrt(rate, warmup):
    """Up in a line for `warmup` steps, then rate sqrt(warmup / (t + 1)).

    Vaswani et al.: Attention is all you need, 2017.
    """
    number("inverse_sqrt", "warmup", warmup, 1)
    return lambda t: rate * min((t + 1) / warmup, sqrt(warmup / (t + 1)))
