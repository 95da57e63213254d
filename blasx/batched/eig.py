"""Eigenvalues and eigenvectors of many Hermitian matrices at once: syevd_batched, heevd_batched."""

import numpy as np

from .. import _lapack
from .._routine import also, cupy, public, typed
from . import _cpu
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
    CPU: a compiled core for small members, LAPACK's syevd or heevd for others. GPU: one-sided
    Jacobi of A / s + I, s above the norm of A, in one launch (kernels/syevd_block.cu); above the
    largest order of the kernel (s: 1024, d and c: 512, z: 256) the one-matrix routine in a loop.
    4/3 n^3 operations each for the values and about 9 n^3 with vectors on the CPU, about 8 sweeps
    of 5 n^3 on the GPU.
    """
    a = square_stack(me, a, "a", overwrite_a)
    compute_v = me.choice(compute_v, "compute_v", (0, 1))
    lower = me.choice(lower, "lower", (0, 1))
    cpu = me.on_cpu(a)
    if not a.size:
        xp = np if cpu else cupy()
        shape = a.shape if compute_v else (len(a), 1, 1)
        v = a if overwrite_a and compute_v else xp.zeros(shape, me.dtype)
        return xp.zeros(a.shape[:2], me.real), v, xp.zeros(len(a), np.int32)
    if cpu:
        return _syevd_cpu(me, a, compute_v, lower, overwrite_a)
    return _gpu().syevd(me, a, compute_v, lower, overwrite_a)


# -- CPU


def _syevd_cpu(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member; members that are not finite are not looked at."""
    finite = _finite(a, lower)
    if not finite.all():
        if overwrite_a:
            a[~finite] = 0
        else:
            a = np.where(finite[:, None, None], a, me.dtype.type(0))
    done = _cpu.eigen(me, a, lower, compute_v, overwrite_a)
    w, v, info = done or _conquered(me, a, compute_v, lower, overwrite_a)
    if not compute_v:
        v = np.zeros((len(a), 1, 1), me.dtype)
    w[~finite] = v[~finite] = np.nan
    info[~finite] = 1
    return w, v, info


def _finite(a, lower):
    """Whether all that is read of each member is finite."""
    finite = np.isfinite(a)
    if not finite.all():
        other = np.tri(a.shape[1], k=-1, dtype=bool)
        finite |= other.T if lower else other
        j = np.arange(a.shape[1])
        finite[:, j, j] = np.isfinite(a[:, j, j].real)
    return finite.all((1, 2))


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

__all__ = public(globals())
