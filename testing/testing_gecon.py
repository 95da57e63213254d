"""The reciprocal condition number of A from its LU, an estimate from above."""

from . import errors
from .case import Case
from .lu_checks import estimated, lapack_factors


def make(p):
    p.A = p.matrix(p.n, p.n)
    lu, _, p.singular = lapack_factors(p, "getrf", p.A)
    y, e = errors.unit(p.A)
    norm = errors.norm1(y) if p.norm == "1" else errors.norm_inf(y)
    p.call(lu, float(errors.shift(norm, e)), norm=p.norm)


def check(p, rcond, info):
    return estimated(p, rcond, CASE.reference(p)[0] if p.n else 1.0, p.norm, bool(p.singular))


CASE = Case("gecon", "lu", "rcond info", make, check, flags={"norm": "1I"}, modes=())
