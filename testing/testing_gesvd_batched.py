"""Singular values and vectors of many matrices; jobu n: values, s: thin, a: all vectors."""

import numpy as np

from . import testing_gesvd
from .case import Case
from .members import by_members


class _Member:
    """One member's Problem, as the tester of one matrix takes it."""

    def __init__(self, p, i):
        self.A, self.truth, self.jobu = p.A[i], np.full(min(p.A.shape[1:]), np.nan), p.jobu


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    p.call(p.A, compute_uv=int(p.jobu != "N"), full_matrices=int(p.jobu == "A"))


def check(p, u, s, vt, info):
    found = {}
    for i in range(p.batch):
        one = testing_gesvd.check(_Member(p, i), u[i], s[i], vt[i], info[i])
        for what, value in one.items():
            worse = min if isinstance(value, bool) else np.maximum  # nan stays
            found[what] = worse(found.get(what, value), value)
    return {what: x if isinstance(x, bool) else float(x) for what, x in found.items()}


CASE = Case("gesvd_batched", "batched", "u s vt info", make, check, flags="jobu",
            columns="BatchCount M N", unit="ms", lapack=by_members("gesvd"), modes=("native",))
