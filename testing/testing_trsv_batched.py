"""Solve op(A) x = b for many vectors, A triangular."""

from . import errors, flops
from .case import Case
from .errors import op, wide
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.triangular(p.n))
    p.b = p.rhs(p.batch, p.n)
    p.call(p.hidden(p.A), p.b, lower=p.lower, trans="NTC".index(p.trans),
           diag=int(p.diag == "U"))


def check(p, x):
    A = op(wide(p.A), p.trans)
    return {"error": errors.largest(errors.residual(*of) for of in zip(A, wide(x), wide(p.b)))}


CASE = Case("trsv_batched", "batched", "x", make, check,
            lambda p: flops.times(p.batch, flops.trmv(p.n)), flags="uplo trans diag",
            columns="BatchCount N", matrix="rand_dominant", limit=100, always=True, unit="ms",
            lapack=by_members("trsv"), modes=("native",))
