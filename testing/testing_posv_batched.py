"""Solve A X = B for many small matrices by Cholesky."""

from . import errors, flops
from .case import Case
from .lu_checks import solved
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.positive(p.n))
    p.b, p.stored = p.rhs(p.batch, p.n, p.nrhs), p.hidden(p.A)
    p.call(p.stored, p.b, lower=p.lower)


def check(p, c, x, info):
    error, right = errors.cholesky_info(p.A, c, p.uplo, info, p.eps)
    return solved(p, x, info) | {"|A-LL^H|/(N*|A|)": error, "info": right,
                                 "triangle": errors.untouched(c, p.stored, p.uplo)}


CASE = Case("posv_batched", "batched", "c x info", make, check,
            lambda p: flops.times(p.batch, flops.posv(p.n, p.nrhs)), flags="uplo",
            columns="BatchCount N NRHS", matrix="rand_dominant", always=True, unit="ms",
            lapack=by_members("posv"), modes=("native", "vendor"))
