"""y = alpha A x + beta y, A Hermitian and packed."""

from . import flops
from .case import Case
from .level2 import product
from .storage import packed
from .testing_spmv import check


def make(p):
    p.A = p.hermitian(p.n)
    product(p, p.A.shape, p.n, packed(p.A, p.uplo), lower=p.lower)


CASE = Case("hpmv", "blas", "y", make, check, lambda p: flops.symv(p.n), names="cz",
            flags="uplo inc", limit=3, always=True, unit="ms")
