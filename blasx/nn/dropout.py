"""Dropout."""

import numpy as np

from ._arrays import module
from .layer import Layer, Parameter


class Dropout(Layer):
    """In training y = x m / (1 - p), each m 0 with probability p, else 1; dx = dy m / (1 - p).
    In inference y = x.

    The t-th mask follows from `seed` and t alone, and t is part of the layer's state: training
    that goes on from a checkpoint draws what it would have drawn.

    Srivastava et al.: Dropout, a simple way to prevent neural networks from overfitting, 2014.
    """

    def __init__(self, p, seed=0):
        if not 0 <= p < 1:
            raise ValueError(f"Dropout: p must be in [0, 1), got {p}")
        self.p, self.seed = p, seed
        self.drawn = Parameter(np.array(0), trained=False)

    def forward(self, x):
        self.given(x, ...)
        if not self.training or self.p == 0:
            return self.keep(x, None)
        seed = np.random.SeedSequence((self.seed, int(self.drawn.value))).generate_state(2, "u8")
        self.drawn.value = self.drawn.value + np.int64(1)
        random = module(x).random.default_rng(int(seed[0])).random(x.shape, x.dtype)
        mask = (random >= self.p) * x.dtype.type(1 / (1 - self.p))
        return self.keep(x * mask, mask)

    def backward(self, dy):
        (mask,) = self.kept(dy)
        return dy if mask is None else dy * mask

    def described(self):
        return (self.p,)
