"""Eigenvalues and eigenvectors of many Hermitian matrices, and of pairs of them, at once: syevd and
sygvd `_batched`, complex heevd and hegvd `_batched`."""

import numpy as np

from .. import _lapack
from .._routine import also, cupy, public, typed
from . import _cpu, cholesky, triangular
from ._checks import on_gpu, square_stack

_gpu = on_gpu("_gpu_eig")


def syevd_batched(me, a, compute_v=1, lower=0, overwrite_a=0):
    """Eigenvalues and eigenvectors of every Hermitian member, A = V diag(w) V^H (complex heevd).

    Parameters
    ----------
    a : (batch, n, n) array, any strides
        Only the triangle that `lower` names is read. Overwritten by the eigenvectors if
        `overwrite_a`; destroyed if they are not asked for.
    compute_v : {0, 1}
        0: the eigenvalues alone.
    lower : {0, 1}

    Returns
    -------
    w : (batch, n) real array
        Ascending.
    v : (batch, n, n) array
        The eigenvectors, by columns; (batch, 1, 1) and without meaning if not asked for.
    info : (batch,) int32 array
        k > 0: this member did not converge, or has a nan or infinity (its results are nan then).

    Notes
    -----
    CPU: a compiled core for small members, LAPACK's syevd or heevd for others. GPU: small members
    by one-sided Jacobi of A / s + I, s above the norm of A, in one launch (syevd_block.cu), for
    values alone only the smallest; others by reflectors to a real tridiagonal matrix
    (sytrd_rows.cu; sytrd_block.cu; large ones by a cluster of blocks each, sytrd_cluster.cu), of
    which values of members to order 112, and vectors of small ones, are found by implicit QL with a
    lane to a member, its rotations being applied to the reflectors' product (steqr_lane.cu,
    lasr_rows.cu), others by divide and conquer (stedc_leaf.cu, stedc_merge.cu; Gu, Eisenstat, SIAM
    J. Matrix Anal. 16, 1995), with LAPACK's errors; above order 1024 the one-matrix routine in a
    loop. 4/3 n^3 operations each for the values; with vectors about 9 n^3 on the CPU and by QL,
    5 n^3 by division, about 8 sweeps of 5 n^3 by Jacobi.
    """
    a = square_stack(me, a, "a", overwrite_a)
    compute_v = me.choice(compute_v, "compute_v", (0, 1))
    lower = me.choice(lower, "lower", (0, 1))
    if not a.size:
        return _nothing(me, a, compute_v, overwrite_a)
    if me.on_cpu(a):
        return _syevd_cpu(me, a, compute_v, lower, overwrite_a)
    return _gpu().syevd(me, a, compute_v, lower, overwrite_a)


def _nothing(me, a, compute_v, overwrite_a):
    """The results of members without elements, or of no members."""
    xp = np if me.on_cpu(a) else cupy()
    shape = a.shape if compute_v else (len(a), 1, 1)
    v = a if overwrite_a and compute_v else xp.zeros(shape, me.dtype)
    return xp.zeros(a.shape[:2], me.real), v, xp.zeros(len(a), np.int32)


def sygvd_batched(me, a, b, itype=1, jobz="V", uplo="L", overwrite_a=0, overwrite_b=0):
    """Eigenvalues and eigenvectors of A x = w B x and its kin, for every pair (complex hegvd).

    Parameters
    ----------
    a, b : (batch, n, n) arrays, any strides
        One triangle of Hermitian matrices and of positive definite ones. Overwritten by the
        eigenvectors and by the Cholesky factors of B if `overwrite_a` and `overwrite_b`.
    itype : {1, 2, 3}
        A x = w B x; A B x = w x; B A x = w x.
    jobz : {'N', 'V'}
        The eigenvalues alone; the eigenvectors too.
    uplo : {'U', 'L'}

    Returns
    -------
    w : (batch, n) real array
        Ascending.
    v : (batch, n, n) array
        The eigenvectors, Z^H B Z = I, or Z^H B^-1 Z = I for itype 3; (batch, 1, 1) and without
        meaning if not asked for.
    info : (batch,) int32 array
        k > n: the leading minor of order k - n of this B is not positive definite; else k > 0: as
        of syevd_batched. Results of such members are nan.

    Notes
    -----
    potrf_batched, trsm_batched or trmm_batched, and syevd_batched: where these run. About 14 n^3
    operations each with vectors. LAPACK Users' Guide, xSYGVD.
    """
    a, b = square_stack(me, a, "a", overwrite_a), square_stack(me, b, "b", overwrite_b)
    me.shaped(b, "b", a.shape)
    itype = me.choice(itype, "itype", (1, 2, 3))
    jobz, uplo = me.flag(jobz, "jobz", "NV"), me.flag(uplo, "uplo", "UL")
    if overwrite_a:
        me.distinct(a, "a", b=b)
    if overwrite_b:
        me.distinct(b, "b", a=a)
    xp = np if me.on_cpu(a, b) else cupy()
    vectors, lower, n = int(jobz == "V"), int(uplo == "L"), a.shape[1]
    if not a.size:
        return _nothing(me, a, vectors, overwrite_a)
    factor, minor = getattr(cholesky, me.letter + "potrf_batched")(b, lower, overwrite_b)
    # B = T^H T, T upper triangular or the adjoint of a lower one; C = T^-H A T^-1 or T A T^H
    t, adjoint = (2, 0) if lower else (0, 2)
    solve = getattr(triangular, me.letter + "trsm_batched")
    multiply = getattr(triangular, me.letter + "trmm_batched")
    change, left, right = (solve, adjoint, t) if itype == 1 else (multiply, t, adjoint)
    # In one memory order: to the bit, BLAS's answers depend on it, and that of a on its batch
    both = _both_triangles(a, lower) if xp is np else _gpu().both_triangles(a, lower)
    c = xp.ascontiguousarray(xp.where(minor[:, None, None] == 0, both, me.dtype.type(np.nan)))
    c = change(1, factor, c, 0, lower, left, 0, 1)
    c = change(1, factor, c, 1, lower, right, 0, 1)
    w, v, info = _BY_LETTER[me.letter](c, vectors, lower, 1)
    info = xp.where(minor == 0, info, n + minor).astype(np.int32)
    if not vectors:
        return w, v, info
    v = multiply(1, factor, v, 0, lower, adjoint) if itype == 3 else solve(
        1, factor, v, 0, lower, t)
    if overwrite_a:
        a[...] = v
    return w, a if overwrite_a else v, info


