"""The reciprocal condition number of A from its Cholesky factor."""

import scipy.linalg.lapack

from . import errors
from .case import Case
from .lu_checks import estimated


def make(p):
    p.A = p.positive(p.n)
    c, p.indefinite = getattr(scipy.linalg.lapack, p.letter + "potrf")(p.A, p.lower)
    y, e = errors.unit(p.A)
    p.call(p.hidden(c), float(errors.shift(errors.norm1(y), e)), uplo=p.uplo)


def check(p, rcond, info):
    if p.indefinite:
        return {"info": info == 0}
    return estimated(p, rcond, CASE.reference(p)[0], "1", False)


CASE = Case("pocon", "chol", "rcond info", make, check, flags="uplo", matrix="rand_dominant",
            modes=())
