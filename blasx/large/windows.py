"""LU of one large matrix on the GPU with the pivots of each panel from a window: as many rows below
the diagonal as it has columns, and some more.

    for each block of columns:
        for each panel of its: factor its window, one block of threads (kernels/getrf_window.cu),
            and take it off the rest of the block, down to the rows of its last window
        X := inv(L), Y := inv(U^T) of the block                         (getrf_inverse.cu)
        L := L inv(U) of the rows below,  U := inv(L) U of the columns to the right,
        and the product of both off what is left, by pairs of half precision

A panel costs the same whatever the order, and what is long goes to the tensor cores. Rows are
interchanged within windows, and pivots are of LAPACK's form. Where a matrix has no structure, as
between butterflies (butterflies.py), windows of twice as many rows as a panel has columns let
elements grow as partial pivoting does, some 30 times at order 4096; of as many rows, 1e3 to 1e4
times. Look-ahead is that of _blocks.py.
"""

import cupy
from cupy.cuda import runtime

from .. import _cuda, _trace
from .._gpu_gemm import multiply_pairs, split
from .._kernel import current_device, gpu, pack
from .._tuned import looked_up, row
from ..batched._block import shared_bytes
from . import lu
from ._blocks import mark, serving
from ._bytes import rows_bytes


@looked_up
def plan(letter, n, device):
    """The row for a matrix of order n, or None: `block`, `panel`, and WINDOW, the rows of one."""
    return row("getrf_windows", letter, n, gpu(device))


def getrf(me, a):
    """Factor a square column-major matrix in place; pivots, counted from 0, and info."""
    factoring = Windowed(me, a, **plan(me.letter, len(a), current_device()))
    factoring.factor_ahead()
    return factoring.piv, factoring.info


