"""LU of many matrices at once: getrf getrs gesv `_batched`."""

import numpy as np

from .. import _lapack
from .._routine import public, typed
from . import _cpu
from ._checks import on_gpu, pivots, right_hand_sides, square_stack

_gpu = on_gpu("_gpu_lu")


def getrf_batched(me, a, overwrite_a=0):
    """LU factorization with partial pivoting of every member, P A = L U.

    Parameters
    ----------
    a : (batch, m, n) array, any strides
        Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    lu : (batch, m, n) array
        U on and above the diagonals, L below without its ones; in the memory order of `a`.
    piv : (batch, min(m, n)) int32 array
        Row j was interchanged with row piv[:, j], counted from 0, in this order.
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero, the first such.

    Notes
    -----
    m n^2 - n^3/3 operations each. LAPACK's pivots: the first largest |Re| + |Im|.
    """
    a = me.stack(a, "a", 3, overwrite_a)
    if me.on_cpu(a):
        return _getrf_cpu(me, a, overwrite_a)
    return _gpu().getrf(me, a, overwrite_a)


def getrs_batched(me, lu, piv, b, trans=0, overwrite_b=0):
    """Solve op(A) X = B for every member with the factors of getrf_batched.

    Parameters
    ----------
    lu : (batch, n, n) array
    piv : (batch, n) integer array
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by the solutions if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : array of the shape of b
    info : (batch,) int32 array of zeros
    """
    lu = square_stack(me, lu, "lu")
    piv = pivots(me, piv, lu)
    b = right_hand_sides(me, b, overwrite_b, lu=lu)
    if overwrite_b:
        me.distinct(b, "b", piv=piv)
    trans = me.choice(trans, "trans", (0, 1, 2))
    if me.on_cpu(lu, piv, b):
        return _getrs_cpu(me, lu, piv, b, trans, overwrite_b)
    return _gpu().getrs(me, lu, piv, b, trans, overwrite_b)


def gesv_batched(me, a, b, overwrite_a=0, overwrite_b=0):
    """Solve A X = B for every member by LU with partial pivoting.

    Parameters
    ----------
    a : (batch, n, n) array
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by factors and solutions if `overwrite_a`, `overwrite_b`.

    Returns
    -------
    lu, piv : as getrf_batched leaves them
    x : array of the shape of b
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero; this member's x is its b, unsolved.
    """
    a = square_stack(me, a, "a", overwrite_a)
    b = right_hand_sides(me, b, overwrite_b, a=a)
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if me.on_cpu(a, b):
        return _gesv_cpu(me, a, b, overwrite_a, overwrite_b)
    return _gpu().gesv(me, a, b, overwrite_a, overwrite_b)


# -- CPU


def _getrf_cpu(me, a, overwrite_a):
    """LU of every (m, n) member: lu, piv (0-based), info."""
    if done := _cpu.own(me, "getrf", a, overwrite_a):
        lu, piv, _, info = done
        return lu, piv, info
    batch, m, n = a.shape
    work = _cpu.columns(a, overwrite_a)
    piv = np.empty((batch, min(m, n)), _lapack.INT)
    if not a.size:
        return _cpu.finish(a, work, overwrite_a), piv.astype(np.int32), np.zeros(batch, np.int32)
    info = _cpu.each(me.letter + "getrf", batch, max(m, n), m, n, work, m, piv)
    piv -= 1
    return _cpu.finish(a, work, overwrite_a), piv.astype(np.int32, copy=False), info


def _getrs_cpu(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    batch, n, _ = lu.shape
    work = _cpu.right_hand_sides(b, overwrite_b)
    info = np.zeros(batch, np.int32)
    if work.size:
        info = _cpu.each(me.letter + "getrs", batch, n, "NTC"[trans], n, work.shape[1],
                         _cpu.columns(lu, True), n, _cpu.pivots(piv), work, n)
    return _cpu.solution(b, work, overwrite_b), info


def _gesv_cpu(me, a, b, overwrite_a, overwrite_b):
    """Factor and solve every member: lu, piv, x, info."""
    if done := _cpu.own(me, "getrf", a, overwrite_a, b, overwrite_b):
        return done
    batch, n, _ = a.shape
    x = _cpu.right_hand_sides(b, overwrite_b)
    if not x.size:
        lu, piv, info = _getrf_cpu(me, a, overwrite_a)
        return lu, piv, _cpu.solution(b, x, overwrite_b), info
    work = _cpu.columns(a, overwrite_a)
    piv = np.empty((batch, n), _lapack.INT)
    info = _cpu.each(me.letter + "gesv", batch, n, n, x.shape[1], work, n, piv, x, n)
    piv -= 1
    return (_cpu.finish(a, work, overwrite_a), piv.astype(np.int32, copy=False),
            _cpu.solution(b, x, overwrite_b), info)


getrf_batched, sgetrf_batched, dgetrf_batched, cgetrf_batched, zgetrf_batched = typed(
    getrf_batched, "sdcz")
getrs_batched, sgetrs_batched, dgetrs_batched, cgetrs_batched, zgetrs_batched = typed(
    getrs_batched, "sdcz")
gesv_batched, sgesv_batched, dgesv_batched, cgesv_batched, zgesv_batched = typed(
    gesv_batched, "sdcz")

__all__ = public(globals())
