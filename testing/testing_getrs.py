"""Solve op(A) X = B with the factors of getrf."""

from . import flops
from .case import Case
from .errors import op
from .lu_checks import lapack_factors, solved


def make(p):
    p.A, p.b = p.matrix(p.n, p.n), p.rhs(p.n, p.nrhs)
    p.lu, p.piv, p.singular = lapack_factors(p, "getrf", p.A)
    p.call(p.lu, p.piv, p.b, trans="NTC".index(p.trans))


def check(p, x, info):
    return {"info": info == 0} if p.singular else solved(p, x, info, op(p.A, p.trans))


CASE = Case("getrs", "lu", "x info", make, check, lambda p: flops.getrs(p.n, p.nrhs),
            flags="trans", columns="N NRHS", always=True)
