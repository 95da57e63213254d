"""The row interchanges of an LU, exactly."""

import numpy as np

from . import errors
from .case import Case


def make(p):
    p.A, k = p.matrix(p.m, p.n), min(p.m, p.n)
    p.piv = (np.arange(k) + p.rng.integers(0, p.m - np.arange(k))).astype(np.int32)
    p.call(p.A, p.piv)


def check(p, a):
    return {"rows": bool(np.array_equal(a, errors.permuted(p.A, p.piv), equal_nan=True))}


CASE = Case("laswp", "aux", "a", make, check, columns="M N",
            flops=lambda p: (2 * min(p.m, p.n) * p.n * p.dtype.itemsize, 0), rate="GByte/s",
            unit="ms")
