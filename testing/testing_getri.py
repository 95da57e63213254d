"""A^-1 from the factors of getrf."""

from . import errors, flops
from .case import Case
from .lu_checks import lapack_factors


def make(p):
    p.A = p.matrix(p.n, p.n)
    p.lu, p.piv, p.singular = lapack_factors(p, "getrf", p.A)
    p.call(p.lu, p.piv)


def check(p, inverse, info):
    if p.singular:
        return {"info": info == p.singular}
    return {"||I-A*A^{-1}||_1/(N*cond(A))": errors.inverse(p.A, inverse)}


CASE = Case("getri", "lu", "inv_a info", make, check, lambda p: flops.getri(p.n))
