"""QR of many matrices."""

from . import flops
from .case import Case
from .members import by_members
from .qr_checks import factored, worst


def make(p):
    p.A = p.stack(lambda: p.matrix(p.m, p.n))
    p.call(p.A)


def check(p, qr, tau, info):
    return worst(factored(p, *member) for member in zip(p.A, qr, tau))


def lapack(p):
    qr, tau, _, info = by_members("geqrf")(p)
    return qr, tau, info


CASE = Case("geqrf_batched", "batched", "qr tau info", make, check,
            lambda p: flops.times(p.batch, flops.geqrf(p.m, p.n)), columns="BatchCount M N",
            unit="ms", lapack=lapack, modes=("native",))
