"""Exchange x and y."""

import numpy as np

from . import errors
from .case import Case, elements
from .level1 import two_vectors


def make(p):
    how = two_vectors(p, p.scale)
    p.call(p.x, p.y, **how)


def check(p, x, y):
    same = (np.array_equal(elements(x, p.n, p.incx), elements(p.y, p.n, p.incy))
            and np.array_equal(elements(y, p.n, p.incy), elements(p.x, p.n, p.incx)))
    return {"exchanged": bool(same), "gaps": errors.gaps(x, p.x, p.n, p.incx)
            and errors.gaps(y, p.y, p.n, p.incy)}


CASE = Case("swap", "blas", "x y", make, check, lambda p: (2 * p.n * p.dtype.itemsize, 0),
            flags="inc", always=True, unit="ms", rate="GByte/s", in_place=True)
