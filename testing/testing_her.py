"""A = alpha x x^H + A, one triangle of a Hermitian A, alpha real."""

from . import flops
from .case import Case
from .testing_syr import check, make

CASE = Case("her", "blas", "A", lambda p: make(p, True), lambda p, A: check(p, A, True),
            lambda p: flops.syr(p.n), names="cz", flags="uplo inc", limit=3, always=True,
            unit="ms")
