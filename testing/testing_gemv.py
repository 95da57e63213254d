"""y = alpha op(A) x + beta y."""

from . import flops
from .case import Case
from .errors import op
from .level2 import check_product, product


def make(p):
    p.A = p.matrix(p.m, p.n)
    product(p, op(p.A, p.trans).shape, p.A, trans="NTC".index(p.trans))


def check(p, y):
    A = op(p.A, p.trans)
    return check_product(p, y, A, A.shape[1])


CASE = Case("gemv", "blas", "y", make, check, lambda p: flops.gemv(p.m, p.n),
            flags="trans inc", columns="M N", limit=3, always=True, unit="ms")
