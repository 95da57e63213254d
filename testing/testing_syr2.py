"""A = alpha x y^T + alpha y x^T + A, one triangle of a symmetric A."""

from numpy import transpose

from . import errors, flops
from .case import Case
from .level2 import check_update


def make(p, hermitian=False):
    p.A = p.hermitian(p.n) if hermitian else p.hermitian(p.n, transpose)
    p.alpha, (p.incx, p.incy) = p.number(), p.inc
    p.x, p.y = p.vector(p.n, p.incx, p.scale), p.vector(p.n, p.incy)
    p.stored = p.hidden(p.A)
    p.call(p.alpha, p.x, p.y, lower=p.lower, incx=p.incx, incy=p.incy, n=p.n, a=p.stored)


def check(p, A, hermitian=False):
    return check_update(p, A, hermitian, 2) | {
        "triangle": errors.untouched(A, p.stored, p.uplo)}


CASE = Case("syr2", "blas", "A", make, check, lambda p: flops.syr2(p.n), names="sd",
            flags="uplo inc", limit=3, always=True, unit="ms")
