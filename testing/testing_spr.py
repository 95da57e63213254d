"""A = alpha x x^T + A, A symmetric and packed."""

from numpy import transpose

from . import flops
from .case import Case
from .level2 import check_update
from .storage import packed, unpacked


def make(p, hermitian=False):
    p.A = p.hermitian(p.n) if hermitian else p.hermitian(p.n, transpose)
    p.alpha, p.incx = p.number(real=hermitian), p.inc[0]
    p.x = p.vector(p.n, p.incx, p.scale**0.5)
    p.call(p.n, p.alpha, p.x, packed(p.A, p.uplo), incx=p.incx, lower=p.lower)


def check(p, ap, hermitian=False):
    return check_update(p, unpacked(ap, p.n, p.uplo), hermitian, 1)


CASE = Case("spr", "blas", "ap", make, check, lambda p: flops.syr(p.n), flags="uplo inc",
            limit=3, always=True, unit="ms")
