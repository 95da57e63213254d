"""C = alpha A B^H + conj(alpha) B A^H + beta C or with A^H B, one triangle, beta real."""

from . import flops
from .case import Case
from .errors import H
from .testing_syr2k import check, make

CASE = Case("her2k", "blas", "C", lambda p: make(p, H), lambda p, C: check(p, C, H),
            lambda p: flops.syr2k(p.k, p.n), names="cz", flags={"uplo": None, "trans": "NC"},
            columns="N K", limit=3, always=True, unit="ms")
