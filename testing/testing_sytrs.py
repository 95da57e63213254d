"""Solve A X = B with the factors of sytrf."""

import numpy as np

from . import flops
from .case import Case
from .lu_checks import lapack_factors, solved


def make(p, kind="sy", transpose=np.transpose):
    p.A, p.b = p.hermitian(p.n, transpose), p.rhs(p.n, p.nrhs)
    ldu, ipiv, p.singular = lapack_factors(p, kind + "trf", p.A, p.lower)
    p.call(p.hidden(ldu), ipiv, p.b, lower=p.lower)


def check(p, x, info):
    return {"info": info == 0} if p.singular else solved(p, x, info)


CASE = Case("sytrs", "hesv", "x info", make, check, lambda p: flops.potrs(p.n, p.nrhs),
            flags="uplo", columns="N NRHS", always=True)
