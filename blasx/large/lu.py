"""LU with partial pivoting of one large matrix on the GPU.

Columns are factored in blocks of `block`, a block in panels of `panel`, from left to right: what is
factored has the rows of the columns beside it interchanged, of those to its right the rows of U
solved (kernels/getrf_rows.cu), and taken off what is below by a product. A panel is one launch, of
one cluster (getrf_panel.cu). Look-ahead is that of _blocks.py.
"""

import cupy

from .. import _cuda
from .._gpu_gemm import by_halves, by_pairs, multiply_pairs, split
from .._kernel import current_device, gpu, pack
from .._tuned import looked_up, row
from ..blas3 import _gemm_cublas
from ._blocks import ByBlocks, serving
from ._bytes import panel_bytes, rows_bytes, up

TILE = 32  # rows of U that are solved together (kernels/getrf_top.cu)


def plan(me, m, n):
    """The row for a matrix of this shape: its `block`, `panel`, `ahead`, and `cusolver` where that
    is faster; None where there are no kernels for it."""
    return _plan(me.letter, m, min(m, n), current_device())


@looked_up
def _plan(letter, m, order, device):
    found = row("getrf_rows", letter, order, gpu(device))
    panel = row("getrf_panel", letter, m, gpu(device))
    if not (found and panel and row("getrf_top", letter, order, gpu(device))):
        return None
    return found | ({"cusolver": 1} if panel.get("cusolver") else {})


def getrf(me, a, precision="fp32"):
    """Factor a column-major matrix in place; pivots, counted from 0, and info. Memory is asked for
    before the matrix is touched. `precision`: of what is taken off in single precision, as of
    gemm."""
    order, found = min(a.shape), plan(me, *a.shape)
    block = min(found.get("block", order), order)
    lu = Factoring(me, a, block, found.get("panel", block), precision)
    if found.get("ahead") and block < order:
        lu.factor_ahead()
    else:
        lu.factor_in_turn()
    return lu.piv, lu.info


class Factoring(ByBlocks):
    """A matrix on its way to L and U."""

    def __init__(self, me, a, block, panel, precision):
        self.me, self.a, self.block, self.panel, self.precision = me, a, block, panel, precision
        (self.m, self.n), self.order = a.shape, min(a.shape)
        self.ld, self.size, self.device = _cuda.ld(a), a.itemsize, current_device()
        self.piv = cupy.empty(self.order, "i4")
        self.info = cupy.empty((), "i4")
        self.sets = [Top(me, block) for _ in range(3)]
        self.inner = Top(me, panel)
        self.rows_of_u = serving("getrf_rows", me.letter, self.order, self.device)
        self.lists = serving("getrf_top", me.letter, self.order, self.device)
        self.minus, self.one = _cuda.scalar(me, -1), _cuda.scalar(me, 1)
        self.halves = precision == "fp16"
        self.pairs = me.letter == "s" and (self.halves or precision == "fp32") and (
            not cupy.cuda.get_current_stream().is_capturing())

    def reserve(self, columns):
        if self.pairs:
            line = 4 * up(self.block, 8) + 16 + 4 * -(-self.block // 64)
            cupy.cuda.alloc((self.m + columns) * line)

    def factor(self, j, width, top):
        """The block of `width` columns at j, all rows below, and what others need of it."""
        for k in range(j, j + width, self.panel):
            panel = min(self.panel, j + width - k)
            self.factor_panel(k, panel)
            if panel < width:
                self.inner.make(self, k, panel)
                self.interchange(k, panel, self.inner, j, k)
                self.take_off(k, panel, self.inner, k + panel, j + width)
        if width < self.n:
            top.make(self, j, width)

    def factor_panel(self, j, width):
        kernel = serving("getrf_panel", self.me.letter, self.m - j, self.device)
        values = kernel.constants
        kernel.launch(values["CLUSTER"], 1, 32 * (values["WARPS"] + 1), 1, pack(
            self.at(j, j), self.ld, self.m - j, width, self.piv.data.ptr + 4 * j, j,
            self.info.data.ptr), panel_bytes(self.me.dtype, width, values))

    def finish(self, j, width, top):
        self.interchange(j, width, top, 0, j)

    def interchange(self, j, width, top, first, last):
        """The rows of columns first ... last as the block at j has its own."""
        self.beside(j, width, top, first, last, 0)

    def take_off(self, j, width, top, first, last):
        """Columns first ... last, to the right of the block at j: interchanges, the rows of U, and
        their product with L off the rows below."""
        self.beside(j, width, top, first, last, 1)
        self.multiply(j, width, first, last)

    def beside(self, j, width, top, first, last, solved):
        if first >= last:
            return
        values = self.rows_of_u.constants
        self.rows_of_u.launch(-(-(last - first) // values["COLUMNS"]), 1, 32 * values["WARPS"], 1,
                              pack(self.at(j, first), self.ld, last - first, self.at(j, j), width,
                                   *top.addresses(), solved),
                              rows_bytes(self.me.dtype, width, values))

    def multiply(self, j, width, first, last):
        """A[j + width:, first:last] -= A[j + width:, j:j + width] A[j:j + width, first:last]"""
        below = j + width
        m, n = self.m - below, last - first
        if m <= 0 or n <= 0:
            return
        a, device = self.a, self.device
        if self.pairs and (by_halves(m, n, width, device) if self.halves else
                           by_pairs(m, n, width, False, device)):
            multiply_pairs(-1, *split(a[j:below, first:last].T, a[below:, j:below]), 1,
                           a[below:, first:last].T, self.halves)
        elif self.precision != "fp32":
            _gemm_cublas(self.me, -1, a[below:, j:below], a[j:below, first:last], 1,
                         a[below:, first:last], 0, 0, self.precision)
        else:
            _cuda.blas(self.me.L + "gemm", 0, 0, m, n, width, self.minus, self.at(below, j),
                       self.ld, self.at(j, first), self.ld, self.one, self.at(below, first),
                       self.ld)

    def at(self, i, j):
        return self.a.data.ptr + (i + j * self.ld) * self.size


class Top:
    """Room for what getrf_top makes of a block's interchanges and of the top of its L."""

    def __init__(self, me, width):
        tiles = -(-width // TILE)
        self.inverses = cupy.empty((tiles, TILE, TILE), me.dtype)
        self.lists = cupy.empty((2, tiles * TILE), "i4")

    def addresses(self):
        return self.lists.data.ptr, self.lists[1].data.ptr, self.inverses.data.ptr

    def make(self, lu, j, width):
        lu.lists.launch(-(-width // TILE), 1, 32 * lu.lists.constants["WARPS"], 1, pack(
            lu.at(j, j), lu.ld, width, lu.piv.data.ptr + 4 * j, j, *self.addresses()), 4 * width)
