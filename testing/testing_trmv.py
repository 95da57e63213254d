"""x = op(A) x, A triangular."""

from . import flops
from .case import Case
from .level2 import check_multiplied, triangular


def make(p):
    T = p.triangular(p.n)
    triangular(p, T, p.hidden(T))


CASE = Case("trmv", "blas", "x", make, check_multiplied, lambda p: flops.trmv(p.n),
            flags={"uplo": None, "trans": None, "diag": None, "inc": ((1, 1), (-2, -2))},
            columns="N", matrix="rand_dominant", limit=3, always=True, unit="ms")
