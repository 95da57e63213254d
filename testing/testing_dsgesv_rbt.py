"""Solve A X = B by LU in single precision between random butterflies and refinement: dsgesv_rbt.

iter < 0 is the fallback to double precision, a failure unless --allow-fallback."""

import numpy as np

from . import flops
from .case import Case
from .lu_checks import solved
from .testing_dsgesv import make


def check(p, x, iter, info):
    if info:
        return {"info": np.linalg.matrix_rank(p.A) < p.n, "iter": True}
    return solved(p, x)


CASE = Case("dsgesv_rbt", "mixed", "x iter info", make, check,
            lambda p: flops.gesv(p.n, p.nrhs), names={"d": "dsgesv_rbt"}, columns="N NRHS",
            always=True)
