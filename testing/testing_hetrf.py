"""Bunch-Kaufman: A = L D L^H, A Hermitian and indefinite."""

from . import flops
from .case import Case
from .errors import H
from .indefinite_checks import factored
from .testing_sytrf import make


def check(p, ldu, ipiv, info):
    return factored(p, ldu, ipiv, info, hermitian=True)


CASE = Case("hetrf", "hesv", "ldu ipiv info", lambda p: make(p, H), check,
            lambda p: flops.sytrf(p.n), names="cz", flags="uplo")
