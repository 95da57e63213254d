"""The batched routines on the GPU: one launch of an own kernel for members up to 32 x 32.

Larger members go through cuBLAS (LU) and cuSOLVER (Cholesky), which want them by columns; what
those overwrite is a copy where the operand lies otherwise. Nothing synchronises.
"""

from functools import cache

import cupy
import numpy as np

from . import _cuda, _trace
from ._kernel import Kernel, current_device, pack
from ._tuned import LARGEST, constants

_INT = np.dtype(np.int32)


class _Teams:
    """A kernel of lanes.cuh with one set of constants; called with the batch, and the parameters
    before it."""

    def __init__(self, kernel, letter, values):
        self.kernel = Kernel(kernel, letter, **values)
        self.threads = 32 * values["WARPS"]
        self.members = self.threads // (values["LR"] * values["LC"])  # of the batch, to a block

    def __call__(self, batch, *numbers):
        parameters = pack(*numbers, batch)
        self.kernel.launch(-(-batch // self.members), 1, self.threads, 1, parameters)


@cache
def _kernel_on(kernel, letter, n, device):
    capability = int(cupy.cuda.Device(device).compute_capability)
    return _teams(kernel, letter, **constants(kernel, letter, n, capability))


@cache
def _teams(kernel, letter, **values):
    """One object for all orders that are served by the same constants."""
    return _Teams(kernel, letter, values)


def _kernel(name, me, n):
    return _kernel_on(name, me.letter, n, current_device())


def _matrix(a, transposed=False):
    """Address and strides (rows, columns, members), in elements, of a stack of matrices."""
    size = a.itemsize
    next_, row, col = a.strides
    if transposed:
        row, col = col, row
    return a.data.ptr, row // size, col // size, next_ // size


def _columns(b):
    """`_matrix` of right-hand sides, (batch, n) or (batch, n, nrhs)."""
    if b.ndim == 3:
        return _matrix(b)
    next_, row = b.strides
    return b.data.ptr, row // b.itemsize, 0, next_ // b.itemsize


def _nrhs(b):
    return b.shape[2] if b.ndim == 3 else 1


def _like(a, overwrite):
    """Where the result goes: `a` itself, or a new array whose members lie as those of `a` do."""
    if overwrite:
        return a
    if a.ndim == 3 and a.strides[1] < a.strides[2] and a.shape[2] > 1:
        batch, m, n = a.shape
        return cupy.ndarray((batch, n, m), a.dtype).transpose(0, 2, 1)
    return cupy.ndarray(a.shape, a.dtype)


def _pivots_and_infos(batch, k):
    """Room for (batch, k) pivots and (batch,) infos: one allocation serves both."""
    memory = cupy.cuda.alloc(4 * batch * (k + 1))
    return (cupy.ndarray((batch, k), _INT, memory),
            cupy.ndarray((batch,), _INT, memory + 4 * batch * k))


def _infos(batch, zero=False):
    return cupy.zeros(batch, _INT) if zero else cupy.ndarray((batch,), _INT)


def getrf(me, a, overwrite_a):
    """LU of every (m, n) member: lu, piv (0-based), info."""
    batch, m, n = a.shape
    if m > LARGEST or n > LARGEST:
        return _large_getrf(me, a, overwrite_a)
    lu = _like(a, overwrite_a)
    if not a.size:
        return lu, cupy.ndarray((batch, min(m, n)), _INT), _infos(batch, zero=True)
    piv, info = _pivots_and_infos(batch, m if m < n else n)
    where = _matrix(a)
    _kernel("getrf_small", me, m if m > n else n)(
        batch, *where, *(where if overwrite_a else _matrix(lu)),
        piv.data.ptr, info.data.ptr, m, n)
    return lu, piv, info

def getrs(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    batch, n, _ = lu.shape
    if n > LARGEST:
        return _large_getrs(me, lu, piv, b, trans, overwrite_b)
    x = _like(b, overwrite_b)
    info = _infos(batch, zero=not b.size)
    if b.size:
        piv = cupy.ascontiguousarray(piv)
        _kernel("getrs_small", me, n)(
            batch, *_matrix(lu, trans != 0), piv.data.ptr, *_columns(b), *_columns(x),
            info.data.ptr, trans, n, _nrhs(b))
    return x, info


def gesv(me, a, b, overwrite_a, overwrite_b):
    """Factor and solve every member: lu, piv, x, info."""
    batch, n, _ = a.shape
    if n > LARGEST:
        return _large_gesv(me, a, b, overwrite_a, overwrite_b)
    lu, x = _like(a, overwrite_a), _like(b, overwrite_b)
    if not a.size:
        return lu, cupy.ndarray((batch, n), _INT), x, _infos(batch, zero=True)
    piv, info = _pivots_and_infos(batch, n)
    _kernel("gesv_small", me, n)(
        batch, *_matrix(a), *_matrix(lu), piv.data.ptr, *_columns(b), *_columns(x),
        info.data.ptr, n, _nrhs(b))
    return lu, piv, x, info


def potrf(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is that of `a`."""
    batch, n, _ = a.shape
    if n > LARGEST:
        return _large_potrf(me, a, lower, overwrite_a)
    c, upper = _like(a, overwrite_a), not lower
    info = _infos(batch, zero=not a.size)
    if a.size:
        _kernel("potrf_small", me, n)(
            batch, *_matrix(a, upper), *_matrix(c, upper), info.data.ptr, n)
    return c, info


def potrs(me, c, b, lower, overwrite_b):
    """Solve with the Cholesky factors of every member: x, info."""
    batch, n, _ = c.shape
    if n > LARGEST:
        return _large_potrs(me, c, b, lower, overwrite_b)
    x, upper = _like(b, overwrite_b), not lower
    info = _infos(batch, zero=not b.size)
    if b.size:
        _kernel("potrs_small", me, n)(
            batch, *_matrix(c, upper), *_columns(b), *_columns(x), info.data.ptr, upper, n,
            _nrhs(b))
    return x, info


def posv(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    batch, n, _ = a.shape
    if n > LARGEST:
        return _large_posv(me, a, b, lower, overwrite_a, overwrite_b)
    c, x, upper = _like(a, overwrite_a), _like(b, overwrite_b), not lower
    info = _infos(batch, zero=not a.size)
    if a.size:
        _kernel("posv_small", me, n)(
            batch, *_matrix(a, upper), *_matrix(c, upper), *_columns(b), *_columns(x),
            info.data.ptr, upper, n, _nrhs(b))
    return c, x, info


# -- members larger than a team of lanes holds: NVIDIA's libraries, on stacks by columns


def _by_columns(a, overwrite=True):
    """A stack whose members lie by columns, one after the other: `a` itself if it lies so and may
    be overwritten, else a copy."""
    flipped = a.transpose(0, 2, 1)
    if overwrite and flipped.flags.c_contiguous:
        return a
    _trace.note(copied=a.nbytes)
    return flipped.copy(order="C").transpose(0, 2, 1)


def _finish(a, work, overwrite):
    """The result `work`, by columns, in the memory order of `a`, or in `a` itself."""
    if overwrite or a.strides[1] > a.strides[2]:
        if overwrite and work is a:
            return a
        out = a if overwrite else cupy.ndarray(a.shape, a.dtype)
        out[...] = work
        return out
    return work


def _pointers(a):
    """The addresses of the members of a stack, on the device: to be held until they are used."""
    return cupy.arange(len(a), dtype=np.uint64) * np.uint64(a.strides[0]) + np.uint64(a.data.ptr)


def _large_getrf(me, a, overwrite_a):
    batch, m, n = a.shape
    work = _by_columns(a, overwrite_a)
    piv, info = cupy.ndarray((batch, min(m, n)), _INT), _infos(batch, zero=True)
    if m != n:
        from .lu import getrf as one
        for i in range(batch if a.size else 0):
            work[i], piv[i], info[i] = one(work[i])
    elif a.size:
        members = _pointers(work)
        _cuda.blas(me.L + "getrfBatched", n, members.data.ptr, n, piv.data.ptr, info.data.ptr,
                   batch)
        piv -= 1
    return _finish(a, work, overwrite_a), piv, info


def _stacked(b):
    return b if b.ndim == 3 else b[:, :, None]


def _large_getrs(me, lu, piv, b, trans, overwrite_b):
    batch, n, _ = lu.shape
    info, y = _infos(batch, zero=True), _stacked(b)
    if not b.size:
        return _like(b, overwrite_b), info
    work, factors = _by_columns(y, overwrite_b), _by_columns(lu)
    status, piv = _cuda.ffi.new("int *"), cupy.ascontiguousarray(piv) + _INT.type(1)
    left, right = _pointers(factors), _pointers(work)
    _cuda.blas(me.L + "getrsBatched", trans, n, y.shape[2], left.data.ptr, n, piv.data.ptr,
               right.data.ptr, n, status, batch)
    return _finish(y, work, overwrite_b).reshape(b.shape), info


def _unsolved(b, x, info, overwrite_b):
    """x, and b again where info is not zero."""
    kept = cupy.where(info.reshape((-1,) + (1,) * (b.ndim - 1)) == 0, x, b)
    if not overwrite_b:
        return kept
    b[...] = kept
    return b


def _large_gesv(me, a, b, overwrite_a, overwrite_b):
    lu, piv, info = _large_getrf(me, a, overwrite_a)
    x, _ = _large_getrs(me, lu, piv, b, 0, 0)
    return lu, piv, _unsolved(b, x, info, overwrite_b), info


def _large_potrf(me, a, lower, overwrite_a):
    batch, n, _ = a.shape
    info = _infos(batch, zero=True)
    if not a.size:
        return _like(a, overwrite_a), info
    work = _by_columns(a, False)
    members = _pointers(work)
    _cuda.solver(me.L + "potrfBatched", "iipipi", _cuda.fill(lower), n, members.data.ptr, n,
                 info.data.ptr, batch)
    half = cupy.tri(n, k=0, dtype=bool) if lower else ~cupy.tri(n, k=-1, dtype=bool)
    return _finish(a, cupy.where(half, work, a), overwrite_a), info


def _large_potrs(me, c, b, lower, overwrite_b):
    batch, n, _ = c.shape
    info, y = _infos(batch, zero=True), _stacked(b)
    if not b.size:
        return _like(b, overwrite_b), info
    work, factors = _by_columns(y, overwrite_b), _by_columns(c)
    left, right = _pointers(factors), _pointers(work)
    for trans in (0, 2) if lower else (2, 0):
        _cuda.blas(me.L + "trsmBatched", _cuda.LEFT, _cuda.fill(lower), trans, _cuda.NON_UNIT, n,
                   y.shape[2], _cuda.scalar(me, 1), left.data.ptr, n, right.data.ptr, n, batch)
    return _finish(y, work, overwrite_b).reshape(b.shape), info


def _large_posv(me, a, b, lower, overwrite_a, overwrite_b):
    c, info = _large_potrf(me, a, lower, overwrite_a)
    x, _ = _large_potrs(me, c, b, lower, 0)
    return c, _unsolved(b, x, info, overwrite_b), info
