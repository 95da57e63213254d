"""QR factorization of one large matrix on the GPU.

Columns are factored in blocks of `block`, a block in panels of `panel`, a panel in leaves of as many
columns as fit the registers of a cluster (kernels/geqrf_leaf.cu). The reflectors of a leaf, of a
panel and of a block are applied together, to what is right of it in its panel, block and matrix:

    H(1) ... H(k) = I - V T V^H,    C := C - V (T^H (V^H C)),

where V has its ones and zeros in a copy, and T follows from V^H V and the T of the leaves
(geqrf_t.cu); those of a leaf by one kernel (geqrf_apply.cu). Look-ahead as in lu.py: the next block is brought up to date and factored in a stream
that goes first, while the caller's applies the block before it to the columns behind.

Schreiber, Van Loan: A Storage-Efficient WY Representation, SIAM J. Sci. Stat. Comput. 10 (1989).
"""

from functools import cache

import cupy

from .. import _cuda
from .._gpu_gemm import by_pairs, multiply_pairs, split
from .._kernel import Kernel, current_device, gpu, pack
from .._tuned import capitals, looked_up, row
from ._bytes import apply_bytes, reflectors_bytes
from .lu import _mark, _stream

ADJOINT = 2  # cuBLAS's


def plan(me, m, n):
    """The row for a matrix of this shape: its `block`, `panel`, `ahead`, and `cusolver` where that
    is faster; None where there are no kernels for it."""
    return _plan(me.letter, m, min(m, n), current_device())


@looked_up
def _plan(letter, m, order, device):
    if gpu(device).capability < 90 or _leaf(letter, m, device) is None:
        return None
    return row("geqrf_t", letter, order, gpu(device))


@looked_up
def _leaf(letter, m, device):
    """The kernel for leaves of m rows."""
    return _kernel("geqrf_leaf", letter, row("geqrf_leaf", letter, m, gpu(device)))


@looked_up
def _applier(letter, m, device):
    """The kernel that applies a leaf of m rows, or None."""
    return _kernel("geqrf_apply", letter, row("geqrf_apply", letter, m, gpu(device)))


@looked_up
def _triangle(letter, order, device):
    return _kernel("geqrf_t", letter, row("geqrf_t", letter, order, gpu(device)))


def _kernel(name, letter, found):
    return found and _with(name, letter, **capitals(found))


@cache
def _with(name, letter, **values):
    return Kernel(name, letter, **values)


def geqrf(me, a, tau):
    """Factor a column-major matrix in place, into `tau` too.

    Everything that is allocated is before the matrix is touched."""
    order, found = min(a.shape), plan(me, *a.shape)
    block = min(found.get("block", order), order)
    qr = Factoring(me, a, tau, block, found.get("panel", block))
    if found.get("ahead") and block < order:
        qr.factor_ahead(_stream(current_device()))
    else:
        qr.factor_in_turn()


