"""The max, 1-, infinity or Frobenius norm; NaN and Inf must come through."""

import numpy as np

from . import errors
from .case import Case, on_device


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.call(p.norm, p.A)


def norm(A, which):
    if which == "M":
        return np.max(abs(A), initial=0.0)
    return {"1": errors.norm1, "I": errors.norm_inf, "F": errors.fro}[which](A)


def check(p, value):
    A, e = errors.unit(p.A)
    reference = float(norm(A, p.norm)) if A.size else 0.0
    if reference >= float(errors.shift(float(np.finfo(p.real).max), -e)):
        return {"overflow": bool(np.isinf(value))}
    weight = (max(p.m, p.n) + 2) ** 0.5
    return {"error": errors.ratio(abs(errors.shift(float(value), -e) - reference),
                                  weight * reference)} | propagated(p)


def propagated(p):
    """A NaN, or an Inf, anywhere is the norm."""
    found = {}
    for name, bad, seen in (("nan", np.nan, np.isnan), ("inf", np.inf, np.isinf)):
        if p.A.size:
            A = p.A.copy(order="F")
            A[p.m // 2, p.n // 3] = bad
            value = CASE.function(p.letter)(p.norm, on_device(A, p.options.device))
            found[name] = bool(seen(float(value)))
    return found


CASE = Case("lange", "aux", "value", make, check, columns="M N", flags="norm", limit=3,
            flops=lambda p: (p.m * p.n * p.dtype.itemsize, 0), rate="GByte/s", unit="ms",
            modes=("native",))
