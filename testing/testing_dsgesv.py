"""Solve A X = B by LU in single precision and refinement: dsgesv, zcgesv.

iter < 0 is the fallback to double precision, a failure unless --allow-fallback."""

import numpy as np

from . import errors, flops
from .case import Case
from .lu_checks import solved


def make(p):
    p.A, p.b = p.matrix(p.n, p.n), p.rhs(p.n, p.nrhs)
    p.call(p.A, p.b)


def check(p, x, piv, iter, info):
    if info:
        return {"info": np.linalg.matrix_rank(p.A) < p.n, "iter": True}
    return solved(p, x) | {"pivots": errors.pivots(piv, p.n) and pivoting(p.A, piv)}


def pivoting(A, piv):
    """The pivots are those of A, but for ties within single precision."""
    try:
        L = np.tril(errors.unpivoted(errors.permuted(errors.unit(A)[0], piv)), -1)
    except np.linalg.LinAlgError:  # a pivot is zero
        return False
    return np.max(abs(L), initial=0.0) < 1.1 * (2**0.5 if L.dtype.kind == "c" else 1)


CASE = Case("dsgesv", "mixed", "x piv iter info", make, check,
            lambda p: flops.gesv(p.n, p.nrhs), names={"d": "dsgesv", "z": "zcgesv"},
            columns="N NRHS", always=True)
