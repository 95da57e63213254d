"""Solve A X = B with the factors of sytrf."""

import numpy as np
import scipy.linalg.lapack

from . import flops
from .case import Case
from .lu_checks import solved


def make(p, kind="sy", transpose=np.transpose):
    p.A, p.b = p.hermitian(p.n, transpose), p.rhs(p.n, p.nrhs)
    trf = getattr(scipy.linalg.lapack, p.letter + kind + "trf")
    ldu, ipiv, p.singular = trf(p.A, lower=p.lower)
    p.call(p.hidden(ldu), ipiv, p.b, lower=p.lower)


def check(p, x, info):
    return {"info": info == 0} if p.singular else solved(p, x, info)


CASE = Case("sytrs", "hesv", "x info", make, check, lambda p: flops.potrs(p.n, p.nrhs),
            flags="uplo", columns="N NRHS", always=True)
