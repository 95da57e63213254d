"""Q out of the reflectors of geqrf (m >= n; a wide size is turned round)."""

import numpy as np

from . import errors, flops
from .case import Case
from .qr_checks import factor


def make(p):
    p.m, p.n = max(p.m, p.n), min(p.m, p.n)
    p.A = p.matrix(p.m, p.n)
    p.qr, p.tau = factor(p, p.A)
    p.call(p.qr, p.tau)


def check(p, q, work, info):
    return {"|A - Q*R|": errors.product(p.A, q, np.triu(p.qr[:p.n])),
            "|I - Q^H*Q|": errors.orthogonal(q)}


CASE = Case("orgqr", "qr", "q work info", make, check, lambda p: flops.orgqr(p.m, p.n, p.n),
            columns="M N", names={"s": "sorgqr", "d": "dorgqr", "c": "cungqr", "z": "zungqr"})
