"""A = alpha x y^H + conj(alpha) y x^H + A, A Hermitian and packed."""

from . import flops
from .case import Case
from .testing_spr2 import check, make

CASE = Case("hpr2", "blas", "ap", lambda p: make(p, True), lambda p, ap: check(p, ap, True),
            lambda p: flops.syr2(p.n), names="cz", flags="uplo inc", limit=3, always=True,
            unit="ms")
