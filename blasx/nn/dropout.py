"""Dropout."""

import numpy as np

from ._arrays import fused, like, module, whole, wide
from .layer import Layer, Parameter


class Dropout(Layer):
    """In training y = x m / (1 - p), each m 0 with probability p, else 1; dx = dy m / (1 - p).
    In inference y = x.

    The t-th mask follows from `seed` and t alone, on every device, and t is part of the layer's
    state: training that goes on from a checkpoint draws what it would have drawn.

    Srivastava et al.: Dropout, a simple way to prevent neural networks from overfitting, 2014.
    """

    def __init__(self, p, seed=0):
        self.share(p=p)
        self.seed = whole("Dropout", "seed", seed, 0)
        self.drawn = Parameter(np.array(0), trained=False)

    def forward(self, x):
        self.given(x, ...)
        if not self.training or self.p == 0:
            return self.keep(x, None, None)
        words = np.random.SeedSequence((self.seed, int(self.drawn.value))).generate_state(2)
        self.drawn.value = self.drawn.value + np.int64(1)
        limit, scale = self._limit(x)
        if gpu := fused(x):
            return self.keep(gpu.dropout(x, words, limit, scale), words, gpu)
        drawn = _mixed(module(x).arange(x.size, dtype=np.uint32), words).reshape(x.shape)
        mask = (drawn >= limit) * scale
        return self.keep(like(x * mask, x), mask, None)

    def backward(self, dy):
        mask, gpu = self.kept(dy)
        if gpu:  # its kernel draws the mask again, from the two words
            return gpu.dropout(dy, mask, *self._limit(dy))
        return dy if mask is None else like(dy * mask, dy)

    def _limit(self, x):
        """Below what a drawn number drops an element, and by what others are multiplied."""
        return int(self.p * 2**32), wide(x[:0]).dtype.type(1 / (1 - self.p))

    def described(self):
        return (self.p,)


def _mixed(h, words):
    """Numbers of 32 bits, in place: each of their bits depends on all there were, and on the words
    (twice the last step of Appleby's MurmurHash3)."""
    for word in words:
        h ^= np.uint32(word)
        h ^= h >> 16
        h *= np.uint32(0x85ebca6b)
        h ^= h >> 13
        h *= np.uint32(0xc2b2ae35)
        h ^= h >> 16
    return h
