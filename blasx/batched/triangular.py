"""Triangular matrices of many members at once: trsm trsv trmm `_batched`.

The triangular operand may be one matrix for all members, 2-dimensional or a stack of one: it is not
copied.
"""

import numpy as np

from .._routine import public, typed
from . import _cpu
from ._checks import on_gpu
from .blas import _argument, _by_blas, _matrices

_gpu = on_gpu("_gpu_triangular")
FLAG = (0, 1)
TRANS = (0, 1, 2)


def trsm_batched(me, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """Solve op(A) X = alpha B or X op(A) = alpha B for every member, A triangular.

    Parameters
    ----------
    alpha : number
        alpha = 0 leaves A and B unread, whatever they hold.
    a : (batch, m, m) array; (batch, n, n) if `side`; or one matrix for all members
        Only the triangle that `lower` names is read, without its diagonal if `diag`; any strides.
    b : (batch, m, n) array
        Overwritten by X if `overwrite_b`.
    side : {0, 1}
        op(A) to the left, to the right of X.
    trans_a : {0, 1, 2}
        op(A) = A, A^T, A^H.
    diag : {0, 1}
        1: the diagonal of A is taken as ones.

    Returns
    -------
    x : (batch, m, n) array

    Notes
    -----
    A zero on the diagonal of A gives inf or nan: nothing is tested. m^2 n operations each (m n^2 if
    `side`). CPU: BLAS, the batch split over the cores; GPU: own kernels up to order 1024, above it
    the one-matrix routine in a loop.
    """
    return _triangular(me, "trsm", alpha, a, b, side, lower, trans_a, diag, overwrite_b)


def trmm_batched(me, alpha, a, b, side=0, lower=0, trans_a=0, diag=0, overwrite_b=0):
    """B := alpha op(A) B or alpha B op(A) for every member, A triangular.

    Parameters
    ----------
    alpha : number
    a : (batch, n, n) array, or one matrix for all members
        Only the triangle that `lower` names is read, without its diagonal if `diag`.
    b : (batch, m, k) array
        Overwritten by the product if `overwrite_b`.
    side : {0, 1}
        A on the left (n = m), on the right (n = k).
    lower, diag : {0, 1}
    trans_a : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    b : (batch, m, k) array

    Notes
    -----
    n m k operations each. Where it runs: as trsm_batched.
    """
    return _triangular(me, "trmm", alpha, a, b, side, lower, trans_a, diag, overwrite_b)


def trsv_batched(me, a, x, lower=0, trans=0, diag=0, overwrite_x=0):
    """Solve op(A) y = x for every member, A triangular.

    Parameters
    ----------
    a : (batch, n, n) array, or one matrix for all members
        Only the triangle that `lower` names is read, without its diagonal if `diag`.
    x : (batch, n) array
        Overwritten by y if `overwrite_x`.
    lower, diag : {0, 1}
        The lower triangle; with ones on its diagonal.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    y : (batch, n) array

    Notes
    -----
    n^2 operations each. A zero on the diagonal of A gives inf or nan: nothing is tested. Where it
    runs: as trsm_batched, with one column.
    """
    x = me.stack(x, "x", 2, overwrite_x)
    trans = me.choice(trans, "trans", TRANS)
    y = _solved(me, "trsm", 1, a, x[:, :, None], 0, lower, trans, diag, overwrite_x, "x")
    return x if overwrite_x else y[:, :, 0]


def _triangular(me, routine, alpha, a, b, side, lower, trans, diag, overwrite_b):
    alpha, b = me.number(alpha, "alpha"), me.stack(b, "b", 3, overwrite_b)
    side, trans = me.choice(side, "side", FLAG), me.choice(trans, "trans_a", TRANS)
    return _solved(me, routine, alpha, a, b, side, lower, trans, diag, overwrite_b, "b")


def _solved(me, routine, alpha, a, b, side, lower, trans, diag, overwrite_b, argument):
    a = _matrices(me, a, "a")
    lower, diag = me.choice(lower, "lower", FLAG), me.choice(diag, "diag", FLAG)
    batch, k = len(b), b.shape[1 + side]
    if a.shape[-2:] != (k, k) or a.ndim == 3 and len(a) not in (1, batch):
        me.illegal("a", a.shape, f"of shape ({batch}, {k}, {k}) or ({k}, {k}), as {argument} has "
                                 f"{'columns' if side else 'rows'}")
    if overwrite_b:
        me.distinct(b, argument, a=a)
    if not me.on_cpu(a, b):
        return _gpu().triangular(me, routine, alpha, a, b, side, lower, trans, diag, overwrite_b)
    x = b if overwrite_b else _copied(b)
    if alpha == 0:
        x[...] = 0
    elif x.size:
        _triangular_cpu(me, routine, alpha, a, x, side, lower, trans, diag)
    return x


# -- CPU


def _copied(b):
    """A copy whose members lie by columns if those of `b` do, else by rows."""
    if b.strides[1] < b.strides[2]:
        return b.swapaxes(1, 2).copy().swapaxes(1, 2)
    return b.copy()


def _triangular_cpu(me, routine, alpha, a, x, side, lower, trans, diag):
    """Solution or product in place of x, by BLAS, member by member."""
    place = _by_blas(x)
    if place == (None, "T"):  # X^T op(A)^T = alpha B^T, and op(A)^T is op of the transpose of A
        _triangular_cpu(me, routine, alpha, a.swapaxes(-1, -2), x.swapaxes(1, 2), 1 - side,
                        1 - lower, trans, diag)
        return
    batch, m, n = x.shape
    y, ldy = (_cpu.Columns(x, x), m) if place is None else (x, place[0])
    t, ldt, turned = _argument(a, batch)
    if turned == "T" and trans == 2 and me.is_complex:  # its conjugate alone is no op of BLAS
        t, ldt, turned = _cpu.Columns(np.broadcast_to(a, (batch, *a.shape[-2:]))), a.shape[-1], "N"
    if turned == "T":
        lower, trans = 1 - lower, 0 if trans else 1
    if routine == "trsm" and alpha == 1 and not side and n == 1:
        # OpenBLAS's trsm takes reciprocals, which overflow of subnormal numbers, its trsv divides.
        _cpu.each(me.letter + "trsv", batch, m, "UL"[lower], "NTC"[trans], "NU"[diag], m, t, ldt,
                  y, 1)
        return
    alpha = np.broadcast_to(me.scalar(alpha), (batch,))
    _cpu.each(me.letter + routine, batch, max(m, n), "LR"[side], "UL"[lower], "NTC"[trans],
              "NU"[diag], m, n, alpha, t, ldt, y, ldy)


trsm_batched, strsm_batched, dtrsm_batched, ctrsm_batched, ztrsm_batched = typed(
    trsm_batched, "sdcz")
trmm_batched, strmm_batched, dtrmm_batched, ctrmm_batched, ztrmm_batched = typed(
    trmm_batched, "sdcz")
trsv_batched, strsv_batched, dtrsv_batched, ctrsv_batched, ztrsv_batched = typed(
    trsv_batched, "sdcz")

__all__ = public(globals())