def _both_triangles(a, lower):
    """The Hermitian matrices that a triangle gives."""
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    full = half + half.conj().swapaxes(1, 2)
    j = np.arange(a.shape[1])
    full[:, j, j] = a[:, j, j].real
    return full


# -- CPU


def _syevd_cpu(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member; members that are not finite are not looked at."""
    lost = _not_finite(a, lower)
    if lost is not None:
        if overwrite_a:
            a[lost] = 0
        else:
            a = np.where(lost[:, None, None], me.dtype.type(0), a)
    done = _cpu.eigen(me, a, lower, compute_v, overwrite_a)
    w, v, info = done or _conquered(me, a, compute_v, lower, overwrite_a)
    if not compute_v:
        v = np.zeros((len(a), 1, 1), me.dtype)
    if lost is not None:
        w[lost] = v[lost] = np.nan
        info[lost] = 1
    return w, v, info


def _not_finite(a, lower):
    """Which members have a nan or infinity in what is read of them; None if no element is one."""
    finite = np.isfinite(a)
    if finite.all():
        return None
    other = np.tri(a.shape[1], k=-1, dtype=bool)
    finite |= other.T if lower else other
    j = np.arange(a.shape[1])
    finite[:, j, j] = np.isfinite(a[:, j, j].real)
    return ~finite.all((1, 2))


def _conquered(me, a, compute_v, lower, overwrite_a):
    """LAPACK's divide and conquer over the batch, each thread with workspaces of its own."""
    batch, n, _ = a.shape
    w, v = np.empty((batch, n), me.real), None
    if compute_v:
        v = a if overwrite_a else np.empty(a.shape, me.dtype)
    own, integers = (n * n if compute_v else 0), (3 + 5 * n if compute_v else 1)
    lwork = (66 * n + own) if me.is_complex else (1 + 66 * n + 2 * own)
    works = [_cpu.Scratch(lwork, me.dtype), lwork]
    if me.is_complex:
        lrwork = 1 + 5 * n + 2 * own
        works += [_cpu.Scratch(lrwork, me.real), lrwork]
    info = _cpu.each(me.letter + ("heevd" if me.is_complex else "syevd"), batch, n,
                     "NV"[compute_v], "UL"[lower], n, _cpu.Columns(a, v), n, w, *works,
                     _cpu.Scratch(integers, _lapack.INT), integers)
    return w, v, info


syevd_batched, ssyevd_batched, dsyevd_batched, cheevd_batched, zheevd_batched = typed(
    syevd_batched, "sdcz", "ssyevd_batched dsyevd_batched cheevd_batched zheevd_batched")
heevd_batched = also(syevd_batched, "heevd_batched", zheevd_batched)
_BY_LETTER = {"s": ssyevd_batched, "d": dsyevd_batched, "c": cheevd_batched, "z": zheevd_batched}
sygvd_batched, ssygvd_batched, dsygvd_batched, chegvd_batched, zhegvd_batched = typed(
    sygvd_batched, "sdcz", "ssygvd_batched dsygvd_batched chegvd_batched zhegvd_batched")
hegvd_batched = also(sygvd_batched, "hegvd_batched", zhegvd_batched)

__all__ = public(globals())
