"""QR with column pivoting of one large matrix on the GPU.

Columns are factored in panels, each by one kernel whose blocks are on the GPU together
(kernels/geqp3_panel.cu). It leaves V in A and F beside it; what is right of the panel and below it
becomes A - V F^H by a product.

Quintana-Orti, Sun, Bischof: A BLAS-3 Version of the QR Factorization with Column Pivoting, SIAM J.
Sci. Comput. 19 (1998) 1486; Drmac, Bujanovic: On the Failure of Rank-Revealing QR Factorization
Software, ACM TOMS 35 (2008) 12 (LAWN 176), on how norms are updated.
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._kernel import current_device, multiprocessors, pack
from ._blocks import serving

MOST_BLOCKS = 192  # kernels/grid.cuh


def together(blocks):
    """At most so many blocks, each with a multiprocessor to itself."""
    return max(1, min(blocks, multiprocessors(current_device()), MOST_BLOCKS))


def geqp3(me, a, jpvt, tau):
    """Factor a column-major matrix in place, into `jpvt`, from 1, and `tau` too."""
    (m, n), ld, size = a.shape, _cuda.ld(a), a.itemsize
    order, kernel = min(m, n), serving("geqp3_panel", me.letter, max(m, n), current_device())
    width, threads = kernel.constants["NB"], 32 * kernel.constants["WARPS"]
    blocks = together(-(-n // kernel.constants["COLUMNS"]))
    parts = min(blocks, -(-m // (32 * kernel.constants["TALL"])))
    norms, x = cupy.empty(2 * n, me.real), cupy.empty(m, me.dtype)
    F = cupy.empty((width, n), me.dtype, order="F")
    sums = cupy.empty((width + 1) * parts, me.dtype)
    places = cupy.zeros(2 * (me.real.itemsize // 4 + 2) * blocks, np.uint64)
    minus, one = (_cuda.scalar(me, x) for x in (-1, 1))
    for j in range(0, order, width):
        end = min(j + width, order)
        with _trace.step("panel", j):
            kernel.launch(blocks, 1, threads, 1, pack(
                a.data.ptr, ld, m, n, j, end - j, norms.data.ptr, jpvt.data.ptr, tau.data.ptr,
                F.data.ptr, x.data.ptr, sums.data.ptr, parts, places.data.ptr),
                together=True)
        if end < m and end < n:
            with _trace.step("update", end):
                _cuda.blas(me.L + "gemm", 0, 0, m - end, n - end, end - j, minus,
                           a.data.ptr + (end + j * ld) * size, ld,
                           F.data.ptr + end * width * size, width, one,
                           a.data.ptr + (end + end * ld) * size, ld)
