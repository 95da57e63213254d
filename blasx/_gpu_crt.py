"""Products of double precision by remainders, on Hopper's tensor cores (kernels/moduli.cuh).

crt_split makes an operand's `Remainders`: lines scaled to integers, and these modulo 15 numbers, a
byte each, and one for their size; gemm_crt multiplies the bytes, crt_join makes C of the products,
and gemm_tiled computes the elements again whose error could be larger than ordinary double
precision's. All of it is decided on the device. An operand that is used more than once is split
once:

    u, = split(b.T)
    for a, c in ...:
        multiply_remainders(-1, *split(a), u, 1, c)      # c -= a b, rows of c in one piece

Memory: 16 bytes for each entry of A and of B, and of C, of which as many rows are worked on
together as make ROOM with those of A, and as many columns as do with those of B: 3 GB for an order
of 8192, 9 GB at most.

Uchino, Ozaki, Imamura: Performance enhancement of the Ozaki scheme on integer matrix multiplication
units, 2024; Ozaki, Uchino, Imamura: Ozaki scheme II: a GEMM-oriented emulation of floating-point
matrix multiplication using an integer modular technique, 2025.
"""

import threading
from copy import copy
from math import isqrt
from struct import Struct

import cupy

from . import _ladder
from ._kernel import (
    TensorMap,
    current_device,
    ffi,
    gpu,
    in_turns,
    kernel_of,
    multiprocessors,
    pack,
)
from ._spaces import crt_bytes, crt_split_bytes
from ._tuned import capitals, constants, looked_up, row

PLANES = 16  # of bytes: the moduli of kernels/moduli.cuh, and sizes
DEPTH = 2**14  # of k at a time; below 2^17, for which sums of 32 bits are exact
ROOM = 2**32  # bytes for some columns of C, and of B
_LINE = 16  # bytes that are known of a line
_BITS = Struct("<d"), Struct("<q")


class _Local(threading.local):
    """Each thread's cells for the parameters of gemm_crt: two maps, m n k, lines of A and B, C and
    whether there are sizes."""

    def __init__(self):
        self.cells = ffi.new("int64_t[7]")
        self.a, self.b = TensorMap(3), TensorMap(3)
        self.parameters = ffi.new("void *[]", [self.a.place, self.b.place,
                                               *(self.cells + i for i in range(7))])


_local = _Local()


@looked_up
def _tiles(order, device):
    """The row of gemm_crt for that many elements of C, or None."""
    return row("gemm_crt", "d", order, gpu(device))


def pays(m, n, k, device):
    """True if products of these extents were measured to be faster by remainders."""
    found = _tiles(isqrt(m * n), device)
    return bool(found) and "vendor" not in found and (
        min(m, n) >= found.get("side", 1) and k >= found.get("depth", 1))


