"""Solve op(A) X = B for many small matrices, with the factors of getrf_batched."""

from . import errors, flops
from .case import Case
from .lu_checks import SOLVED
from .members import by_members, member_factors


def make(p):
    p.A = p.stack(lambda: p.matrix(p.n, p.n))
    p.b = p.rhs(p.batch, p.n, p.nrhs)
    lu, piv, singular = member_factors(p, "getrf")
    p.regular = singular == 0
    p.call(lu, piv, p.b, trans="NTC".index(p.trans))


def check(p, x, info):
    return {SOLVED: errors.solve(errors.op(p.A, p.trans)[p.regular], x[p.regular],
                                 p.b[p.regular])}


CASE = Case("getrs_batched", "batched", "x info", make, check,
            lambda p: flops.times(p.batch, flops.getrs(p.n, p.nrhs)), flags="trans",
            columns="BatchCount N NRHS", always=True, unit="ms", lapack=by_members("getrs"),
            modes=("native", "vendor"))
