"""LU of a large matrix A = U^-T S V^-1 on the GPU, U and V random butterflies, by pivots of S that
are sought within windows.

Partial pivoting looks through all rows below the diagonal for every column, one column after the
other: at order 16384 that is two thirds of the time of an LU in single precision. It is there for
matrices whose rows lie so that those next in turn are bad ones. A butterfly (kernels/gerbt.cuh)
mixes every four rows, or columns, by random factors; after two of these, from both sides, any rows
are as good as others, and the best of a few are good enough (lu.Windowed). What it costs is A once
through the chip, which it takes on its way to single precision anyway.

Parker: Random butterfly transformations with applications in computational linear algebra, UCLA
CSD-950023 (1995); Baboulin, Dongarra, Herrmann, Tomov, ACM TOMS 39 (2013) 8.
"""

import cupy

from .. import _cuda
from .._kernel import current_device, pack
from . import lu
from ._blocks import serving


def serves(low, n):
    """Whether they are faster at order n."""
    return n > 0 and bool(lu.windowed(low, n))


def factored(me, low, a):
    """The factors of S in the precision of `low`, pivots and info, and the infinity norm of A,
    which is not finite where a number of it, or of S, is not."""
    n, kernel = len(a), serving("gerbt", me.letter, len(a), current_device())
    quarter, values = -(-n // 4), kernel.constants
    threads, chunks = 32 * values["WARPS"], -(-quarter // values["COLUMNS"])
    S, sums = cupy.empty((4 * quarter,) * 2, low.dtype, order="F"), cupy.empty((chunks, n))
    kernel.launch(-(-quarter // threads), chunks, threads, 1, pack(
        a.data.ptr, _cuda.ld(a), n, quarter, S.data.ptr, sums.data.ptr))
    return (S, *lu.getrf(low, S, windows=True), sums.sum(axis=0).max())


def solver(low, n, nrhs, solve):
    """What solves A X = B in place, `solve` doing so with S, for n rows and so many columns."""
    room = cupy.empty((-(-n // 4) * 4, nrhs), low.dtype, order="F")

    def by_butterflies(x, state):
        _mix(low, x, room, n, True)
        solve(room, state)
        _mix(low, room, x, n, False)

    return by_butterflies


def _mix(low, x, y, n, to_factors):
    """Y = U^T X, or V X (kernels/gerbt_rows.cu)."""
    quarter, kernel = -(-n // 4), serving("gerbt_rows", low.letter, n, current_device())
    threads = 32 * kernel.constants["WARPS"]
    kernel.launch(-(-quarter // threads), x.size // len(x), threads, 1, pack(
        x.data.ptr, _cuda.ld(x), y.data.ptr, _cuda.ld(y), n, quarter, to_factors))
