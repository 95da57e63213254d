"""Optimisers: from gradients to steps. Schedules: the rate of step t. Clipping.

`rate` is a number, or a schedule: a function of the step's number, from 0. `step()` moves every
parameter of the model that has a gradient, in place, and forgets the gradients.
"""

from math import cos, pi, sqrt

import numpy as np

from ._arrays import fused, module


class Optimiser:
    """Steps over the parameters of a model; a subclass moves one in `move(p, g, rate, ...)`, with
    what it remembers of each (`MEMORY` names it) as further arguments."""

    MEMORY = ()

    def __init__(self, model, rate, decay=0.0):
        self.parameters, self.rate, self.decay, self.steps = model.parameters(), rate, decay, 0
        self.memory = {}

    def step(self):
        """One step down the gradients, which are forgotten."""
        rate = self.rate(self.steps) if callable(self.rate) else self.rate
        self.steps += 1
        for path, p in self.parameters.items():
            if p.grad is not None:
                if path not in self.memory:
                    self.memory[path] = [module(p.value).zeros_like(p.value) for _ in self.MEMORY]
                self.move(p.value, self.decayed(p), rate, *self.memory[path])
                p.grad = None

    def decayed(self, p):
        """The gradient of the loss + decay/2 |w|^2."""
        return p.grad + self.decay * p.value if self.decay else p.grad

    def state(self):
        """{name: array} to go on from later."""
        kept = {f"{kind}.{path}": x for path, memory in self.memory.items()
                for kind, x in zip(self.MEMORY, memory)}
        return kept | {"steps": np.array(self.steps)}

    def load(self, state):
        """Go on from `state()`."""
        self.steps = int(state["steps"])
        self.memory = {
            path: [module(p.value).asarray(state[f"{kind}.{path}"]).copy() for kind in self.MEMORY]
            for path, p in self.parameters.items()
            if all(f"{kind}.{path}" in state for kind in self.MEMORY)}


class SGD(Optimiser):
    """w := w - rate v, where v := momentum v + g.

    With `nesterov` the step is momentum v + g: the gradient is as if taken where v leads.
    `decay` adds decay w to g.
    """

    def __init__(self, model, rate, momentum=0.0, nesterov=False, decay=0.0):
        super().__init__(model, rate, decay)
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
    start at 0. `decay` adds decay w to g.

    Kingma, Ba: Adam, a method for stochastic optimization, 2015.
    """

    MEMORY = ("mean", "square")

    def __init__(self, model, rate=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.0):
        super().__init__(model, rate, decay)
        self.betas, self.eps = betas, eps

    def move(self, w, g, rate, m, v, keep=1.0):
        beta1, beta2 = self.betas
        root, far = 1 / sqrt(1 - beta2**self.steps), rate / (1 - beta1**self.steps)
        gpu = fused(w)
        if gpu and gpu.adam(w, g, m, v, self.betas, root, self.eps, far, keep):
            return
        if keep != 1:
            w *= keep
        m *= beta1
        m += (1 - beta1) * g
        v *= beta2
        v += (1 - beta2) * (g * g)
        # m / (1 - beta1^t) over sqrt(v / (1 - beta2^t)) + eps
        down = module(w).sqrt(v)
        down *= root
        down += self.eps
        w -= far * m / down


class AdamW(Adam):
    """Adam with the decay beside the gradient: w := w - rate decay w, untouched by sqrt v.

    Loshchilov, Hutter: Decoupled weight decay regularization, 2019.
    """

    def __init__(self, model, rate=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        super().__init__(model, rate, betas, eps, decay)

    def decayed(self, p):
        return p.grad

    def move(self, w, g, rate, m, v):
        super().move(w, g, rate, m, v, 1 - rate * self.decay)


# -- clipping


def gradient_norm(model):
    """The Euclidean norm of all gradients together."""
    return sqrt(float(sum((p.grad * p.grad).sum().astype("f8")
                          for p in model.parameters().values() if p.grad is not None)))


def clip_norm(model, limit):
    """Shrink all gradients together to norm `limit` where theirs is larger. Returns theirs."""
    norm = gradient_norm(model)
    if norm > limit:
        for p in model.parameters().values():
            if p.grad is not None:
                p.grad = p.grad * (limit / norm)
    return norm


def clip_value(model, limit):
    """Every element of every gradient into [-limit, limit]."""
    for p in model.parameters().values():
        if p.grad is not None:
            p.grad = p.grad.clip(-limit, limit)


# -- schedules


def steps(rate, every, factor=0.1):
    """rate factor^k after k times `every` steps."""
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
    """Up in a line for `warmup` steps, then rate sqrt(warmup / t).

    Vaswani et al.: Attention is all you need, 2017.
    """
    return lambda t: rate * min((t + 1) / warmup, sqrt(warmup / (t + 1)))
