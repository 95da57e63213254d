"""The reciprocal condition number of A from its Cholesky factor."""

from . import errors
from .case import Case
from .lu_checks import estimated, lapack_factors


def make(p):
    p.A = p.positive(p.n)
    c, *_, p.indefinite = lapack_factors(p, "potrf", p.A, p.lower)
    y, e = errors.unit(p.A)
    p.call(p.hidden(c), float(errors.shift(errors.norm1(y), e)), uplo=p.uplo)


def check(p, rcond, info):
    if p.indefinite:
        return {"info": info == 0}
    return estimated(p, rcond, CASE.reference(p)[0] if p.n else 1.0, "1", False)


CASE = Case("pocon", "chol", "rcond info", make, check, flags="uplo", matrix="rand_dominant",
            modes=())
