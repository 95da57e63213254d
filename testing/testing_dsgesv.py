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
    found = solved(p, x, info) if info == 0 else {}
    singular = bool(np.linalg.matrix_rank(p.A) < p.n) if info else False
    return found | {"pivots": errors.pivots(piv, p.n), "info": info == 0 or singular,
                    "iter": True if info else p.options.allow_fallback or bool(iter >= 0)}


CASE = Case("dsgesv", "mixed", "x piv iter info", make, check,
            lambda p: flops.gesv(p.n, p.nrhs), names={"d": "dsgesv", "z": "zcgesv"},
            columns="N NRHS", always=True)
