"""Solve A X = B, A a band matrix."""

from .band_checks import band_matrix, factored
from .case import Case
from .lu_checks import solved


def make(p):
    ab, p.b = band_matrix(p), p.rhs(p.n, p.nrhs)
    p.call(p.kl, p.ku, ab, p.b)


def check(p, lu, piv, x, info):
    return solved(p, x, info) | factored(p, lu, piv, info)


CASE = Case("gbsv", "band", "lub piv x info", make, check, columns="N KL KU NRHS", always=True,
            modes=())
