"""Solves with a large triangular matrix and a few right-hand sides on the GPU, the rows that
interchanges bring to each place, and a matrix in single precision with the size of its rows."""

import cupy
import numpy as np

from .. import _cuda
from .._kernel import current_device, gpu, pack
from .._spaces import substitution_bytes
from .._tuned import looked_up, row
from ..blas3 import own_gemm, solve_triangle
from ._blocks import serving

ROWS = 64  # that a block of threads solves for (kernels/trsv_blocks.cu)


@looked_up
def _trsv_on(letter, n, device):
    """The kernel for triangles of order n, and up to how many right-hand sides it serves."""
    found = row("trsv_blocks", letter, n, gpu(device))
    upto = found.get("upto", 0) if found else 0
    return (serving("trsv_blocks", letter, n, device) if upto else None), upto


def serves(me, n, nrhs):
    """Whether `solve` is for so many right-hand sides."""
    return 0 < nrhs <= _trsv_on(me.letter, n, current_device())[1]


def solve(me, t, x, lower, trans, unit, state=None, open_=0):
    """Solve op(T) X = B in place of column-major `x`, T by columns and read in one triangle; where
    there is a `state`, a 0-d int32 array, only if that is `open_`, for so few right-hand sides as
    `serves` says."""
    kernel, most = _trsv_on(me.letter, len(t), current_device())
    if x.shape[1] > most:
        solve_triangle(me, t, x, lower, trans, unit)
        return
    (n, nrhs), sides, item = x.shape, kernel.constants["SIDES"], t.itemsize
    rs, cs, at, to, xs = 1, _cuda.ld(t), t.data.ptr, x.data.ptr, 1
    if bool(lower) == bool(trans):  # from the last row up
        at, to = at + (n - 1) * (rs + cs) * item, to + (n - 1) * item
        rs, cs, xs = -rs, -cs, -1
    if trans:
        rs, cs = cs, rs
    gate = (0, 0) if state is None else (state.data.ptr, open_)
    down = -(-n // ROWS)
    for first in range(0, nrhs, sides):
        words = cupy.zeros(down * ROWS * sides * (item // 4) + 1, np.uint64)
        kernel.launch(down, 1, 32 * kernel.constants["WARPS"], 1, pack(
            at, rs, cs, trans == 2, unit, to + first * _cuda.ld(x) * item, xs, _cuda.ld(x), n,
            min(sides, nrhs - first), words.data.ptr, words.data.ptr + 8 * (words.size - 1), *gate),
            substitution_bytes(me.letter, kernel.constants))


def by_ours(me, n, nrhs):
    """True if LAPACK's solves with so many right-hand sides are by `solve`."""
    return serves(me, n, nrhs) or bool(own_gemm().leaf(me, n, nrhs))


def lag2s(me, low, a):
    """A column-major matrix in the precision of `low`, and its infinity norm in double, which is
    not finite where one of its numbers, or of theirs, is not."""
    (m, n), kernel = a.shape, serving("lag2s", me.letter, max(a.shape), current_device())
    if not a.size:
        return cupy.empty(a.shape, low.dtype, order="F"), cupy.zeros(())
    values, to = kernel.constants, cupy.empty(a.shape, low.dtype, order="F")
    threads, chunks = 32 * values["WARPS"], -(-n // values["COLUMNS"])
    sums = cupy.empty((chunks, m))
    kernel.launch(-(-m // threads), chunks, threads, 1, pack(
        a.data.ptr, _cuda.ld(a), m, n, to.data.ptr, m, sums.data.ptr))
    return to, sums.sum(axis=0).max()


def permutation(piv, n):
    """The row that the interchanges of getrf bring to each place."""
    kernel = serving("permutation", "s", n, current_device())
    source, threads = cupy.empty(n, np.int32), 32 * kernel.constants["WARPS"]
    kernel.launch(-(-n // threads), 1, threads, 1, pack(
        piv.data.ptr, piv.size, source.data.ptr, n))
    return source


def getrs(me, lu, source, x, trans=0, *gate):
    """Solve op(A) X = B in place of column-major `x`, by the factors of A, whose interchanges bring
    row source[i] to place i; `gate`: as the last arguments of `solve`."""
    if not trans:
        x[...] = x[source]
    for lower in (0, 1) if trans else (1, 0):
        solve(me, lu, x, lower, trans, lower, *gate)
    if trans:
        x[source] = x.copy(order="F")
