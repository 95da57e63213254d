"""LU of many small matrices."""

from . import flops
from .case import Case
from .lu_checks import factored
from .members import by_members


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    p.call(p.A)


def check(p, lu, piv, info):
    return factored(p, lu, piv, info, "||PA-LU||/(||A||*N)")


CASE = Case("getrf_batched", "batched", "lu piv info", make, check,
            lambda p: flops.times(p.batch, flops.getrf(p.m, p.n)), columns="BatchCount M N",
            unit="ms", lapack=by_members("getrf"), modes=("native", "vendor"))
