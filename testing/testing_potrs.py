"""Solve A X = B with the factor of potrf."""

import scipy.linalg.lapack

from . import flops
from .case import Case
from .lu_checks import solved


def make(p):
    p.A, p.b = p.positive(p.n), p.rhs(p.n, p.nrhs)
    c, p.indefinite = getattr(scipy.linalg.lapack, p.letter + "potrf")(p.A, p.lower)
    p.call(p.hidden(c), p.b, lower=p.lower)


def check(p, x, info):
    return {"info": info == 0} if p.indefinite else solved(p, x, info)


CASE = Case("potrs", "chol", "x info", make, check, lambda p: flops.potrs(p.n, p.nrhs),
            flags="uplo", columns="N NRHS", matrix="rand_dominant", always=True)
