"""y = alpha A x + beta y, A Hermitian with kl diagonals on each side."""

from . import flops
from .case import Case
from .testing_sbmv import check, make

CASE = Case("hbmv", "blas", "y", make, check, lambda p: flops.gbmv(p.n, p.n, p.kl, p.kl),
            names="cz", flags="uplo inc", columns="N KL", limit=3, always=True, unit="ms")
