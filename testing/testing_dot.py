"""x^T y, real."""

from . import errors, flops
from .case import Case, elements
from .errors import wide
from .level1 import two_vectors


def make(p):
    how = two_vectors(p, 1 / p.scale)
    p.call(p.x, p.y, **how)


def check(p, value, conjugate=False):
    x, y = wide(elements(p.x, p.n, p.incx)), wide(elements(p.y, p.n, p.incy))
    reference = (x.conj() if conjugate else x) @ y
    return {"error": errors.higham(value, reference, p.n, (1.0, x, y))}


CASE = Case("dot", "blas", "value", make, check, lambda p: flops.axpy(p.n), names="sd",
            flags="inc", limit=3, always=True, unit="ms")
