"""y = x, exactly."""

import numpy as np

from . import errors
from .case import Case, elements
from .level1 import two_vectors


def make(p):
    how = two_vectors(p, p.scale)
    p.call(p.x, p.y, **how)


def check(p, y):
    same = np.array_equal(elements(y, p.n, p.incy), elements(p.x, p.n, p.incx))
    return {"copied": bool(same), "gaps": errors.gaps(y, p.y, p.n, p.incy)}


CASE = Case("copy", "blas", "y", make, check, lambda p: (2 * p.n * p.dtype.itemsize, 0),
            flags="inc", always=True, unit="ms", rate="GByte/s", in_place=True)
