"""Solve A X = B with the factor of potrf."""

from . import flops
from .case import Case
from .lu_checks import lapack_factors, solved


def make(p):
    p.A, p.b = p.positive(p.n), p.rhs(p.n, p.nrhs)
    c, *_, p.indefinite = lapack_factors(p, "potrf", p.A, p.lower)
    p.call(p.hidden(c), p.b, lower=p.lower)


def check(p, x, info):
    return {"info": info == 0} if p.indefinite else solved(p, x, info)


CASE = Case("potrs", "chol", "x info", make, check, lambda p: flops.potrs(p.n, p.nrhs),
            flags="uplo", columns="N NRHS", matrix="rand_dominant", always=True)
