"""Solve A X = B by LU."""

from . import flops
from .case import Case
from .lu_checks import factored, solved


def make(p):
    p.A = p.matrix(p.n, p.n)
    p.b = p.rhs(p.n, p.nrhs)
    p.call(p.A, p.b)


def check(p, lu, piv, x, info):
    return solved(p, x, info) | factored(p, lu, piv, info)


CASE = Case("gesv", "lu", "lu piv x info", make, check, lambda p: flops.gesv(p.n, p.nrhs),
            columns="N NRHS", always=True)
