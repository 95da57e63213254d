"""Solve A X = B for many small matrices, with the factors of potrf_batched."""

import numpy as np
import scipy.linalg.lapack

from . import errors, flops
from .case import Case
from .lu_checks import SOLVED
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.positive(p.n))
    p.b = p.rhs(p.batch, p.n, p.nrhs)
    potrf = getattr(scipy.linalg.lapack, p.letter + "potrf")
    factors = [potrf(a, p.lower) for a in p.A] or [(np.zeros((p.n, p.n), p.dtype), 0)]
    c, indefinite = (np.stack(x)[:p.batch] for x in zip(*factors))
    p.regular = indefinite == 0
    p.call(p.hidden(c), p.b, lower=p.lower)


def check(p, x, info):
    return {SOLVED: errors.solve(p.A[p.regular], x[p.regular], p.b[p.regular])}


CASE = Case("potrs_batched", "batched", "x info", make, check,
            lambda p: flops.times(p.batch, flops.potrs(p.n, p.nrhs)), flags="uplo",
            columns="BatchCount N NRHS", matrix="rand_dominant", always=True, unit="ms",
            lapack=by_members("potrs"), modes=("native", "vendor"))
