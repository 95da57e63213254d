"""Bunch-Kaufman: A = L D L^T, A symmetric (complex too) and indefinite."""

import numpy as np

from . import flops
from .case import Case
from .indefinite_checks import factored


def make(p, transpose=np.transpose):
    p.A = p.hermitian(p.n, transpose)
    p.stored = p.hidden(p.A)
    p.call(p.stored, lower=p.lower)


def check(p, ldu, ipiv, info):
    return factored(p, ldu, ipiv, info, hermitian=False)


CASE = Case("sytrf", "hesv", "ldu ipiv info", make, check, lambda p: flops.sytrf(p.n),
            flags="uplo")
