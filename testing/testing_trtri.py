"""The inverse of a triangular matrix."""

import numpy as np

from . import errors, flops
from .case import Case
from .storage import half


def make(p):
    p.A = p.triangular(p.n)
    p.stored = p.hidden(p.A)
    p.call(p.stored, lower=p.lower, unitdiag=int(p.diag == "U"))


def check(p, inverse, info):
    zero = np.flatnonzero(p.A.diagonal() == 0)
    found = {"info": int(info) == (zero[0] + 1 if len(zero) else 0),
             "triangle": errors.untouched(inverse, p.stored, p.uplo)}
    if not len(zero):
        X = half(inverse, p.uplo).copy()
        if p.diag == "U":
            X[range(p.n), range(p.n)] = 1
        found["||I-A*A^{-1}||_1/(N*cond(A))"] = errors.inverse(p.A, X)
    return found


CASE = Case("trtri", "aux", "inv_c info", make, check, lambda p: flops.trtri(p.n),
            flags="uplo diag", matrix="rand_dominant")
