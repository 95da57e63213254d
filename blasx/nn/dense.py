"""The fully connected layer."""

import numpy as np

from ._arrays import column_sums, glorot, product
from .layer import Layer, Parameter


class Dense(Layer):
    """y = x W + b for every vector x along the last axis.

    Parameters
    ----------
    n_in, n_out : int
        W is (n_in, n_out), b is (n_out).
    bias : bool
        Whether there is a b.
    dtype : float32, float64, float16 or bfloat16
    rng : seed or numpy.random.Generator, optional
        Draws W (Glorot's uniform); b starts as 0.
    """

    SKIPS_DX = True

    def __init__(self, n_in, n_out, bias=True, dtype="f4", rng=None):
        self.sized(n_in=n_in, n_out=n_out)
        self.weight = Parameter(glorot(rng, (n_in, n_out), n_in, n_out, dtype))
        self.bias = Parameter(np.zeros(n_out, dtype)) if bias else None

    def forward(self, x):
        w = self.weight.value
        if type(x) is not type(w) or x.dtype is not w.dtype or not x.ndim or (
                x.shape[-1] != self.n_in):
            self.given(x, ..., self.n_in, like=w)
        rows = x if x.ndim == 2 else x.reshape(-1, self.n_in)
        y = product(rows, w, self.bias and self.bias.value)
        return self.keep(y if rows is x else y.reshape(*x.shape[:-1], self.n_out), rows)

    def backward(self, dy, dx=True):
        """dW = x^T dy,  db = sum of dy,  dx = dy W^T."""
        (rows,) = self.kept(dy)
        over = dy if dy.ndim == 2 else dy.reshape(-1, self.n_out)
        self.weight.add(product(rows.T, over))
        if self.bias:
            self.bias.add(column_sums(over))
        if not dx:
            return None
        dx = product(over, self.weight.value.T)
        return dx if over is dy else dx.reshape(*dy.shape[:-1], self.n_in)

    def described(self):
        return self.n_in, self.n_out
