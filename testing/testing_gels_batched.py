"""Least squares or minimum norm solutions of many systems by QR or LQ, A of full rank."""

from . import flops
from .case import Case
from .members import by_members
from .qr_checks import worst
from .testing_gels import solved


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    p.b = p.rhs(p.batch, max(p.m, p.n), p.nrhs)
    p.call(p.A, p.b, trans="N" if p.trans == "N" else p.H)


def check(p, lqr, x, info):
    return worst(solved(a, b, p.trans, *found) for a, b, *found in zip(p.A, p.b, lqr, x, info))


CASE = Case("gels_batched", "batched", "lqr x info", make, check,
            lambda p: flops.times(p.batch, flops.gels(p.m, p.n, p.nrhs)),
            columns="BatchCount M N NRHS", flags={"trans": "NC"}, always=True, unit="ms",
            lapack=by_members("gels"), modes=("native",))
