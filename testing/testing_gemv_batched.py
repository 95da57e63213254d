"""y = alpha op(A) x + beta y for many matrices."""

from . import errors, flops
from .case import Case
from .errors import op, wide
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    rows, columns = (p.m, p.n) if p.trans == "N" else (p.n, p.m)
    p.x, p.y = p.operand(p.batch, columns), p.random(p.batch, rows)
    p.alpha, p.beta = p.number(), p.number()
    p.call(p.alpha, p.A, p.x, beta=p.beta, y=p.y, trans="NTC".index(p.trans))


def check(p, y):
    A, x, before = op(wide(p.A), p.trans), wide(p.x)[..., None], wide(p.y)[..., None]
    return {"error": errors.higham(y[..., None], p.alpha * A @ x + p.beta * before, A.shape[-1],
                                   (p.alpha, A, x), (p.beta, before))}


CASE = Case("gemv_batched", "batched", "y", make, check,
            lambda p: flops.times(p.batch, flops.gemv(p.m, p.n)), flags="trans",
            columns="BatchCount M N", limit=3, always=True, unit="ms",
            lapack=by_members("gemv"), modes=("native",))
