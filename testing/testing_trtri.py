"""The inverse of a triangular matrix."""

from . import errors, flops
from .case import Case
from .storage import half


def make(p):
    p.A = p.triangular(p.n)
    p.stored = p.hidden(p.A)
    p.call(p.stored, lower=p.lower, unitdiag=int(p.diag == "U"))


def check(p, inverse, info):
    zero = errors.first_zero(p.A.diagonal())
    found = {"info": int(info) == zero,
             "triangle": errors.untouched(inverse, p.stored, p.uplo)}
    if not zero:
        X = half(inverse, p.uplo).copy()
        if p.diag == "U":
            X[range(p.n), range(p.n)] = 1
        found["||I-A*A^{-1}||_1/(N*cond(A))"] = errors.inverse(p.A, X)
    return found


CASE = Case("trtri", "aux", "inv_c info", make, check, lambda p: flops.trtri(p.n),
            flags="uplo diag", matrix="rand_dominant")
