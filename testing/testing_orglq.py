"""Q out of the reflectors of gelqf (m <= n; a tall size is turned round)."""

import numpy as np

from . import errors, flops
from .case import Case
from .errors import H
from .qr_checks import lq_factors


def make(p):
    p.m, p.n = min(p.m, p.n), max(p.m, p.n)
    p.A = p.matrix(p.m, p.n)
    p.lq, p.tau = lq_factors(p, p.A)
    p.call(p.lq, p.tau)


def check(p, q, work, info):
    return {"|A - L*Q|": errors.product(H(p.A), H(q), H(np.tril(p.lq[:, :p.m]))),
            "|I - Q*Q^H|": errors.orthogonal(H(q))}


CASE = Case("orglq", "qr", "q work info", make, check, lambda p: flops.orgqr(p.n, p.m, p.m),
            columns="M N", names={"s": "sorglq", "d": "dorglq", "c": "cunglq", "z": "zunglq"})
