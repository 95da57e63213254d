"""QR of a square, tall or wide matrix."""

from . import flops
from .case import Case
from .qr_checks import factored


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.call(p.A)


def check(p, qr, tau, work, info):
    return factored(p, p.A, qr, tau)


CASE = Case("geqrf", "qr", "qr tau work info", make, check, lambda p: flops.geqrf(p.m, p.n),
            columns="M N", modes=("native", "vendor"))
