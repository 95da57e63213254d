"""LU with partial pivoting of one large matrix on the GPU.

Columns are factored in blocks of `block`, a block in panels of `panel`, from left to right: what is
factored has the rows of the columns beside it interchanged, of those to its right the rows of U
solved (kernels/getrf_rows.cu), and taken off what is below by a product. A panel is one launch, of
one cluster (getrf_panel.cu).

Look-ahead: a block needs nothing of the products before it but what they do to its own columns. So
it is brought up to date and factored in a stream of its own, which goes first where the GPU is full,
while the caller's stream takes the block before it off the columns behind:

    factoring    block 0 | update 1, block 1 | update 2, block 2  | ...
    updating             | 0 off 2, 3, ...   | 1 off 3, 4, ...    | ...

The two wait for each other by events, and the host for neither.
"""

import threading
from functools import cache

import cupy

from .. import _cuda
from .._gpu_gemm import by_pairs, multiply_pairs, split
from .._kernel import Kernel, current_device, gpu, pack
from .._tuned import capitals, looked_up, row
from ._bytes import panel_bytes, rows_bytes

TILE = 32  # rows of U that are solved together (kernels/getrf_top.cu)


def plan(me, m, n):
    """The row for a matrix of this shape: its `block`, `panel`, `ahead`, and `cusolver` where that
    is faster; None where there are no kernels for it."""
    return _plan(me.letter, m, min(m, n), current_device())


@looked_up
def _plan(letter, m, order, device):
    if gpu(device).capability < 90 or _panel(letter, m, device) is None:
        return None
    return row("getrf_rows", letter, order, gpu(device))


@looked_up
def _panel(letter, m, device):
    """The kernel for panels of m rows."""
    return _kernel("getrf_panel", letter, row("getrf_panel", letter, m, gpu(device)))


@looked_up
def _beside(name, letter, order, device):
    return _kernel(name, letter, row(name, letter, order, gpu(device)))


@looked_up
def _blocks(letter, order, device):
    """(place, width, width of its panels, whether ahead) of every block: what is left is factored
    as a matrix of that order would be."""
    found, j = [], 0
    while j < order:
        plan = row("getrf_rows", letter, order - j, gpu(device))
        width = min(plan.get("block", order), order - j)
        found.append((j, width, min(plan.get("panel", width), width), bool(plan.get("ahead"))))
        j += width
    return found


def _kernel(name, letter, found):
    return found and _with(name, letter, **capitals(found))


@cache
def _with(name, letter, **values):
    return Kernel(name, letter, **values)


def getrf(me, a):
    """Factor a column-major matrix in place; pivots, counted from 0, and info.

    Everything that is allocated is before the matrix is touched."""
    lu = Factoring(me, a)
    if lu.ahead and len(lu.blocks) > 1:
        lu.factor_ahead(_stream(lu.device))
    else:
        lu.factor_in_turn()
    return lu.piv, lu.info


