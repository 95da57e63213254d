"""Solve A X = B for many small matrices by LU."""

from . import flops
from .case import Case
from .lu_checks import factored, solved
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.matrix(p.n, p.n))
    p.b = p.rhs(p.batch, p.n, p.nrhs)
    p.call(p.A, p.b)


def check(p, lu, piv, x, info):
    return solved(p, x, info) | factored(p, lu, piv, info)


CASE = Case("gesv_batched", "batched", "lu piv x info", make, check,
            lambda p: flops.times(p.batch, flops.gesv(p.n, p.nrhs)),
            columns="BatchCount N NRHS", always=True, unit="ms", lapack=by_members("gesv"),
            modes=("native", "vendor"))
