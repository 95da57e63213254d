"""LQ of a square, tall or wide matrix: the QR of A^H."""

from . import flops
from .case import Case
from .errors import H
from .qr_checks import factored


def make(p):
    p.A = p.matrix(p.m, p.n)
    p.call(p.A)


def check(p, lq, tau, work, info):
    found = factored(p, H(p.A), H(lq), tau)
    return {"|L - A*Q^H|": found["|R - Q^H*A|"], "|I - Q*Q^H|": found["|I - Q^H*Q|"]}


CASE = Case("gelqf", "qr", "lq tau work info", make, check, lambda p: flops.gelqf(p.m, p.n),
            columns="M N")