class Windowed(lu.Factoring):
    """A matrix on its way to L and U."""

    def __init__(self, me, a, block, panel, WINDOW, turns=None, **_):
        super().__init__(me, a, block, panel)
        self.window, self.half, self.turns = WINDOW, -(-block // 2), turns
        self.zero = _cuda.scalar(me, 0)
        self.sets = [Block(me, block, panel, self.m) for _ in range(3)]
        self.windows = serving("getrf_window", me.letter, WINDOW, self.device)
        self.belows, self.inverses = (serving(f"getrf_{name}", me.letter, self.m, self.device)
                                      for name in ("below", "inverse"))

    def widths(self, j):
        return self.block, self.panel

    def bottom(self, end):
        """Where the rows of the windows of columns before `end` end."""
        return min(end + self.window - self.panel, self.m)

    def _go_ahead(self, main, ahead, blocks, ends, last):
        """As ByBlocks, but a block that is about to be factored is brought up to date down to the
        end of its windows; what is below these is the caller's stream's, first of all."""
        applied, before = [], None
        for k, (j, width, its) in enumerate(blocks):
            with _cuda.beside(ahead):
                if k > 1:
                    ahead.wait_event(applied[k - 2])
                if k:
                    self.take_off(*before, j, ends[k], self.bottom(ends[k]))
                begun = mark(ahead)
            if k:
                main.wait_event(begun)
                self.multiply(*before[:2], j, ends[k], self.bottom(ends[k]), self.m)
                self.late = mark(main)
                self.take_off(*before, ends[k], last, self.m)
                self.finish(*before)
                applied.append(mark(main))
            with _cuda.beside(ahead):
                self.factor(j, width, its)
                factored = mark(ahead)
            main.wait_event(factored)
            after = ends[min(k + 1, len(ends) - 1)]
            self.solve_left(j, width, its, self.bottom(after), self.m)
            before = j, width, its
        self.finish(*before)

    def factor(self, j, width, its):
        """The block at j down to the end of its windows, its inverses, and L below, as far down as
        the next block's."""
        end = j + width
        bottom = self.bottom(end)
        for k, part, top in self.parts(j, width, its):
            self.factor_window(k, part)
            top.make(self, k, part)
            self.solve_below(k, part, top, min(k + self.window, bottom), bottom)
            self.beside(k, part, top, j, end)
            if k + part < end:
                with _trace.step("update", k):
                    self.multiply_cublas(k, part, k + part, end, k + part, bottom)
        self.order_rows(j, width, 0, its.moves)
        if end < self.n:
            self.invert(j, width, its)
            if self.late:
                cupy.cuda.get_current_stream().wait_event(self.late)
            self.solve_left(j, width, its, bottom, self.bottom(min(end + self.block, self.n)))

    def factor_window(self, j, width):
        rows = min(self.window, self.m - j)
        with _trace.step("panel", j):
            self.windows.launch(1, 1, 32 * self.windows.constants["WARPS"], 1, pack(
                self.at(j, j), self.ld, rows, width, self.piv.data.ptr + 4 * j, j,
                self.info.data.ptr), shared_bytes(self.me.dtype, rows, self.windows.constants))

    def solve_below(self, j, width, top, first, last):
        """Rows first ... last of the panel at j, which were not in its window."""
        values = self.belows.constants
        if first < last:
            with _trace.step("solve", j):
                self.belows.launch(
                    -(-(last - first) // values["COLUMNS"]), 1, 32 * values["WARPS"], 1, pack(
                        self.at(first, j), self.ld, last - first, self.at(j, j), self.ld, width,
                        top.of_u), rows_bytes(self.me.dtype, width, values))

    def invert(self, j, width, its):
        """inv(L) and inv(U^T) of the block, transposed and by columns: those of two halves, and of
        what is between these one product more, - inv(L11)^T (L21^T inv(L22)^T)."""
        values, half = self.inverses.constants, min(self.half, width)
        X, ld, size = its.inverses.data.ptr, self.block, self.size
        with _trace.step("solve", j):
            blocks = 2 * -(-half // values["COLUMNS"]) * -(-width // half)
            self.inverses.launch(blocks, 1, 32 * values["WARPS"], 1, pack(
                self.at(j, j), self.ld, width, half, its.tiles, its.tiles_of_u, X, ld),
                rows_bytes(self.me.dtype, half, values))
            rest = width - half
            if not rest:
                return
            for k, (trans, between) in enumerate(((1, self.at(j + half, j)),
                                                  (0, self.at(j, j + half)))):
                first = X + k * ld * ld * size
                second, room = first + half * (ld + 1) * size, its.room.data.ptr
                _cuda.blas("sgemm", trans, 0, half, rest, rest, self.one, between, self.ld, second,
                           ld, self.zero, room, half)
                _cuda.blas("sgemm", 0, 0, half, rest, half, self.minus, first, ld, room, half,
                           self.zero, first + half * ld * size, ld)

    def solve_left(self, j, width, its, first, last):
        """Rows first ... last of L below the block, L U = A."""
        if first < last:
            with _trace.step("solve", j):
                below = self.part(j, j + width)[first:last].T
                multiply_pairs(1, *split(its.of_u[:width, :width], copied(below).T), 0, below,
                               turns=self.turns)

    def take_off(self, j, width, its, first, last, bottom):
        """Of columns first ... last: interchanges, U of the block's rows, L U = A, and the product
        off the rows below, down to `bottom`."""
        if first < last:
            self.interchange(j, width, its, first, last)
            with _trace.step("solve", first):
                beside = self.part(first, last)[j:j + width].T
                multiply_pairs(1, *split(copied(beside), its.of_l[:width, :width]), 0, beside,
                               turns=self.turns)
            self.multiply(j, width, first, last, j + width, bottom)

    def interchange(self, j, width, its, first, last):
        if first < last:
            with _trace.step("swap", first):
                self.move_rows(first, last, j, width, its.moves)


def copied(x):
    """Rows of an operand where the product's result goes: whoever reads it later reads this."""
    y = cupy.empty(x.shape, x.dtype)
    runtime.memcpy2DAsync(y.data.ptr, y.strides[0], x.data.ptr, x.strides[0], y.strides[0], len(y),
                          runtime.memcpyDeviceToDevice, cupy.cuda.get_current_stream().ptr)
    return y


class Block:
    """Room for what a block leaves for others: of its panels as of lu.Top, their inverses one after
    the other; the row that comes to each place; inv(L) and inv(U^T)."""

    def __init__(self, me, block, panel, m):
        tiles = [-(-min(panel, block - k) // lu.TILE) for k in range(0, block, panel)]
        self.memory = cupy.empty((2, sum(tiles), lu.TILE, lu.TILE), me.dtype)
        self.tiles, self.tiles_of_u = (x.data.ptr for x in self.memory)
        self.parts, each = [], lu.TILE**2 * me.dtype.itemsize
        for k in range(0, block, panel):
            at = k // lu.TILE * each
            self.parts.append(Part(panel, self.tiles + at, self.tiles_of_u + at))
        half = -(-block // 2)
        self.inverses = cupy.zeros((2, block, block), me.dtype)
        self.of_l, self.of_u = self.inverses
        self.room, self.rows = cupy.empty((half, half), me.dtype), cupy.empty(m, "i4")
        self.moves = self.rows.data.ptr


class Part(lu.Top):
    """lu.Top with its inverses, and those of U, in a Block."""

    def __init__(self, width, inverses, of_u):
        count = -(-width // lu.TILE) * lu.TILE
        self.inverses, self.of_u, self.memory = inverses, of_u, cupy.empty(2 * count, "i4")
        lists = self.memory.data.ptr
        self.lists = lists, lists + 4 * count
