"""y = alpha A x + beta y, A Hermitian."""

from . import flops
from .case import Case
from .testing_symv import check, make

CASE = Case("hemv", "blas", "y", make, check, lambda p: flops.symv(p.n), names="cz",
            flags="uplo inc", limit=3, always=True, unit="ms")
