"""Singular values and vectors of many matrices at once: gesvd_batched."""

import numpy as np

from .. import _lapack
from .._routine import cupy, public, typed
from . import _cpu
from ._checks import on_gpu

_gpu = on_gpu("_gpu_svd")


def gesvd_batched(me, a, compute_uv=1, full_matrices=1, overwrite_a=0):
    """Singular value decomposition of every member, A = U diag(s) V^H.

    Parameters
    ----------
    a : (batch, m, n) array, any strides
        May be destroyed if `overwrite_a`.
    compute_uv : {0, 1}
        0: the singular values alone.
    full_matrices : {0, 1}
        1: U and V are square; 0: they have k = min(m, n) columns.

    Returns
    -------
    u : (batch, m, m) or (batch, m, k) array
        (batch, 1, 1) and without meaning if not asked for.
    s : (batch, k) real array
        Falling.
    vt : (batch, n, n) or (batch, k, n) array
        V^H; (batch, 1, 1) if not asked for.
    info : (batch,) int32 array
        k > 0: this member did not converge, or has a nan or infinity (its results are nan then).

    Notes
    -----
    CPU: a compiled core for small members, LAPACK's gesdd for others. GPU: to order 512 one-sided
    Jacobi, on chip as far as the members fit, after a QR factorization where they are tall or wide;
    at most orders from 49 on (s 81, of values alone 97 to 161) blocks of eight columns meet by
    products of the tensor cores. From order 17 to 33 on it is given A V instead of A, with the
    eigenvectors V of A^H A, and takes two or three sweeps instead of eight unless A is near to a
    lower rank. Small singular values of graded columns keep their digits: where lengths of columns
    lie further apart than 16, V is left out. To order 1024 the unitary factor P of A = P H by QDWH
    in double precision, and the eigenvectors of H, with errors of a few n eps |A|; members that are
    not square have a QR first. Above the one-matrix routine in a loop.
    About 10 (5 m n^2 + 4 n^3) operations each by Jacobi alone, a third of it with V, 100 n^3 by the
    polar factor, 14 m n^2 + 8 n^3 on the CPU (m >= n).
    """
    a = me.stack(a, "a", 3, overwrite_a)
    compute_uv = me.choice(compute_uv, "compute_uv", (0, 1))
    full = me.choice(full_matrices, "full_matrices", (0, 1))
    cpu = me.on_cpu(a)
    if not a.size:
        return _nothing(me, np if cpu else cupy(), a, compute_uv, full)
    if cpu:
        return _gesvd_cpu(me, a, compute_uv, full)
    return _gpu().gesvd(me, a, compute_uv, full)


def _nothing(me, xp, a, compute_uv, full):
    """The results of members without elements, or of no members."""
    batch, m, n = a.shape
    k = min(m, n)
    u, vt = (xp.zeros((batch, 1, 1), me.dtype) for _ in "uv")
    if compute_uv:
        u, vt = (xp.zeros((batch, *shape), me.dtype)
                 for shape in ((m, m if full else k), (n if full else k, n)))
        for x in (u, vt):
            x[...] = xp.eye(*x.shape[1:], dtype=me.dtype)
    return u, xp.zeros((batch, k), me.real), vt, xp.zeros(batch, np.int32)


# -- CPU


def _gesvd_cpu(me, a, compute_uv, full):
    """u, s, vt, info of every member; members that are not finite are not looked at."""
    finite, lost = np.isfinite(a), None
    if not finite.all():
        lost = ~finite.all((1, 2))
        a = np.where(lost[:, None, None], me.dtype.type(0), a)
    done = _cpu.svd(me, a, compute_uv, full)
    u, s, vt, info = done or _gesdd(me, a, compute_uv, full)
    if not compute_uv:
        u, vt = (np.zeros((len(a), 1, 1), me.dtype) for _ in "uv")
    if lost is not None:
        u[lost] = s[lost] = vt[lost] = np.nan
        info[lost] = 1
    return u, s, vt, info


def _gesdd(me, a, compute_uv, full):
    """LAPACK's gesdd over the batch, each thread with a workspace of its own."""
    batch, m, n = a.shape
    k, most = min(m, n), max(m, n)
    columns, rows = (m, n) if full else (k, k)
    if not compute_uv:
        columns, rows = 1, 1
    s = np.empty((batch, k), me.real)
    u = np.empty((batch, columns, m if compute_uv else 1), me.dtype)  # members by columns
    vt = np.empty((batch, n if compute_uv else 1, rows), me.dtype)
    lwork = 4 * k * k + 8 * k + 64 * (most + k)
    works = [_cpu.Scratch(lwork, me.dtype), lwork]
    if me.is_complex:
        works.append(_cpu.Scratch(7 * k * k + 2 * most * k + 8 * k, me.real))
    info = _cpu.each(me.letter + "gesdd", batch, most, "NSA"[compute_uv * (1 + full)], m, n,
                     _cpu.columns(a, False), m, s, u, max(u.shape[2], 1), vt, rows, *works,
                     _cpu.Scratch(8 * k, _lapack.INT))
    return u.transpose(0, 2, 1), s, vt.transpose(0, 2, 1), info


gesvd_batched, sgesvd_batched, dgesvd_batched, cgesvd_batched, zgesvd_batched = typed(
    gesvd_batched, "sdcz")

__all__ = public(globals())
