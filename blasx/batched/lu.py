"""LU of many matrices at once: getrf getrf_nopiv getrs gesv getri det slogdet `_batched`."""

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
    CPU: a compiled core for small members, LAPACK for others. GPU: own kernels up to order 1024,
    above it cuBLAS's for square members, the one-matrix routine in a loop for others. Past 256
    (z) to 512 (s) rows and columns factors that do not lie by rows of whole lines of 128 bytes take
    as much workspace again, if that is at most 4 GiB.
    Golub, Van Loan: Matrix Computations, 3.4.
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
        Numbers that are no rows are refused on the CPU; on the GPU, which nobody waits for, x is
        wrong then.
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by the solutions if `overwrite_b`.
    trans : {0, 1, 2}
        op(A) = A, A^T, A^H.

    Returns
    -------
    x : array of the shape of b
    info : (batch,) int32 array of zeros

    Notes
    -----
    2 n^2 nrhs operations each; where it runs: as getrf_batched.
    """
    lu = square_stack(me, lu, "lu")
    piv = pivots(me, piv, lu)
    b = right_hand_sides(me, b, overwrite_b, lu, "lu")
    if overwrite_b:
        me.distinct(b, "b", piv=piv)
    trans = me.choice(trans, "trans", (0, 1, 2))
    if me.on_cpu(lu, piv, b):
        return _getrs_cpu(me, lu, piv, b, trans, overwrite_b)
    return _gpu().getrs(me, lu, piv, b, trans, overwrite_b)


def gesv_batched(me, a, b, overwrite_a=0, overwrite_b=0, compute_lu=1):
    """Solve A X = B for every member by LU with partial pivoting.

    Parameters
    ----------
    a : (batch, n, n) array
    b : (batch, n) or (batch, n, nrhs) array
        Overwritten by factors and solutions if `overwrite_a`, `overwrite_b`.
    compute_lu : {1, 0}
        0: lu and piv are None; on the GPU they are not written where that saves time.

    Returns
    -------
    lu, piv : as getrf_batched leaves them
    x : array of the shape of b
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero; this member's x is its b, unsolved.

    Notes
    -----
    2/3 n^3 + 2 n^2 nrhs operations each; where it runs: as getrf_batched.
    """
    a = square_stack(me, a, "a", overwrite_a)
    b = right_hand_sides(me, b, overwrite_b, a, "a")
    if overwrite_a:
        me.distinct(a, "a", b=b)
    compute_lu = me.choice(compute_lu, "compute_lu", (0, 1))
    if me.on_cpu(a, b):
        lu, piv, x, info = _gesv_cpu(me, a, b, overwrite_a, overwrite_b)
    else:
        lu, piv, x, info = _gpu().gesv(me, a, b, overwrite_a, overwrite_b, compute_lu)
    return (lu, piv, x, info) if compute_lu else (None, None, x, info)


def getri_batched(me, lu, piv, overwrite_lu=0):
    """The inverse of every member from the factors of getrf_batched.

    Parameters
    ----------
    lu : (batch, n, n) array
        Overwritten by the inverses if `overwrite_lu`.
    piv : (batch, n) integer array

    Returns
    -------
    inv_a : (batch, n, n) array
        In the memory order of `lu`.
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero, the first such; this member's inv_a is its lu.

    Notes
    -----
    4/3 n^3 operations each; GPU, where a member's factors and inverse have no room on chip: 2 n^3,
    the solutions for the columns of the identity. On chip, from order 56 (c 37) on, products of
    single precision are those of two parts of a number, 22 bits, summed in single precision:
    errors are those of ordinary arithmetic, but a factor within 2^-12 of overflow gives nan. Where
    it runs: as getrf_batched.
    """
    lu = square_stack(me, lu, "lu", overwrite_lu)
    piv = pivots(me, piv, lu)
    if overwrite_lu:
        me.distinct(lu, "lu", piv=piv)
    if me.on_cpu(lu, piv):
        return _getri_cpu(me, lu, piv, overwrite_lu)
    return _gpu().getri(me, lu, piv, overwrite_lu)


def getrf_nopiv_batched(me, a, overwrite_a=0):
    """LU factorization without pivoting of every member, A = L U.

    Parameters
    ----------
    a : (batch, m, n) array, any strides
        Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    lu : (batch, m, n) array
        U on and above the diagonals, L below without its ones; in the memory order of `a`.
    info : (batch,) int32 array
        k > 0: U[k-1, k-1] is exactly zero, the first such. A pivot of zero counts as 1, so that
        what lies below it is left as it is; where blocks of the result meet on the GPU, above
        order 1024, it is not finite.

    Notes
    -----
    m n^2 - n^3/3 operations each. Stable only where pivots cannot be small: diagonally dominant
    or definite matrices. The name is MAGMA's. CPU: NumPy, all members at a time. GPU: the kernels
    of getrf_batched without its pivots while they hold a member on chip, another up to order 1024
    (less where blocks have less shared memory than Hopper's), above it by blocks of that, with
    triangular solves and products between them.
    """
    a = me.stack(a, "a", 3, overwrite_a)
    if me.on_cpu(a):
        return _getrf_nopiv_cpu(me, a, overwrite_a)
    return _gpu().getrf_nopiv(me, a, overwrite_a)


def slogdet_batched(me, a, overwrite_a=0):
    """The sign and the logarithm of the absolute value of every member's determinant.

    Parameters
    ----------
    a : (batch, n, n) array
        May be overwritten if `overwrite_a`.

    Returns
    -------
    sign : (batch,) array
        Of absolute value 1; 0 for a singular member.
    logabsdet : (batch,) real array
        -inf for a singular member; never overflows.

    Notes
    -----
    numpy.linalg.slogdet. getrf_batched: 2/3 n^3 operations each, and elementwise ones.
    """
    return _sign_and_log(me, square_stack(me, a, "a", overwrite_a), overwrite_a)


def det_batched(me, a, overwrite_a=0):
    """The determinant of every member.

    Parameters
    ----------
    a : (batch, n, n) array
        May be overwritten if `overwrite_a`.

    Returns
    -------
    det : (batch,) array
        0 for a singular member; over- and underflows where the number does, not before.

    Notes
    -----
    numpy.linalg.det. As slogdet_batched, of which it is sign e^logabsdet: its relative error is
    larger than a product's by |logabsdet| eps.
    """
    sign, log = _sign_and_log(me, square_stack(me, a, "a", overwrite_a), overwrite_a)
    with np.errstate(over="ignore", under="ignore"):
        return sign * np.exp(log)


def _sign_and_log(me, a, overwrite_a):
    if me.on_cpu(a):
        xp, factor = np, _getrf_cpu
    else:
        xp, factor = _gpu().cupy, _gpu().getrf
    lu, piv, _ = factor(me, a, overwrite_a)
    return sign_and_log(xp, me, lu, piv)


def sign_and_log(xp, t, lu, piv):
    """sign and logabsdet of every member, from its factors and the parity of its interchanges."""
    diagonal = xp.ascontiguousarray(lu.diagonal(axis1=1, axis2=2))  # sums of a member go alike
    size = abs(diagonal)
    swaps = (piv != xp.arange(lu.shape[1])).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        phase = (diagonal / xp.where(size == 0, t.real.type(1), size) if t.is_complex
                 else xp.sign(diagonal))
        sign = phase.prod(1) * (1 - 2 * (swaps % 2)).astype(t.real)
        log, singular = xp.log(size).sum(1), (size == 0).any(1)  # beside nan and inf, too
    return (xp.where(singular, t.dtype.type(0), sign),
            xp.where(singular, t.real.type(-np.inf), log))


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
    if done := _cpu.own(me, "getrs", lu, 1, b, overwrite_b, trans, piv):
        return done[2:]
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


def _getri_cpu(me, lu, piv, overwrite_lu):
    """The inverse of every member from its factors: inv_a, info."""
    batch, n, _ = lu.shape
    work, info = _cpu.columns(lu, overwrite_lu), np.zeros(batch, np.int32)
    if work.size:
        info = _cpu.each(me.letter + "getri", batch, n, n, work, n, _cpu.pivots(piv),
                         _cpu.Scratch(32 * n, me.dtype), 32 * n)
    return _cpu.finish(lu, work, overwrite_lu), info


def _getrf_nopiv_cpu(me, a, overwrite_a):
    """LU without pivoting, all members at a time: lu, info."""
    lu = a if overwrite_a else a.copy(order="K")
    batch, m, n = a.shape
    info, one, limits = np.zeros(batch, np.int32), me.real.type(1), np.finfo(me.real)
    with np.errstate(all="ignore"):
        for k in range(min(m, n)):
            zero = lu[:, k, k] == 0
            info[(info == 0) & zero] = k + 1
            pivot = np.where(zero, one, lu[:, k, k])
            tiny = abs(pivot) < limits.tiny
            if tiny.any():  # its reciprocal, by which NumPy divides complex numbers, may overflow
                lift = np.where(tiny, one / limits.eps, one)
                lu[:, k + 1:, k] *= lift[:, None]
                pivot *= lift
            lu[:, k + 1:, k] /= pivot[:, None]
            lu[:, k + 1:, k + 1:] -= lu[:, k + 1:, k, None] * lu[:, k, None, k + 1:]
    return lu, info


getrf_batched, sgetrf_batched, dgetrf_batched, cgetrf_batched, zgetrf_batched = typed(
    getrf_batched, "sdcz")
getrs_batched, sgetrs_batched, dgetrs_batched, cgetrs_batched, zgetrs_batched = typed(
    getrs_batched, "sdcz")
gesv_batched, sgesv_batched, dgesv_batched, cgesv_batched, zgesv_batched = typed(
    gesv_batched, "sdcz")

getri_batched, sgetri_batched, dgetri_batched, cgetri_batched, zgetri_batched = typed(
    getri_batched, "sdcz")
(getrf_nopiv_batched, sgetrf_nopiv_batched, dgetrf_nopiv_batched, cgetrf_nopiv_batched,
 zgetrf_nopiv_batched) = typed(getrf_nopiv_batched, "sdcz")
det_batched, sdet_batched, ddet_batched, cdet_batched, zdet_batched = typed(det_batched, "sdcz")
slogdet_batched, sslogdet_batched, dslogdet_batched, cslogdet_batched, zslogdet_batched = typed(
    slogdet_batched, "sdcz")

__all__ = public(globals())
