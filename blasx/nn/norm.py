"""Normalisation: x^ = (x - mean) / sqrt(variance + eps), then y = gamma x^ + beta.

What mean and variance are taken over makes the kinds. Where both are of the same m elements,

    dx = (dx^ - mean(dx^) - x^ mean(dx^ x^)) / sqrt(variance + eps),   dx^ = gamma dy:

the part of dx^ that would only shift or stretch x is gone, since y does not see it.
"""

from math import inf

import numpy as np

from ._arrays import added, fused, like, module, whole, wide
from .layer import Layer, Parameter


def _through(dxhat, xhat, deviation, axes):
    """dx of dx^: the formula above."""
    shift = dxhat.mean(axes, keepdims=True)
    stretch = (dxhat * xhat).mean(axes, keepdims=True)
    return (dxhat - shift - xhat * stretch) / deviation


class BatchNorm(Layer):
    """Mean and variance of each channel over the batch, and over what else x has.

    In training those of the batch are used, and followed by running ones with which inference
    works: r := (1 - momentum) r + momentum (the batch's). The running variance is the unbiased
    one.

    Parameters
    ----------
    n : int
        Channels.
    axis : int
        Where in x they are: 1 for (n, c) and NCHW, -1 for NHWC.

    Notes
    -----
    Ioffe, Szegedy: Batch normalization, 2015.
    """

    def __init__(self, n, axis=1, momentum=0.1, eps=1e-5, dtype="f4"):
        self.sized(n=n)
        self.numbers(0, eps=eps)
        self.numbers(0, momentum=momentum)
        if momentum > 1:
            raise ValueError(f"BatchNorm: momentum must be at most 1, got {momentum}")
        self.axis = whole("BatchNorm", "axis", axis, -inf)
        self.weight = Parameter(np.ones(n, dtype))
        self.bias = Parameter(np.zeros(n, dtype))
        self.mean = Parameter(wide(np.zeros(n, dtype)), trained=False)
        self.variance = Parameter(wide(np.ones(n, dtype)), trained=False)

    def forward(self, x):
        self.given(x, ..., like=self.weight)
        if not -x.ndim <= self.axis < x.ndim or x.shape[self.axis] != self.n:
            raise ValueError(f"{self!r}: x must have {self.n} channels at axis {self.axis}, "
                             f"got {x.shape}")
        axes = tuple(a for a in range(x.ndim) if a != self.axis % x.ndim)
        along = [1] * x.ndim
        along[self.axis] = self.n
        given, x = x, wide(x)
        if self.training:
            count = x.size // self.n
            if count < 2:
                raise ValueError(f"{self!r}: x must have two elements of each channel to train "
                                 f"with, got {x.shape}")
            mean = x.mean(axes)
            centred = x - mean.reshape(along)
            variance = (centred * centred).mean(axes)
            for running, now in ((self.mean, mean), (self.variance,
                                                     variance * (count / (count - 1)))):
                value = running.value  # in place: a graph remembers where it is
                value *= 1 - self.momentum
                value += self.momentum * now
        else:
            centred, variance = x - self.mean.value.reshape(along), self.variance.value
        deviation = module(x).sqrt(variance + self.eps).reshape(along)
        xhat = centred / deviation
        y = xhat * self.weight.value.reshape(along) + self.bias.value.reshape(along)
        return self.keep(like(y, given), xhat, deviation, axes, along, self.training)

    def backward(self, dy):
        """dgamma = sum of dy x^, dbeta = sum of dy. Running statistics do not depend on x."""
        xhat, deviation, axes, along, training = self.kept(dy)
        given, dy = dy, wide(dy)
        self.weight.add(like((dy * xhat).sum(axes), given))
        self.bias.add(like(dy.sum(axes), given))
        dxhat = dy * self.weight.value.reshape(along)
        return like(_through(dxhat, xhat, deviation, axes) if training else dxhat / deviation,
                    given)

    def described(self):
        return (self.n,)


