"""Least squares or minimum norm solutions of many systems by QR or LQ, A of full rank."""

from . import flops
from .case import Case
from .errors import op
from .least_squares import judged
from .members import by_members
from .qr_checks import worst


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    p.b = p.rhs(p.batch, max(p.m, p.n), p.nrhs)
    p.call(p.A, p.b, trans="N" if p.trans == "N" else p.H)


def check(p, lqr, x, info):
    return worst({"info": bool(f[k - 1, k - 1] == 0)} if k else {"info": True} | judged(
        op(a, p.trans), y, b) for a, b, f, y, k in zip(p.A, p.b, lqr, x, info))


CASE = Case("gels_batched", "batched", "lqr x info", make, check,
            lambda p: flops.times(p.batch, flops.gels(p.m, p.n, p.nrhs)),
            columns="BatchCount M N NRHS", flags={"trans": "NC"}, always=True, unit="ms",
            lapack=by_members("gels"), modes=("native",))
