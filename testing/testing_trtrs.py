"""Solve op(A) X = B, A triangular; a zero on its diagonal is info."""

import numpy as np

from . import flops
from .case import Case
from .errors import op
from .lu_checks import solved


def make(p):
    p.A, p.b = p.triangular(p.n), p.rhs(p.n, p.nrhs)
    p.call(p.hidden(p.A), p.b, lower=p.lower, trans="NTC".index(p.trans),
           unitdiag=int(p.diag == "U"))


def check(p, x, info):
    zero = np.flatnonzero(p.A.diagonal() == 0)
    return solved(p, x, info, op(p.A, p.trans)) | {
        "info": int(info) == (zero[0] + 1 if len(zero) else 0)}


CASE = Case("trtrs", "aux", "x info", make, check, lambda p: flops.trsm("L", p.n, p.nrhs),
            flags="uplo trans diag", columns="N NRHS", matrix="rand_dominant", always=True)
