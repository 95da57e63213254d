"""LU with partial pivoting of one large matrix on the GPU.

Columns are factored from left to right in blocks, a block in parts, a part in panels, and these in
narrower ones where they are tall: what is factored has the rows of the columns beside it
interchanged, of those to its right the rows of U solved (kernels/getrf_rows.cu), and taken off what
is below by a product. A panel is one launch, of one cluster (getrf_panel.cu). To the right of a
block its parts are solved for one after the other, and what is below all of them loses one product,
by remainders where it is deep (double precision), or by pairs (single). Look-ahead is that of
_blocks.py; how wide blocks are, tuned rows say by what is left to be factored. Where products of
large parts keep the GPU busy, what a part does to the next one goes first, and the rest of its
block follows in a stream between that and the large products, beside the next panel.
"""

import cupy

from .. import _cuda, _gpu_crt, _trace
from .._gpu_gemm import by_halves, by_pairs, multiply_pairs, split
from .._kernel import current_device, gpu, pack
from .._tuned import looked_up, row
from ..batched._block import shared_bytes
from ..blas3 import _gemm_cublas
from ._blocks import SECOND, ByBlocks, mark, serving, stream
from ._bytes import columns_bytes, moved_bytes, panel_bytes, rows_bytes, up, wide_bytes

TILE = 32  # rows of U that are solved together (kernels/getrf_top.cu)


def plan(me, m, n):
    """The row for a matrix of this shape, or None where there are no kernels for it: what is of the
    whole, `ahead`, `turns`, `begins`, `cusolver` where that is faster; the first widths (_widths),
    and `even` where blocks have to be of one, in parts of `part` columns (host.py)."""
    return _plan(me.letter, m, min(m, n), current_device())


@looked_up
def _plan(letter, m, order, device):
    found = row("getrf_rows", letter, order, gpu(device))
    panel = row("getrf_panel", letter, m, gpu(device))
    if not (found and panel and row("getrf_top", letter, order, gpu(device))):
        return None
    return found | ({"cusolver": 1} if panel.get("cusolver") else {})


def windowed(me, n):
    """Whether pivots from windows are faster for a matrix of order n."""
    return bool(plan(me, n, n) and _windowed(me.letter, n, current_device()))


@looked_up
def _windowed(letter, n, device):
    found, of = row("getrf_windows", letter, n, gpu(device)), gpu(device)
    return found and found.get("pays") and row("getrf_window", letter, found["WINDOW"], of) and row(
        "getrf_below", letter, n, of)


def getrf(me, a, precision="fp32", windows=False):
    """Factor a column-major matrix in place; pivots, counted from 0, and info. Memory is asked for
    before the matrix is touched. `precision`: of what is taken off in single precision, as of
    gemm. Pivots are LAPACK's, or with `windows` as of Windowed."""
    lu = Windowed(me, a, precision) if windows else Graded(me, a, precision)
    if lu.ahead:
        lu.factor_ahead()
    else:
        lu.factor_in_turn()
    lu.settle()
    return lu.piv, lu.info


