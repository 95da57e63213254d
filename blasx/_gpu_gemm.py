"""Products on the GPU by kernels of ours; cuBLAS takes what they leave.

gemm_small takes small ones, where cuBLAS would cost the host more than the product; how small is a
tuned row: rows name the TILE up to the largest of m, n, k.

Products of single precision are by pairs of half precision on Hopper's tensor cores: line_maxima
and split_lines make an operand's `Pairs`, gemm_wgmma multiplies two of them. An operand that is
used more than once is split once:

    u, = split(b.T)
    for a, c in ...:
        multiply_pairs(-1, *split(a), u, 1, c)      # c -= a b, rows of c in one piece

The row of gemm_wgmma for n is for tiles of C of m n = n^2 elements; it serves where k is at least
its `depth`, and m and n its `side`.
"""

import threading
from copy import copy
from functools import cache
from math import isqrt
from struct import Struct

import cupy

from ._kernel import Kernel, TensorMap, current_device, ffi, gpu, pack
from ._spaces import wgmma_bytes
from ._tuned import capitals, looked_up, row

# The parameters of gemm_small, cell by cell: m n k alpha A(4) B(4) beta with_c C(3)
_SCALAR = {"s": "f4x", "d": "d", "c": "2f", "z": "2d"}
_PACK = {letter: Struct(f"<3q{s}8q{s}4q").pack_into for letter, s in _SCALAR.items()}
_SIDE = 16  # threads a side of a block
_LARGEST = 4096  # no row reaches so far

# Those of gemm_wgmma after its two maps: m n k, lines, A(3) B(3), alpha beta C(2)
_PACK_WGMMA = Struct("<11q2f2q").pack_into
_OFFSETS_WGMMA = [8 * i for i in range(11)] + [88, 92, 96, 104]
_LINE = 16  # bytes that are known of a line (kernels/pairs.cuh)


def _offsets(letter):
    """Where each of the 17 parameters begins."""
    scalar = 16 if letter == "z" else 8
    sizes = [8] * 3 + [scalar] + [8] * 8 + [scalar] + [8] * 4
    return [sum(sizes[:i]) for i in range(len(sizes))]


class _Local(threading.local):
    """Each thread's cells for the parameters, and where they are, by type."""

    def __init__(self):
        cells = ffi.new("char[]", 256)
        self.cells = ffi.buffer(cells)
        self.parameters = {letter: ffi.new("void *[]", [cells + i for i in _offsets(letter)])
                           for letter in _SCALAR}
        self.a, self.b = TensorMap(3), TensorMap(3)
        self.wgmma = ffi.new("void *[]", [self.a.place, self.b.place,
                                          *(cells + i for i in _OFFSETS_WGMMA)])


_local = _Local()


@looked_up
def _kernel_on(letter, largest, device):
    """The kernel for products of that largest extent, or None past the last row."""
    found = row("gemm_small", letter, largest, gpu(device))
    return found and _kernel("gemm_small", letter, **capitals(found))


@cache
def _kernel(name, letter, **values):
    return Kernel(name, letter, **values)


