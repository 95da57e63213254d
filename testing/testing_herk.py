"""C = alpha A A^H + beta C or alpha A^H A + beta C, one triangle, alpha and beta real."""

from . import flops
from .case import Case
from .errors import H
from .testing_syrk import check, make

CASE = Case("herk", "blas", "C", lambda p: make(p, H), lambda p, C: check(p, C, H),
            lambda p: flops.syrk(p.k, p.n), names="cz", flags={"uplo": None, "trans": "NC"},
            columns="N K", limit=3, always=True, unit="ms")
