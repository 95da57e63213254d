"""What a layer is, and how layers are composed.

A layer is a function with parameters that knows its derivative:

    y  = layer.forward(x)        y = f(x; w)
    dx = layer.backward(dy)      dx = (df/dx)^T dy,   w's gradient += (df/dw)^T dy

where dy is the gradient of a number, the loss, in y. `backward` answers for the last `forward`.
Every array that goes in is of the dtype and on the device of the parameters; nothing is moved or
cast unasked. Where nothing comes before a layer nobody wants dx: those with SKIPS_DX leave it out
in `backward(dy, dx=False)`.
"""

from collections.abc import Mapping
from math import inf, prod

import numpy as np

from ._arrays import REALS, added, module, number, whole, wide


class Parameter:
    """An array that training changes, and the gradient of the loss in it.

    `trained` is False for what a layer remembers without a gradient: running means, counts.
    """

    def __init__(self, value, trained=True):
        if trained and value.dtype not in REALS:
            kinds = ", ".join(map(str, REALS))
            raise TypeError(f"Parameter: dtype must be one of {kinds}, got {value.dtype}")
        self.value, self.grad, self.trained = value, None, trained
        self._single = None, None  # a value in half precision, and what it was rounded from

    @property
    def master(self):
        """The value; of one in half precision, what it was rounded from, in single: steps are
        taken there, and belong to this value, not to one that has replaced it."""
        if self.value.dtype.itemsize > 2:
            return self.value
        if self._single[0] is not self.value:
            self.master = wide(self.value)
        return self._single[1]

    @master.setter
    def master(self, w):
        """w, and its value rounded, in place."""
        if w is not self.value:
            self.value[...] = w
            self._single = self.value, w

    def add(self, gradient):
        """The gradient is a sum over all uses since the last step."""
        self.grad = gradient if self.grad is None else self.grad + gradient


