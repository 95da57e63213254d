"""LU of a batch on the GPU: own kernels, a team of lanes to a member up to 32 x 32, a block with
the member in shared memory as far as the tuned rows go, a block up to 1024; cuBLAS above."""

import cupy

from .. import _cuda, _trace
from .._kernel import current_device, gpu
from .._tuned import LARGEST, most
from ._block import inverse_bytes, lu_bytes, shared_bytes, solve_bytes, square_bytes
from ._gpu import (
    INT,
    blocks,
    by_columns,
    columns,
    finish,
    for_columns,
    in_lines,
    infos,
    keeping,
    kernel,
    launch_dealt,
    like,
    matrix,
    nrhs,
    past,
    pivots_and_infos,
    pointers,
    room_in_lines,
    solve_by_lines,
    solving,
    stacked,
    unsolved,
)
from ._gpu_blas import operand, product
from ._gpu_jacobi import MEMORY
from ._gpu_triangular import launch

BESIDE = 8  # right-hand sides that fit beside a member in shared memory (kernels/gesv_shared.cu)
UNPIVOTED = ("UNPIVOTED", 1)  # of getrf's kernels: they choose no pivots, and write none
CROSSINGS = 16  # of a member through memory, from which on one more, to lie in lines, pays


def _factor(name, me, a, lu, *outputs):
    """Launch a kernel of lu_block.cuh from `a` to `lu`, a block to a member. What crosses global
    memory often does so in lines, and goes to `lu` at the end where that lies otherwise, if there
    is room for it. The workspace is returned."""
    batch, m, n = a.shape
    block, work = blocks(name, me, max(m, n)), None
    often = not block.values["RESIDENT"] and min(m, n) > CROSSINGS * block.values["NB"]
    if often and lu.nbytes <= MEMORY and not in_lines(lu):
        work = room_in_lines(lu)
    block(batch, lu_bytes(me.dtype, m, n, block.values),
          *matrix(a), *matrix(lu if work is None else work), *outputs, m, n, batch)
    if work is not None:
        _trace.note(copied=lu.nbytes)
        lu[...] = work
    return work


def getrf(me, a, overwrite_a):
    """LU of every (m, n) member: lu, piv (0-based), info."""
    batch, m, n = a.shape
    if past(me, m if m > n else n):
        return _large_getrf(me, a, overwrite_a)
    lu = like(a, overwrite_a)
    if not a.size:
        return lu, cupy.ndarray((batch, min(m, n)), INT), infos(batch, zero=True)
    piv, info = pivots_and_infos(batch, m if m < n else n)
    if m > LARGEST or n > LARGEST:
        block = for_columns("getrf_shared", me, m if m > n else n, batch)
        if block:
            block(batch, shared_bytes(me.dtype, m, block.values), *matrix(a), *matrix(lu),
                  piv.data.ptr, info.data.ptr, m, n, batch)
        else:
            info = keeping(info, _factor("getrf_block", me, a, lu, piv.data.ptr, info.data.ptr))
        return lu, piv, info
    where = matrix(a)
    kernel("getrf_small", me, m if m > n else n)(
        batch, *where, *(where if overwrite_a else matrix(lu)),
        piv.data.ptr, info.data.ptr, m, n)
    return lu, piv, info


