"""Solve op(A) X = alpha B or X op(A) = alpha B for many matrices, A triangular."""

from . import errors, flops
from .case import Case
from .errors import op, wide
from .members import by_members
from .testing_trmm_batched import make


def check(p, X):
    A, X, B = op(wide(p.A), p.transA), wide(X), p.alpha * wide(p.B)
    if p.side == "R":
        A, X, B = (x.swapaxes(-1, -2) for x in (A, X, B))
    return {"error": errors.largest(errors.residual(*of) for of in zip(A, X, B))}


CASE = Case("trsm_batched", "batched", "X", lambda p: make(p, solve=True), check,
            lambda p: flops.times(p.batch, flops.trsm(p.side, p.m, p.n)),
            flags="side uplo transA diag", columns="BatchCount M N", matrix="rand_dominant",
            limit=100, always=True, unit="ms", lapack=by_members("trsm"), modes=("native",))
