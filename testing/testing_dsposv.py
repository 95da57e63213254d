"""Solve A X = B by Cholesky in single precision and refinement: dsposv, zcposv.

iter < 0 is the fallback to double precision, a failure unless --allow-fallback."""

import numpy as np

from . import errors, flops
from .case import Case
from .lu_checks import solved


def make(p):
    p.A, p.b = p.positive(p.n), p.rhs(p.n, p.nrhs)
    p.call(p.hidden(p.A), p.b, lower=p.lower)


def check(p, x, iter, info):
    if info == 0:
        return solved(p, x)
    definite = np.linalg.eigvalsh(errors.unit(p.A)[0])[0] > 30 * p.n * p.eps
    return {"info": not definite, "iter": True}


CASE = Case("dsposv", "mixed", "x iter info", make, check, lambda p: flops.posv(p.n, p.nrhs),
            names={"d": "dsposv", "z": "zcposv"}, flags="uplo", columns="N NRHS",
            matrix="rand_dominant", always=True)