def multiply(me, alpha, a, b, beta, c, trans_a, trans_b):
    """C := alpha op(A) op(B) + beta C by a kernel of ours where there is a row; else False."""
    m, n = c.shape
    a_row, a_col = a.strides
    b_row, b_col = b.strides
    if trans_a:
        a_row, a_col = a_col, a_row
    if trans_b:
        b_row, b_col = b_col, b_row
    k = a.shape[0] if trans_a else a.shape[1]
    device = current_device()
    kernel = _kernel_on(me.letter, min(max(m, n, k), _LARGEST), device)
    if kernel is None:
        if me.letter != "s" or not by_pairs(m, n, k, device) \
                or cupy.cuda.get_current_stream().is_capturing():  # a graph keeps no memory of ours
            return False
        a, b = a.T if trans_a else a, b if trans_b else b.T
        if c.strides[1] != c.itemsize:  # C^T = B^T A^T
            a, b, c = b, a, c.T
        multiply_pairs(alpha, *split(a, b), beta, c)
        return True
    tile = kernel.constants["TILE"]
    size = a.itemsize
    c_row, c_col = c.strides
    if me.is_complex:
        alpha, beta = complex(alpha), complex(beta)
        scalars = (alpha.real, alpha.imag), (beta.real, beta.imag)
    else:
        scalars = (alpha,), (beta,)
    _PACK[me.letter](
        _local.cells, 0, m, n, k, *scalars[0], a.data.ptr, a_row // size, a_col // size,
        trans_a == 2, b.data.ptr, b_row // size, b_col // size, trans_b == 2, *scalars[1],
        beta != 0, c.data.ptr, c_row // size, c_col // size)
    kernel.launch(-(-m // tile), -(-n // tile), _SIDE, _SIDE, _local.parameters[me.letter])
    return True


# -- by pairs of half precision


def by_pairs(m, n, k, device):
    """True if products of these extents are faster by pairs than by cuBLAS."""
    _, side, depth = _by_tiles(isqrt(m * n), device)
    return min(m, n) >= side and k >= depth


@looked_up
def _by_tiles(order, device):
    """gemm_wgmma for that many elements of C, the least m and n, and k, for which it is used."""
    found = row("gemm_wgmma", "s", order, gpu(device))
    if not found:
        return None, 2**63, 2**63
    kernel = _kernel("gemm_wgmma", "s", **capitals(found))
    return kernel, found.get("side", 1), found.get("depth", 1)


@looked_up
def _by_lines(name, k, device):
    return _kernel(name, "s", **capitals(row(name, "s", k, gpu(device))))


@cache
def _multiprocessors(device):
    return cupy.cuda.Device(device).attributes["MultiProcessorCount"]


class Pairs:
    """The lines of an operand, split; `of`, from which they were, is read again where numbers were
    lost, and must not change before the last product."""

    __slots__ = ("of", "lines", "k", "next", "step", "memory", "pairs", "about", "largest",
                 "chunks", "all")

    def __init__(self, x, multiprocessors):
        self.of = x
        self.lines, self.k = x.shape
        self.all = self.lines  # of the operand of which these may be a part
        self.next, self.step = (s // 4 for s in x.strides)
        self.chunks = 0
        if abs(self.next) < abs(self.step):  # side by side: two blocks a multiprocessor
            blocks = -(-self.lines // 128)
            self.chunks = min(max(1, 2 * multiprocessors // blocks), -(-self.k // 64))

    @property
    def room(self):
        return -(-self.k // 8) * 8

    @property
    def nbytes(self):
        return self.lines * (4 * self.room + _LINE + 4 * self.chunks)

    def part(self, first, last):
        """Lines first ... last - 1, split as they are here."""
        some = copy(self)
        some.of, some.lines = self.of[first:last], last - first
        some.pairs, some.about = self.pairs + 2 * self.room * first, self.about + _LINE * first
        return some

    def blocks(self, values):
        """Of split_lines with these constants."""
        if self.chunks:
            return -(-self.lines // 64) * -(-self.k // (64 * values["TILES"]))
        return self.lines if self.k > 32 * values["HELD"] else -(-self.lines // values["WARPS"])

    def parameters(self):
        return self.about, self.largest if self.chunks else 0, self.chunks


def split(*operands):
    """The `Pairs` of one or two matrices of single precision with as many columns, along which they
    are to be multiplied; any strides."""
    device = current_device()
    made = [Pairs(x, _multiprocessors(device)) for x in operands]
    a, b = made[0], made[-1]
    memory = cupy.cuda.alloc(sum(x.nbytes for x in made))
    at = memory.ptr
    for x in made:  # what wants 16 bytes to begin at multiples of, first
        x.memory, x.pairs, at = memory, at, at + 4 * x.lines * x.room
    for x in made:
        x.about, at = at, at + _LINE * x.lines
    for x in made:
        x.largest, at = at, at + 4 * x.lines * x.chunks
    across = [x for x in made if x.chunks]
    if across:
        kernel = _by_lines("line_maxima", a.k, device)
        first, last = across[0], across[-1]
        blocks = [-(-x.lines // 128) * x.chunks for x in across]
        kernel.launch(sum(blocks), 1, 32 * kernel.constants["WARPS"], 1, pack(
            blocks[0], first.of.data.ptr, first.lines, a.k, first.next, first.step,
            *first.parameters(), last.of.data.ptr, last.lines, last.next, last.step,
            *last.parameters()))
    kernel = _by_lines("split_lines", a.k, device)
    blocks = [x.blocks(kernel.constants) for x in made]
    kernel.launch(sum(blocks), 1, 32 * kernel.constants["WARPS"], 1, pack(
        blocks[0], a.of.data.ptr, a.lines, a.k, a.next, a.step, a.pairs, a.room, *a.parameters(),
        b.of.data.ptr, b.lines, b.next, b.step, b.pairs, *b.parameters()))
    return made


def multiply_pairs(alpha, a, b, beta, c):
    """C := alpha A B^T + beta C, A and B split, each row of C in one piece."""
    device = current_device()
    m, n = c.shape
    kernel = _by_tiles(isqrt(m * n), device)[0]
    values = kernel.constants
    high, wide = 64 * values["GROUPS"], values["BN"]
    for x, tensor, side in ((a, _local.a, high), (b, _local.b, wide)):
        tensor.describe(TensorMap.HALF, x.pairs, (x.k, x.lines, 2),
                        (2 * x.room, 2 * x.room * x.all), (64, side, 2))
    _PACK_WGMMA(_local.cells, 0, m, n, a.k, a.about, b.about, a.of.data.ptr, a.next, a.step,
                b.of.data.ptr, b.next, b.step, alpha, beta, c.data.ptr, c.strides[0] // 4)
    tiles = -(-m // high) * -(-n // wide)
    kernel.launch(min(tiles, _multiprocessors(device)), 1, 128 * (values["GROUPS"] + 1), 1,
                  _local.wgmma, wgmma_bytes(values))
