"""C = alpha op(A) op(B) + beta C."""

from . import errors, flops
from .case import Case
from .errors import op, wide


def make(p):
    p.A = p.matrix(*((p.m, p.k) if p.transA == "N" else (p.k, p.m)))
    p.B = p.operand(*((p.k, p.n) if p.transB == "N" else (p.n, p.k)))
    p.C, p.alpha, p.beta = p.random(p.m, p.n), p.number(), p.number()
    p.call(p.alpha, p.A, p.B, beta=p.beta, c=p.C, trans_a="NTC".index(p.transA),
           trans_b="NTC".index(p.transB))


def check(p, C):
    product = p.alpha * op(wide(p.A), p.transA) @ op(wide(p.B), p.transB)
    return {"error": errors.higham(C, product + p.beta * wide(p.C), p.k,
                                   (p.alpha, p.A, p.B), (p.beta, p.C))}


CASE = Case("gemm", "blas", "C", make, check, lambda p: flops.gemm(p.m, p.n, p.k), names="sdczhb",
            flags="transA transB", columns="M N K", limit=3, always=True, unit="ms")
