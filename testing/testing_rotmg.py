"""The modified rotation H that zeroes the second of (sqrt(d1) x1, sqrt(d2) y1).

H turns (x1, y1) into (x1', 0), and its five numbers are those of the reference."""

import scipy.linalg.blas

from . import errors
from .case import Case
from .errors import wide


def make(p):
    p.d = p.rng.uniform(0.1, 1, 2).astype(p.dtype)
    p.x = p.random(2)
    p.call(*(float(v) for v in (*p.d, *p.x)))


def check(p, param):
    flag, _, h21, _, h22 = wide(param)
    if flag == 0:
        h22 = 1.0
    elif flag == 1:
        h21 = -1.0
    terms = h21 * float(p.x[0]), h22 * float(p.x[1])
    reference = scipy.linalg.blas.drotmg(*(float(v) for v in (*p.d, *p.x)))
    return {"error": errors.ratio(abs(sum(terms)), abs(terms[0]) + abs(terms[1])),
            "|H-Href|/|Href|": errors.difference(param, reference), "flag": flag in (-1, 0, 1)}


CASE = Case("rotmg", "blas", "param", make, check, names="sd", limit=10, always=True, unit="ms",
            modes=())
