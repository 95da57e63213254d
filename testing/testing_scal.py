"""x = alpha x."""

from . import flops
from .case import Case
from .level1 import ONE_INC, compared, near_one, one_vector


def make(p, real=False):
    p.alpha = p.number(real)
    how = one_vector(p)
    p.call(p.alpha, p.x, **how)


def check(p, x):
    return compared(p, x, p.x, p.incx, (p.alpha, near_one(p, p.x, p.incx)))


CASE = Case("scal", "blas", "x", make, check, lambda p: flops.scal(p.n), flags=ONE_INC, limit=3,
            always=True, unit="ms", in_place=True)
