"""Cholesky of one large matrix on the GPU.

kernels/potrf_panel.cu factors a panel, `width` columns from the diagonal down, in one launch. The
rest is products by the tensor cores, of which one triangle is made: of single precision, by pairs
of half precision, those of a panel are taken off all that is right of it; of double precision, by
remainders, a panel has those of all panels before it taken off, together. How wide a panel is, from
where on the last one has all that is left, and from where on cuSOLVER is faster, are tuned rows.

Double precision: row i of L has A_ii for its sum of squares, so all of its columns are scaled alike
before they are known, become integers as soon as they are, and stay so. Their products are exact.
So what is taken off A_ij is wrong by at most sqrt(j) 2^-53 sqrt(A_ii A_jj), by how numbers became
integers, and by less than 2^-52 of that root within six standard deviations; sums of double
precision may be by j 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.3).
If squares add up to more than A_ii, A is not positive definite; the rest of the row becomes nan,
and its pivot says so.

`Factoring` is the same by the blocks of _blocks.py, which need not all be on the GPU.
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._gpu_crt import LOWER, UPPER, Columns, by_remainders, multiply_remainders, product_bytes
from .._gpu_gemm import by_pairs, multiply_pairs, split
from .._kernel import current_device, gpu, kernel_of, multiprocessors, pack
from .._spaces import potrf_panel_bytes
from .._tuned import capitals, looked_up, row, rows
from ._blocks import ByBlocks

SLOT = 160  # numbers (kernels/potrf_panel.cu)


@looked_up
def _panel_on(letter, n, least, device):
    """The kernel that factors panels of a matrix of order n, their width, and how many columns may
    be left for the last, or None where cuSOLVER is faster; with `least` that of the largest order
    that has one."""
    found = row("potrf_panel", letter, n, gpu(device))
    if found is None and least:
        found = next((r for r, _ in reversed(rows("potrf_panel", letter, gpu(device)))
                      if capitals(r)), None)
    if not capitals(found or {}):
        return None
    kernel, width = kernel_of("potrf_panel", letter, **capitals(found)), found.get("width", n)
    if width < n and not (by_pairs(width, width, width, False, device) if letter == "s" else
                          by_remainders(letter, width, width, device)):
        return (kernel, n) if least else None
    return kernel, width, found.get("rest", 0)


def serves(me, c, native):
    """True if kernels of ours factor this matrix: where they are faster, or wherever they can."""
    return _panel_on(me.letter, len(c), native, current_device()) is not None


def potrf(me, c, lower, clean):
    """Factor the `lower` triangle of a column-major matrix in place, and clear the other one if
    `clean`; info, or None, and c is as it was, where there is no memory for that."""
    return potrf_by(me, c, lower, clean, *_panel_on(me.letter, len(c), True, current_device()))


def potrf_by(me, c, lower, clean, kernel, width, rest=0):
    """As `potrf`, by panels of that width, which is made a multiple of the kernel's blocks; a last
    one has all columns as soon as no more than `rest` are left."""
    panels = None
    try:
        panels = _Panels(me, c, lower, clean, kernel, width, rest)
        if len(panels.places) == 1:
            panels.factor(0)
        else:
            (_Remainders if me.letter == "d" else _Pairs)(c, lower, panels).factor_all()
    except cupy.cuda.memory.OutOfMemoryError:
        if panels and panels.begun:
            raise
        return None
    return panels.info


class _Panels:
    """What factors panels, which begin and end at `places`, and has memory for the largest. The
    last one clears the other triangle if `clean`."""

    def __init__(self, me, c, lower, clean, kernel, width, rest):
        self.begun, self.c, self.kernel, self.side = False, c, kernel, 8 * kernel.constants["TILES"]
        self.clean, n, width = clean, len(c), -(-width // self.side) * self.side
        begins = [first for first in range(0, n, width) if n - first + width > rest or not first]
        self.places = list(zip(begins, [*begins[1:], n]))
        shapes = [self.shape(*place) for place in self.places]
        count = max(count for *_, count in shapes) * self.side**2
        flags = cupy.zeros(1 + sum(4 + rows + 3 * k for rows, k, _ in shapes), np.int32)
        self.memory = flags, cupy.empty(
            count + max(k for _, k, _ in shapes) * SLOT * self.side // 8, c.dtype)
        self.blocks = self.memory[1].data.ptr
        self.diagonals = self.blocks + c.itemsize * count
        self.info, self.flags = flags[0], flags.data.ptr + 4
        self.strides = (1, _cuda.ld(c)) if lower else (_cuda.ld(c), 1)
        self.shared = potrf_panel_bytes(me.letter, kernel.constants)
        self.most = kernel.constants["BLOCKS"] * multiprocessors(current_device())

    def shape(self, first, last):
        """Blocks down and across a panel, and all of them."""
        rows, k = (-(-(end - first) // self.side) for end in (len(self.c), last))
        return rows, k, rows * k - k * (k - 1) // 2

    def factor(self, number):
        first, last = self.places[number]
        (rows, columns, count), c, self.begun = self.shape(first, last), self.c, True
        with _trace.step("panel", first):
            self.kernel.launch(
                min(self.most, count + 1), 1, 32 * self.kernel.constants["WARPS"], 1, pack(
                    c.data.ptr + first * c.itemsize * (1 + _cuda.ld(c)), *self.strides,
                    len(c) - first, columns, first, self.clean and last == len(c), self.blocks,
                    self.diagonals, self.flags, self.info.data.ptr), self.shared)
        self.flags += 4 * (4 + rows + 3 * columns)


class _Pairs:
    """Single precision: each panel's products off all that is right of it."""

    def __init__(self, c, lower, panels):
        self.L, self.panels, n = c if lower else c.T, panels, len(c)
        # memory for what is split is there before anything is overwritten
        cupy.cuda.alloc(max((n - last) * (4 * (last - first) + 16) + 1024
                            for first, last in panels.places[:-1]))

    def factor_all(self):
        for number, (first, last) in enumerate(self.panels.places):
            self.panels.factor(number)
            if last < len(self.L):
                with _trace.step("update", last):
                    lines, = split(self.L[last:, first:last])
                    _take_off(multiply_pairs, lines, lines, self.L[last:, last:])


class _Remainders:
    """Double precision: a panel has the products of all before it taken off, together."""

    def __init__(self, c, lower, panels):
        n = len(c)
        self.L, self.panels, self.lines = c if lower else c.T, panels, Columns(
            n, c.diagonal().copy())
        # memory for the products is there before anything is overwritten
        cupy.cuda.alloc(max(product_bytes("d", n - first, last - first)
                            for first, last in panels.places[1:]))

    def factor_all(self):
        before = None
        for number, (first, last) in enumerate(self.panels.places):
            if number:
                with _trace.step("update", first):
                    self.lines.add(self.L[first:, before:first], first)
                    _take_off(multiply_remainders, self.lines.part(first, len(self.L)),
                              self.lines.part(first, last), self.L[first:, first:last])
            self.panels.factor(number)
            before = first


def _take_off(multiply, rows, columns, c):
    """C -= rows columns^T, of C what is not right of its diagonal."""
    if c.strides[1] == c.itemsize:
        multiply(-1.0, rows, columns, 1.0, c, half=LOWER)
    else:
        multiply(-1.0, columns, rows, 1.0, c.T, half=UPPER)


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
