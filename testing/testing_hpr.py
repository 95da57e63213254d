"""A = alpha x x^H + A, A Hermitian and packed, alpha real."""

from . import flops
from .case import Case
from .testing_spr import check, make

CASE = Case("hpr", "blas", "ap", lambda p: make(p, True), lambda p, ap: check(p, ap, True),
            lambda p: flops.syr(p.n), names="cz", flags="uplo inc", limit=3, always=True,
            unit="ms")