class Layer:
    """A function with parameters; its attributes that are parameters, layers or lists of layers
    are its parts, named by their attribute."""

    training = True
    SKIPS_DX = False
    _kept = None

    # -- parts

    def parts(self):
        """(name, parameter or layer) of what this layer itself holds."""
        for name, x in vars(self).items():
            if isinstance(x, Parameter | Layer):
                yield name, x
            elif isinstance(x, list):
                yield from ((f"{name}.{i}", y) for i, y in enumerate(x) if isinstance(y, Layer))

    def walk(self, path=""):
        """(path, part) of this layer and all beneath it, in order."""
        yield path, self
        for name, part in self.parts():
            at = f"{path}.{name}" if path else name
            if isinstance(part, Layer):
                yield from part.walk(at)
            else:
                yield at, part

    def parameters(self):
        """{path: Parameter} of what is trained; one that two layers share, once."""
        found = {}
        for path, part in self.walk():
            if isinstance(part, Parameter) and part.trained and part not in found.values():
                found[path] = part
        return found

    def learns(self):
        """Whether anything in this layer is trained."""
        return any(isinstance(part, Parameter) and part.trained for _, part in self.walk())

    def state(self):
        """{path: array} of all that the layer knows: parameters, running statistics, counts;
        copies, which further steps leave as they are."""
        return {path: p.value.copy() for path, p in self.walk() if isinstance(p, Parameter)}

    def load(self, state):
        """Take the arrays of `state()`. Nothing is changed unless all fit."""
        for path, p in self.check(state).items():
            p.value = module(p.value).asarray(state[path]).copy()

    def check(self, state):
        """Refuse what is not of the names, shapes and dtypes of `state()`. {path: Parameter} of
        the layer."""
        if not isinstance(state, Mapping):
            raise TypeError(f"{self!r}: load: state must be {{path: array}}, got "
                            f"{type(state).__name__}")
        own = {path: p for path, p in self.walk() if isinstance(p, Parameter)}
        if own.keys() != state.keys():
            missing, unknown = sorted(own.keys() - state), sorted(state.keys() - own)
            raise ValueError(f"{self!r}: load: missing {missing}, unknown {unknown}")
        for path, p in own.items():
            self._same(state[path], p.value, path)
        return own

    def _same(self, x, own, path):
        if not hasattr(x, "dtype") or (x.shape, x.dtype) != (own.shape, own.dtype):
            got = f"{x.dtype} {x.shape}" if hasattr(x, "dtype") else f"a {type(x).__name__}"
            raise ValueError(f"{self!r}: load: {path} is {got}, "
                             f"the layer's is {own.dtype} {own.shape}")

    def to(self, xp=None, dtype=None):
        """Move the parameters to an array module (numpy, cupy) or cast them; counts stay on the
        host, and what is not trained keeps single precision where the rest gets half. What an
        optimiser remembers follows at its next step. Returns the layer."""
        if xp is not None and not hasattr(xp, "asarray"):
            raise TypeError(f"{self!r}: to: xp must be a module of arrays, got {xp!r}")
        if dtype is not None and np.dtype(dtype) not in REALS:
            raise TypeError(f"{self!r}: to: dtype must be one of {', '.join(map(str, REALS))}, "
                            f"got {np.dtype(dtype)}")
        for _, p in self.walk():
            if isinstance(p, Parameter) and p.value.dtype in REALS:
                if dtype is not None:
                    single = not p.trained and np.dtype(dtype).itemsize == 2
                    p.value, p.grad = p.value.astype("f4" if single else dtype), None
                if xp is not None and xp is not module(p.value):
                    host = p.value.get() if hasattr(p.value, "get") else p.value
                    p.value, p.grad = xp.asarray(host), None
        return self

    def train(self, training=True):
        """Set all layers to training (dropout drops, batch norm takes the batch's statistics) or,
        with False, to inference. Returns the layer."""
        for _, part in self.walk():
            if isinstance(part, Layer):
                part.training = training
        return self

    # -- arguments

    def sized(self, **extents):
        """Take extents, whole numbers of at least 1, as attributes."""
        for name, n in extents.items():
            setattr(self, name, whole(type(self).__name__, name, n))

    def share(self, **parts):
        """Take numbers from 0 to below 1 as attributes."""
        self.numbers(0, 1, **parts)

    def numbers(self, least=-inf, below=inf, **values):
        """Take numbers from `least` to below `below` as attributes."""
        for name, x in values.items():
            setattr(self, name, number(type(self).__name__, name, x, least, below))

    def given(self, x, *shape, argument="x", like=None):
        """Refuse an array that is not of `shape` (None: any extent; a first ...: any before), or
        not of dtype and device of `like`. Returns it."""
        own = getattr(like, "value", like)
        if own is None or type(x) is not type(own) or x.dtype is not own.dtype:
            self._alike(x, own, argument)
        have = x.shape
        if have != shape and not (shape[:1] == (...,) and have[1 - len(shape):] == shape[1:]
                                  or _fits(have, shape)):
            names = {None: "any", ...: "..."}
            wanted = ", ".join(str(names.get(n, n)) for n in shape)
            raise ValueError(f"{self!r}: {argument} must be of shape ({wanted}), got {have}")
        return x

    def along(self, x, axis):
        """Refuse what has no such axis. Returns it."""
        if not -self.given(x, ...).ndim <= axis < x.ndim:
            raise ValueError(f"{self!r}: x must have an axis {axis}, got {x.shape}")
        return x

    def _alike(self, x, own, argument):
        if not hasattr(x, "dtype") or not hasattr(x, "reshape"):
            raise TypeError(f"{self!r}: {argument} must be an array, got {type(x).__name__}")
        if own is not None and x.dtype != own.dtype:
            raise TypeError(f"{self!r}: {argument} must be {own.dtype}, as the layer is, "
                            f"got {x.dtype}")
        if own is None and x.dtype not in REALS:
            kinds = ", ".join(map(str, REALS))
            raise TypeError(f"{self!r}: {argument} must be one of {kinds}, got {x.dtype}")
        if own is not None and module(x) is not module(own):
            raise TypeError(f"{self!r}: {argument} must be an array of {module(own).__name__}, as "
                            f"the layer's are, got one of {module(x).__name__}")

    def indices(self, x, n=None, argument="x"):
        """Refuse what is not an array of integers, or of some that are not below n (on the CPU
        only: elsewhere their values are not waited for). Returns it."""
        if not hasattr(x, "dtype") or x.dtype.kind not in "iu":
            got = x.dtype if hasattr(x, "dtype") else type(x).__name__
            raise TypeError(f"{self!r}: {argument} must be an array of integers, got {got}")
        if n is not None and module(x).__name__ == "numpy" and x.size:
            if not 0 <= x.min() <= x.max() < n:
                raise ValueError(f"{self!r}: {argument} must be from 0 to {n - 1}, got {x.min()} "
                                 f"to {x.max()}")
        return x

    def keep(self, y, *values):
        """Remember what `backward` needs. Returns y."""
        self._kept = y, values
        return y

    def kept(self, dy):
        """What the last `forward` kept, if dy is like its answer."""
        if self._kept is None:
            raise ValueError(f"{self!r}: backward before forward")
        y, values = self._kept
        if type(dy) is not type(y) or dy.dtype is not y.dtype or dy.shape != y.shape:
            self.given(dy, *y.shape, argument="dy", like=y)
        return values

    def record(self):
        """What `backward` of this layer and all beneath needs after the last `forward`: a layer
        that is used at several times is told by `replay` which of them it answers for."""
        return [part._kept for _, part in self.walk() if isinstance(part, Layer)]

    def replay(self, record):
        """Take back what `record` gave."""
        layers = [part for _, part in self.walk() if isinstance(part, Layer)]
        for layer, kept in zip(layers, record, strict=True):
            layer._kept = kept

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(str, self.described()))})"

    def described(self):
        """What `repr` shows of a layer: its sizes."""
        return ()


