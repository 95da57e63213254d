"""A^-1 from the factor of potrf, one triangle."""

import numpy as np

from . import errors, flops
from .case import Case
from .lu_checks import lapack_factors
from .storage import half


def make(p):
    p.A = p.positive(p.n)
    c, *_, p.indefinite = lapack_factors(p, "potrf", p.A, p.lower)
    p.stored = p.hidden(c)
    p.call(p.stored, lower=p.lower)


def check(p, inverse, info):
    if p.indefinite:
        return {"info": info == errors.first_zero(p.stored.diagonal())}
    X = half(inverse, p.uplo)
    X = X + errors.H(X) - np.diag(X.diagonal())
    return {"||I-A*A^{-1}||_1/(N*cond(A))": errors.inverse(p.A, X),
            "triangle": errors.untouched(inverse, p.stored, p.uplo)}


CASE = Case("potri", "chol", "inv_a info", make, check, lambda p: flops.potri(p.n), flags="uplo",
            matrix="rand_dominant")