class LayerNorm(Layer):
    """Mean and variance of each vector along the last axis.

    Ba, Kiros, Hinton: Layer normalization, 2016.
    """

    def __init__(self, n, eps=1e-5, dtype="f4"):
        self.sized(n=n)
        self.numbers(0, eps=eps)
        self.weight, self.bias = Parameter(np.ones(n, dtype)), Parameter(np.zeros(n, dtype))

    def forward(self, x):
        self.given(x, ..., self.n, like=self.weight)
        if gpu := fused(x):
            if found := gpu.norm(x, self.weight.value, self.bias.value, self.eps):
                return self.keep(*found, gpu)
        given, x = x, wide(x)
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        deviation = module(x).sqrt(variance + self.eps)
        xhat = centred / deviation
        y = xhat * self.weight.value + self.bias.value
        return self.keep(like(y, given), xhat, deviation, None)

    def backward(self, dy, plus=None):
        """dgamma = sum of dy x^, dbeta = sum of dy. dx, or dx + `plus`: what goes past the norm in
        a residual."""
        *kept, gpu = self.kept(dy)
        if gpu:
            dx, dgamma, dbeta = gpu.norm_backward(dy, *kept, self.weight.value, True, plus)
            self.weight.add(dgamma)
            self.bias.add(dbeta)
            return dx
        xhat, deviation = kept
        rows, given, dy = tuple(range(dy.ndim - 1)), dy, wide(dy)
        self.weight.add(like((dy * xhat).sum(rows), given))
        self.bias.add(like(dy.sum(rows), given))
        dx = like(_through(dy * self.weight.value, xhat, deviation, -1), given)
        return dx if plus is None else added(plus, dx)

    def described(self):
        return (self.n,)


class RMSNorm(Layer):
    """y = gamma x / r with r = sqrt(mean x^2 + eps) along the last axis: nothing is taken from x,
    so with x^ = x / r only the stretching part of dx goes,

        dx = (dx^ - x^ mean(dx^ x^)) / r.

    Zhang, Sennrich: Root mean square layer normalization, 2019.
    """

    def __init__(self, n, eps=1e-5, dtype="f4"):
        self.sized(n=n)
        self.numbers(0, eps=eps)
        self.weight = Parameter(np.ones(n, dtype))

    def forward(self, x):
        self.given(x, ..., self.n, like=self.weight)
        if gpu := fused(x):
            if found := gpu.norm(x, self.weight.value, None, self.eps):
                return self.keep(*found, gpu)
        given, x = x, wide(x)
        r = module(x).sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        xhat = x / r
        return self.keep(like(xhat * self.weight.value, given), xhat, r, None)

    def backward(self, dy):
        *kept, gpu = self.kept(dy)
        if gpu:
            dx, dgamma, _ = gpu.norm_backward(dy, *kept, self.weight.value, False)
            self.weight.add(dgamma)
            return dx
        xhat, r = kept
        given, dy = dy, wide(dy)
        self.weight.add(like((dy * xhat).sum(tuple(range(dy.ndim - 1))), given))
        dxhat = dy * self.weight.value
        return like((dxhat - xhat * (dxhat * xhat).mean(-1, keepdims=True)) / r, given)

    def described(self):
        return (self.n,)


class LocalResponseNorm(Layer):
    """y_i = x_i s_i^-beta with s_i = k + alpha / size sum x_j^2 over the `size` channels j around
    i (those that there are); `axis` is where x has its channels.

    With t_i = dy_i x_i s_i^(-beta - 1), and the sum over the channels i around j,

        dx_j = dy_j s_j^-beta - 2 alpha beta / size x_j sum_i t_i.

    Krizhevsky, Sutskever, Hinton: ImageNet classification with deep convolutional networks, 2012.
    """

    def __init__(self, size=5, alpha=1e-4, beta=0.75, k=1.0, axis=1):
        self.sized(size=size)
        if size % 2 == 0:
            raise ValueError(f"LocalResponseNorm: size must be odd, got {size}")
        self.numbers(alpha=alpha, beta=beta, k=k)
        self.axis = whole("LocalResponseNorm", "axis", axis, -inf)

    def forward(self, x):
        given, x = x, wide(self.along(x, self.axis))
        s = self.k + self.alpha / self.size * self._around(x * x)
        return self.keep(like(x * s**-self.beta, given), x, s)

    def backward(self, dy):
        x, s = self.kept(dy)
        power = s**-self.beta
        t = self._around(dy * x * power / s)
        return like(dy * power - 2 * self.alpha * self.beta / self.size * x * t, dy)

    def _around(self, x):
        """Sums over the channels around each."""
        x = module(x).moveaxis(x, self.axis, 0)
        total, half = x.copy(), self.size // 2
        for d in range(1, min(half, len(x) - 1) + 1):
            total[d:] += x[:-d]
            total[:-d] += x[d:]
        return module(x).moveaxis(total, 0, self.axis)

    def described(self):
        return (self.size,)
