"""LU factorization with partial pivoting of a square, tall or wide matrix: |PA-LU|, or, with -c2,
the residual of a system solved with the factors."""

from scipy.linalg import lu_solve

from . import errors, flops
from .case import Case
from .lu_checks import factored


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.b = p.rhs(p.m)
    p.call(p.A)


def check(p, lu, piv, info):
    found = factored(p, lu, piv, info)
    if p.options.check == 2 and p.m == p.n and info == 0:
        x = lu_solve((errors.wide(lu), piv), errors.wide(p.b), check_finite=False)
        found["|Ax-b|/(N*|A|*|x|)"] = errors.residual(p.A, x, p.b, errors.fro) / max(p.n, 1)
    return found


CASE = Case("getrf", "lu", "lu piv info", make, check, lambda p: flops.getrf(p.m, p.n),
            columns="M N", modes=("native", "hybrid", "vendor"))
