"""QR factorization of one large matrix on the GPU.

Columns are factored in blocks of `block`, a block in panels of `panel`, a panel in leaves of as
many columns as fit the registers of a cluster (kernels/geqrf_leaf.cu). The reflectors of a leaf, a
panel and a block are applied together, to what is right of it in its panel, block and matrix:

    H(1) ... H(k) = I - V T V^H,    C := C - V (T^H (V^H C)),

where V has its ones and zeros in a copy, and T follows from V^H V and the T of the leaves
(geqrf_t.cu); those of a leaf by one kernel (geqrf_apply.cu). Look-ahead is that of _blocks.py.

Schreiber, Van Loan: A Storage-Efficient WY Representation, SIAM J. Sci. Stat. Comput. 10 (1989).
"""

import cupy

from .. import _cuda, _trace
from .._gpu_gemm import by_pairs, multiply_pairs, split
from .._kernel import current_device, gpu, pack
from .._tuned import looked_up, row
from ._blocks import ByBlocks, serving
from ._bytes import apply_bytes, reflectors_bytes, up

ADJOINT = 2  # cuBLAS's


def plan(me, m, n):
    """The row for a matrix of this shape: its `block`, `panel`, `ahead`, and `cusolver` where that
    is faster; None where there are no kernels for it."""
    return _plan(me.letter, m, min(m, n), current_device())


@looked_up
def _plan(letter, m, order, device):
    found = row("geqrf_t", letter, order, gpu(device))
    leaf = row("geqrf_leaf", letter, m, gpu(device))
    if not (found and leaf):
        return None
    return found | ({"cusolver": 1} if leaf.get("cusolver") else {})


def geqrf(me, a, tau):
    """Factor a column-major matrix in place, into `tau` too.

    Everything that is allocated is before the matrix is touched."""
    order, found = min(a.shape), plan(me, *a.shape)
    block = min(found.get("block", order), order)
    qr = Factoring(me, a, tau, block, found.get("panel", block))
    if found.get("ahead") and block < order:
        qr.factor_ahead()
    else:
        qr.factor_in_turn()


class Factoring(ByBlocks):
    """A matrix on its way to Q and R."""

    def __init__(self, me, a, tau, block, panel):
        self.me, self.a, self.tau, self.block, self.panel = me, a, tau, block, panel
        (self.m, self.n), self.order = a.shape, min(a.shape)
        self.ld, self.size, self.device = _cuda.ld(a), a.itemsize, current_device()
        self.sets = [Reflectors(me, self.m, block) for _ in range(2)]
        self.gram = cupy.empty((block, block), me.dtype, order="F")
        self.x, self.y = (cupy.empty((block, self.n), me.dtype, order="F") for _ in "xy")
        self.triangle = serving("geqrf_t", me.letter, self.order, self.device)
        self.minus, self.zero, self.one = (_cuda.scalar(me, x) for x in (-1, 0, 1))
        self.pairs = me.letter == "s" and not _cuda.graph_forgets()

    def reserve(self, columns):
        if self.pairs:
            high, wide = (4 * up(k, 8) + 16 + 4 * -(-k // 64) for k in (self.m, self.block))
            cupy.cuda.alloc(max((columns + self.block) * high, (columns + self.m) * wide))

    def factor(self, j, width, its):
        """The block of `width` columns at j, all rows below, and what others need of it."""
        leaf = serving("geqrf_leaf", self.me.letter, self.m - j, self.device)
        w = 4 * leaf.constants["COLUMNS"]
        for k in range(j, j + width, self.panel):
            end = min(k + self.panel, j + width)
            for i in range(k, end, w):
                steps = min(w, end - i)
                self.factor_leaf(leaf, i, steps, i - j, its)
                self.take_off(i, steps, its, i + steps, end, i - j)
            if end < j + width:
                self.close(k, end - k, its, k - j, w)
                self.take_off(k, end - k, its, end, j + width, k - j)
        if width < self.n - j:
            self.close(j, width, its, 0, w)

    def factor_leaf(self, leaf, i, steps, above, its):
        values = leaf.constants
        with _trace.step("panel", i):
            leaf.launch(values["CLUSTER"], 1, 32 * values["WARPS"], 1, pack(
                self.at(i, i), self.ld, self.m - i, steps, self.tau.data.ptr + i * self.size,
                its.v(above, above), its.ld, above, its.t(above), self.block),
                reflectors_bytes(self.me.dtype, values))

    def close(self, j, width, its, above, w):
        """T of the reflectors of columns j ... j + width, whose leaves are of w columns."""
        if width <= w:
            return
        v = its.v(above, above)
        self.gemm(ADJOINT, width, width, self.m - j, self.one, v, its.ld, v, its.ld, self.zero,
                  self.gram.data.ptr, self.block)
        warps = self.triangle.constants["WARPS"]
        self.triangle.launch(-(-width // warps), 1, 32 * warps, 1, pack(
            self.gram.data.ptr, its.t(above), self.block, width, w), self.size * warps * width)

    def take_off(self, j, width, its, first, last, above=0):
        """C := Q^H C of columns first ... last, Q of the reflectors of columns j ... j + width,
        which begin `above` places after those of their block. Room for V^H C and T^H V^H C is by
        columns, which no two streams have in hand at the same time."""
        if first < last:
            with _trace.step("update", first):
                self._take_off(j, width, its, first, last, above)

    def _take_off(self, j, width, its, first, last, above):
        m, n = self.m - j, last - first
        v, c, t = its.v(above, above), self.at(j, first), its.t(above)
        kernel = serving("geqrf_apply", self.me.letter, m, self.device)
        if kernel and width <= 4 * kernel.constants["COLUMNS"]:
            values = kernel.constants
            blocks = -(-n // values["BATCH"]) * values["CLUSTER"]
            kernel.launch(blocks, 1, 32 * values["WARPS"], 1, pack(
                v, its.ld, m, width, t, self.block, c, self.ld, n),
                apply_bytes(self.me.dtype, values))
            return
        x, y = self.x[:width, first:last], self.y[:width, first:last]
        if self.pairs and by_pairs(n, width, m, False, self.device):
            multiply_pairs(1, *split(self.a[j:, first:last].T, its.part(above, m, width).T), 0, x.T)
        else:
            self.gemm(ADJOINT, width, n, m, self.one, v, its.ld, c, self.ld, self.zero,
                      x.data.ptr, self.block)
        self.gemm(0, width, n, width, self.one, t, self.block, x.data.ptr, self.block, self.zero,
                  y.data.ptr, self.block)
        if self.pairs and by_pairs(n, m, width, False, self.device):
            multiply_pairs(-1, *split(y.T, its.part(above, m, width)), 1, self.a[j:, first:last].T)
        else:
            self.gemm(0, m, n, width, self.minus, v, its.ld, y.data.ptr, self.block, self.one, c,
                      self.ld)

    def gemm(self, trans, *of):
        _cuda.blas(self.me.L + "gemm", trans, 0, *of)

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
