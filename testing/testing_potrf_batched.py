"""Cholesky of many small matrices."""

from . import errors, flops
from .case import Case
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.positive(p.n))
    p.stored = p.hidden(p.A)
    p.call(p.stored, lower=p.lower)


def check(p, c, info):
    error, right = errors.cholesky_info(p.A, c, p.uplo, info, p.eps)
    return {"|A-LL^H|/(N*|A|)": error, "info": right,
            "triangle": errors.untouched(c, p.stored, p.uplo)}


CASE = Case("potrf_batched", "batched", "c info", make, check,
            lambda p: flops.times(p.batch, flops.potrf(p.n)), flags="uplo",
            columns="BatchCount N", matrix="rand_dominant", unit="ms",
            lapack=by_members("potrf"), modes=("native", "vendor"))
