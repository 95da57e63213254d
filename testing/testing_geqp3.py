"""QR with column pivoting: A P = Q R, the diagonal of R falling."""

import numpy as np

from . import errors, flops
from .case import Case
from .qr_checks import factored


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.call(p.A)


def check(p, qr, jpvt, tau, work, info):
    if sorted(jpvt) != list(range(1, p.n + 1)):
        return {"|R - Q^H*A|": np.nan, "pivots": False}
    d = abs(errors.unit(qr)[0].diagonal())
    falling = bool(np.all(d[1:] <= d[:-1] * (1 + p.n * p.options.tol * p.eps)
                          + p.n * p.options.tol * p.eps))
    return factored(p, p.A, qr, tau, np.asarray(jpvt) - 1) | {"pivots": falling}


CASE = Case("geqp3", "qr", "qr jpvt tau work info", make, check,
            lambda p: flops.geqrf(p.m, p.n), columns="M N", modes=())
