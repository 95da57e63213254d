"""QR of many matrices at once: geqrf orgqr ormqr gels `_batched`.

Q = H(1) ... H(k), H(i) = I - tau[i] v v^H; v has zeros before its place i, a one there, and its
rest is stored below R.
"""

import numpy as np

from .._lapack import gathered
from .._routine import also, public, typed
from . import _cpu
from ._checks import dimensions, on_gpu

_gpu = on_gpu("_gpu_qr")


def geqrf_batched(me, a, overwrite_a=0):
    """QR factorization of every member, A = Q R.

    Parameters
    ----------
    a : (batch, m, n) array, any strides
        Overwritten by the factors if `overwrite_a`.

    Returns
    -------
    qr : (batch, m, n) array
        R on and above the diagonals, the reflectors below; in the memory order of `a`.
    tau : (batch, min(m, n)) array
    info : (batch,) int32 array of zeros

    Notes
    -----
    2 m n^2 - 2/3 n^3 operations each. The diagonal of R is real, as LAPACK's.
    CPU: a compiled core for small members, LAPACK for others. GPU: own kernels for m, n <= 1024 (or
    what blocks have room for), beyond a loop over the members. From 73 to 137 rows on, by type,
    they take workspace: 16 or 32 numbers to a column, and up to 1.2 times the members where rows
    of theirs do not begin with lines of 128 bytes, unless that were more than 4 GiB.
    Golub, Van Loan: Matrix Computations, 5.2; Schreiber, Van Loan, SIAM J. Sci. Stat. Comput. 10
    (1989) 53.
    """
    a = me.stack(a, "a", 3, overwrite_a)
    if me.on_cpu(a):
        return _geqrf_cpu(me, a, overwrite_a)
    return _gpu().geqrf(me, a, overwrite_a)


def orgqr_batched(me, a, tau, overwrite_a=0):
    """The first n columns of every member's Q (orgqr, complex ungqr).

    Parameters
    ----------
    a : (batch, m, n) array, m >= n
        The `qr` of geqrf_batched, of which the first k columns are read: for all of Q give m
        columns, whatever those after the k-th hold. Overwritten by Q if `overwrite_a`.
    tau : (batch, k) array, k <= n

    Returns
    -------
    q : (batch, m, n) array
        Its columns are orthonormal; in the memory order of `a`.
    info : (batch,) int32 array of zeros

    Notes
    -----
    4 m n k - 2 (m + n) k^2 + 4/3 k^3 operations each. CPU: LAPACK; GPU: as geqrf_batched.
    """
    a = me.stack(a, "a", 3, overwrite_a)
    batch, m, n = a.shape
    if m < n:
        me.illegal("a", a.shape, "of at least as many rows as columns")
    tau = _taus(me, tau, batch, n)
    if overwrite_a:
        me.distinct(a, "a", tau=tau)
    if me.on_cpu(a, tau):
        return _orgqr_cpu(me, a, tau, overwrite_a)
    return _gpu().orgqr(me, a, tau, overwrite_a)


def ormqr_batched(me, side, trans, a, tau, c, overwrite_c=0):
    """op(Q) C or C op(Q) for every member, Q not being formed (ormqr, complex unmqr).

    Parameters
    ----------
    side : {'L', 'R'}
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(Q) = Q or Q^H.
    a : (batch, m, k) array, (batch, n, k) if side = 'R'
        The first columns of the `qr` of geqrf_batched.
    tau : (batch, k) array
    c : (batch, m, n) array
        Overwritten if `overwrite_c`.

    Returns
    -------
    cq : (batch, m, n) array
        In the memory order of `c`.
    info : (batch,) int32 array of zeros

    Notes
    -----
    4 m n k - 2 n k^2 operations each from the left, 4 m n k - 2 m k^2 from the right. CPU: LAPACK;
    GPU: as geqrf_batched.
    """
    side = me.flag(side, "side", "LR")
    trans = me.flag(trans, "trans", "NC" if me.is_complex else "NT")
    a, c = me.stack(a, "a", 3), me.stack(c, "c", 3, overwrite_c)
    batch, m, n = c.shape
    order = m if side == "L" else n
    tau = _taus(me, tau, batch, order)
    if a.shape != (batch, order, tau.shape[1]):
        me.illegal("a", a.shape, f"of shape {(batch, order, tau.shape[1])}")
    if overwrite_c:
        me.distinct(c, "c", a=a, tau=tau)
    if me.on_cpu(a, tau, c):
        return _ormqr_cpu(me, side, trans, a, tau, c, overwrite_c)
    return _gpu().ormqr(me, side, trans, a, tau, c, overwrite_c)


