"""Euclidean norm, without overflow on the way."""

import numpy as np

from . import errors, flops
from .case import Case
from .level1 import ONE_INC, near_one, one_vector


def make(p):
    how = one_vector(p)
    p.call(p.x, **how)


def check(p, value, norm=errors.fro):
    reference = norm(near_one(p, p.x, p.incx))
    value = errors.shift(float(value), -p.exponent)
    if reference >= 2.0 ** -p.exponent * np.finfo(p.real).max:
        return {"overflow": bool(np.isinf(value))}
    return {"error": errors.ratio(abs(value - reference), (p.n + 2) ** 0.5 * reference)}


CASE = Case("nrm2", "blas", "value", make, check, lambda p: flops.axpy(p.n), flags=ONE_INC, limit=3,
            names={"s": "snrm2", "d": "dnrm2", "c": "scnrm2", "z": "dznrm2"}, always=True,
            unit="ms")
