"""Solve A X = B, A symmetric (complex too) and indefinite."""

import numpy as np

from . import flops
from .case import Case
from .indefinite_checks import factored
from .lu_checks import solved


def make(p, transpose=np.transpose):
    p.A, p.b = p.hermitian(p.n, transpose), p.rhs(p.n, p.nrhs)
    p.stored = p.hidden(p.A)
    p.call(p.stored, p.b, lower=p.lower)


def check(p, ldu, ipiv, x, info, hermitian=False):
    return solved(p, x, info) | factored(p, ldu, ipiv, info, hermitian)


CASE = Case("sysv", "hesv", "udut ipiv x info", make, check,
            lambda p: flops.sysv(p.n, p.nrhs), flags="uplo", columns="N NRHS", always=True)
