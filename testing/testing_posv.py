"""Solve A X = B by Cholesky."""

from . import errors, flops
from .case import Case
from .lu_checks import solved


def make(p):
    p.A, p.b = p.positive(p.n), p.rhs(p.n, p.nrhs)
    p.stored = p.hidden(p.A)
    p.call(p.stored, p.b, lower=p.lower)


def check(p, c, x, info):
    error, right = errors.cholesky_info(p.A, c, p.uplo, info, p.eps)
    return solved(p, x, info) | {"|A-LL^H|/(N*|A|)": error, "info": right,
                                 "triangle": errors.untouched(c, p.stored, p.uplo)}


CASE = Case("posv", "chol", "c x info", make, check, lambda p: flops.posv(p.n, p.nrhs),
            flags="uplo", columns="N NRHS", matrix="rand_dominant", always=True)