class Factoring:
    """A matrix on its way to L and U."""

    def __init__(self, me, a):
        self.me, self.a, self.device = me, a, current_device()
        (self.m, self.n), self.order = a.shape, min(a.shape)
        self.ld, self.size = _cuda.ld(a), a.itemsize
        self.ahead, self.blocks, widest = False, [], 0
        for j, width, panel, ahead in _blocks(me.letter, self.order, self.device):
            self.blocks.append((j, width, panel, len(self.blocks) % 3))
            self.ahead, widest = self.ahead or ahead, max(widest, width)
        self.piv = cupy.empty(self.order, "i4")
        self.info = cupy.empty((), "i4")
        self.tops = [Top(me, widest) for _ in range(3)]
        self.inner = Top(me, widest)
        self.rows_of_u = _beside("getrf_rows", me.letter, self.order, self.device)
        self.lists = _beside("getrf_top", me.letter, self.order, self.device)
        self.minus, self.one = _cuda.scalar(me, -1), _cuda.scalar(me, 1)
        self.pairs = me.letter == "s" and not cupy.cuda.get_current_stream().is_capturing()

    # -- the two schedules

    def factor_in_turn(self):
        for j, width, panel, k in self.blocks:
            self.factor(j, width, panel, self.tops[k])
            self.take_off(j, width, self.tops[k], j + width, self.n, left=0)

    def factor_ahead(self, stream):
        """`stream` factors; the current one, which is the caller's, updates."""
        main = cupy.cuda.get_current_stream()
        stream.wait_event(_mark(main))
        try:
            self.go_ahead(main, stream)
        finally:  # nobody gets the memory of this call before its work is done
            main.wait_event(_mark(stream))

    def go_ahead(self, main, stream):
        updated, ends = [], [j + width for j, width, *_ in self.blocks]
        for k, (j, width, panel, _) in enumerate(self.blocks):
            with _cuda.beside(stream):
                if k:
                    if k > 1:
                        stream.wait_event(updated[k - 2])
                    self.take_off_by(k - 1, j, j + width)
                self.factor(j, width, panel, self.tops[k % 3])
                factored = _mark(stream)
            main.wait_event(factored)
            self.take_off_by(k, ends[min(k + 1, len(ends) - 1)], self.n)
            updated.append(_mark(main))
            self.interchange(j, width, self.tops[k % 3], 0)

    def take_off_by(self, k, first, last):
        j, width, _, which = self.blocks[k]
        self.take_off(j, width, self.tops[which], first, last)

    # -- the steps

    def factor(self, j, width, panel, top):
        """The block of `width` columns at j, all rows below, and what others need of it."""
        for k in range(j, j + width, panel):
            part = min(panel, j + width - k)
            self.factor_panel(k, part)
            if part < width:
                self.inner.make(self, k, part)
                self.take_off(k, part, self.inner, k + part, j + width, left=j)
        if width < self.n:
            top.make(self, j, width)

    def factor_panel(self, j, width):
        kernel = _panel(self.me.letter, self.m - j, self.device)
        values = kernel.constants
        kernel.launch(values["CLUSTER"], 1, 32 * (values["WARPS"] + 1), 1, pack(
            self.at(j, j), self.ld, self.m - j, width, self.piv.data.ptr + 4 * j, j,
            self.info.data.ptr), panel_bytes(self.me.dtype, width, values))

    def interchange(self, j, width, top, left):
        """The rows of columns from `left` up to the block at j as the block has its own."""
        self.beside(j, width, top, left, j, j)

    def take_off(self, j, width, top, first, last, left=None):
        """Columns first ... last, to the right of the block at j: interchanges, the rows of U, and
        their product with L off the rows below. Those from `left` on, before the block, are
        interchanged."""
        self.beside(j, width, top, j if left is None else left, first, last)
        self.multiply(j, width, first, last)

    def beside(self, j, width, top, left, first, last):
        values = self.rows_of_u.constants
        before, after = (-(-x // values["COLUMNS"]) for x in (j - left, last - first))
        if before + after:
            self.rows_of_u.launch(before + after, 1, 32 * values["WARPS"], 1, pack(
                self.at(j, 0), self.ld, left, j, first, last, before, width, *top.addresses()),
                rows_bytes(self.me.dtype, width, values))

    def multiply(self, j, width, first, last):
        """A[j + width:, first:last] -= A[j + width:, j:j + width] A[j:j + width, first:last]"""
        below = j + width
        m, n = self.m - below, last - first
        if m <= 0 or n <= 0:
            return
        if self.pairs and by_pairs(m, n, width, self.device):
            a = self.a
            multiply_pairs(-1, *split(a[j:below, first:last].T, a[below:, j:below]), 1,
                           a[below:, first:last].T)
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


def _mark(stream):
    """What is in a stream now."""
    return stream.record(cupy.cuda.Event(disable_timing=True))


_local = threading.local()


def _stream(device):
    """This thread's stream for factoring ahead on a device; it goes first."""
    streams = _local.__dict__.setdefault("streams", {})
    if device not in streams:
        streams[device] = cupy.cuda.Stream(non_blocking=True, priority=-5)
    return streams[device]
