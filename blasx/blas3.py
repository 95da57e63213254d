"""BLAS level 3: matrix-matrix products and triangular solves.

CPU: the BLAS that SciPy carries. GPU: cuBLAS in the current stream, without a synchronisation;
operands that lie by rows are passed transposed, not copied.
"""

import numpy as np

from ._lapack import by_columns, ld
from ._routine import public, typed


def gemm(me, alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0):
    """C := alpha op(A) op(B) + beta C.

    Parameters
    ----------
    alpha, beta : numbers
        alpha = 0 leaves A and B unread, beta = 0 leaves C unread, whatever they hold.
    a, b : arrays
        op(A) is (m, k), op(B) is (k, n).
    c : (m, n) array, optional
        Overwritten if `overwrite_c`: in place where column-major, views included.
    trans_a, trans_b : {0, 1, 2}
        op(X) = X, X^T, X^H.

    Returns
    -------
    c : (m, n) array, column-major

    Notes
    -----
    2 m n k operations. Dongarra et al., A Set of Level 3 BLAS, 1990.
    """
    a, b = me.matrix(a, "a"), me.matrix(b, "b")
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    me.choice(trans_a, "trans_a", (0, 1, 2))
    me.choice(trans_b, "trans_b", (0, 1, 2))
    m, k = a.shape[::-1] if trans_a else a.shape
    kb, n = b.shape[::-1] if trans_b else b.shape
    if kb != k:
        me.illegal("b", b.shape, f"a matrix with {k} rows in op(b), as op(a) has columns")
    if c is not None:
        c = me.matrix(c, "c", (m, n), overwrite_c)
        if overwrite_c:
            me.distinct(c, "c", a=a, b=b)
    if me.on_cpu(a, b, c):
        if c is not None and me.strided(c, overwrite_c):
            a, b = by_columns(a), by_columns(b)
            me.fortran("gemm", "NTC"[trans_a], "NTC"[trans_b], m, n, k, me.scalar(alpha),
                       a, ld(a), b, ld(b), me.scalar(beta), c, ld(c))
            return c
        if not (m and n and k):  # SciPy's wrapper refuses empty operands
            return scaled(me, beta, c, (m, n), overwrite_c)
        return me.scipy(alpha, a, b, beta, c, trans_a, trans_b, overwrite_c)
    from . import _cuda as gpu
    c = gpu.accumulator(me, c, (m, n), beta, overwrite_c)
    if m and n:
        pa, lda, ta, a = gpu.operand(a, trans_a)
        pb, ldb, tb, b = gpu.operand(b, trans_b)
        gpu.blas(me.L + "gemm", ta, tb, m, n, k, gpu.scalar(me, alpha), pa, lda, pb, ldb,
                 gpu.scalar(me, beta), c.data.ptr, gpu.ld(c))
    return c


def scaled(me, beta, c, shape, overwrite_c):
    """beta C on the CPU, zeros without C: what a product of no terms leaves."""
    if c is None or beta == 0:
        out = c if overwrite_c and c is not None else np.empty(shape, me.dtype, order="F")
        out[...] = 0
        return out
    out = c if overwrite_c else c.copy(order="F")
    out *= me.dtype.type(beta)
    return out


gemm, sgemm, dgemm, cgemm, zgemm = typed(gemm, "sdcz")

__all__ = public(globals())
