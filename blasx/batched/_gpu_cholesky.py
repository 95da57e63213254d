"""Cholesky of a batch on the GPU: own kernels for members up to 32 x 32, cuSOLVER above."""

import cupy

from .. import _cuda
from .._tuned import LARGEST
from ._gpu import (
    by_columns,
    columns,
    finish,
    infos,
    kernel,
    like,
    matrix,
    nrhs,
    pointers,
    stacked,
    unsolved,
)


def potrf(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is that of `a`."""
    batch, n, _ = a.shape
    if n > LARGEST:
        return _large_potrf(me, a, lower, overwrite_a)
    c, upper = like(a, overwrite_a), not lower
    info = infos(batch, zero=not a.size)
    if a.size:
        kernel("potrf_small", me, n)(
            batch, *matrix(a, upper), *matrix(c, upper), info.data.ptr, n)
    return c, info


def potrs(me, c, b, lower, overwrite_b):
    """Solve with the Cholesky factors of every member: x, info."""
    batch, n, _ = c.shape
    if n > LARGEST:
        return _large_potrs(me, c, b, lower, overwrite_b)
    x, upper = like(b, overwrite_b), not lower
    info = infos(batch, zero=not b.size)
    if b.size:
        kernel("potrs_small", me, n)(
            batch, *matrix(c, upper), *columns(b), *columns(x), info.data.ptr, upper, n,
            nrhs(b))
    return x, info


def posv(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    batch, n, _ = a.shape
    if n > LARGEST:
        return _large_posv(me, a, b, lower, overwrite_a, overwrite_b)
    c, x, upper = like(a, overwrite_a), like(b, overwrite_b), not lower
    info = infos(batch, zero=not a.size)
    if a.size:
        kernel("posv_small", me, n)(
            batch, *matrix(a, upper), *matrix(c, upper), *columns(b), *columns(x),
            info.data.ptr, upper, n, nrhs(b))
    return c, x, info


def _large_potrf(me, a, lower, overwrite_a):
    batch, n, _ = a.shape
    info = infos(batch, zero=True)
    if not a.size:
        return like(a, overwrite_a), info
    work = by_columns(a, False)
    members = pointers(work)
    _cuda.solver(me.L + "potrfBatched", "iipipi", _cuda.fill(lower), n, members.data.ptr, n,
                 info.data.ptr, batch)
    half = cupy.tri(n, k=0, dtype=bool) if lower else ~cupy.tri(n, k=-1, dtype=bool)
    return finish(a, cupy.where(half, work, a), overwrite_a), info


def _large_potrs(me, c, b, lower, overwrite_b):
    batch, n, _ = c.shape
    info, y = infos(batch, zero=True), stacked(b)
    if not b.size:
        return like(b, overwrite_b), info
    work, factors = by_columns(y, overwrite_b), by_columns(c)
    left, right = pointers(factors), pointers(work)
    for trans in (0, 2) if lower else (2, 0):
        _cuda.blas(me.L + "trsmBatched", _cuda.LEFT, _cuda.fill(lower), trans, _cuda.NON_UNIT, n,
                   y.shape[2], _cuda.scalar(me, 1), left.data.ptr, n, right.data.ptr, n, batch)
    return finish(y, work, overwrite_b).reshape(b.shape), info


def _large_posv(me, a, b, lower, overwrite_a, overwrite_b):
    c, info = _large_potrf(me, a, lower, overwrite_a)
    x, _ = _large_potrs(me, c, b, lower, 0)
    return c, unsolved(b, x, info, overwrite_b), info
