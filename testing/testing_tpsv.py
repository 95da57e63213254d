"""Solve op(A) x = b, A triangular and packed."""

from . import flops
from .case import Case
from .level2 import check_solved, triangular
from .storage import packed


def make(p):
    T = p.triangular(p.n)
    triangular(p, T, packed(p.hidden(T), p.uplo), p.n, solve=True)


CASE = Case("tpsv", "blas", "x", make, check_solved, lambda p: flops.trmv(p.n),
            flags={"uplo": None, "trans": None, "diag": None, "inc": ((1, 1), (-2, -2))},
            columns="N", matrix="rand_dominant", limit=30, always=True, unit="ms")
