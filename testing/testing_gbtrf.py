"""LU of a band matrix."""

from .band_checks import band_matrix, factored
from .case import Case


def make(p):
    p.call(band_matrix(p), p.kl, p.ku)


def check(p, lu, piv, info):
    return factored(p, lu, piv, info)


CASE = Case("gbtrf", "band", "lu piv info", make, check, columns="N KL KU", modes=())
