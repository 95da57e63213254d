"""A = L D L^H of one large Hermitian or symmetric matrix on the GPU, and the solves with it.

Columns are factored in panels, each by one kernel whose blocks are on the GPU together
(kernels/hetrf_panel.cu). It leaves W = L D beside A, and what is behind the panel becomes
A - L W^H by one product, of which cuBLAS makes one triangle. An upper triangle, A = U D U^H, is a
lower one whose rows and columns are counted from the other end.

A solve brings the rows of L to where all interchanges put them (hetrs_rows.cu), in a copy:
A = P^T L D L^H P.

Bunch, Kaufman: Some Stable Methods for Calculating Inertia and Solving Symmetric Linear Systems,
Math. Comp. 31 (1977) 163; LAPACK Users' Guide, xHETRF.
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._kernel import current_device, gpu, kernel_of, pack
from .._tuned import at_least, capitals, looked_up, row
from ._blocks import serving
from .pivoted import together

MEETINGS = 3  # of a column, at most


@looked_up
def plan(letter, n, device):
    """The kernel of panels, and whether cuSOLVER is to factor symmetric matrices."""
    of = "hetrf_panel", letter, n, gpu(device)
    found = row(*of)
    return (kernel_of("hetrf_panel", letter, **capitals(at_least(*of))),
            not found or found.get("cusolver", 0))


class Triangle:
    """A column-major matrix, the lower triangle of which counts; an upper one turned round."""

    def __init__(self, x, lower):
        self.x, self.lower, self.ld = x, lower, _cuda.ld(x)
        self.step = 1 if lower else -1

    def at(self, i, j):
        """The address of element (i, j), counted so that the triangle is a lower one."""
        (m, n), size = self.x.shape, self.x.itemsize
        if not self.lower:
            i, j = m - 1 - i, n - 1 - j
        return self.x.data.ptr + (i + j * self.ld) * size

    @property
    def strides(self):
        return self.step, self.step * self.ld

    def of(self, vector):
        """The address of element 0 of a vector that is counted as the rows are."""
        return vector.data.ptr + (0 if self.lower else (vector.size - 1) * vector.itemsize)


def factor(me, a, ipiv, lower, hermitian):
    """Factor a column-major matrix in place, into `ipiv`, as LAPACK counts, too; info."""
    n, device = a.shape[0], current_device()
    kernel, _ = plan(me.letter, n, device)
    width, tall = kernel.constants["NB"], kernel.constants["TALL"]
    threads = 32 * kernel.constants["WARPS"]
    most = together(-(-(n + 1) // (32 * tall)))
    kept = [Triangle(cupy.empty((n, width + 1), me.dtype, order="F"), lower) for _ in "wb"]
    info, starts = cupy.zeros((), np.int32), cupy.zeros(-(-n // width) + 1, np.int32)
    stash = cupy.empty(6, me.dtype)
    places = cupy.zeros(2 * (me.real.itemsize // 4 + 1) * most, np.uint64)
    at = Triangle(a, lower)
    name = me.L + ("herkx" if hermitian else "syrkx")
    minus, one = _cuda.scalar(me, -1), (_cuda.real_scalar if hermitian else _cuda.scalar)(me, 1)
    for panel, start in enumerate(range(0, n, width)):
        end, (w, before) = min(start + width, n), kept[::-1 if panel % 2 else 1]
        blocks = together(-(-(n - start + 1) // (32 * tall)))
        with _trace.step("panel", start):
            kernel.launch(blocks, 1, threads, 1, pack(
                at.at(0, 0), *at.strides, n, start, end, w.at(0, 0), before.at(0, 0), w.strides[1],
                at.of(ipiv), info.data.ptr, starts.data.ptr, panel, stash.data.ptr,
                places.data.ptr, 1 + panel * MEETINGS * (width + 1), hermitian), together=True)
        if end < n:
            first = max(start - 1, 0)  # of the columns that are taken off; the last is before `end`
            if lower:
                left, right, to = at.at(end, first), w.at(end, first - start + 1), at.at(end, end)
            else:
                left, right, to = at.at(n - 1, end - 1), w.at(n - 1, width), at.at(n - 1, n - 1)
            with _trace.step("update", end):
                _cuda.blas(name, _cuda.fill(lower), 0, n - end, end - first, minus, left, at.ld,
                           right, w.ld, one, to, at.ld)
    undo = serving("hetrf_undo", me.letter, n, device)
    warps = undo.constants["WARPS"]
    undo.launch(-(-n // (32 * warps)), 1, 32 * warps, 1, pack(
        at.at(0, 0), *at.strides, n, width, at.of(ipiv), starts.data.ptr))
    return info


def solve(me, ldu, ipiv, x, lower, hermitian):
    """Overwrite column-major X by A^-1 X, with the factors; info."""
    from ..blas3 import solve_triangle
    n, device = ldu.shape[0], current_device()
    at, rows = Triangle(ldu, lower), cupy.empty(n, np.int64)
    moved = Triangle(cupy.empty((n, n), me.dtype, order="F"), lower)
    order, diagonal = (serving(k, me.letter, n, device) for k in ("hetrs_rows", "hetrs_diagonal"))
    warps = order.constants["WARPS"]
    order.launch(-(-n // (32 * warps)), 1, 32 * warps, 1, pack(
        at.at(0, 0), *at.strides, n, at.of(ipiv), moved.at(0, 0), moved.strides[1], at.of(rows)))
    y = _cuda.copied(x[rows])
    solve_triangle(me, moved.x, y, lower, 0, 1)
    of, warps = Triangle(y, lower), diagonal.constants["WARPS"]
    diagonal.launch(-(-n // (32 * warps)), 1, 32 * warps, 1, pack(
        at.at(0, 0), *at.strides, n, at.of(ipiv), of.at(0, 0 if lower else y.shape[1] - 1), of.ld,
        y.shape[1], hermitian))
    solve_triangle(me, moved.x, y, lower, 2 if hermitian else 1, 1)
    x[rows] = y
    return cupy.zeros((), np.int32)
