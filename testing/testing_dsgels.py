"""Least squares or minimum norm solution by QR in single precision and refinement: dsgels, zcgels.

iter < 0 is the fallback to double precision, a failure unless --allow-fallback."""

import numpy as np

from . import errors, flops
from .case import Case
from .least_squares import judged


def make(p):
    p.A, p.b = p.matrix(p.m, p.n), p.rhs(max(p.m, p.n), p.nrhs)
    p.call(p.A, p.b, trans="N" if p.trans == "N" else p.H)


def check(p, x, iter, info):
    if info:
        return {"info": np.linalg.matrix_rank(p.A) < min(p.m, p.n), "iter": True}
    A = errors.op(p.A, p.trans)
    found = judged(A, np.concatenate((x, np.zeros((len(p.b) - len(x), p.nrhs), x.dtype))), p.b)
    return {what: error for what, error in found.items() if what != "rest"} | {
        "iter": p.options.allow_fallback or min(p.m, p.n) < 2 or bool(iter >= 0)}


CASE = Case("dsgels", "mixed", "x iter info", make, check, lambda p: flops.gels(p.m, p.n, p.nrhs),
            names={"d": "dsgels", "z": "zcgels"}, columns="M N NRHS", flags={"trans": "NC"},
            always=True)
