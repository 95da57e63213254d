"""A = alpha x y^T + A, real."""

import numpy as np

from . import errors, flops
from .case import Case, elements
from .errors import wide


def make(p):
    p.A, p.alpha, (p.incx, p.incy) = p.matrix(p.m, p.n), p.number(), p.inc
    p.x, p.y = p.vector(p.m, p.incx, p.scale), p.vector(p.n, p.incy)
    p.call(p.alpha, p.x, p.y, incx=p.incx, incy=p.incy, a=p.A)


def check(p, A, conjugate=False):
    x, y = wide(elements(p.x, p.m, p.incx)), wide(elements(p.y, p.n, p.incy))
    reference = p.alpha * np.outer(x, y.conj() if conjugate else y) + wide(p.A)
    return {"error": errors.higham(A, reference, 1, (p.alpha, x, y), (1.0, p.A))}


CASE = Case("ger", "blas", "A", make, check, lambda p: flops.ger(p.m, p.n), names="sd",
            flags={"inc": ((1, 1), (-1, 1))}, columns="M N", limit=3, always=True, unit="ms")
