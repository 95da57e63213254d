"""y = alpha x + y."""

from . import flops
from .case import Case
from .level1 import compared, near_one, two_vectors


def make(p):
    p.alpha = p.number()
    how = two_vectors(p, p.scale)
    p.call(p.x, p.y, a=p.alpha, **how)


def check(p, y):
    return compared(p, y, p.y, p.incy, (p.alpha, near_one(p, p.x, p.incx)),
                    (1.0, near_one(p, p.y, p.incy)))


CASE = Case("axpy", "blas", "y", make, check, lambda p: flops.axpy(p.n), flags="inc", limit=3,
            always=True, unit="ms", in_place=True)
