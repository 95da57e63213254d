"""What the testers of matrix-vector routines share: one product, one update, one solve."""

import numpy as np

from . import errors
from .case import elements
from .errors import op, wide
from .storage import half


def product(p, shape, *first, y=True, **how):
    """Arguments of y = alpha A x + beta y, `first` being what stands before alpha and A's storage
    after it: (before..., stored)."""
    *before, stored = first
    p.incx, p.incy = p.inc
    rows, columns = shape
    p.alpha, p.beta = p.number(), p.number()
    p.x = p.vector(columns, p.incx, scale=1 / p.scale)
    p.y = p.vector(rows, p.incy)
    p.call(*before, p.alpha, stored, p.x, beta=p.beta, y=p.y, incx=p.incx, incy=p.incy, **how)


def check_product(p, y, A, k):
    """The error of y against alpha A x + beta y, k terms to a sum, and y's gaps."""
    (rows, columns), A = A.shape, wide(A)
    x, y0 = wide(elements(p.x, columns, p.incx)), wide(elements(p.y, rows, p.incy))
    reference = p.alpha * (A @ x) + p.beta * y0
    return {"error": errors.higham(elements(y, rows, p.incy), reference, k,
                                   (p.alpha, A, x), (p.beta, y0)),
            "gaps": errors.gaps(y, p.y, rows, p.incy)}


def triangular(p, T, stored, *before, solve=False):
    """Arguments of x = op(T) x or of its solve."""
    p.A, p.incx = T, p.inc[0]
    p.x = p.vector(p.n, p.incx, scale=p.scale if solve else 1 / p.scale)
    p.call(*before, stored, p.x, incx=p.incx, lower=p.lower, trans="NTC".index(p.trans),
           diag=int(p.diag == "U"))


def check_multiplied(p, x):
    x0, A = wide(elements(p.x, p.n, p.incx)), op(wide(p.A), p.trans)
    return {"error": errors.higham(elements(x, p.n, p.incx), A @ x0, p.n, (1.0, A, x0)),
            "gaps": errors.gaps(x, p.x, p.n, p.incx)}


def check_solved(p, x):
    b, A = elements(p.x, p.n, p.incx), op(wide(p.A), p.trans)
    return {"error": errors.residual(A, elements(x, p.n, p.incx), b),
            "gaps": errors.gaps(x, p.x, p.n, p.incx)}


def updated(p, hermitian, rank):
    """The triangle of A + alpha x x^H, or of A + alpha x y^H + conj(alpha) y x^H; with plain
    transposes where not hermitian. Returns it and the terms of its size."""
    conj = np.conj if hermitian else (lambda z: z)
    x = wide(elements(p.x, p.n, p.incx))
    if rank == 1:
        return wide(p.A) + p.alpha * np.outer(x, conj(x)), ((p.alpha, x, x), (1.0, p.A))
    y = wide(elements(p.y, p.n, p.incy))
    reference = wide(p.A) + p.alpha * np.outer(x, conj(y)) + conj(p.alpha) * np.outer(y, conj(x))
    return reference, ((2 * p.alpha, x, y), (1.0, p.A))


def check_update(p, A, hermitian, rank):
    reference, terms = updated(p, hermitian, rank)
    return {"error": errors.higham(half(A, p.uplo), half(reference, p.uplo), rank, *terms)}
