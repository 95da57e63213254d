"""Solve op(A) X = B, A triangular; a zero on its diagonal is info."""

from . import errors, flops
from .case import Case
from .errors import op
from .lu_checks import solved


def make(p):
    p.A, p.b = p.triangular(p.n), p.rhs(p.n, p.nrhs)
    p.call(p.hidden(p.A), p.b, lower=p.lower, trans="NTC".index(p.trans),
           unitdiag=int(p.diag == "U"))


def check(p, x, info):
    return solved(p, x, info, op(p.A, p.trans)) | {
        "info": int(info) == errors.first_zero(p.A.diagonal())}


CASE = Case("trtrs", "aux", "x info", make, check, lambda p: flops.trsm("L", p.n, p.nrhs),
            flags="uplo trans diag", columns="N NRHS", matrix="rand_dominant", always=True)
