"""Look-up tables of vectors, and positions as vectors."""

from math import prod

import numpy as np

from ._arrays import column_sums, fused, like, module, number, whole, wide
from .layer import Layer, Parameter


class Embedding(Layer):
    """y = W[x]: row x of W for every index, what a one-hot vector times W would be.

    dW = X^T dy with X the one-hot vectors, a sparse matrix: dW[k] is the sum of dy where x is k. An
    index has no derivative, so `backward` gives None.

    Parameters
    ----------
    n, width : int
        W is (n, width).
    dtype : float32, float64, float16 or bfloat16
    rng : seed or numpy.random.Generator, optional
        Draws W, normal with deviation `scale`.
    """

    def __init__(self, n, width, scale=0.02, dtype="f4", rng=None):
        self.sized(n=n, width=width)
        random = np.random.default_rng(rng).standard_normal((n, width))
        self.weight = Parameter((number("Embedding", "scale", scale) * random).astype(dtype))

    def forward(self, x):
        self.indices(x, self.n)
        return self.keep(self.weight.value[x], x)

    def backward(self, dy):
        (x,) = self.kept(dy)
        if gpu := fused(dy):
            self.weight.add(gpu.embedding_sums(x, dy, self.n))
            return
        xp, count = module(dy), x.size
        if xp.__name__ == "numpy":
            from scipy.sparse import csr_matrix
        else:
            from cupyx.scipy.sparse import csr_matrix
        dy = wide(dy)
        X = csr_matrix((xp.ones(count, dy.dtype), x.reshape(-1).astype("i4"),
                        xp.arange(count + 1, dtype="i4")), (count, self.n))
        self.weight.add(like(X.T @ dy.reshape(count, self.width), self.weight.value))

    def described(self):
        return self.n, self.width


def sinusoids(length, width, dtype="f4"):
    """(length, width) position vectors: p[t, 2i] = sin(t w_i), p[t, 2i+1] = cos(t w_i) with
    w_i = 10000^(-2i / width).

    Vaswani et al.: Attention is all you need, 2017.
    """
    frequencies = 10000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] * frequencies
    p = np.empty((length, width), dtype)
    p[:, 0::2], p[:, 1::2] = np.sin(angles), np.cos(angles)[:, :width // 2]
    return p


class Positions(Layer):
    """y[:, t] = x[:, t] + p[t], p learned or `sinusoids`. dp[t] is the sum of dy[:, t].

    `forward(x, start)` takes x as positions start, start + 1, ...
    """

    def __init__(self, length, width, learned=False, dtype="f4", rng=None):
        self.sized(length=length, width=width)
        if learned:
            random = np.random.default_rng(rng).standard_normal((length, width))
            self.weight = Parameter((0.02 * random).astype(dtype))
        else:
            self.weight = Parameter(wide(sinusoids(length, width, dtype)), trained=False)

    def forward(self, x, start=0):
        self.given(x, None, None, self.width, like=self.weight if self.weight.trained else None)
        start = whole(repr(self), "start", start, 0)
        places = slice(start, start + x.shape[1])
        if places.stop > self.length:
            raise ValueError(f"{self!r}: x must be of shape (any, {self.length - start}, "
                             f"{self.width}) at most, got {x.shape}")
        return self.keep(x + like(self.weight.value[places], x), places)

    def backward(self, dy):
        (places,) = self.kept(dy)
        if self.weight.trained:
            dw = column_sums(dy.reshape(len(dy), prod(dy.shape[1:]))).reshape(dy.shape[1:])
            if len(dw) < self.length:
                some, dw = dw, module(dy).zeros_like(self.weight.value)
                dw[places] = some
            self.weight.add(dw)
        return dy

    def described(self):
        return self.length, self.width
