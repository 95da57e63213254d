"""A = alpha x x^T + A, one triangle of a symmetric A."""

from numpy import transpose

from . import errors, flops
from .case import Case
from .level2 import check_update


def make(p, hermitian=False):
    p.A = p.hermitian(p.n) if hermitian else p.hermitian(p.n, transpose)
    p.alpha, p.incx = p.number(real=hermitian), p.inc[0]
    p.x, p.stored = p.vector(p.n, p.incx, p.scale**0.5), p.hidden(p.A)
    p.call(p.alpha, p.x, lower=p.lower, incx=p.incx, n=p.n, a=p.stored)


def check(p, A, hermitian=False):
    return check_update(p, A, hermitian, 1) | {
        "triangle": errors.untouched(A, p.stored, p.uplo)}


CASE = Case("syr", "blas", "A", make, check, lambda p: flops.syr(p.n), flags="uplo inc",
            limit=3, always=True, unit="ms")
