"""Inverses of many small matrices from their LU factors."""

import numpy as np

from . import errors, flops
from .case import Case
from .members import by_members, member_factors


def make(p):
    p.A = p.stack(lambda: p.matrix(p.n, p.n))
    p.lu, p.piv, p.singular = member_factors(p, "getrf")
    p.call(p.lu, p.piv)


def check(p, inverse, info):
    good = p.singular == 0
    worst = errors.largest(errors.inverse(a, x) for a, x in zip(p.A[good], inverse[good]))
    return {"||I-A*A^{-1}||_1/(N*cond(A))": worst,
            "info": bool(np.array_equal(info, p.singular)),
            "kept": bool(np.array_equal(inverse[~good], p.lu[~good], equal_nan=True))}


CASE = Case("getri_batched", "batched", "inv_a info", make, check,
            lambda p: flops.times(p.batch, flops.getri(p.n)), columns="BatchCount N", unit="ms",
            lapack=by_members("getri"))
