"""Solve op(A) X = B with the band factors of gbtrf."""

import scipy.linalg.lapack

from .band_checks import band_matrix
from .case import Case
from .errors import op
from .lu_checks import solved


def make(p):
    ab, p.b = band_matrix(p), p.rhs(p.n, p.nrhs)
    lu, piv, p.singular = getattr(scipy.linalg.lapack, p.letter + "gbtrf")(ab, p.kl, p.ku)
    p.call(lu, p.kl, p.ku, p.b, piv, trans="NTC".index(p.trans))


def check(p, x, info):
    return {"info": info == 0} if p.singular else solved(p, x, info, op(p.A, p.trans))


CASE = Case("gbtrs", "band", "x info", make, check, flags="trans", columns="N KL KU NRHS",
            always=True, modes=())
