"""B = alpha op(A) B or alpha B op(A), A triangular."""

from . import errors, flops
from .case import Case
from .errors import op, wide


def make(p, solve=False):
    p.A = p.triangular(p.m if p.side == "L" else p.n)
    p.B = p.rhs(p.m, p.n) if solve else p.operand(p.m, p.n)
    p.alpha = p.number()
    p.call(p.alpha, p.hidden(p.A), p.B, side=int(p.side == "R"), lower=p.lower,
           trans_a="NTC".index(p.transA), diag=int(p.diag == "U"))


def check(p, B):
    A, B0 = op(wide(p.A), p.transA), wide(p.B)
    product = A @ B0 if p.side == "L" else B0 @ A
    return {"error": errors.higham(B, p.alpha * product, len(A), (p.alpha, A, B0))}


CASE = Case("trmm", "blas", "B", make, check, lambda p: flops.trmm(p.side, p.m, p.n),
            flags="side uplo transA diag", columns="M N", matrix="rand_dominant", limit=3,
            always=True, unit="ms")