class Factoring:
    """A matrix on its way to Q and R."""

    def __init__(self, me, a, tau, block, panel):
        self.me, self.a, self.tau, self.block, self.panel = me, a, tau, block, panel
        (self.m, self.n), self.order = a.shape, min(a.shape)
        self.ld, self.size, self.device = _cuda.ld(a), a.itemsize, current_device()
        self.sets = [Reflectors(me, self.m, block) for _ in range(2)]
        self.gram = cupy.empty((block, block), me.dtype, order="F")
        self.inner, self.outer = ([cupy.empty((block, width), me.dtype, order="F") for _ in "xy"]
                                  for width in (block, self.n))
        self.triangle = _triangle(me.letter, self.order, self.device)
        self.minus, self.zero, self.one = (_cuda.scalar(me, x) for x in (-1, 0, 1))
        self.gemm = me.L + "gemm"
        self.pairs = me.letter == "s" and not cupy.cuda.get_current_stream().is_capturing()

    def blocks(self):
        """(place, width, its reflectors) of all blocks; each uses one of two sets."""
        return [(j, min(self.block, self.order - j), self.sets[k % 2])
                for k, j in enumerate(range(0, self.order, self.block))]

    # -- the two schedules

    def factor_in_turn(self):
        for j, width, its in self.blocks():
            self.factor(j, width, its)
            self.apply(j, width, its, j + width, self.n, self.outer)

    def factor_ahead(self, stream):
        """`stream` factors; the current one, which is the caller's, applies."""
        main, blocks = cupy.cuda.get_current_stream(), self.blocks()
        stream.wait_event(_mark(main))
        try:
            self.go_ahead(main, stream, blocks)
        finally:  # nobody gets the memory of this call before its work is done
            main.wait_event(_mark(stream))

    def go_ahead(self, main, stream, blocks):
        applied = []
        for k, (j, width, its) in enumerate(blocks):
            with _cuda.beside(stream):
                if k:
                    if k > 1:
                        stream.wait_event(applied[k - 2])
                    self.apply(*blocks[k - 1], j, j + width, self.inner)
                self.factor(j, width, its)
                factored = _mark(stream)
            main.wait_event(factored)
            behind = j + width + (blocks[k + 1][1] if k + 1 < len(blocks) else 0)
            self.apply(j, width, its, behind, self.n, self.outer)
            applied.append(_mark(main))

    # -- the steps

    def factor(self, j, width, its):
        """The block of `width` columns at j, all rows below, and what others need of it."""
        leaf = _leaf(self.me.letter, self.m - j, self.device)
        w = 4 * leaf.constants["COLUMNS"]
        for k in range(j, j + width, self.panel):
            end = min(k + self.panel, j + width)
            for i in range(k, end, w):
                steps = min(w, end - i)
                self.factor_leaf(leaf, i, steps, i - j, its)
                self.apply(i, steps, its, i + steps, end, self.inner, i - j)
            if end < j + width:
                self.close(k, end - k, its, k - j, w)
                self.apply(k, end - k, its, end, j + width, self.inner, k - j)
        if width < self.n - j:
            self.close(j, width, its, 0, w)

    def factor_leaf(self, leaf, i, steps, above, its):
        values = leaf.constants
        leaf.launch(values["CLUSTER"], 1, 32 * values["WARPS"], 1, pack(
            self.at(i, i), self.ld, self.m - i, steps, self.tau.data.ptr + i * self.size,
            its.v(above, above), its.ld, above, its.t(above), self.block),
            reflectors_bytes(self.me.dtype, values))

    def close(self, j, width, its, above, w):
        """T of the reflectors of columns j ... j + width, whose leaves are of w columns."""
        if width <= w:
            return
        v = its.v(above, above)
        _cuda.blas(self.gemm, ADJOINT, 0, width, width, self.m - j, self.one, v, its.ld, v, its.ld,
                   self.zero, self.gram.data.ptr, self.block)
        warps = self.triangle.constants["WARPS"]
        self.triangle.launch(-(-width // warps), 1, 32 * warps, 1, pack(
            self.gram.data.ptr, its.t(above), self.block, width, w), self.size * warps * width)

    def apply(self, j, width, its, first, last, room, above=0):
        """C := Q^H C of columns first ... last, Q of the reflectors of columns j ... j + width,
        which begin `above` places after those of their block; by way of `room`."""
        m, n = self.m - j, last - first
        if n <= 0:
            return
        x, y = (r.data.ptr for r in room)
        v, c = its.v(above, above), self.at(j, first)
        kernel = _applier(self.me.letter, m, self.device)
        if kernel and width <= 4 * kernel.constants["COLUMNS"]:
            values = kernel.constants
            blocks = -(-n // values["BATCH"]) * values["CLUSTER"]
            kernel.launch(blocks, 1, 32 * values["WARPS"], 1, pack(
                v, its.ld, m, width, its.t(above), self.block, c, self.ld, n),
                apply_bytes(self.me.dtype, values))
            return
        if self.pairs and by_pairs(n, width, m, self.device):
            multiply_pairs(1, *split(self.a[j:, first:last].T, its.part(above, m, width).T), 0,
                           room[0][:width, :n].T)
        else:
            _cuda.blas(self.gemm, ADJOINT, 0, width, n, m, self.one, v, its.ld, c, self.ld,
                       self.zero, x, self.block)
        _cuda.blas(self.gemm, 0, 0, width, n, width, self.one, its.t(above), self.block, x,
                   self.block, self.zero, y, self.block)
        if self.pairs and by_pairs(n, m, width, self.device):
            multiply_pairs(-1, *split(room[1][:width, :n].T, its.part(above, m, width)), 1,
                           self.a[j:, first:last].T)
        else:
            _cuda.blas(self.gemm, 0, 0, m, n, width, self.minus, v, its.ld, y, self.block, self.one,
                       c, self.ld)

    def at(self, i, j):
        return self.a.data.ptr + (i + j * self.ld) * self.size


class Reflectors:
    """Room for V of a block, with its ones and zeros, and for T^H."""

    def __init__(self, me, m, width):
        self.V = cupy.empty((m, width), me.dtype, order="F")
        self.TH = cupy.empty((width, width), me.dtype, order="F")
        self.ld, self.size, self.width = m, me.dtype.itemsize, width

    def v(self, i, j):
        return self.V.data.ptr + (i + j * self.ld) * self.size

    def t(self, j):
        return self.TH.data.ptr + (j + j * self.width) * self.size

    def part(self, above, m, width):
        return self.V[above:above + m, above:above + width]
