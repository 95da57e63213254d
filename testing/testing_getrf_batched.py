"""LU of many small matrices."""

import numpy as np
import scipy.linalg.lapack

from . import flops
from .case import Case
from .lu_checks import factored


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    p.call(p.A)


def check(p, lu, piv, info):
    return factored(p, lu, piv, info, "||PA-LU||/(||A||*N)")


def lapack(p):
    getrf = getattr(scipy.linalg.lapack, p.letter + "getrf")
    lu, piv, info = zip(*map(getrf, p.A))
    return np.stack(lu), np.stack(piv), np.array(info)


CASE = Case("getrf_batched", "batched", "lu piv info", make, check,
            lambda p: flops.times(p.batch, flops.getrf(p.m, p.n)), columns="BatchCount M N",
            unit="ms", lapack=lapack, modes=("native", "vendor"))