def _fits(have, shape):
    """Whether extents are those of `shape`, as Layer.given has it."""
    if shape and shape[0] is ...:
        shape = shape[1:]
        have = have[max(len(have) - len(shape), 0):]
    return have == shape or len(have) == len(shape) and all(
        n is None or n == m for m, n in zip(have, shape))


class Sequential(Layer):
    """y = f_n(... f_2(f_1(x))); backward is the chain rule from the last to the first.

    A layer answers for its last forward alone, and has one place: what is to be used at two is two
    layers, which may share their parameters (`second.weight = first.weight`).
    """

    def __init__(self, *layers):
        name, places = type(self).__name__, {}
        for i, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise TypeError(f"{name}: layers must be layers, got {layer!r}")
            for part in dict.fromkeys(x for _, x in layer.walk() if isinstance(x, Layer)):
                if part in places:
                    raise ValueError(f"{name}: layers must be different ones, got {part!r} at "
                                     f"{places[part]} and {i}")
                places[part] = i
        self.layers = list(layers)

    def parts(self):
        return ((str(i), layer) for i, layer in enumerate(self.layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    SKIPS_DX = True

    def backward(self, dy, dx=True):
        """dx; without it backward ends at the first layer that has something to learn."""
        if dx:
            for layer in reversed(self.layers):
                dy = layer.backward(dy)
            return dy
        learning = [layer for layer in self.layers if layer.learns()]
        for layer in reversed(self.layers if learning else []):
            if layer is learning[0]:
                layer.backward(dy, dx=False) if layer.SKIPS_DX else layer.backward(dy)
                return None
            dy = layer.backward(dy)

    def described(self):
        return self.layers


class Residual(Layer):
    """y = x + f(x), so dx = dy + (df/dx)^T dy."""

    def __init__(self, *layers):
        self.inner = Sequential(*layers)

    def parts(self):
        return self.inner.parts()

    def forward(self, x):
        fx = self.inner.forward(x)
        if fx.shape != x.shape:
            raise ValueError(f"{self!r}: what is added to x must have its shape {x.shape}, "
                             f"got {fx.shape}")
        return added(x, fx)

    def backward(self, dy):
        return added(dy, self.inner.backward(dy))

    def described(self):
        return self.inner.layers


class Flatten(Layer):
    """A vector to a sample: (n, ...) to (n, all the rest)."""

    def forward(self, x):
        if not getattr(x, "ndim", 0):
            raise TypeError(f"{self!r}: x must be an array of shape (any, ...), got "
                            f"{type(x).__name__} of {np.shape(x)}")
        return self.keep(x.reshape(len(x), prod(x.shape[1:])), x.shape)

    def backward(self, dy):
        (shape,) = self.kept(dy)
        return dy.reshape(shape)
