"""y = alpha A x + beta y, A symmetric with kl diagonals on each side."""

from . import flops
from .case import Case
from .level2 import check_product, product
from .storage import triangle_band, within


def make(p):
    p.A = within(p.hermitian(p.n), p.kl, p.kl)
    product(p, p.A.shape, p.kl, triangle_band(p.A, p.kl, p.uplo), lower=p.lower)


def check(p, y):
    return check_product(p, y, p.A, min(2 * p.kl + 1, p.n))


CASE = Case("sbmv", "blas", "y", make, check, lambda p: flops.gbmv(p.n, p.n, p.kl, p.kl),
            names="sd", flags="uplo inc", columns="N KL", limit=3, always=True, unit="ms")
