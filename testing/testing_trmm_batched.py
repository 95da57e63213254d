"""B = alpha op(A) B or alpha B op(A) for many matrices, A triangular."""

from . import errors, flops
from .case import Case
from .errors import op, wide
from .members import by_members


def make(p, solve=False):
    k = p.m if p.side == "L" else p.n
    p.A = p.stack(lambda: p.triangular(k))
    p.B = (p.rhs if solve else p.operand)(p.batch, p.m, p.n)
    p.alpha = p.number()
    p.call(p.alpha, p.hidden(p.A), p.B, side=int(p.side == "R"), lower=p.lower,
           trans_a="NTC".index(p.transA), diag=int(p.diag == "U"))


def check(p, B):
    A, B0 = op(wide(p.A), p.transA), wide(p.B)
    left, right = (A, B0) if p.side == "L" else (B0, A)
    return {"error": errors.higham(B, p.alpha * (left @ right), A.shape[-1],
                                   (p.alpha, left, right))}


CASE = Case("trmm_batched", "batched", "B", make, check,
            lambda p: flops.times(p.batch, flops.trmm(p.side, p.m, p.n)),
            flags="side uplo transA diag", columns="BatchCount M N", matrix="rand_dominant",
            limit=3, always=True, unit="ms", lapack=by_members("trmm"), modes=("native",))
