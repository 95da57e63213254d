"""Least squares of any rank by the SVD: minimum norm, singular values, rank."""

import numpy as np

from . import errors
from .case import Case
from .least_squares import judged


def make(p):
    import blasx

    p.A, p.b = p.matrix(p.m, p.n), p.rhs(max(p.m, p.n), p.nrhs)
    query = getattr(blasx, p.letter + "gelsd_lwork")(p.m, p.n, p.nrhs)[:-1]
    p.call(p.A, p.b, *(int(np.real(size)) for size in query))


def check(p, x, s, rank, info):
    A, e = errors.unit(p.A)
    reference = np.linalg.svd(A, compute_uv=False)
    found = {"|S-Sref|": errors.difference(errors.shift(errors.wide(s), -e), reference)}
    least = max(reference, default=0) * 2 * p.eps  # LAPACK's threshold when cond < 0
    certain, possible = (np.count_nonzero(reference > least * f) for f in (1e2, 1e-2))
    found["rank"] = bool(certain <= rank <= possible)
    if rank == min(p.m, p.n):
        found |= judged(p.A, x, p.b)
    return found


CASE = Case("gelsd", "qr", "x s rank info", make, check, columns="M N NRHS", always=True, modes=())
