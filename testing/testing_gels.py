"""Least squares or minimum norm solution by QR or LQ, A of full rank."""

import numpy as np

from . import errors, flops
from .case import Case
from .least_squares import judged


def make(p):
    p.A, p.b = p.matrix(p.m, p.n), p.rhs(max(p.m, p.n), p.nrhs)
    p.call(p.A, p.b, trans="N" if p.trans == "N" else p.H)


def check(p, lqr, x, info):
    return solved(p.A, p.b, p.trans, lqr, x, info)


def solved(A, b, trans, lqr, x, info):
    """Judge what gels gives for one matrix."""
    if info:
        return {"info": bool(lqr[info - 1, info - 1] == 0)}
    m, n = A.shape
    gram = errors.H(A) if m < n else A
    R = np.triu(lqr[:n]) if m >= n else errors.H(np.tril(lqr[:, :m]))
    (gram, e), R = errors.unit(gram), errors.wide(R)
    R = errors.shift(R, -e)
    factor = errors.ratio(errors.fro(errors.H(R) @ R - errors.H(gram) @ gram),
                          errors.fro(gram) ** 2) / max(m, n, 1)
    return judged(errors.op(A, trans), x, b) | {
        "|R^H*R-A^H*A|": factor, "finite": bool(np.isfinite(lqr).all())}


CASE = Case("gels", "qr", "lqr x info", make, check, lambda p: flops.gels(p.m, p.n, p.nrhs),
            columns="M N NRHS", flags={"trans": "NC"}, always=True)
