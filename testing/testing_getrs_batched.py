"""Solve op(A) X = B for many small matrices, with the factors of getrf_batched."""

import numpy as np
import scipy.linalg.lapack

from . import errors, flops
from .case import Case
from .lu_checks import SOLVED
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.matrix(p.n, p.n))
    p.b = p.rhs(p.batch, p.n, p.nrhs)
    getrf = getattr(scipy.linalg.lapack, p.letter + "getrf")
    factors = [getrf(a) for a in p.A] or [(np.zeros((p.n, p.n), p.dtype), np.zeros(p.n), 0)]
    lu, piv, singular = (np.stack(x)[:p.batch] for x in zip(*factors))
    p.regular = singular == 0
    p.call(lu, piv.astype(np.int32), p.b, trans="NTC".index(p.trans))


def check(p, x, info):
    return {SOLVED: errors.solve(errors.op(p.A, p.trans)[p.regular], x[p.regular],
                                 p.b[p.regular])}


CASE = Case("getrs_batched", "batched", "x info", make, check,
            lambda p: flops.times(p.batch, flops.getrs(p.n, p.nrhs)), flags="trans",
            columns="BatchCount N NRHS", always=True, unit="ms", lapack=by_members("getrs"),
            modes=("native", "vendor"))
