"""LU without pivoting of many small matrices, diagonally dominant so that it is stable."""

import numpy as np

from . import errors, flops
from .case import Case


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    k, size = np.arange(min(p.m, p.n)), np.abs(p.A).max(initial=0)
    if size > np.finfo(p.real).max / max(1, 4 * p.n):  # so that the sums of rows do not overflow
        p.A *= p.real.type(2.0 ** -(p.n.bit_length() + 2))
    largest = np.abs(p.A).max(initial=0) or 1
    p.A[:, k, k] += (np.abs(p.A).sum(-1) + largest)[:, k].astype(p.dtype)
    p.call(p.A)


def check(p, lu, info):
    order = min(p.m, p.n)
    piv = np.broadcast_to(np.arange(order, dtype=np.int32), (p.batch, order))
    return {"||A-LU||/(||A||*N)": errors.lu(p.A, lu, piv), "info": not np.any(info)}


CASE = Case("getrf_nopiv_batched", "batched", "lu info", make, check,
            lambda p: flops.times(p.batch, flops.getrf(p.m, p.n)), columns="BatchCount M N",
            unit="ms")
