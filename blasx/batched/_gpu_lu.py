"""LU of a batch on the GPU: own kernels for members up to 32 x 32, cuBLAS above."""

import cupy

from .. import _cuda
from .._tuned import LARGEST
from ._gpu import (
    INT,
    by_columns,
    columns,
    finish,
    infos,
    kernel,
    like,
    matrix,
    nrhs,
    pivots_and_infos,
    pointers,
    stacked,
    unsolved,
)


def getrf(me, a, overwrite_a):
    """LU of every (m, n) member: lu, piv (0-based), info."""
    batch, m, n = a.shape
    if m > LARGEST or n > LARGEST:
        return _large_getrf(me, a, overwrite_a)
    lu = like(a, overwrite_a)
    if not a.size:
        return lu, cupy.ndarray((batch, min(m, n)), INT), infos(batch, zero=True)
    piv, info = pivots_and_infos(batch, m if m < n else n)
    where = matrix(a)
    kernel("getrf_small", me, m if m > n else n)(
        batch, *where, *(where if overwrite_a else matrix(lu)),
        piv.data.ptr, info.data.ptr, m, n)
    return lu, piv, info


def getrs(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    batch, n, _ = lu.shape
    if n > LARGEST:
        return _large_getrs(me, lu, piv, b, trans, overwrite_b)
    x = like(b, overwrite_b)
    info = infos(batch, zero=not b.size)
    if b.size:
        piv = cupy.ascontiguousarray(piv)
        kernel("getrs_small", me, n)(
            batch, *matrix(lu, trans != 0), piv.data.ptr, *columns(b), *columns(x),
            info.data.ptr, trans, n, nrhs(b))
    return x, info


def gesv(me, a, b, overwrite_a, overwrite_b):
    """Factor and solve every member: lu, piv, x, info."""
    batch, n, _ = a.shape
    if n > LARGEST:
        return _large_gesv(me, a, b, overwrite_a, overwrite_b)
    lu, x = like(a, overwrite_a), like(b, overwrite_b)
    if not a.size:
        return lu, cupy.ndarray((batch, n), INT), x, infos(batch, zero=True)
    piv, info = pivots_and_infos(batch, n)
    kernel("gesv_small", me, n)(
        batch, *matrix(a), *matrix(lu), piv.data.ptr, *columns(b), *columns(x),
        info.data.ptr, n, nrhs(b))
    return lu, piv, x, info


def _large_getrf(me, a, overwrite_a):
    batch, m, n = a.shape
    work = by_columns(a, overwrite_a)
    piv, info = cupy.ndarray((batch, min(m, n)), INT), infos(batch, zero=True)
    if m != n:
        from ..lu import getrf as one
        for i in range(batch if a.size else 0):
            work[i], piv[i], info[i] = one(work[i])
    elif a.size:
        members = pointers(work)
        _cuda.blas(me.L + "getrfBatched", n, members.data.ptr, n, piv.data.ptr, info.data.ptr,
                   batch)
        piv -= 1
    return finish(a, work, overwrite_a), piv, info


def _large_getrs(me, lu, piv, b, trans, overwrite_b):
    batch, n, _ = lu.shape
    info, y = infos(batch, zero=True), stacked(b)
    if not b.size:
        return like(b, overwrite_b), info
    work, factors = by_columns(y, overwrite_b), by_columns(lu)
    status, piv = _cuda.ffi.new("int *"), cupy.ascontiguousarray(piv) + INT.type(1)
    left, right = pointers(factors), pointers(work)
    _cuda.blas(me.L + "getrsBatched", trans, n, y.shape[2], left.data.ptr, n, piv.data.ptr,
               right.data.ptr, n, status, batch)
    return finish(y, work, overwrite_b).reshape(b.shape), info


def _large_gesv(me, a, b, overwrite_a, overwrite_b):
    lu, piv, info = _large_getrf(me, a, overwrite_a)
    x, _ = _large_getrs(me, lu, piv, b, 0, 0)
    return lu, piv, unsolved(b, x, info, overwrite_b), info
