"""C = alpha A B + beta C or alpha B A + beta C for many matrices, A symmetric."""

import numpy as np

from . import errors, flops
from .case import Case
from .errors import wide
from .members import by_members


def make(p, transpose=np.transpose):
    p.A = p.stack(lambda: p.hermitian(p.m if p.side == "L" else p.n, transpose))
    p.B, p.C = p.operand(p.batch, p.m, p.n), p.random(p.batch, p.m, p.n)
    p.alpha, p.beta = p.number(), p.number()
    p.call(p.alpha, p.hidden(p.A), p.B, beta=p.beta, c=p.C, side=int(p.side == "R"),
           lower=p.lower)


def check(p, C):
    A, B = wide(p.A), wide(p.B)
    product = A @ B if p.side == "L" else B @ A
    return {"error": errors.higham(C, p.alpha * product + p.beta * wide(p.C), A.shape[-1],
                                   (p.alpha, A, B), (p.beta, p.C))}


CASE = Case("symm_batched", "batched", "C", make, check,
            lambda p: flops.times(p.batch, flops.symm(p.side, p.m, p.n)), flags="side uplo",
            columns="BatchCount M N", limit=3, always=True, unit="ms",
            lapack=by_members("symm"), modes=("native",))
