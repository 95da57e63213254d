"""y = alpha A x + beta y, A symmetric and packed."""

from numpy import transpose

from . import flops
from .case import Case
from .level2 import check_product, product
from .storage import packed


def make(p):
    p.A = p.hermitian(p.n, transpose)
    product(p, p.A.shape, p.n, packed(p.A, p.uplo), lower=p.lower)


def check(p, y):
    return check_product(p, y, p.A, p.n)


CASE = Case("spmv", "blas", "y", make, check, lambda p: flops.symv(p.n), flags="uplo inc",
            limit=3, always=True, unit="ms")
