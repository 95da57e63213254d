"""Cholesky of one large matrix on the GPU.

kernels/potrf_panel.cu factors a panel, `width` columns from the diagonal down, in one launch. What
is right of it is brought up to date a strip of `width` columns at a time, below the strip's
diagonal block, by products that overwrite nothing else. Diagonal blocks, of which half must be
left alone, collect their products beside the matrix, all blocks in one call; the panel takes them
off when it comes there. How wide a panel is, and from where on cuSOLVER is faster, are tuned rows.

`Factoring` is the same by the blocks of _blocks.py, which need not all be on the GPU.
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._gpu_gemm import by_pairs, multiply_pairs, split
from .._kernel import current_device, gpu, kernel_of, multiprocessors, pack
from .._spaces import potrf_panel_bytes
from .._tuned import capitals, looked_up, row, rows
from ._blocks import ByBlocks

SLOT = 160  # numbers (kernels/potrf_panel.cu)


@looked_up
def _panel_on(letter, n, least, device):
    """The kernel that factors panels of a matrix of order n, and their width, or None where
    cuSOLVER is faster; with `least` that of the largest order that has one."""
    found = row("potrf_panel", letter, n, gpu(device))
    if found is None and least:
        found = next((r for r, _ in reversed(rows("potrf_panel", letter, gpu(device)))
                      if capitals(r)), None)
    if not capitals(found or {}):
        return None
    return kernel_of("potrf_panel", letter, **capitals(found)), found.get("width", n)


def serves(me, c, native):
    """True if kernels of ours factor this matrix: where they are faster, or wherever they can."""
    return _panel_on(me.letter, len(c), native, current_device()) is not None


def potrf(me, c, lower):
    """Factor the `lower` triangle of a column-major matrix in place; info."""
    return potrf_by(me, c, lower, *_panel_on(me.letter, len(c), True, current_device()))


def potrf_by(me, c, lower, kernel, width):
    """By panels of that width, which is made a multiple of the kernel's blocks."""
    n, side = c.shape[0], 8 * kernel.constants["TILES"]
    width = -(-min(width, n) // side) * side
    panels = [(first, -(-(n - first) // side)) for first in range(0, n, width)]
    across = [min(width // side, rows) for _, rows in panels]
    counts = [rows * k - k * (k - 1) // 2 for (_, rows), k in zip(panels, across)]

    marks = [4 + rows + 3 * k for (_, rows), k in zip(panels, across)]
    flags = cupy.zeros(1 + sum(marks), np.int32)
    memory = cupy.empty(max(counts) * side * side + across[0] * SLOT * side // 8, c.dtype)
    diagonals = memory.data.ptr + c.itemsize * max(counts) * side * side
    products = _Products(me, c, lower, width) if len(panels) > 1 else None
    info, at = flags.data.ptr, flags.data.ptr + 4
    strides = (1, _cuda.ld(c)) if lower else (_cuda.ld(c), 1)
    shared = potrf_panel_bytes(me.letter, kernel.constants)
    most = kernel.constants["BLOCKS"] * multiprocessors(current_device())
    for (first, _), columns, count, some in zip(panels, across, counts, marks):
        before = products.of(first) if first else (0, 0, 0)
        with _trace.step("panel", first):
            kernel.launch(min(most, count + 1), 1, 32 * kernel.constants["WARPS"], 1, pack(
                c.data.ptr + first * c.itemsize * (1 + _cuda.ld(c)), *strides, n - first, columns,
                first, *before, memory.data.ptr, diagonals, at, info), shared)
        at += 4 * some
        if first + width < n:
            with _trace.step("update", first + width):
                products.add(first)
    return flags[0]


class _Products:
    """What panels take off all that is right of them."""

    def __init__(self, me, c, lower, width):
        self.me, self.c, self.lower, self.width = me, c, lower, width
        self.trans, self.down, self.across = ((0, 2), 1, _cuda.ld(c)) if lower else (
            (2, 0), _cuda.ld(c), 1)
        self.blocks = cupy.empty((-(-len(c) // width) - 1, width, width), me.dtype)
        self.zero, self.one, self.minus = (_cuda.scalar(me, x) for x in (0.0, 1.0, -1.0))
        self.pairs = me.letter == "s" and by_pairs(width, width, width, False, current_device())

    def of(self, first):
        """Address and strides, by which the kernel has them, of the products of a diagonal block,
        which lie by columns."""
        at = self._block(first).data.ptr
        return (at, 1, self.width) if self.lower else (at, self.width, 1)

    def _block(self, begin):
        return self.blocks[begin // self.width - 1]

    def add(self, first):
        """Those with the panel that begins at column `first`, which is finished."""
        n, width, start = len(self.c), self.width, first + self.width
        lines = self._split(first, start) if self.pairs else None
        whole = 0 if self.pairs else (n - start) // width
        if whole:
            self._add_blocks(first, start, whole)
        for begin in range(start, n, width):
            end = min(begin + width, n)
            if begin >= start + whole * width:
                self._multiply(first, (begin, end), (begin, end), lines)
            if end < n:
                self._multiply(first, (end, n), (begin, end), lines)

    def _address(self, i, j):
        """Of an element of L, or of what is to become one."""
        return self.c.data.ptr + self.c.itemsize * (i * self.down + j * self.across)

    def _add_blocks(self, first, start, count):
        """Whole blocks on the diagonal, at once."""
        width, ld, at = self.width, _cuda.ld(self.c), self._address(start, first)
        _cuda.blas(self.me.L + "gemmStridedBatched", *self.trans, width, width, width, self.one, at,
                   ld, width * self.down, at, ld, width * self.down,
                   self.one if first else self.zero, self._block(start).data.ptr, width, width**2,
                   count)

    def _multiply(self, first, rows, columns, lines):
        """Rows of L times rows of L adjoint: off what is below the diagonal, or to its block."""
        c, width, square = self.c, self.width, rows == columns
        m, n = rows[1] - rows[0], columns[1] - columns[0]
        if lines and by_pairs(m, n, width, False, current_device()):
            start = first + width
            a, b = (lines.part(i - start, j - start) for i, j in (rows, columns))
            if square:
                multiply_pairs(1.0, a, b, float(first > 0), self._block(rows[0])[:m, :n])
            elif self.lower:  # C^T, whose rows lie in one piece
                multiply_pairs(-1.0, b, a, 1.0, c[rows[0]:rows[1], columns[0]:columns[1]].T)
            else:
                multiply_pairs(-1.0, a, b, 1.0, c[columns[0]:columns[1], rows[0]:rows[1]].T)
            return
        a, b = (rows, columns) if self.lower else (columns, rows)
        alpha, beta, to, ld = self.minus, self.one, self._address(rows[0], columns[0]), _cuda.ld(c)
        if square:
            alpha, beta = self.one, self.one if first else self.zero
            to, ld = self._block(rows[0]).data.ptr, width
        _cuda.blas(self.me.L + "gemm", *self.trans, a[1] - a[0], b[1] - b[0], width, alpha,
                   self._address(a[0], first), _cuda.ld(c), self._address(b[0], first),
                   _cuda.ld(c), beta, to, ld)

    def _split(self, first, start):
        """The rows of L right of the panel's diagonal, for products on the tensor cores."""
        c = self.c
        return split(c[start:, first:start] if self.lower else c[first:start, start:].T)[0]


class Factoring(ByBlocks):
    """A matrix on its way to L, or to U = L^H, of which half is read and written. `factor_block`
    has the block of `width` columns on the diagonal at j factored; `lost` is LAPACK's info."""

    def __init__(self, me, c, lower, block):
        self.me, self.c, self.lower, self.block = me, c, lower, block
        self.n = self.order = len(c)
        self.sets = [None]
        self.minus, self.one = _cuda.scalar(me, -1), _cuda.scalar(me, 1)
        self.real = _cuda.real_scalar(me, -1), _cuda.real_scalar(me, 1)
        self.fill, self.turn = _cuda.fill(lower), 2 if me.is_complex else 1

    def place(self, j):
        """Address of (0, 0), leading dimension, of the matrix that has column j of L."""
        return self.c.data.ptr, _cuda.ld(self.c)

    def at(self, i, j):
        """Address and leading dimension of element (i, j) of L, or of what it is the adjoint of."""
        address, ld = self.place(j)
        i, j = (i, j) if self.lower else (j, i)
        return address + self.me.dtype.itemsize * (i + j * ld), ld

    def factor(self, j, width, its):
        with _trace.step("panel", j):
            self.factor_block(j, width)
        below = self.n - j - width
        if below:
            with _trace.step("solve", j):
                self.solve(j, width, self.turn, below, *self.at(j + width, j), self.lower)

    def solve(self, j, width, turn, lines, address, ld, right):
        """X := X op(block at j)^-1 of so many lines X; `right`: X has it to the right."""
        side, size = (_cuda.RIGHT, (lines, width)) if right else (_cuda.LEFT, (width, lines))
        _cuda.blas(self.me.L + "trsm", side, self.fill, turn, _cuda.NON_UNIT, *size, self.one,
                   *self.at(j, j), address, ld)

    def take_off(self, j, width, its, first, last):
        """L[:, j:j + width] times rows first ... last of it, adjoint, off these columns, a strip of
        `block` columns from its diagonal down at a time."""
        me, ops = self.me, (0, self.turn) if self.lower else (self.turn, 0)
        rank_k = me.L + ("herk" if me.is_complex else "syrk")
        for i in range(first, last, self.block):
            own = min(self.block, last - i)
            below, across = self.n - i - own, self.at(i, j)
            with _trace.step("update", i):
                _cuda.blas(rank_k, self.fill, ops[0], own, width, self.real[0], *across,
                           self.real[1], *self.at(i, i))
                if below:
                    down = self.at(i + own, j)
                    (m, a), (n, b) = (((below, down), (own, across)) if self.lower else
                                      ((own, across), (below, down)))
                    _cuda.blas(me.L + "gemm", *ops, m, n, width, self.minus, *a, *b, self.one,
                               *self.at(i + own, i))
