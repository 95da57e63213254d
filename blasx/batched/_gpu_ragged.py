"""Members of different sizes on the GPU.

Members are sorted into classes: those of a class are served by the same kernels with the same tuned
constants as in `_batched`, and compiled RAGGED; a class is one launch of each, or of Cholesky by
panels one for each panel. Rows for equal members as lines (_tuned.by_line) do not serve here: LU
goes by others, with the same bits, Cholesky to order 32 by their constants, member by member. What
a kernel needs to know about a member, its addresses, strides and sizes, stands in one table for all
classes (kernels/memory.cuh), which one copy brings to the GPU. Classes run beside each other, the
largest members first, in most routines so that a class begins when all blocks of the one before
have. Classes of few small members go with the next larger one where bits allow it. How few, how
many streams there are, and what waits, is a tuned row (ragged_classes). Members above 1024, and
those that a routine has no kernel for here, are copied to stacks, one for each shape that occurs,
which the `_batched` routine takes.
"""

import threading
from contextlib import contextmanager
from functools import cache, cached_property, partial

import cupy
import numpy as np

from .._kernel import current_device, gpu, record_begun, recorded_begun, records_begun
from .._ragged import Ragged
from .._spaces import MOST, has_tiles
from .._tuned import LARGEST, looked_up, row
from . import _gpu_cholesky, _gpu_lu, _gpu_triangular
from ._block import (
    cholesky_bytes,
    lu_bytes,
    potrs_bytes,
    shared_bytes,
    small_triangle_bytes,
    solve_bytes,
    square_bytes,
    triangle_bytes,
)
from ._gpu import (
    GENERAL,
    INT,
    Teams,
    blocks,
    for_columns,
    keeping,
    kernel,
    parts_of,
    past,
    solve_by_lines,
    solving,
)
from ._gpu_blas import _plan, bits
from ._gpu_cholesky import SIDES
from ._gpu_jacobi import MEMORY
from ._gpu_lu import BESIDE

TRIANGULAR = "trsm_lines", "trsm_small", "trsm_block"
_local = threading.local()
# What says which kernels serve a member of these sizes on a device; asked for every size of a call
planned = partial(looked_up, most=2**14)


def getrf(me, a, overwrite_a):
    """LU of every member: lu, piv (0-based), info."""
    shapes = extents(a)
    lu, piv = outputs(a, overwrite_a), Ragged.empty_like(cupy.empty(0, INT), shapes.min(1))
    call = Call(me, shapes.all(1), partial(_factoring, me, current_device()), shapes.max(1))
    _factor(call, a, lu, piv, shapes).run()
    call.larger(lambda a: _gpu_lu.getrf(me, a, 1), (a,), (lu, piv))
    return like(a, lu), like(a, piv), call.info()


@planned
def _factoring(me, device, n):
    """The kernels for members whose longer side is n."""
    if past(me, n):
        return None
    if n <= LARGEST:
        return kernel("getrf_small", me, n, plain=True),
    return shared("getrf_shared", me, n) or blocks("getrf_block", me, n),


def _factor(call, a, lu, piv, shapes):
    """Register the kernels of an LU factorization."""
    m, n = call.sizes(shapes[:, 0]), call.sizes(shapes[:, 1])
    of = call.matrices(a), call.matrices(lu), call.vectors(piv), call.infos, m, n
    call.serve("getrf_small", lambda block, part: block(part.members, *part(*of)))
    serve_in_shared(call, "getrf_shared", of, m, n)
    call.serve("getrf_block", lambda block, part: block(
        part.members, lu_bytes(call.me.dtype, part.most(m), part.most(n), block.values),
        *part(*of), part.members))
    return call