class Factoring(ByBlocks):
    """A matrix on its way to L and U; of `n` columns, where `a` has but some of them. Its blocks
    are of one width."""

    remainders, turns = False, None  # products by them; as of _kernel.in_turns
    windows = False  # whether panels leave rows below them to be solved for (`below`)

    def __init__(self, me, a, block, panel, n=None, sets=3, precision="fp32"):
        self.me, self.a, self.block, self.panel, self.precision = me, a, block, panel, precision
        self.m, self.n = len(a), n or a.shape[1]
        self.order = min(self.m, self.n)
        self.ld, self.size, self.device = _cuda.ld(a), a.itemsize, current_device()
        self.piv = cupy.empty(self.order, "i4")
        self.info = cupy.empty((), "i4")
        widths = [self.widths(j) for j in self.places()]
        parts = max(-(-block // part) for block, part, *_ in widths)
        part = max(part for _, part, *_ in widths)
        self.sets = [Tops(me, part, parts, self.m, self.windows) for _ in range(sets)]
        self.still = cupy.arange(part, dtype="i4") if parts > 1 else None
        self.inner = {x: Top(me, x) for x in {x for _, _, *narrower in widths for x in narrower}}
        self.rows_of_u = serving("getrf_rows", me.letter, self.order, self.device)
        self.tops = serving("getrf_top", me.letter, self.order, self.device)
        self.minus, self.one = _cuda.scalar(me, -1), _cuda.scalar(me, 1)
        self.halves = precision == "fp16"
        self.kept = not _cuda.graph_forgets()
        self.pairs = self.kept and me.letter == "s" and (self.halves or precision == "fp32")

    def widths(self, j):
        """Of a block at j, its parts, their panels, the panels of these, ..."""
        return self.block, self.block, self.panel

    def places(self):
        """Where blocks begin."""
        j = 0
        while j < self.order:
            yield j
            j += self.widths(j)[0]

    def blocks(self):
        return [(j, min(self.widths(j)[0], self.order - j), self.sets[k % len(self.sets)])
                for k, j in enumerate(self.places())]

    def parts(self, j, width, tops):
        """(place, width, what it leaves for others) of the parts of a block."""
        part = self.widths(j)[1]
        return [(k, min(part, j + width - k), top)
                for k, top in zip(range(j, j + width, part), tops.parts)]

    def reserve(self, columns):
        if self.pairs:
            line = 4 * up(self.block, 8) + 16 + 4 * -(-self.block // 64)
            cupy.cuda.alloc((self.m + columns) * line)
        if self.remainders:
            try:
                cupy.cuda.alloc(_gpu_crt.room(columns, self.m, self.block))
            except cupy.cuda.memory.OutOfMemoryError:
                self.remainders = False

    def factor(self, j, width, tops):
        """The block of `width` columns at j, all rows below, and what others need of it."""
        narrower, last = self.widths(j)[2:], self.beyond(j, width)
        for k, part, top in self.parts(j, width, tops):
            self.factor_part(k, part, narrower)
            if part < self.n:
                top.make(self, k, part)
            if self.late:
                cupy.cuda.get_current_stream().wait_event(self.late)
                self.late = None
            self.join(k, part, top, j, last)
        if width > part:
            self.order_rows(j, width, 0, tops.moves)

    def factor_part(self, j, width, narrower):
        """So many columns in panels, these in narrower ones, ..."""
        if not narrower:
            self.factor_panel(j, width)
            return
        panel, *narrower = narrower
        for k in range(j, j + width, panel):
            some, top = min(panel, j + width - k), self.inner[panel]
            self.factor_part(k, some, narrower)
            if some < width:
                top.make(self, k, some)
                self.join(k, some, top, j, j + width)

    def join(self, j, width, top, first, last):
        """Columns first ... last, some of which have been factored at j: the others follow."""
        self.beside(j, width, top, first, last)
        self.multiply(j, width, j + width, last, j + width, self.m)

    def factor_panel(self, j, width):
        kernel = serving("getrf_panel", self.me.letter, self.m - j, self.device)
        values = kernel.constants
        with _trace.step("panel", j):
            kernel.launch(values["CLUSTER"], 1, 32 * (values["WARPS"] + 1), 1, pack(
                self.at(j, j), self.ld, self.m - j, width, self.piv.data.ptr + 4 * j, j,
                self.info.data.ptr), panel_bytes(self.me.dtype, width, values))

    def finish(self, j, width, tops):
        """The rows of the columns to the left of the block at j are interchanged as its own."""
        self.interchange(j, width, tops, 0, j)

    def take_off(self, j, width, tops, first, last):
        """Columns first ... last, to the right of the block at j: interchanges, the rows of U, and
        their product with L off the rows below."""
        wide = len(self.parts(j, width, tops)) > 1
        if wide:  # rows of L are where the last interchange has them
            self.interchange(j, width, tops, first, last)
        self.subtract(j, width, tops, first, last, not wide)

    def interchange(self, j, width, tops, first, last):
        """The rows of columns first ... last as the block at j has them, which is not there."""
        parts = self.parts(j, width, tops)
        if first < last:
            with _trace.step("swap", first):
                if len(parts) > 1:
                    self.move_rows(first, last, j, width, tops.moves)
                else:
                    top = parts[0][2]
                    self.launch_rows(j, width, top, top.lists, first, last - first, first, 0)

    def subtract(self, j, width, tops, first, last, moved):
        """Take off of columns first ... last what is left to be done where rows have been
        interchanged; or, if they are `moved` here, of a block of one part, all."""
        end = j + width
        for k, part, top in self.parts(j, width, tops):
            self.beside(k, part, top, first, last, moved)
            self.multiply(k, part, first, last, k + part, end)
        self.multiply(j, width, first, last, end, self.m)

    def beside(self, j, width, top, first, last, moved=True, after=0):
        """What is factored at j and columns first ... last: rows interchanged, and of those to the
        right, from `after` on, solved for."""
        after = max(first, j + width, after)
        left, right = max(min(j, last) - first, 0), max(last - after, 0)
        if not (left or right):
            return
        lists = top.lists if moved else (self.still.data.ptr,) * 2
        with _trace.step("solve" if right else "swap", first):
            self.launch_rows(j, width, top, lists, first, left, after, right)

    def launch_rows(self, j, width, top, lists, first, left, after, right):
        """kernels/getrf_rows.cu: of `left` columns from `first` on rows are interchanged, of
        `right` columns from `after` on solved for, too."""
        values = self.rows_of_u.constants
        self.rows_of_u.launch(
            sum(-(-x // values["COLUMNS"]) for x in (left, right)), 1, 32 * values["WARPS"], 1,
            pack(self.at(j, first), self.at(j, after), self.ld, left, right, self.at(j, j),
                 width, *lists, top.inverses), rows_bytes(self.me.dtype, width, values))

    def order_rows(self, j, width, before, after, places=0, columns=0, number=0):
        """What the interchanges of the block at j do to all rows (kernels/getrf_order.cu)."""
        kernel = serving("getrf_order", "s", self.m, self.device)
        threads = 32 * kernel.constants["WARPS"]
        kernel.launch(-(-self.m // threads), 1, threads, 1, pack(
            self.piv.data.ptr, j, width, self.m, before, after, places, columns, number))

    def move_rows(self, first, last, j, width, order):
        """Rows of columns first ... last, of which the interchanges of a block at j move some."""
        kernel, rows = serving("getrf_moved", self.me.letter, self.m, self.device), self.m - j
        values, most = kernel.constants, min(2 * width, rows)
        kernel.launch(-(-(last - first) // values["COLUMNS"]), 1, 32 * values["WARPS"], 1, pack(
            self.at(0, first), self.ld, self.m, last - first, j, order, most),
            moved_bytes(self.me.dtype, rows, most, values))

    def multiply(self, j, width, first, last, above, below):
        """A[above:below, first:last] -= A[above:below, j:j + width] A[j:j + width, first:last]"""
        m, n = below - above, last - first
        if m <= 0 or n <= 0:
            return
        device, pairs = self.device, self.pairs
        with _trace.step("update", first):
            if not (pairs or self.remainders) and self.precision == "fp32":
                self.multiply_cublas(j, width, first, last, above, below)
                return
            right, left = self.part(first, last), self.part(j, j + width)[above:below]
            if pairs and (by_halves(m, n, width, device) if self.halves else
                          by_pairs(m, n, width, False, device)):
                multiply_pairs(-1, *split(right[j:j + width].T, left), 1, right[above:below].T,
                               self.halves, self.turns)
            elif self.precision != "fp32":
                _gemm_cublas(self.me, -1, left, right[j:j + width], 1, right[above:below], 0, 0,
                             self.precision)
            elif not (self.remainders and _gpu_crt.pays(m, n, width, device) and _gpu_crt.multiply(
                    -1, left, right[j:j + width], 1, right[above:below], 0, 0, self.turns)):
                self.multiply_cublas(j, width, first, last, above, below)

    def multiply_cublas(self, j, width, first, last, above, below):
        _cuda.blas(self.me.L + "gemm", 0, 0, below - above, last - first, width, self.minus,
                   self.at(above, j), self.ld, self.at(j, first), self.ld, self.one,
                   self.at(above, first), self.ld)

    def part(self, first, last):
        """Columns first ... last."""
        return self.a[:, first:last]

    def at(self, i, j):
        return self.a.data.ptr + (i + j * self.ld) * self.size


def _put_in_order(letter, a, ld, m, n, order, columns, device):
    """kernels/getrf_columns.cu"""
    kernel = serving("getrf_columns", letter, m, device)
    values = kernel.constants
    kernel.launch(n, 1, 32 * values["WARPS"], 1, pack(a, ld, m, order, columns),
                  columns_bytes(m, values))


class Graded(Factoring):
    """The same with blocks as wide as is best for what is left to be factored; rows to the left of
    interchanges are put in order at the end, all at once."""

    table = "getrf_rows"  # whose rows say how wide

    def __init__(self, me, a, precision):
        found = row(self.table, me.letter, min(a.shape), gpu(current_device()))
        self.begins = found.get("begins")  # how wide the first block is: the rest waits for it
        super().__init__(me, a, None, None, precision=precision)
        blocks = self.blocks()
        self.turns, self.block = found.get("turns"), max(width for _, width, _ in blocks)
        self.remainders = self.kept and me.letter == "d" and _gpu_crt.pays(
            self.m, self.n, self.block, self.device)
        self.ahead = found.get("ahead") and len(blocks) > 1
        if self.ahead and any(self.parted(j, width) for j, width, _ in blocks):
            self.between = stream(self.device, SECOND)
        # The row in each place, of those of A, after one block and the next; where each was after
        # every block; whose each column is
        self.rows = cupy.empty((2, self.m), "i4")
        self.placed = cupy.empty((len(blocks), self.m), "i4")
        self.columns = cupy.empty((self.order, 2), "i4")
        self.finished = []

    def widths(self, j):
        widths = _widths(self.table, self.me.letter, self.order - j, self.device)
        return [min(x, self.begins) for x in widths] if self.begins and not j else widths

    def reserve_ahead(self):
        super().reserve_ahead()
        if self.between:
            with _cuda.beside(self.between, 2):
                self.reserve(self.block)

    def beyond(self, j, width):
        end = j + width
        if self.ahead and end < self.order and self.said("lead", end):
            block, part, *_ = self.widths(end)
            end += part if part < block else 0
        return end

    def said(self, what, j):
        """What the row of a block at j says."""
        return _said(self.table, self.me.letter, self.order - j, self.device, what)

    def parted(self, j, width):
        """Whether of the products in the block at j what the next part does not wait for is in
        the stream between."""
        return self.said("between", j) and self.widths(j)[1] < width

    def factor(self, j, width, tops):
        """As before; in a block of `parted` columns first ... after are what its next part has, or
        what the next block begins with."""
        if not (self.between and self.parted(j, width)):
            return super().factor(j, width, tops)
        narrower, last, end = self.widths(j)[2:], self.beyond(j, width), j + width
        ahead, between, done = cupy.cuda.get_current_stream(), self.between, None
        for k, part, top in self.parts(j, width, tops):
            self.factor_part(k, part, narrower)
            top.make(self, k, part)
            between.wait_event(mark(ahead))
            if self.late:
                ahead.wait_event(self.late)
                between.wait_event(self.late)
                self.late = None
            if done:  # what the part before this one does to the next one
                ahead.wait_event(done)
            first, after = k + part, min(k + 2 * part, end) if k + part < end else last
            self.beside(k, part, top, first, after)
            self.multiply(k, part, first, after, first, self.m)
            with _cuda.beside(between, 2):
                self.beside(k, part, top, j, last, after=after)
                self.multiply(k, part, after, last, first, self.m)
                done = mark(between)
        with _cuda.beside(between, 2):
            self.order_rows(j, width, 0, tops.moves)
            return mark(between)

    def finish(self, j, width, tops):
        k = len(self.finished)
        self.finished.append(j)
        before, after = (self.rows[i % 2].data.ptr for i in (k - 1, k))
        if width < self.order:
            self.order_rows(j, width, before if k else 0, after, self.placed[k].data.ptr,
                            self.columns.data.ptr, k)

    def settle(self):
        """All blocks are done: the rows of L are put in order. Where they come from, of each block
        but the last, is where it had the rows that are in each place now."""
        last, k = self.finished[-1], len(self.finished) - 1
        if not last:
            return
        with _trace.step("swap", 0):
            _put_in_order("s", self.placed.data.ptr, self.m, self.m, k,
                          self.rows[k % 2].data.ptr, 0, self.device)
            _put_in_order(self.me.letter, self.at(0, 0), self.ld, self.m, last,
                          self.placed.data.ptr, self.columns.data.ptr, self.device)


class Windowed(Graded):
    """The same with the pivots of a panel, which is a part, sought in its window, the first WINDOW
    rows below the diagonal, which one block of threads has (kernels/getrf_window.cu). The rows of L
    below these are solved for (getrf_below.cu), and the rows of U of a block in one launch.

    Where a matrix has no structure, as between butterflies (butterflies.py), two rows for each
    column are enough: elements grow as with partial pivoting, some 30 times at order 4096, where
    windows as high as panels are wide let them grow 1e3 to 1e4 times (bench/FACTS.md)."""

    table, windows = "getrf_windows", True

    def window(self, j):
        """The most rows, and those there are, of the window of a panel at j."""
        most = self.said("WINDOW", j)
        return most, min(most, self.m - j)

    def take_off(self, j, width, tops, first, last):
        """As before; or `whole` rows of U at once (kernels/getrf_wide.cu), and where these are the
        block's, its interchanges with them, which go no further than its windows."""
        parts, end, most = self.parts(j, width, tops), j + width, self.said("whole", j)
        kernel = most and serving("getrf_wide", self.me.letter, most, self.device)
        if first == last or len(parts) == 1 or not kernel:
            super().take_off(j, width, tops, first, last)
            return
        order, below = 0, 0
        if width <= most:
            order, below = tops.moves, max(k + self.window(k)[1] for k, *_ in parts) - end
        else:
            self.interchange(j, width, tops, first, last)
        part, values = parts[0][1], kernel.constants
        for k in range(j, end, most):
            rows = min(most, end - k)
            with _trace.step("solve", first):
                kernel.launch(
                    -(-(last - first) // values["COLUMNS"]), 1, 32 * values["WARPS"], 1,
                    pack(self.at(k, first), self.ld, last - first, self.at(k, k), rows,
                         tops.parts[(k - j) // part].inverses, part, tops.apart, order, k, below),
                    wide_bytes(self.me.dtype, rows, below, values))
            self.multiply(k, rows, first, last, k + rows, end)
        self.multiply(j, width, first, last, end, self.m)

    def factor_panel(self, j, width):
        most, rows = self.window(j)
        kernel = serving("getrf_window", self.me.letter, most, self.device)
        with _trace.step("panel", j):
            kernel.launch(1, 1, 32 * kernel.constants["WARPS"], 1, pack(
                self.at(j, j), self.ld, rows, width, self.piv.data.ptr + 4 * j, j,
                self.info.data.ptr), shared_bytes(self.me.dtype, rows, kernel.constants))

    def below(self, j, width, of_u):
        """L of the panel at j where its window ends."""
        first = j + self.window(j)[1]
        rows = self.m - first
        if rows:
            kernel = serving("getrf_below", self.me.letter, self.order, self.device)
            values = kernel.constants
            with _trace.step("solve", j):
                kernel.launch(-(-rows // values["COLUMNS"]), 1, 32 * values["WARPS"], 1, pack(
                    self.at(first, j), self.ld, rows, self.at(j, j), self.ld, width, of_u),
                    rows_bytes(self.me.dtype, width, values))


@looked_up
def _widths(table, letter, left, device):
    """Of a block where so many columns are left, its parts, their panels, ..."""
    found = row(table, letter, left, gpu(device))
    part = found.get("block", left)
    widths = found.get("joined", part), part, found.get("panel", part), found.get("strip")
    return [min(x, left) for x in widths if x]


@looked_up
def _said(table, letter, left, device, what):
    """Of a block where so many columns are left: `lead`, whether the block before takes its first
    part along; `between`, as of Graded.parted; `whole`, of how many rows U is solved for in one
    launch, where a block has several parts; `WINDOW`, as of Windowed."""
    return (row(table, letter, left, gpu(device)) or {}).get(what)


class Tops:
    """Room for what a block leaves for the others: Top of each part, their inverses so many numbers
    `apart`; where there are several, the row that comes to each place."""

    def __init__(self, me, width, parts, m, windows):
        inverses = cupy.empty((parts, 1 + windows, -(-width // TILE), TILE, TILE), me.dtype)
        self.parts, self.apart = [Top(me, width, windows, x) for x in inverses], inverses[0].size
        self.room = cupy.empty(m, "i4") if parts > 1 else None
        self.moves = parts > 1 and self.room.data.ptr


class Top:
    """Room for what getrf_top makes of interchanges and of the top of L, of so many columns: where
    two lists are, and inverses; with `windows` those of U, too, and what is solved with them."""

    def __init__(self, me, width, windows=False, inverses=None):
        tiles = -(-width // TILE)
        if inverses is None:
            inverses = cupy.empty((1 + windows, tiles, TILE, TILE), me.dtype)
        self.memory = inverses, cupy.empty(2 * tiles * TILE, "i4")
        self.inverses, lists = (x.data.ptr for x in self.memory)
        self.lists = lists, lists + 4 * TILE * tiles
        self.of_u = windows and self.inverses + tiles * TILE**2 * me.dtype.itemsize

    def make(self, lu, j, width):
        tiles = -(-width // TILE) * (2 if self.of_u else 1)
        lu.tops.launch(tiles, 1, 32 * lu.tops.constants["WARPS"], 1, pack(
            lu.at(j, j), lu.ld, width, lu.piv.data.ptr + 4 * j, j, *self.lists, self.inverses,
            self.of_u), 4 * width)
        if self.of_u:
            lu.below(j, width, self.of_u)
