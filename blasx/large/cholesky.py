"""Cholesky of one large matrix on the GPU.

kernels/potrf_panel.cu factors a panel, `width` columns from the diagonal down, in one launch. What
is right of it is brought up to date a strip of `width` columns at a time, below the strip's
diagonal block, by products that overwrite nothing else. Diagonal blocks, of which half must be
left alone, collect their products beside the matrix, all blocks in one call; the panel takes them
off when it comes there. How wide a panel is, and from where on cuSOLVER is faster, are tuned rows.
"""

from functools import cache

import cupy
import numpy as np

from .. import _cuda
from .._gpu_gemm import by_pairs, multiply_pairs, split
from .._kernel import Kernel, current_device, gpu, pack
from .._spaces import potrf_panel_bytes
from .._tuned import capitals, looked_up, row, rows

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
    return _kernel("potrf_panel", letter, **capitals(found)), found.get("width", n)


def serves(me, c, native):
    """True if kernels of ours factor this matrix: where they are faster, or wherever they can."""
    return _panel_on(me.letter, len(c), native, current_device()) is not None


@cache
def _kernel(name, letter, **values):
    return Kernel(name, letter, **values)


@cache
def _multiprocessors(device):
    return cupy.cuda.Device(device).attributes["MultiProcessorCount"]


def potrf(me, c, lower):
    """Factor the `lower` triangle of a column-major matrix in place; info."""
    return potrf_by(me, c, lower, *_panel_on(me.letter, len(c), True, current_device()))


def potrf_by(me, c, lower, kernel, width):
    n, side = c.shape[0], 8 * kernel.constants["TILES"]
    width = min(width, -(-n // side) * side)
    down = -(-n // side)
    panels = [(first, -(-(n - first) // side)) for first in range(0, n, width)]
    across = [min(width // side, rows) for _, rows in panels]
    counts = [rows * k - k * (k - 1) // 2 for (_, rows), k in zip(panels, across)]

    marks = [4 + rows + 3 * k for (_, rows), k in zip(panels, across)]
    flags = cupy.zeros(1 + sum(marks), np.int32)
    room = max(counts) * side * side + down * SLOT * side // 8
    memory = cupy.empty(room, c.dtype)
    diagonals = memory.data.ptr + c.itemsize * max(counts) * side * side
    products = _Products(me, c, lower, width) if len(panels) > 1 else None
    info, at = flags.data.ptr, flags.data.ptr + 4
    strides = (1, _cuda.ld(c)) if lower else (_cuda.ld(c), 1)
    shared = potrf_panel_bytes(me.letter, kernel.constants)
    most = kernel.constants["BLOCKS"] * _multiprocessors(current_device())
    for (first, _), columns, count, some in zip(panels, across, counts, marks):
        before = products.of(first) if first else (0, 0, 0)
        kernel.launch(min(most, count + 1), 1, 32 * kernel.constants["WARPS"], 1, pack(
            c.data.ptr + first * c.itemsize * (1 + _cuda.ld(c)), *strides, n - first, columns,
            first, *before, memory.data.ptr, diagonals, at, info), shared)
        at += 4 * some
        if first + width < n:
            products.add(first)
    return flags[0]


class _Products:
    """What panels take off all that is right of them."""

    def __init__(self, me, c, lower, width):
        self.me, self.c, self.lower, self.width = me, c, lower, width
        self.blocks = cupy.empty((-(-c.shape[0] // width) - 1, width, width), me.dtype)
        self.zero, self.one, self.minus = (_cuda.scalar(me, x) for x in (0.0, 1.0, -1.0))

    def of(self, first):
        """Address and strides, by which the kernel has them, of the products of a diagonal block,
        which lie by columns."""
        width = self.width
        at = self._block(first)
        return (at, 1, width) if self.lower else (at, width, 1)

    def _block(self, begin):
        return self.blocks.data.ptr + (begin // self.width - 1) * self.blocks.strides[0]

    def add(self, first):
        """Those with the panel that begins at column `first`, which is finished."""
        start, n = first + self.width, self.c.shape[0]
        side = min(self.width, n - start)
        if self.me.letter == "s" and by_pairs(side, side, self.width, current_device()):
            self._add_by_pairs(first, start)
        else:
            self._add_by_cublas(first, start)

    def _add_by_cublas(self, first, start):
        me, c, width = self.me, self.c, self.width
        n, ld = c.shape[0], _cuda.ld(c)
        trans, next_, across = ((0, 2), 1, ld) if self.lower else ((2, 0), ld, 1)

        def of(i):  # row i of L, right of the panel's diagonal
            return c.data.ptr + c.itemsize * (i * next_ + first * across)

        whole = (n - start) // width
        for begin, side, count in ((start, width, whole),
                                   (start + whole * width, (n - start) % width, 1)):
            if side and count:
                _cuda.blas(me.L + "gemmStridedBatched", *trans, side, side, width, self.one,
                           of(begin), ld, width * next_, of(begin), ld, width * next_,
                           self.one if first else self.zero, self._block(begin), width, width**2,
                           count)
        for begin in range(start, n - width, width):
            end = begin + width
            below, beside = (n - end, of(end), ld), (width, of(begin), ld)
            a, b = (below, beside) if self.lower else (beside, below)
            _cuda.blas(me.L + "gemm", *trans, a[0], b[0], width, self.minus, *a[1:], *b[1:],
                       self.one, c.data.ptr + c.itemsize * (end * next_ + begin * across), ld)

    def _add_by_pairs(self, first, start):
        """The same of single precision, on the tensor cores."""
        c, n = self.c, self.c.shape[0]
        upto = first + self.width
        rows, = split(c[start:, first:upto] if self.lower else c[first:upto, start:].T)
        for begin in range(start, n, self.width):
            end = min(begin + self.width, n)
            own, below = rows.part(begin - start, end - start), rows.part(end - start, n - start)
            block = self.blocks[begin // self.width - 1][:end - begin, :end - begin]
            multiply_pairs(1.0, own, own, float(first > 0), block)
            if end == n:
                break
            if self.lower:  # C^T, whose rows lie in one piece
                multiply_pairs(-1.0, own, below, 1.0, c[end:, begin:end].T)
            else:
                multiply_pairs(-1.0, below, own, 1.0, c[begin:end, end:].T)
