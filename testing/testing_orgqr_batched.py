"""Q of many matrices out of the reflectors of geqrf_batched (m >= n; a wide size is turned
round)."""

import numpy as np
import scipy.linalg.lapack

from . import errors, flops
from .case import Case
from .qr_checks import batch_factors, worst

NAMES = {"s": "sorgqr_batched", "d": "dorgqr_batched", "c": "cungqr_batched",
         "z": "zungqr_batched"}


def make(p):
    p.m, p.n = max(p.m, p.n), min(p.m, p.n)
    p.qr, p.tau = batch_factors(p, p.m, p.n)
    p.call(p.qr, p.tau)


def check(p, q, info):
    return worst({"|A - Q*R|": errors.product(a, one, np.triu(qr[:p.n])),
                  "|I - Q^H*Q|": errors.orthogonal(one)} for a, qr, one in zip(p.A, p.qr, q))


def lapack(p):
    function = getattr(scipy.linalg.lapack, NAMES[p.letter].removesuffix("_batched"))
    q = np.stack([function(qr, tau)[0] for qr, tau in zip(p.qr, p.tau)])
    return q, np.zeros(p.batch, np.int32)


CASE = Case("orgqr_batched", "batched", "q info", make, check,
            lambda p: flops.times(p.batch, flops.orgqr(p.m, p.n, p.n)), columns="BatchCount M N",
            unit="ms", names=NAMES, lapack=lapack, modes=("native",))
