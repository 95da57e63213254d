"""Solve op(A) X = alpha B or X op(A) = alpha B, A triangular."""

from . import errors, flops
from .case import Case
from .errors import op, wide
from .testing_trmm import make


def check(p, X):
    A, X, B = op(wide(p.A), p.transA), wide(X), p.alpha * wide(p.B)
    if p.side == "R":
        A, X, B = A.T, X.T, B.T
    return {"error": errors.residual(A, X, B)}


CASE = Case("trsm", "blas", "X", lambda p: make(p, solve=True), check,
            lambda p: flops.trsm(p.side, p.m, p.n), flags="side uplo transA diag", columns="M N",
            matrix="rand_dominant", limit=100, always=True, unit="ms")
