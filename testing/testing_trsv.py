"""Solve op(A) x = b, A triangular."""

from . import flops
from .case import Case
from .level2 import check_solved, triangular


def make(p):
    T = p.triangular(p.n)
    triangular(p, T, p.hidden(T), solve=True)


CASE = Case("trsv", "blas", "x", make, check_solved, lambda p: flops.trmv(p.n),
            flags={"uplo": None, "trans": None, "diag": None, "inc": ((1, 1), (-2, -2))},
            columns="N", matrix="rand_dominant", limit=30, always=True, unit="ms")
