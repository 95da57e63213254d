"""Activations: functions of one number, and softmax, a function of a vector.

Of a function of one number f, dx = f'(x) dy; f' is written by x or by y = f(x), whichever is short.
"""

from math import inf, pi, sqrt

from ._arrays import fused, like, module, whole, wide
from .layer import Layer


def sigmoid(x):
    """1 / (1 + e^-x) by powers that do not overflow: e^min(x, 0) / (1 + e^-|x|)."""
    xp = module(x)
    return xp.exp(xp.minimum(x, 0)) / (1 + xp.exp(-abs(x)))


def softplus(x):
    """log(1 + e^x), with e^-|x| so that it does not overflow."""
    xp = module(x)
    return xp.maximum(x, 0) + xp.log1p(xp.exp(-abs(x)))


def softmax(x, axis=-1):
    """e^x_i / sum_j e^x_j; the largest x_j is taken from all first, which changes nothing but
    what overflows. Where every x_j is -inf the answer is 0: nothing was there to choose."""
    if (gpu := fused(x)) and axis in (-1, x.ndim - 1):
        return gpu.softmax(x)
    if not x.size:
        return x.copy()
    xp, given, x = module(x), x, wide(x)
    top = x.max(axis, keepdims=True)
    e = xp.exp(x - xp.where(xp.isneginf(top), 0, top))
    total = e.sum(axis, keepdims=True)
    e /= xp.where(total == 0, 1, total)
    return like(e, given)


def log_softmax(x, axis=-1):
    """x_i - log sum_j e^x_j, the largest x_j taken from all first."""
    if (gpu := fused(x)) and axis in (-1, x.ndim - 1):
        return gpu.softmax(x, log=True)
    if not x.size:
        return x.copy()
    xp, given, x = module(x), x, wide(x)
    x = x - x.max(axis, keepdims=True)
    return like(x - xp.log(xp.exp(x).sum(axis, keepdims=True)), given)


class Activation(Layer):
    """y = f(x), number by number. A subclass gives `function(x)` and `derivative(x, y)`, and, if
    kernels/activation.cu has it, its name there and its `factor`."""

    NAME, factor = None, 0.0

    def forward(self, x):
        self.given(x, ...)
        gpu = fused(x)
        y = gpu.activation(self.NAME, x, self.factor) if gpu and self.NAME else like(
            self.function(wide(x)), x)
        return self.keep(y, x, y)

    def backward(self, dy):
        x, y = self.kept(dy)
        if (gpu := fused(dy)) and self.NAME:
            return gpu.activation_backward(self.NAME, dy, x, y, self.factor)
        return like(dy * self.derivative(wide(x), wide(y)), dy)


class ReLU(Activation):
    """max(x, 0); the derivative at 0 is 0."""

    NAME = "relu"

    def function(self, x):
        return module(x).maximum(x, 0)

    def derivative(self, x, y):
        return x > 0


class Tanh(Activation):
    """tanh x, with the derivative 1 - y^2."""

    NAME = "tanh"

    def function(self, x):
        return module(x).tanh(x)

    def derivative(self, x, y):
        return 1 - y * y


class Sigmoid(Activation):
    """1 / (1 + e^-x), with the derivative y (1 - y)."""

    NAME = "sigmoid"

    def function(self, x):
        return sigmoid(x)

    def derivative(self, x, y):
        return y * (1 - y)


class ELU(Activation):
    """x where x > 0, else alpha (e^x - 1), with the derivative y + alpha there.

    Clevert, Unterthiner, Hochreiter: Fast and accurate deep network learning by exponential
    linear units, 2016.
    """

    NAME = "elu"

    def __init__(self, alpha=1.0):
        self.numbers(alpha=alpha, factor=alpha)

    def function(self, x):
        xp = module(x)
        return xp.where(x > 0, x, self.alpha * xp.expm1(xp.minimum(x, 0)))

    def derivative(self, x, y):
        return module(x).where(x > 0, 1, y + self.alpha)


class GELU(Activation):
    """x P(x), P the normal distribution function: P(x) = (1 + erf(x / sqrt 2)) / 2.

    `approximate`: P(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.

    Hendrycks, Gimpel: Gaussian error linear units, 2016.
    """

    def __init__(self, approximate=False):
        self.approximate, self.NAME = approximate, "gelu_tanh" if approximate else "gelu"

    def function(self, x):
        return x * self.distribution(x)

    def distribution(self, x):
        xp = module(x)
        if self.approximate:
            return 0.5 + 0.5 * xp.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))
        if xp.__name__ == "numpy":
            from scipy.special import erf
        else:
            from cupyx.scipy.special import erf
        return 0.5 + 0.5 * erf(x * sqrt(0.5))

    def derivative(self, x, y):
        """P + x P'."""
        p = self.distribution(x)
        if self.approximate:  # tanh' = 1 - tanh^2 = 4 P (1 - P)
            density = 2 * p * (1 - p) * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x)
        else:
            density = module(x).exp(-0.5 * x * x) * sqrt(0.5 / pi)
        return p + x * density


class Softplus(Activation):
    """log(1 + e^x), with the derivative sigmoid(x)."""

    NAME = "softplus"

    def function(self, x):
        return softplus(x)

    def derivative(self, x, y):
        return sigmoid(x)


class Swish(Activation):
    """x sigmoid(beta x); with s the sigmoid, the derivative is s + beta y (1 - s).

    Ramachandran, Zoph, Le: Searching for activation functions, 2017.
    """

    NAME = "swish"

    def __init__(self, beta=1.0):
        self.numbers(beta=beta, factor=beta)

    def function(self, x):
        return x * sigmoid(self.beta * x)

    def derivative(self, x, y):
        s = sigmoid(self.beta * x)
        return s + self.beta * y * (1 - s)


class Softmax(Layer):
    """y = softmax(x) along an axis; dx = y (dy - sum_j dy_j y_j)."""

    def __init__(self, axis=-1):
        self.axis = whole("Softmax", "axis", axis, -inf)

    def forward(self, x):
        y = softmax(self.along(x, self.axis), self.axis)
        return self.keep(y, y)

    def backward(self, dy):
        (y,) = self.kept(dy)
        if (gpu := fused(dy)) and self.axis in (-1, y.ndim - 1):
            return gpu.softmax_backward(dy, y)
        y = wide(y)
        return like(y * (dy - (dy * y).sum(self.axis, keepdims=True)), dy)


class LogSoftmax(Layer):
    """y = log softmax(x) along an axis; dx = dy - e^y sum_j dy_j."""

    def __init__(self, axis=-1):
        self.axis = whole("LogSoftmax", "axis", axis, -inf)

    def forward(self, x):
        y = log_softmax(self.along(x, self.axis), self.axis)
        return self.keep(y, y)

    def backward(self, dy):
        (y,) = self.kept(dy)
        if (gpu := fused(dy)) and self.axis in (-1, y.ndim - 1):
            return gpu.softmax_backward(dy, y, log=True)
        total = wide(dy).sum(self.axis, keepdims=True)
        return like(dy - module(y).exp(wide(y)) * total, dy)