def getrs(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    n, nrhs, x = extents(lu)[:, 0], columns(b), outputs(b, overwrite_b)
    call = Call(me, n * nrhs > 0, partial(_substituting, me, current_device()), n, nrhs)
    _substitute(call, lu, contiguous(piv), b, x, n, nrhs, trans).run()
    call.larger(lambda lu, piv, b: _gpu_lu.getrs(me, lu, piv, b, trans, 1), (lu, piv, b), (x,))
    return like(b, x), call.info()


@planned
def _substituting(me, device, n, nrhs):
    if past(me, n):
        return None
    return (solving("getrs_lines", me, n, nrhs) or solving("getrs_warp", me, n, nrhs)
            or (kernel("getrs_small", me, n, plain=True) if n <= LARGEST
                else blocks("getrs_block", me, n))),


def _substitute(call, lu, piv, b, x, n, nrhs, trans=0, kept=False):
    """Register the kernels of a solution; `kept`: members with an info are not solved."""
    n, nrhs = call.sizes(n), call.sizes(nrhs)
    of = (call.matrices(lu, trans != 0), call.vectors(piv), call.matrices(b), call.matrices(x),
          call.infos)

    failed = call.infos if kept else 0

    def by_blocks(block, part):
        parts = -(-part.most(nrhs) // block.values["WIDTH"])
        block(part.members * parts, solve_bytes(call.me.dtype, part.most(n), block.values),
              *part(*of, failed, trans, n, nrhs), parts)

    call.serve("getrs_small", lambda block, part: block(part.members, *part(*of, trans, n, nrhs)))
    call.serve("getrs_warp", lambda block, part: block(
        part.members, square_bytes(call.me.dtype, part.most(n)), *part(*of, trans, n, nrhs)))
    call.serve("getrs_lines", by_lines(call.me, (*of, failed, trans, n, nrhs), n, nrhs))
    call.serve("getrs_block", by_blocks)
    return call


@planned
def _solving(me, device, n, nrhs):
    """The kernels for a system of order n."""
    if past(me, n):
        return None
    small = n <= LARGEST
    at_once = (kernel("gesv_small", me, n, plain=True) if small
               else 0 < nrhs <= BESIDE and shared("gesv_shared", me, n))
    if at_once:
        return at_once,
    solve = (kernel("getrs_small", me, n, ("FACTORED", 1), plain=True) if small
             else solving("getrs_lines", me, n, nrhs) or blocks("getrs_block", me, n))
    return _factoring(me, device, n) + ((solve,) if nrhs else ())


def gesv(me, a, b, overwrite_a, overwrite_b):
    """Factor and solve every member: lu, piv, x, info."""
    shapes, nrhs = extents(a), columns(b)
    n = shapes[:, 0]
    lu, x = outputs(a, overwrite_a), outputs(b, overwrite_b)
    piv = Ragged.empty_like(cupy.empty(0, INT), n)

    call = Call(me, n > 0, partial(_solving, me, current_device()), n, nrhs)
    _factor(call, a, lu, piv, shapes)
    _substitute(call, lu, piv, b, x, n, nrhs, kept=True)
    orders = call.sizes(n)
    of = (call.matrices(a), call.matrices(lu), call.vectors(piv), call.matrices(b),
          call.matrices(x), call.infos, orders, call.sizes(nrhs))
    call.serve("gesv_small", lambda block, part: block(part.members, *part(*of)))
    serve_in_shared(call, "gesv_shared", of, orders, beside=BESIDE)
    call.run()
    call.larger(lambda a, b: _gpu_lu.gesv(me, a, b, 1, 1), (a, b), (lu, piv, x))
    return like(a, lu), like(a, piv), like(b, x), call.info()


def potrf(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is that of `a`."""
    n, c = extents(a)[:, 0], outputs(a, overwrite_a)
    of_c = lines(c, not lower)
    call = Call(me, n > 0, partial(_cholesky, me, current_device()), n, lies_across(of_c))
    _factor_positive(call, a, of_c, n, lower).run()
    call.larger(lambda a: _gpu_cholesky.potrf(me, a, lower, 1), (a,), (c,))
    return like(a, c), call.info()


@planned
def _cholesky(me, device, n, across):
    if n > MOST:
        return None
    if panels := _by_panels(me, n, across, device):
        return panels
    block = n <= LARGEST and kernel("potrf_small", me, n, singly=True) or (
        _gpu_cholesky.factoring(me, n, plain=True, anywhere=True))
    return block and (block,)


def _by_panels(me, n, across, device):
    """The kernels of one panel after the other, as _gpu_cholesky._potrf_by_panels has them, each
    with the number of its panel; before them A is copied."""
    width = _gpu_cholesky.width_of(me.letter, n, device)
    if not width:
        return None
    factor = blocks("potrf_block", me, width)
    solve = blocks("trsm_split", me, width) or blocks("trsm_block", me, width)
    steps, last = [(blocks("lascl_batched", me, n), "copy")], -(-n // width) - 1
    for panel in range(last):
        of = me.letter, max(n - (panel + 1) * width, width), device, (), (across, 0)
        take = _plan("syrk_split", *of) or _plan("syrk_block", *of)
        steps += (factor, panel), (solve, panel), (take, panel)
    return *steps, (factor, last)


def _factor_positive(call, a, of_c, order, lower):
    """Register the kernels of a Cholesky factorization; `of_c`: the lines of C."""
    n, c = call.sizes(order), call.add(of_c)
    of = call.matrices(a, not lower), c, call.infos, n
    call.serve("potrf_small", lambda block, part: block(part.members, *part(*of)))
    for name in "potrf_columns", "potrf_block":
        call.serve(name, lambda block, part: _gpu_cholesky.launch_factoring(
            block, call.me, part.members, part.most(n), False, *part(*of)))
    call.serve(("lascl_batched", "copy"), scaling(of[0], c, call.infos, n, n))  # infos: as yet 0
    if panels := call.ways("potrf_block"):
        members, device = call.order[:max(panels.values())], current_device()
        of_c, order = of_c[members], order[members]
        widths = np.array([_gpu_cholesky.width_of(call.me.letter, n, device) or 0
                           for n in order.tolist()])
        for (panel,), reach in panels.items():
            _factor_panel(call, of_c[:reach], order[:reach], widths[:reach], panel)
    return call


def _factor_panel(call, of_c, order, widths, panel):
    """Register the kernels of this panel; the members in the order of their classes, as far as
    there is one that has it."""
    me, k, end = call.me, panel * widths, (panel + 1) * widths

    def part_of_c(i, j):
        found = of_c.copy()
        found[:, 0] += (i * found[:, 1] + j * found[:, 2]) * me.dtype.itemsize
        return found

    lines_below = part_of_c(end, k)
    top, below, right = map(call.place, (part_of_c(k, k), lines_below, part_of_c(end, end)))
    # X L^H = B is conj(L) X^T = B^T; of A A^H the second lies as A^T
    turned = call.place(lines_below[:, [0, 2, 1]])
    width, rest = call.place(np.minimum(order - k, widths)), call.place(order - end)
    before = call.place(k) if panel else 0

    call.serve(("potrf_block", panel), lambda block, part: block(
        part.members, cholesky_bytes(me.dtype, part.most(width), block.values),
        *part(top, top, call.infos, width, before)))
    solve = triangles_by_strips(
        me, (top, turned, turned, *bits(1), call.infos, width, rest, 1, 0), width, rest)
    take = product(rest, rest, width, 1, (below, 0, turned, me.is_complex, right, right), -1, 1)
    for name, launch in (("trsm_block", solve), ("trsm_split", solve), ("syrk_block", take),
                         ("syrk_split", take)):
        call.serve((name, panel), launch)


def scaling(a, x, kept, m, n, find=0, target=0, always=0):
    """What launches lascl_batched for members m x n."""
    def launch(block, part):
        parts = parts_of(block, part.most(m), part.most(n), find)
        block(part.members * parts, 0, *part(a, 0, GENERAL, x, kept, find, target, always, m, n),
              parts)
    return launch


def product(m, n, k, hermitian, of, alpha, beta):
    """What launches a kernel of kernels/products.cuh; `of`: its operands."""
    def launch(block, part):
        block.by_tiles(part.most(m), part.most(n), part.members, *part(m, n, k), hermitian,
                       (*part(*of), *bits(alpha), *bits(beta), part.members))
    return launch


def potrs(me, c, b, lower, overwrite_b):
    """Solve with the Cholesky factors of every member: x, info."""
    n, nrhs, x = extents(c)[:, 0], columns(b), outputs(b, overwrite_b)
    call = Call(me, n * nrhs > 0, partial(_positive, me, current_device()), n, nrhs)
    _substitute_positive(call, c, b, x, n, nrhs, lower).run()
    call.larger(lambda c, b: _gpu_cholesky.potrs(me, c, b, lower, 1), (c, b), (x,))
    return like(b, x), call.info()


@planned
def _positive(me, device, n, nrhs):
    block = solving("potrs_lines", me, n, nrhs) or solving("potrs_warp", me, n, nrhs) or (
        kernel("potrs_small", me, n, singly=True) if n <= LARGEST
        else solving("potrs_block", me, n, nrhs))
    if block:
        return block,
    if n > MOST:
        return None
    block = _gpu_triangular.serving(me, "trsm", n, nrhs)
    return (block, "first"), (block, "then")


def _substitute_positive(call, c, b, x, order, count, lower, kept=False):
    n, nrhs = call.sizes(order), call.sizes(count)
    of = call.matrices(c, not lower), call.matrices(b), call.matrices(x)
    failed = call.infos if kept else 0

    def by_blocks(block, part):
        slabs = -(-part.most(nrhs) // SIDES)
        block(part.members * slabs, potrs_bytes(call.me.dtype, part.most(n)),
              *part(*of, failed, not lower, n, nrhs), slabs)

    call.serve("potrs_small", lambda block, part: block(
        part.members, *part(*of, call.infos, not lower, n, nrhs)))
    call.serve("potrs_warp", lambda block, part: block(
        part.members, square_bytes(call.me.dtype, part.most(n)),
        *part(*of, failed, not lower, n, nrhs)))
    call.serve("potrs_lines", by_lines(call.me, (*of, failed, not lower, n, nrhs), n, nrhs))
    call.serve("potrs_block", by_blocks)
    if any(("first",) in call.ways(name) for name in TRIANGULAR):
        # L and its adjoint, or U's adjoint and U
        for way, trans, from_b in ("first", 0 if lower else 2, b), ("then", 2 if lower else 0, x):
            serve_triangles(call, (c, from_b, x), order, (n, nrhs), 0, lower, trans, failed=failed,
                            way=(way,))
    return call


def serve_triangles(call, operands, order, sizes, side, lower, trans, alpha=1, failed=0, diag=0,
                    way=()):
    """Solve with triangles: A, B and X, their orders, and these and the right-hand sides as columns
    of the table."""
    n, count = sizes
    table, by_columns = triangles(call, *operands, order, side, lower, trans)
    staged = call.sizes(by_columns)
    of = (*table, *bits(alpha), failed, n, count, trans == 2, diag)

    def small(block, part):
        v, by_columns = block.values, part.most(staged)
        slabs = -(-part.most(count) // (v["LANES"] * v["C"]))
        teams = part.members * slabs
        block(-(-teams * v["LANES"] // block.threads),
              small_triangle_bytes(call.me.letter, v, by_columns), *part(*of), slabs, by_columns,
              teams)

    launches = by_lines(call.me, of, n, count), small, triangles_by_strips(call.me, of, n, count)
    for name, launch in zip(TRIANGULAR, launches):
        call.serve((name, *way) if way else name, launch)


def triangles(call, a, b, x, order, side, lower, trans):
    """The lines of A, B and X as _gpu_triangular.launch has them: sides, transposes and triangles
    are strides and their signs; and of which members B or X lies by columns."""
    turned = (trans != 0) != side
    flipped, size = lower == turned, call.me.dtype.itemsize
    table, by_columns = [], np.zeros(len(order), bool)
    for operand, transposed, both in ((a, turned, True), (b, side, False), (x, side, False)):
        line = lines(operand, transposed)
        if not both:
            by_columns |= abs(line[:, 2]) >= abs(line[:, 1])
        if flipped:
            line[:, 0] += (order - 1) * (line[:, 1] + line[:, 2] * both) * size
            line[:, 1] *= -1
            line[:, 2] *= -1 if both else 1
        table.append(call.add(line))
    return table, by_columns


def by_lines(me, of, n, count):
    """What launches getrs_lines, potrs_lines or trsm_lines."""
    return lambda block, part: solve_by_lines(
        block, me.dtype, part.members, part.most(n), part.most(count), *part(*of))


def triangles_by_strips(me, of, n, count):
    """What launches trsm_block, or trsm_split."""
    def launch(block, part):
        v = block.values
        slabs = -(-part.most(count) // (v["R"] * v["WARPS"]))
        block(part.members * slabs, triangle_bytes(block.kernel.name, me.letter, part.most(n), v),
              *part(*of), slabs)
    return launch


@planned
def _solving_positive(me, device, n, nrhs, across):
    """The kernels for a system of order n."""
    small = n <= LARGEST
    if block := _gpu_cholesky.at_once(me, n, nrhs, not small, small, anywhere=True):
        return block,
    factor = _cholesky(me, device, n, across)
    solve = _positive(me, device, n, nrhs) if nrhs else ()
    return None if factor is None or solve is None else factor + solve


def posv(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    n, nrhs = extents(a)[:, 0], columns(b)
    c, x = outputs(a, overwrite_a), outputs(b, overwrite_b)

    of_c = lines(c, not lower)
    call = Call(me, n > 0, partial(_solving_positive, me, current_device()), n, nrhs,
                lies_across(of_c))
    _factor_positive(call, a, of_c, n, lower)
    _substitute_positive(call, c, b, x, n, nrhs, lower, kept=True)
    orders = call.sizes(n)
    of = (call.matrices(a, not lower), call.matrices(c, not lower), call.matrices(b),
          call.matrices(x), call.infos, not lower, orders, call.sizes(nrhs))
    call.serve("posv_small", lambda block, part: block(part.members, *part(*of)))
    for name in "posv_columns", "posv_block":
        call.serve(name, lambda block, part: _gpu_cholesky.launch_solving(
            block, me, part.members, part.most(orders), False, *part(*of)))
    call.run()
    call.larger(lambda a, b: _gpu_cholesky.posv(me, a, b, lower, 1, 1), (a, b), (c, x))
    return like(a, c), like(b, x), call.info()


# -- operands


def extents(x):
    """The shapes of the members of a stack of matrices, (batch, 2)."""
    return (x.shapes if x.__class__ is Ragged
            else np.array([y.shape for y in x], np.int64).reshape(-1, 2))


def columns(b):
    """How many right-hand sides every member has."""
    if b.__class__ is Ragged:
        return b.shapes[:, 1] if b.shapes.shape[1] == 2 else np.ones(len(b), np.int64)
    return np.array([y.shape[1] if y.ndim == 2 else 1 for y in b], np.int64)


def outputs(x, overwrite):
    """Where results go: the operand, or one new buffer."""
    if overwrite:
        return x
    if x.__class__ is Ragged:
        return Ragged.empty_like(x.data, x.shapes)
    if not x or len({y.ndim for y in x}) == 1:
        return Ragged.empty_like(x[0] if x else cupy.empty(0), [y.shape for y in x] or
                                 np.empty((0, 2)))
    return [cupy.empty(y.shape, y.dtype) for y in x]


def lines(x, transposed=False):
    """(address, row stride, column stride) of every member, in their own order."""
    found = np.empty((len(x), 3), np.int64)
    if x.__class__ is Ragged:
        apart = x.data.strides[0]
        found[:, 0] = x.data.data.ptr + x.offsets * apart
        found[:, 1] = (x.shapes[:, 1] if x.shapes.shape[1] == 2 else 1) * (
            apart // x.data.itemsize)
        found[:, 2] = apart // x.data.itemsize
    else:
        for i, y in enumerate(x):
            size, strides = y.itemsize, y.strides
            found[i] = (y.data.ptr, strides[0] // size,
                        strides[1] // size if len(strides) == 2 else 0)
    return found[:, [0, 2, 1]] if transposed else found


def lies_across(lines):
    """Whether neighbours in a column, and not those in a row, are next to each other."""
    return ((lines[:, 1] == 1) & (lines[:, 2] != 1)).astype(np.int64)


def like(x, result):
    """A result in the kind of its operand."""
    return result if x.__class__ is Ragged or result.__class__ is list else list(result)


def contiguous(x):
    """Vectors of which each member's numbers follow each other."""
    if x.__class__ is Ragged:
        return Ragged(cupy.ascontiguousarray(x.data), x.shapes, x.offsets)
    return [cupy.ascontiguousarray(y) for y in x]


# -- classes


@cache
def ragged(block):
    """A kernel with its constants, compiled for members of their own sizes."""
    own = block.kernel
    return block.__class__(own.name, own.letter, own.constants | {"RAGGED": 1})


@looked_up
def _shared_on(name, letter, n, device):
    """The order with whose members those of order n go."""
    while ((found := row(name, letter, n, gpu(device))) and found.get("joins")
           and row(name, letter, found["to"] + 1, gpu(device))):
        n = found["to"] + 1
    return n


def shared(name, me, n):
    """The Blocks of LU for the class of members of order n, or None. Rows that say `joins` leave
    theirs to the next: a class costs more than what a row of its own brings, and bits are the same
    by every row."""
    return blocks(name, me, _shared_on(name, me.letter, n, current_device()))


def serve_in_shared(call, name, of, rows, *columns, beside=0):
    """Launch LU in shared memory with the constants for as many members as there are, whose bits
    are the same; `rows`, and columns if they may be more, are their sizes."""
    def launch(block, part):
        order = max(part.most(x) for x in (rows, *columns))
        block = ragged(for_columns(name, call.me, order, part.members))
        room = shared_bytes(call.me.dtype, part.most(rows), block.values, beside)
        block(part.members, room, *part(*of), part.members)

    call.serve(name, launch)


@planned
def _launching(letter, device, n):
    """How classes are launched of a call whose largest order is n: STREAMS beside the current one;
    threads of a block from which on it pays that what follows waits (WIDE: small blocks find room
    anyway); members (FEW) for which a launch of their own costs more than a larger order's kernel
    does."""
    return row("ragged_classes", letter, min(n, MOST), gpu(device))


def _joined(classes, few):
    """The classes, those of fewer members with the one before them, of larger members, where that
    gives the same bits."""
    found = []
    for kernels, first, last in classes:
        if found and last - first < few and _serves(found[-1][0], kernels):
            kernels, first, _ = found.pop()
        found.append((kernels, first, last))
    return found


@planned
def _serves(kernels, others):
    """Whether the one kernel of a class gives the members of another, which are no larger, the same
    bits as theirs does: LU and Cholesky by teams do where both have tiles or neither has, LU of
    other types than complex double anyway."""
    if len(kernels) > 1 or len(others) > 1 or {x.__class__ for x in kernels + others} != {Teams}:
        return False
    one, other = kernels[0].kernel, others[0].kernel
    if (one.name != other.name or one.name not in ("getrf_small", "gesv_small", "potrf_small")
            or one.constants["N"] > LARGEST):
        return False
    tiles, others_have = (has_tiles(x.letter, x.constants) for x in (one, other))
    return tiles == others_have or one.name != "potrf_small" and one.letter != "z"


class Column:
    """One or three numbers for every member, in the order of the classes, which begin at the
    `firsts`."""

    def __init__(self, numbers, start, firsts):
        self.numbers, self.start = np.ascontiguousarray(numbers, np.int64), start
        self.width, self.firsts = 1 if numbers.ndim == 1 else 3, firsts

    @cached_property
    def mosts(self):
        """The largest number of each class that has members here, by its first."""
        firsts = [x for x in self.firsts if x < len(self.numbers)]
        return dict(zip(firsts, np.maximum.reduceat(self.numbers, firsts).tolist()))


class Part:
    """The members of one class; called with parameters, it returns what the kernel is given:
    where the class begins in each column, and numbers that are the same for all."""

    def __init__(self, first, last, table, whole=False):
        self.first, self.last, self.table, self.members = first, last, table, last - first
        self.whole = whole  # it is all of the class

    def __call__(self, *parameters):
        cells = []
        for p in parameters:
            if p.__class__ is Column:
                cells.append(self.table + 8 * (p.start + self.first * p.width))
                if p.width == 3:
                    cells += 0, 0, 0
            else:
                cells.append(p)
        return cells

    def most(self, column):
        if self.whole:
            return column.mosts[self.first]
        return int(column.numbers[self.first:self.last].max())


class Call:
    """One call: the classes of the members that are `wanted`, their table, and the infos.

    `plan` says from the `extents` of a member, of which the first is its order, with which kernels
    it is served, one after the other; None: by the `_batched` routine. A kernel that has several
    ways to be launched comes in a pair with the name of one.
    """

    def __init__(self, me, wanted, plan, *extents):
        self.me, self.columns, self.cells, self.servers, self.parts = me, [], 0, {}, {}
        self.kept = []  # what kernels use beside the operands, and these where they are vectors
        self.known = {}  # what columns say: (it, the column)
        self._info = cupy.zeros(len(wanted), INT)
        members = np.flatnonzero(wanted)
        code = 0  # one number for the extents, in their order
        for x in extents:
            code = code * (1 + int(x.max(initial=0))) + x
        _, first, which = np.unique(code[members], return_index=True, return_inverse=True)
        found = [x[members[first]][::-1].tolist() for x in extents]  # the largest first
        plans = {None: -1}  # kernels, in the order in which they are met: their rank
        ranks = [plans.setdefault(plan(*x), len(plans) - 1) for x in zip(*found)]
        del plans[None]
        rank = np.array(ranks, np.int64)[::-1][which]
        self.rest = members[rank < 0].tolist()
        members, rank, order = (x[rank >= 0] for x in (members, rank, extents[0][members]))
        within = np.lexsort((-order, rank))
        self.order, ends = members[within], np.searchsorted(rank[within], np.arange(len(plans)),
                                                            "right").tolist()
        self.launching = _launching(me.letter, current_device(), int(extents[0].max(initial=0)))
        self.classes = _joined(zip(plans, [0] + ends, ends), self.launching["FEW"])
        self.firsts = [first for _, first, _ in self.classes]
        self.infos = self.add(self._info.data.ptr + INT.itemsize * np.arange(len(wanted)))

    def matrices(self, x, transposed=False):
        """The lines (address, row stride, column stride) of the members of x."""
        return self._once((id(x), transposed), x, lambda: lines(x, transposed))

    def vectors(self, x):
        """The addresses of the members of x, vectors whose elements follow each other."""
        self.kept.append(x)  # may be a copy, or a workspace
        return self._once(id(x), x, lambda: (
            x.data.data.ptr + x.offsets * x.data.itemsize if x.__class__ is Ragged
            else np.array([y.data.ptr for y in x], np.int64)))

    def sizes(self, x):
        """A size of every member."""
        return self._once((x.ctypes.data, x.strides), x, lambda: x)

    def _once(self, key, x, numbers):
        """The column of these numbers of x, which is kept, so that nothing else has its key."""
        if key not in self.known:
            self.known[key] = x, self.add(numbers())
        return self.known[key][1]

    def add(self, numbers):
        """A column of the table from one or three numbers for every member."""
        return self.place(numbers[self.order])

    def place(self, numbers):
        """The same from numbers in the order of the classes, of all members or the first."""
        self.columns.append(Column(numbers, self.cells, self.firsts))
        self.cells += numbers.size
        return self.columns[-1]

    def ways(self, name):
        """The ways in which kernels of this name are to be launched, with how many members, in the
        order of the classes, are those of the classes up to the last that has it."""
        return {step[1:]: last for kernels, _, last in self.classes for step in kernels
                if step.__class__ is tuple and step[0].kernel.name == name}

    def reach(self, *names):
        """How many members, in the order of the classes, are those of the classes up to the last
        that has a kernel of these names."""
        return max((last for kernels, _, last in self.classes for step in kernels
                    if (step[0] if step.__class__ is tuple else step).kernel.name in names),
                   default=0)

    def room(self, nbytes):
        """Addresses of so many bytes for each member, in the order of the classes. Where all are
        more than MEMORY each class has its share, and is served in parts that have it in turn."""
        total, addresses, end = int(nbytes.sum()), np.empty_like(nbytes), 0
        for _, first, last in self.classes:
            own = nbytes[first:last]
            some = self.parts[first] = len(own) if total <= MEMORY or not own.any() else max(
                1, min(len(own), int(MEMORY / total * own.sum() / own.max())))
            sums = np.cumsum(own) - own
            sums -= np.repeat(sums[::some], some)[:len(own)]  # each part from the beginning on
            addresses[first:last] = end + sums
            end += int((sums + own).max())
        memory = cupy.cuda.alloc(end)
        self.kept.append(memory)
        return addresses + memory.ptr

    def serve(self, name, launch):
        """`launch(kernel, part)` launches the kernel of this name, or name and way, for a class."""
        self.servers[name] = launch

    def run(self):
        """Bring the table to the GPU, and launch."""
        if self.classes:
            self._launch()
        self.servers.clear()  # which know this call: its memory would wait for Python's collector

    def _launch(self):
        table = self._upload(np.concatenate([c.numbers.ravel() for c in self.columns]))
        wide = self.launching["WIDE"]
        with Branches(len(self.classes), self.launching["STREAMS"]) as branches:
            for i, (kernels, first, last) in enumerate(self.classes):
                steps = [step if step.__class__ is tuple else (step,) for step in kernels]
                with branches.turn(i, any(block.threads >= wide for block, *_ in steps)):
                    for part in self._parts(first, last, table):
                        for block, *way in steps:
                            name = block.kernel.name
                            self.servers[(name, *way) if way else name](ragged(block), part)

    def _parts(self, first, last, table):
        """What is served of a class at a time."""
        some = self.parts.get(first, last - first)
        return [Part(low, min(low + some, last), table.data.ptr, some >= last - first)
                for low in range(first, last, some)]

    def _upload(self, numbers):
        """The table. A graph that captures this call copies again whenever it is launched: what it
        copies, where to, and what else its kernels use is kept as long as the infos that it
        writes."""
        stream = cupy.cuda.get_current_stream()
        if not stream.is_capturing():
            return cupy.asarray(numbers)  # through pinned memory, nothing waits
        staging = cupy.cuda.alloc_pinned_memory(numbers.nbytes)
        np.frombuffer(staging, np.int64, numbers.size)[:] = numbers
        table = cupy.empty(numbers.shape, np.int64)
        runtime = cupy.cuda.runtime  # whose arrays refuse to copy from the host while one captures
        runtime.memcpyAsync(table.data.ptr, staging.ptr, numbers.nbytes,
                            runtime.memcpyHostToDevice, stream.ptr)
        self._info = keeping(self._info, table, staging, *self.kept)
        return table

    def info(self):
        return self._info

    def larger(self, routine, operands, results):
        """The other members, of one shape at a time, through a `_batched` routine."""
        groups = {}
        for i in self.rest:
            groups.setdefault(tuple(x[i].shape for x in operands), []).append(i)
        known = []
        for group in groups.values():
            *found, infos = routine(*(cupy.stack([x[i] for i in group]) for x in operands))
            known.append(infos)
            for result, stack in zip(results, found):
                for i, x in zip(group, stack):
                    result[i][...] = x
        if known:
            self._info[cupy.asarray(np.concatenate(list(groups.values())))] = (
                cupy.concatenate(known))


class Branches:
    """The current stream, and as many beside it as there are other things to do, or `most`: they
    begin after what the current stream has done, and it goes on after what they do."""

    def __init__(self, count, most):
        self.main = cupy.cuda.get_current_stream()
        self.others = side_streams(min(count - 1, most)) if count > 1 else []
        self.in_order = count > 1 and records_begun()
        self.before = None  # the event when all blocks of the last `wide` thing have begun

    def __enter__(self):
        if self.others:
            here = self.main.record(cupy.cuda.Event(disable_timing=True))
            for stream in self.others:
                stream.wait_event(here)
        return self

    @contextmanager
    def turn(self, i, wide):
        """In the stream of the i-th thing, the current one last: back and forth over them, so that
        where the largest come first the smallest follow the largest. What follows a `wide` one
        begins when all its blocks have, so that these do not wait for room that later ones have
        taken."""
        turn, i = divmod(i, 1 + len(self.others))
        if turn % 2:
            i = len(self.others) - i
        with self.others[i] if i < len(self.others) else self.main as stream:
            if self.before:
                stream.wait_event(self.before)
            wide = wide and self.in_order
            if wide:
                begun = cupy.cuda.Event(disable_timing=True)
                record_begun(begun)
            try:
                yield
            finally:  # of what is launched later nothing is to be recorded
                if wide and recorded_begun():
                    self.before = begun

    def __exit__(self, *error):
        for stream in self.others:
            self.main.wait_event(stream.record(cupy.cuda.Event(disable_timing=True)))


def side_streams(count):
    """Streams of this thread on the current device: another thread may be capturing with its
    own."""
    known = _local.__dict__.setdefault("streams", {}).setdefault(current_device(), [])
    while len(known) < count:
        known.append(cupy.cuda.Stream(non_blocking=True))
    return known[:count]
