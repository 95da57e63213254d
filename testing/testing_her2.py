"""A = alpha x y^H + conj(alpha) y x^H + A, one triangle of a Hermitian A."""

from . import flops
from .case import Case
from .testing_syr2 import check, make

CASE = Case("her2", "blas", "A", lambda p: make(p, True), lambda p, A: check(p, A, True),
            lambda p: flops.syr2(p.n), names="cz", flags="uplo inc", limit=3, always=True,
            unit="ms")
