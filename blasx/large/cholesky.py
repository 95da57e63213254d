"""Cholesky of one large matrix on the GPU.

kernels/potrf_panel.cu factors a panel, `width` columns from the diagonal down, in one launch. What
the columns to its left take off it is subtracted before, by products with a long k that overwrite
nothing else: below the panel's diagonal block in place, and of that block, half of which must be
left alone, beside the matrix; the kernel takes it off. How wide a panel is, and from where on
cuSOLVER is faster, are tuned rows.
"""

from functools import cache

import cupy
import numpy as np

from .. import _cuda
from .._gpu_gemm import _multiprocessors, by_pairs, multiply_pairs, split
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
    left = _Left(me, c, lower, width) if len(panels) > 1 else None
    info, at = flags.data.ptr, flags.data.ptr + 4
    strides = (1, _cuda.ld(c)) if lower else (_cuda.ld(c), 1)
    shared = potrf_panel_bytes(me.letter, kernel.constants)
    most = kernel.constants["BLOCKS"] * _multiprocessors(current_device())
    for (first, _), columns, count, some in zip(panels, across, counts, marks):
        products = left.subtract(first) if first else (0, 0, 0)
        kernel.launch(min(most, count + 1), 1, 32 * kernel.constants["WARPS"], 1, pack(
            c.data.ptr + first * c.itemsize * (1 + _cuda.ld(c)), *strides, n - first, columns,
            first, *products, memory.data.ptr, diagonals, at, info), shared)
        at += 4 * some
    return flags[0]


class _Left:
    """What the columns left of a panel take off it."""

    def __init__(self, me, c, lower, width):
        self.me, self.c, self.lower, self.width = me, c, lower, width
        self.block = cupy.empty((width, width), me.dtype)
        self.panels = []  # of single precision, split
        self.one, self.zero, self.minus = (_cuda.scalar(me, x) for x in (1.0, 0.0, -1.0))

    def subtract(self, first):
        """From the panel that begins there; address and strides of what is left to subtract from
        its diagonal block."""
        width, below = self.width, len(self.c) - first - self.width
        if self.me.letter == "s" and below > 0 and by_pairs(width, width, width, current_device()) \
                and by_pairs(below, width, width, current_device()):
            self._by_pairs(first)
        else:
            self._by_cublas(first)
        at = self.block.data.ptr
        return (at, 1, self.width) if self.lower else (at, self.width, 1)

    def _by_cublas(self, first):
        me, c, n, ld = self.me, self.c, len(self.c), _cuda.ld(self.c)
        trans, down, across = ((0, 2), 1, ld) if self.lower else ((2, 0), ld, 1)
        end = min(first + self.width, n)

        def address(i, j):  # of L, or of A
            return c.data.ptr + c.itemsize * (i * down + j * across)

        own, below = (end - first, address(first, 0), ld), (n - end, address(end, 0), ld)
        _cuda.blas(me.L + "gemm", *trans, own[0], own[0], first, self.one, *own[1:], *own[1:],
                   self.zero, self.block.data.ptr, self.width)
        if end < n:
            a, b = (below, own) if self.lower else (own, below)
            _cuda.blas(me.L + "gemm", *trans, a[0], b[0], first, self.minus, *a[1:], *b[1:],
                       self.one, address(end, first), ld)

    def _by_pairs(self, first):
        """The same of single precision, on the tensor cores, a panel after the other."""
        c, n, width = self.c, len(self.c), self.width
        end, before = first + width, first - width
        x = c[first:, before:first] if self.lower else c[before:first, first:].T
        self.panels.append((first, split(x)[0]))
        to = c[end:, first:end].T if self.lower else c[first:end, end:].T  # its rows in one piece
        for start, lines in self.panels:
            own = lines.part(first - start, end - start)
            below = lines.part(end - start, n - start)
            multiply_pairs(1.0, own, own, float(start > width), self.block)
            multiply_pairs(-1.0, *((own, below) if self.lower else (below, own)), 1.0, to)
