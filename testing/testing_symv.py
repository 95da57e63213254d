"""y = alpha A x + beta y, A symmetric."""

from . import flops
from .case import Case
from .level2 import check_product, product


def make(p):
    p.A = p.hermitian(p.n)
    product(p, p.A.shape, p.hidden(p.A), lower=p.lower)


def check(p, y):
    return check_product(p, y, p.A, p.n)


CASE = Case("symv", "blas", "y", make, check, lambda p: flops.symv(p.n), names="sd",
            flags="uplo inc", limit=3, always=True, unit="ms")
