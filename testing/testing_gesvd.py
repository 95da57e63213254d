"""Singular values and vectors by QR iteration; jobu n: values, s: thin, a: all vectors."""

import numpy as np

from . import errors
from .case import Case


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.truth = p.sigma
    p.call(p.A, compute_uv=int(p.jobu != "N"), full_matrices=int(p.jobu == "A"))


def check(p, u, s, vt, info):
    A, e = errors.unit(p.A)
    known = not np.isnan(p.truth).any()
    reference = errors.shift(p.truth, -e) if known else np.linalg.svd(A, compute_uv=False)
    found = {"|S-Sref|": errors.difference(errors.shift(errors.wide(s), -e), reference)}
    if p.jobu != "N":
        found |= {"|A-USV^H|": errors.svd(p.A, u, s, vt), "|I-UU^H|/M": errors.orthogonal(u),
                  "|I-VV^H|/N": errors.orthogonal(errors.H(vt))}
    return found | {"S sorted": errors.ordered(s, descending=True) and bool(np.all(s >= 0))}


CASE = Case("gesvd", "svd", "u s vt info", make, check, flags="jobu", columns="M N")
