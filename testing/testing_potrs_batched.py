"""Solve A X = B for many small matrices, with the factors of potrf_batched."""

from . import errors, flops
from .case import Case
from .lu_checks import SOLVED
from .members import by_members, member_factors


def make(p):
    p.A = p.stack(lambda: p.positive(p.n))
    p.b = p.rhs(p.batch, p.n, p.nrhs)
    c, *_, indefinite = member_factors(p, "potrf", p.lower)
    p.regular = indefinite == 0
    p.call(p.hidden(c), p.b, lower=p.lower)


def check(p, x, info):
    return {SOLVED: errors.solve(p.A[p.regular], x[p.regular], p.b[p.regular])}


CASE = Case("potrs_batched", "batched", "x info", make, check,
            lambda p: flops.times(p.batch, flops.potrs(p.n, p.nrhs)), flags="uplo",
            columns="BatchCount N NRHS", matrix="rand_dominant", always=True, unit="ms",
            lapack=by_members("potrs"), modes=("native", "vendor"))
