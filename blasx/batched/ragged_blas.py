"""Products and triangular solves of members of different sizes: gemm trsm `_vbatched`.

Operands are lists of arrays or `blasx.Ragged`, as in ragged.py.
"""

import numpy as np

from .._routine import public, typed
from . import blas, triangular
from ._checks import on_gpu
from .ragged import apart, belonging, extents, matrices, on_cpu, one_by_one

_gpu = on_gpu("_gpu_ragged_blas")
FLAG = (0, 1)
TRANS = (0, 1, 2)


def gemm_vbatched(me, alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=0):
    """C := alpha op(A) op(B) + beta C for members of different sizes.

    Parameters
    ----------
    alpha, beta : numbers
        The same for all. alpha = 0 leaves A and B unread, beta = 0 leaves C unread.
    a, b : lists of matrices, or Ragged
        op(A) is (m, k), op(B) is (k, n).
    c : list of (m, n) arrays, or Ragged, optional
        Overwritten if `overwrite_c`.
    trans_a, trans_b : {0, 1, 2}
        op(X) = X, X^T, X^H.

    Returns
    -------
    c : list or Ragged, as `a`

    Notes
    -----
    2 m n k operations each. GPU: by tiles for every size, gemm_split or gemm_block; gemm_batched
    takes other kernels for small members and where rows are no multiple of 128 bytes, and cuBLAS
    for some large ones, whose sums round differently.
    """
    alpha, beta = me.number(alpha, "alpha"), me.number(beta, "beta")
    a, b = matrices(me, a, "a"), matrices(me, b, "b")
    trans_a = me.choice(trans_a, "trans_a", TRANS)
    trans_b = me.choice(trans_b, "trans_b", TRANS)
    left, right = extents(a), extents(b)
    left, right = left[:, ::-1] if trans_a else left, right[:, ::-1] if trans_b else right
    belonging(me, "b", right[:, :1], left[:, 1:], "rows in op(b)")
    operands = {"a": a, "b": b}
    me.allows(overwrite_c, "c")
    if c is not None:
        operands["c"] = c = matrices(me, c, "c", overwrite_c)
        belonging(me, "c", extents(c), np.stack((left[:, 0], right[:, 1]), 1), "shape")
        if overwrite_c:
            apart(me, "c", c, a=a, b=b)
    if on_cpu(me, **operands):
        one = getattr(blas, me.letter + "gemm_batched")
        overwrite = c is not None and overwrite_c
        return one_by_one(a, lambda i: (one(
            alpha, a[i][None], b[i][None], beta, None if c is None else c[i][None], trans_a,
            trans_b, overwrite),), (c if overwrite else None,), (a,), left.prod(1), infos=False)[0]
    return _gpu().gemm(me, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c)


def trsm_vbatched(me, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """Solve op(A) X = alpha B or X op(A) = alpha B, A triangular, for members of different sizes.

    Parameters
    ----------
    alpha : number
        The same for all; alpha = 0 leaves A and B unread.
    a : list of (m, m) arrays, (n, n) if `side`, or Ragged
        Only the triangle that `lower` names is read, without its diagonal if `diag`.
    b : list of (m, n) arrays, or Ragged
        Overwritten by X if `overwrite_b`.
    side : {0, 1}
        op(A) to the left, to the right of X.
    trans_a : {0, 1, 2}
        op(A) = A, A^T, A^H.
    diag : {0, 1}
        1: the diagonal of A is taken as ones.

    Returns
    -------
    x : list or Ragged, as `b`

    Notes
    -----
    A zero on the diagonal gives inf or nan: nothing is tested. m^2 n operations each.
    """
    alpha = me.number(alpha, "alpha")
    a = matrices(me, a, "a", square=True)
    b = matrices(me, b, "b", overwrite_b)
    side, lower = me.choice(side, "side", FLAG), me.choice(lower, "lower", FLAG)
    trans_a, diag = me.choice(trans_a, "trans_a", TRANS), me.choice(diag, "diag", FLAG)
    shapes = extents(b)
    belonging(me, "b", shapes[:, side:side + 1], extents(a)[:, :1], "columns" if side else "rows")
    if overwrite_b:
        apart(me, "b", b, a=a)
    if on_cpu(me, a=a, b=b):
        one = getattr(triangular, me.letter + "trsm_batched")
        return one_by_one(b, lambda i: (one(
            alpha, a[i][None], b[i][None], side, lower, trans_a, diag, overwrite_b),),
            (b if overwrite_b else None,), (b,), shapes.prod(1), infos=False)[0]
    return _gpu().trsm(me, alpha, a, b, side, lower, trans_a, diag, overwrite_b)


gemm_vbatched, sgemm_vbatched, dgemm_vbatched, cgemm_vbatched, zgemm_vbatched = typed(
    gemm_vbatched, "sdcz")
trsm_vbatched, strsm_vbatched, dtrsm_vbatched, ctrsm_vbatched, ztrsm_vbatched = typed(
    trsm_vbatched, "sdcz")

__all__ = public(globals())