def multiply(alpha, a, b, beta, c, trans_a, trans_b, turns=None):
    """C := alpha op(A) op(B) + beta C by remainders where the GPU can and has memory for it; else
    False, and C is as it was. `turns`: as of _kernel.in_turns."""
    m, n = c.shape
    if not _tiles(isqrt(m * n), current_device()) or (
            cupy.cuda.get_current_stream().is_capturing()):
        return False  # a graph keeps no memory of ours
    a, b = a.T if trans_a else a, b if trans_b else b.T
    if c.strides[1] != c.itemsize:  # C^T = B^T A^T
        a, b, c = b, a, c.T
    (m, n), k = c.shape, a.shape[1]
    depth = min(k, DEPTH)
    high = min(max(ROOM // (PLANES * depth) // 256, 1) * 256, m)
    wide = min(max(ROOM // (PLANES * (high + depth)) // 256, 1) * 256, n)
    if not _room(high, wide, depth):
        return False
    for i in range(0, m, high):
        for p in range(0, k, DEPTH):
            x, y = a[i:i + high, p:p + DEPTH], b[:, p:p + DEPTH]
            for j in range(0, n, wide):
                if j == 0:
                    left, right = split(x, y[:wide])
                else:
                    right, = split(y[j:j + wide])
                multiply_remainders(alpha, left, right, 1 if p else beta,
                                    c[i:i + high, j:j + wide], turns)
                right = None
            left = None
    return True


def _room(m, n, k):
    """True if the pool has, or gets, the memory of such a product, which is then there for it."""
    lines, blocks = PLANES * (-(-k // 128) * 128) + _LINE, -(-m // 16) * -(-n // 16)
    try:
        cupy.cuda.alloc((m + 2 * n) * lines + PLANES * 256 * blocks + 2 * m * -(-n // 16) + 2048)
    except cupy.cuda.memory.OutOfMemoryError:
        return False
    return True


def room(m, n, k):
    """Bytes that suffice for `multiply` with a C of at most m x n numbers."""
    lines = PLANES * (-(-min(k, DEPTH) // 128) * 128) + _LINE
    planes = PLANES * (m + 16) * (n + 16)
    return (min(ROOM, m * lines) + min(ROOM, planes + n * lines) + min(ROOM, n * lines)
            + min(ROOM, planes) // 64 + 2**14)


class Remainders:
    """The lines of an operand, as remainders; `of`, of which they are, is read again where that
    does not suffice, and must not change before the last product."""

    __slots__ = ("of", "lines", "k", "room", "plane", "memory", "planes", "about")

    def __init__(self, x):
        self.of, (self.lines, self.k) = x, x.shape
        self.room = -(-self.k // 128) * 128
        self.plane = self.lines * self.room

    @property
    def nbytes(self):
        return PLANES * self.plane

    def part(self, first, last):
        """Lines first ... last - 1."""
        some = copy(self)
        some.of, some.lines = self.of[first:last], last - first
        some.planes, some.about = self.planes + first * self.room, self.about + first * _LINE
        return some

    def numbers(self):
        """What crt_split is told, after what it is told of both."""
        return (self.of.data.ptr, self.lines, *(s // 8 for s in self.of.strides), self.planes,
                self.about)

    def describe(self, tensor, side):
        """Boxes of 128 of k and `side` lines of a plane."""
        tensor.describe(TensorMap.BYTE, self.planes, (self.k, self.lines, PLANES),
                        (self.room, self.plane), (128, side, 1))


def split(*operands):
    """The `Remainders` of one or two matrices of double precision with as many columns, along which
    they are to be multiplied; any strides."""
    made = [Remainders(x) for x in operands]
    memory = cupy.cuda.alloc(sum(x.nbytes + _LINE * x.lines for x in made))
    at = memory.ptr
    for x in made:
        x.memory, x.planes, x.about = memory, at, at + x.nbytes
        at = x.about + _LINE * x.lines
    k = made[0].k
    values = constants("crt_split", "d", k, gpu(current_device()))
    blocks = [-(-x.lines // values["LINES"]) for x in made]
    kernel_of("crt_split", "d", **values).launch(
        sum(blocks), 1, 32 * values["WARPS"], 1,
        pack(blocks[0], k, made[0].room, *made[0].numbers(), *made[-1].numbers()),
        crt_split_bytes(values))
    return made


def multiply_remainders(alpha, a, b, beta, c, turns=None):
    """C := alpha A B^T + beta C, A and B split, each row of C in one piece. `turns`: as of
    _kernel.in_turns."""
    device = current_device()
    m, n, k = a.lines, b.lines, a.k
    down, across = -(-m // 16), -(-n // 16)  # blocks of C
    planes = cupy.cuda.alloc(PLANES * 256 * down * across + 8)
    unsure, marks = planes.ptr + PLANES * 256 * down * across, cupy.cuda.alloc(2 * m * across)
    values = capitals(_tiles(isqrt(m * n), device))
    cluster, high, wide = values["CLUSTER"], 64 * values["GROUPS"], values["BN"]
    a.describe(_local.a, high)
    b.describe(_local.b, wide // cluster)
    _local.cells[0:7] = m, n, k, a.about, b.about, planes.ptr, unsure
    tiles = (PLANES - 1) * -(-m // (high * cluster)) * -(-n // wide)
    kernel_of("gemm_crt", "d", **values).launch(
        cluster * in_turns(tiles, multiprocessors(device) // cluster, turns), 1,
        128 * (values["GROUPS"] + 1), 1, _local.parameters, crt_bytes(values))
    values = constants("crt_join", "d", isqrt(m * n), gpu(device))
    kernel_of("crt_join", "d", **values).launch(
        -(-down * across // values["WARPS"]), 1, 32 * values["WARPS"], 1, pack(
            m, n, k, planes.ptr, unsure, a.about, b.about, marks.ptr, _bits(alpha), _bits(beta),
            c.data.ptr, c.strides[0] // 8))
    place = _ladder.place
    _ladder.launch(_ladder.plan("gemm_tiled", "d", max(m, n, k), device, True), m, n, k, alpha,
                   place(a.of, *a.of.strides), place(b.of, *b.of.strides[::-1]), beta,
                   (c.data.ptr, c.strides[0] // 8, 1), marks.ptr)


def _bits(x):
    """A number of double precision as a 64-bit integer."""
    return _BITS[1].unpack(_BITS[0].pack(x))[0]
