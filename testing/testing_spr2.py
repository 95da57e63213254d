"""A = alpha x y^T + alpha y x^T + A, A symmetric and packed."""

from numpy import transpose

from . import flops
from .case import Case
from .level2 import check_update
from .storage import packed, unpacked


def make(p, hermitian=False):
    p.A = p.hermitian(p.n) if hermitian else p.hermitian(p.n, transpose)
    p.alpha, (p.incx, p.incy) = p.number(), p.inc
    p.x, p.y = p.vector(p.n, p.incx, p.scale), p.vector(p.n, p.incy)
    p.call(p.n, p.alpha, p.x, p.y, packed(p.A, p.uplo), incx=p.incx, incy=p.incy, lower=p.lower)


def check(p, ap, hermitian=False):
    return check_update(p, unpacked(ap, p.n, p.uplo), hermitian, 2)


CASE = Case("spr2", "blas", "ap", make, check, lambda p: flops.syr2(p.n), names="sd",
            flags="uplo inc", limit=3, always=True, unit="ms")