def gels_batched(me, a, b, trans="N", overwrite_a=0, overwrite_b=0):
    """Least squares or minimum norm solution of op(A) X = B for every member, A of full rank.

    Parameters
    ----------
    a : (batch, m, n) array
        Overwritten by its QR (m >= n) or LQ factors if `overwrite_a`.
    b : (batch, max(m, n)) or (batch, max(m, n), nrhs) array
        The right-hand sides in its first rows, m of them, n if op(A) is not A. Overwritten by `x`
        if `overwrite_b`.
    trans : {'N', 'T'}, complex {'N', 'C'}
        op(A) = A or A^H.

    Returns
    -------
    lqr : (batch, m, n) array
    x : array of the shape of b
        The solutions in its first rows, n of them, m if op(A) is not A; where op(A) has more rows
        than columns, the squares of a column's other rows add up to that of its residual.
    info : (batch,) int32 array
        k > 0: element k of the diagonal of R or L is exactly zero, A has no full rank, and this
        member's x is no solution. A member of zeros has x = 0 and info 0, as LAPACK's.

    Notes
    -----
    2 m n^2 - 2/3 n^3 + 4 m n nrhs operations each (m >= n). CPU: LAPACK; GPU: as geqrf_batched; in
    one launch where members are small, on Hopper with one right-hand side also to 112 rows (d 104,
    c 72, z 48) if there are at least half as many columns.
    """
    a = me.stack(a, "a", 3, overwrite_a)
    batch, m, n = a.shape
    b = me.stack(b, "b", 2 if dimensions(b) == 2 else 3, overwrite_b)
    if b.shape[:2] != (batch, max(m, n)):
        me.illegal("b", b.shape, f"of shape ({batch}, {max(m, n)}) or ({batch}, {max(m, n)}, nrhs)")
    trans = me.flag(trans, "trans", "NC" if me.is_complex else "NT")
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    if me.on_cpu(a, b):
        return _gels_cpu(me, a, b, trans, overwrite_a, overwrite_b)
    return _gpu().gels(me, a, b, trans, overwrite_a, overwrite_b)


def _taus(me, tau, batch, most):
    tau = me.stack(tau, "tau", 2)
    if tau.shape[0] != batch or tau.shape[1] > most:
        me.illegal("tau", tau.shape, f"of shape ({batch}, k), k <= {most}")
    return tau


# -- CPU


def _geqrf_cpu(me, a, overwrite_a):
    """QR of every (m, n) member: qr, tau, info."""
    if done := _cpu.own(me, "geqrf", a, overwrite_a):
        qr, _, tau, info = done
        return qr, tau, info
    batch, m, n = a.shape
    work = _cpu.columns(a, overwrite_a)
    tau, info = np.zeros((batch, min(m, n)), me.dtype), np.zeros(batch, np.int32)
    if a.size:
        lwork = 32 * n
        info = _cpu.each(me.letter + "geqrf", batch, max(m, n), m, n, work, m, tau,
                         _cpu.Scratch(lwork, me.dtype), lwork)
    return _cpu.finish(a, work, overwrite_a), tau, info


def _orgqr_cpu(me, a, tau, overwrite_a):
    """The first n columns of Q of every (m, n) member: q, info."""
    batch, m, n = a.shape
    work, info = _cpu.columns(a, overwrite_a), np.zeros(batch, np.int32)
    if a.size:
        lwork = 32 * n
        info = _cpu.each(me.letter + ("ungqr" if me.is_complex else "orgqr"), batch, m, m, n,
                         tau.shape[1], work, m, gathered(tau),
                         _cpu.Scratch(lwork, me.dtype), lwork)
    return _cpu.finish(a, work, overwrite_a), info


def _ormqr_cpu(me, side, trans, a, tau, c, overwrite_c):
    """op(Q) C or C op(Q) for every member: cq, info."""
    batch, m, n = c.shape
    work, info = _cpu.columns(c, overwrite_c), np.zeros(batch, np.int32)
    if c.size:
        order, lwork = a.shape[1], 96 * max(m, n) + 4160  # LAPACK: 32 columns at once and T
        info = _cpu.each(me.letter + ("unmqr" if me.is_complex else "ormqr"), batch, order, side,
                         trans, m, n, tau.shape[1], _cpu.columns(a, True), order,
                         gathered(tau), work, m, _cpu.Scratch(lwork, me.dtype), lwork)
    return _cpu.finish(c, work, overwrite_c), info


def _gels_cpu(me, a, b, trans, overwrite_a, overwrite_b):
    """Least squares or minimum norm solutions of every member: lqr, x, info."""
    batch, m, n = a.shape
    work, x = _cpu.columns(a, overwrite_a), _cpu.right_hand_sides(b, overwrite_b)
    rows, info = max(m, n), np.zeros(batch, np.int32)
    if not a.size:
        x[...] = 0
    else:
        # LAPACK does not factor where there is nothing to solve: solve for a zero then
        y = x if x.size else np.zeros((batch, 1, rows), me.dtype)
        lwork = min(m, n) + 32 * max(rows, y.shape[1])
        info = _cpu.each(me.letter + "gels", batch, rows, trans, m, n, y.shape[1], work, m, y,
                         rows, _cpu.Scratch(lwork, me.dtype), lwork)
    return _cpu.finish(a, work, overwrite_a), _cpu.solution(b, x, overwrite_b), info


geqrf_batched, sgeqrf_batched, dgeqrf_batched, cgeqrf_batched, zgeqrf_batched = typed(
    geqrf_batched, "sdcz")
orgqr_batched, sorgqr_batched, dorgqr_batched, cungqr_batched, zungqr_batched = typed(
    orgqr_batched, "sdcz", "sorgqr_batched dorgqr_batched cungqr_batched zungqr_batched")
ormqr_batched, sormqr_batched, dormqr_batched, cunmqr_batched, zunmqr_batched = typed(
    ormqr_batched, "sdcz", "sormqr_batched dormqr_batched cunmqr_batched zunmqr_batched")
ungqr_batched = also(orgqr_batched, "ungqr_batched", zungqr_batched)
unmqr_batched = also(ormqr_batched, "unmqr_batched", zunmqr_batched)
gels_batched, sgels_batched, dgels_batched, cgels_batched, zgels_batched = typed(
    gels_batched, "sdcz")

__all__ = public(globals())