def getrs(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    batch, n, _ = lu.shape
    if past(me, n):
        return _large_getrs(me, lu, piv, b, trans, overwrite_b)
    x, info = like(b, overwrite_b), infos(batch, zero=not b.size)
    if b.size:
        piv = cupy.ascontiguousarray(piv)
        warp = not solving("getrs_lines", me, n, nrhs(b)) and solving("getrs_warp", me, n, nrhs(b))
        if warp:
            warp(batch, square_bytes(me.dtype, n), *matrix(lu, trans != 0), piv.data.ptr,
                 *columns(b), *columns(x), info.data.ptr, trans, n, nrhs(b))
        else:
            _substitute(me, lu, piv, b, x, info, trans)
    return x, info


def _substitute(me, lu, piv, b, x, info, trans=0, kept=False):
    """Launch getrs_small, getrs_lines or getrs_block; `kept`: members with an info are not
    solved."""
    batch, n, _ = lu.shape
    if n <= LARGEST:
        kernel("getrs_small", me, n, ("FACTORED", int(kept)))(
            batch, *matrix(lu, trans != 0), piv.data.ptr, *columns(b), *columns(x),
            info.data.ptr, trans, n, nrhs(b))
        return
    of = (*matrix(lu, trans != 0), piv.data.ptr, *columns(b), *columns(x), info.data.ptr,
          info.data.ptr if kept else 0, trans, n, nrhs(b))
    if warps := solving("getrs_lines", me, n, nrhs(b)):
        solve_by_lines(warps, me.dtype, batch, n, nrhs(b), *of)
        return
    block = blocks("getrs_block", me, n)
    parts = -(-nrhs(b) // block.values["WIDTH"])
    block(batch * parts, solve_bytes(me.dtype, n, block.values), *of, parts)


def gesv(me, a, b, overwrite_a, overwrite_b, compute_lu=1):
    """Factor and solve every member: lu, piv, x, info."""
    batch, n, _ = a.shape
    if past(me, n):
        return _large_gesv(me, a, b, overwrite_a, overwrite_b)
    block = (LARGEST < n and nrhs(b) <= BESIDE and b.size
             and for_columns("gesv_shared", me, n, batch))
    if block:
        return _gesv_in_shared(me, block, a, b, overwrite_a, overwrite_b, compute_lu)
    at_once = n <= LARGEST and kernel("gesv_small", me, n)
    if not at_once and a.size:
        lu, piv, info = getrf(me, a, overwrite_a)
        x = like(b, overwrite_b)
        if b.size:
            _substitute(me, lu, piv, b, x, info, kept=True)
        return lu, piv, x, info
    lu, x = like(a, overwrite_a), like(b, overwrite_b)
    if not a.size:
        return lu, cupy.ndarray((batch, n), INT), x, infos(batch, zero=True)
    piv, info = pivots_and_infos(batch, n)
    at_once(
        batch, *matrix(a), *matrix(lu), piv.data.ptr, *columns(b), *columns(x),
        info.data.ptr, n, nrhs(b))
    return lu, piv, x, info


def _gesv_in_shared(me, block, a, b, overwrite_a, overwrite_b, compute_lu):
    batch, n, _ = a.shape
    x, lu, piv, factors = like(b, overwrite_b), None, None, (0,) * 5
    if compute_lu:
        lu, (piv, info) = like(a, overwrite_a), pivots_and_infos(batch, n)
        factors = *matrix(lu), piv.data.ptr
    else:
        info = infos(batch)
        if block.values["WINDOW"] < block.values["N"]:  # the factors pass by
            passing = like(a, overwrite_a)
            factors = *matrix(passing), 0
    block(batch, shared_bytes(me.dtype, n, block.values, BESIDE), *matrix(a), *factors,
          *columns(b), *columns(x), info.data.ptr, n, nrhs(b), batch)
    return lu, piv, x, info


def getrf_nopiv(me, a, overwrite_a):
    """LU without pivoting of every (m, n) member: lu, info. By getrf's kernels as far as they hold
    members on chip."""
    batch, m, n = a.shape
    order = m if m > n else n
    if past(me, order):
        return _nopiv_by_blocks(me, a, overwrite_a)
    lu, info = like(a, overwrite_a), infos(batch, zero=not a.size)
    if not a.size:
        return lu, info
    if order <= LARGEST:
        kernel("getrf_small", me, order, UNPIVOTED)(
            batch, *matrix(a), *matrix(lu), 0, info.data.ptr, m, n)
    elif block := blocks("getrf_shared", me, order, UNPIVOTED):
        block(batch, shared_bytes(me.dtype, m, block.values), *matrix(a), *matrix(lu), 0,
              info.data.ptr, m, n, batch)
    else:
        info = keeping(info, _factor("getrf_nopiv", me, a, lu, info.data.ptr))
    return lu, info


def _nopiv_by_blocks(me, a, overwrite_a):
    """The largest blocks that the kernel takes on the diagonal, what is below and beside them by
    triangular solves, and what these take off the rest."""
    batch, m, n = a.shape
    lu, info, least = like(a, overwrite_a), infos(batch, zero=True), min(m, n)
    held = []
    if not a.size:
        return lu, info
    if lu is not a:
        lu[...] = a
    width = most(me.letter, gpu(current_device()))
    for k in range(0, least, width):
        end = min(k + width, least)
        top, below, right, rest = (lu[:, k:end, k:end], lu[:, end:, k:end], lu[:, k:end, end:],
                                   lu[:, end:, end:])
        failed = infos(batch)
        held.append(_factor("getrf_nopiv", me, top, top, failed.data.ptr))
        info[...] = cupy.where((info == 0) & (failed > 0), failed + k, info)
        if below.size:
            launch(me, "trsm", 1, top, below, below, 1, 0, 0, 0)
        if right.size:
            launch(me, "trsm", 1, top, right, right, 0, 1, 0, 1)
        o = operand(rest)
        product(me, m - end, n - end, end - k, operand(below), operand(right), o, o, -1, 1, batch)
    return lu, keeping(info, *held)


def getri(me, lu, piv, overwrite_lu):
    """The inverse of every member from its factors: inv_a, info."""
    batch, n, _ = lu.shape
    if past(me, n):
        return _large_getri(me, lu, piv, overwrite_lu)
    info, piv = infos(batch, zero=not lu.size), cupy.ascontiguousarray(piv)
    teams = blocks("getri_small", me, n)
    block = not teams and blocks("getri_shared", me, n)
    x = like(lu, overwrite_lu and (teams or block))
    of = *matrix(lu), piv.data.ptr, *matrix(x), info.data.ptr, n
    if lu.size and teams:
        launch_dealt(me, teams, batch, n, *of)
    elif lu.size and block:
        block(batch, inverse_bytes(me.letter, block.values), *of)
    elif lu.size:  # L U X = the identity, its rows interchanged
        shared = INT.itemsize * (2 * n + 3)  # the pivots, and where they bring the ones
        blocks("laswp_identity", me, n)(batch, shared, *of)
        for lower, unit in ((1, 1), (0, 0)):
            launch(me, "trsm", 1, lu, x, x, 0, lower, 0, unit, info)
    if overwrite_lu and x is not lu:
        lu[...] = x
        x = lu
    return x, info


def _large_getri(me, lu, piv, overwrite_lu):
    zero = lu.diagonal(axis1=1, axis2=2) == 0
    info = (zero.any(1) * (zero.argmax(1) + 1)).astype(INT)
    eye = cupy.broadcast_to(cupy.eye(lu.shape[1], dtype=me.dtype), lu.shape)
    x, _ = _large_getrs(me, lu, piv, eye, 0, 0)
    return unsolved(lu, x, info, overwrite_lu), info


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
