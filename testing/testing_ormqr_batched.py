"""op(Q) C or C op(Q) for many matrices with the Q of geqrf_batched."""

import numpy as np
import scipy.linalg.lapack

from . import errors, flops
from .case import Case
from .errors import op, wide
from .qr_checks import batch_factors, form_q, worst

NAMES = {"s": "sormqr_batched", "d": "dormqr_batched", "c": "cunmqr_batched",
         "z": "zunmqr_batched"}


def make(p):
    rows = p.m if p.side == "L" else p.n
    p.k = min(p.k, rows)
    p.qr, p.tau = batch_factors(p, rows, p.k)
    p.C = p.random(p.batch, p.m, p.n)
    p.call(p.side, "N" if p.trans == "N" else p.H, p.qr, p.tau, p.C)


def check(p, cq, info):
    rows = p.m if p.side == "L" else p.n

    def right(qr, tau, c):
        Q = op(form_q(p, qr, tau, rows), p.trans)
        return Q @ wide(c) if p.side == "L" else wide(c) @ Q

    return worst({"||R||_F / ||QC||_F": errors.difference(one, right(*member))}
                 for one, *member in zip(cq, p.qr, p.tau, p.C))


def lapack(p):
    function = getattr(scipy.linalg.lapack, NAMES[p.letter].removesuffix("_batched"))
    cq = [function(*p.args[:2], qr, tau, c, 64 * max(p.m, p.n, 1))[0]
          for qr, tau, c in zip(p.qr, p.tau, p.C)]
    return np.stack(cq), np.zeros(p.batch, np.int32)


CASE = Case("ormqr_batched", "batched", "cq info", make, check, columns="BatchCount M N K",
            flops=lambda p: flops.times(p.batch, flops.ormqr(p.side, p.m, p.n, p.k)), limit=60,
            flags={"side": None, "trans": "NC"}, unit="ms", names=NAMES, lapack=lapack,
            modes=("native",))
