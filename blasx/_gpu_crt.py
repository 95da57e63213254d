"""Products of double precision by remainders, on Hopper's tensor cores (kernels/moduli.cuh).

crt_split makes an operand's `Remainders`: lines scaled to integers, and these modulo 14 or 15
numbers, a byte each, and one for their size; gemm_crt multiplies the bytes, crt_join makes C of the
products, and gemm_tiled computes the elements again whose error could be larger than ordinary
double precision's. All of it is decided on the device. An operand that is used more than once is
split once:

    u, = split(b.T)
    for a, c in ...:
        multiply_remainders(-1, *split(a), u, 1, c)      # c -= a b, rows of c in one piece

A complex number has 3 bytes for each modulus, of its parts and of their sum, and a complex product
is three of bytes. `Columns` are remainders of lines whose lengths are known before they are: of a
Cholesky factor.

Memory: 16 bytes (complex: 46) for each entry of A and of B, and of C, of which as many rows are
worked on together as make ROOM with those of A, and as many columns as do with those of B: 3 GB for
an order of 8192, 9 GB at most.

Uchino, Ozaki, Imamura: Performance enhancement of the Ozaki scheme on integer matrix multiplication
units, 2024; Ozaki, Uchino, Imamura: Ozaki scheme II: a GEMM-oriented emulation of floating-point
matrix multiplication using an integer modular technique, 2025.
"""

import threading
from copy import copy
from math import isqrt

import cupy

from . import _cuda, _ladder
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
from ._tuned import at_least, capitals, constants, looked_up, row
from .batched._gpu_blas import bits

MODULI = 15  # at most (kernels/moduli.cuh)
PLANES = MODULI + 1  # of bytes at most, of real numbers: remainders, and sizes
DEPTH = 2**14  # of k at a time; below 2^17, for which sums of 32 bits are exact
ROOM = 2**32  # bytes for some columns of C, and of B
WHOLE, LOWER, UPPER = range(3)  # of C (kernels/strips.cuh)
_LINE = 16  # bytes that are known of a line


class _Local(threading.local):
    """Each thread's cells for the parameters of gemm_crt: two maps, m n k, lines of A and B, C,
    whether there are sizes, and which half of C."""

    def __init__(self):
        self.cells = ffi.new("int64_t[8]")
        self.a, self.b = TensorMap(3), TensorMap(3)
        self.parameters = ffi.new("void *[]", [self.a.place, self.b.place,
                                               *(self.cells + i for i in range(8))])


_local = _Local()


@looked_up
def _tiles(letter, order, device):
    """The row of gemm_crt for that many elements of C, or None."""
    return row("gemm_crt", letter, order, gpu(device))


@looked_up
def _constants(letter, order, device):
    """The same, and above the last order that is left to others the least that is not."""
    return capitals(at_least("gemm_crt", letter, order, gpu(device)))


@looked_up
def _fewer(letter, k, device):
    """1 where 14 moduli suffice for lines of k numbers."""
    return row("crt_split", letter, k, gpu(device)).get("fewer", 0)


def _planes(letter):
    return PLANES if letter == "d" else 3 * MODULI + 1


def by_remainders(letter, m, n, device):
    """True if the GPU can."""
    return bool(_tiles(letter, isqrt(m * n), device))


def pays(m, n, k, device, letter="d", triangles=0):
    """True if a product of these extents, or one triangle of it, or of the sum of two, was measured
    to be faster by remainders."""
    found = _tiles(letter, isqrt(m * n), device)
    return bool(found) and "vendor" not in found and (
        min(m, n) >= found.get("side", 1) and k >= found.get("depth", 1)
        and triangles <= found.get("triangles", 0))


def multiply(alpha, a, b, beta, c, trans_a, trans_b, turns=None):
    """C := alpha op(A) op(B) + beta C by remainders where the GPU can and has memory for it; else
    False, and C is as it was. `turns`: as of _kernel.in_turns."""
    (m, n), k, letter = c.shape, a.shape[0 if trans_a else 1], _letter(c)
    if not _serves(letter, m, n):
        return False
    a, b, flags = a.T if trans_a else a, b if trans_b else b.T, (trans_a == 2, trans_b == 2)
    if c.strides[1] != c.itemsize:  # C^T = B^T A^T
        a, b, c, flags, m, n = b, a, c.T, flags[::-1], n, m
    depth, planes = min(k, DEPTH), _planes(letter)
    high = min(max(ROOM // (planes * depth) // 256, 1) * 256, m)
    wide = min(max(ROOM // (planes * (high + depth)) // 256, 1) * 256, n)
    if not _room(letter, high, wide, depth, high + 2 * wide):
        return False
    for i in range(0, m, high):
        for p in range(0, k, DEPTH):
            x, y = a[i:i + high, p:p + DEPTH], b[:, p:p + DEPTH]
            for j in range(0, n, wide):
                if j == 0:
                    left, right = split(x, y[:wide], conjugated=flags)
                else:
                    right, = split(y[j:j + wide], conjugated=flags[1:])
                multiply_remainders(alpha, left, right, 1 if p else beta,
                                    c[i:i + high, j:j + wide], turns)
                right = None
            left = None
    return True


def rank_k(products, beta, c, lower, flags):
    """One triangle of C := alpha A B^T + beta C for one (alpha, A, B), or added up for two, the
    first or the second factor conjugated if the flags say so, as `multiply`. The whole sum is
    symmetric, or Hermitian."""
    (n, k), letter = products[0][1].shape, _letter(c)
    if not _serves(letter, n, n):
        return False
    if c.strides[1] != c.itemsize:
        c, lower, flags = c.T, not lower, flags[::-1]
        products = [(alpha, b, a) for alpha, a, b in products]
    wide = min(max(ROOM // (_planes(letter) * n) // 256, 1) * 256, n)
    one = len(products) == 1 and not any(flags)
    if not _room(letter, n, wide, min(k, DEPTH), (1 if one else 2) * n):
        return False
    for p in range(0, k, DEPTH):
        for alpha, a, b in products:
            x, y = a[:, p:p + DEPTH], b[:, p:p + DEPTH]
            left, right = split(x) * 2 if one else split(x, y, conjugated=flags)
            for i in range(0, n, wide):
                j = min(i + wide, n)
                rows, columns = ((i, n), (i, j)) if lower else ((i, j), (i, n))
                multiply_remainders(alpha, left.part(*rows), right.part(*columns), beta,
                                    c[slice(*rows), slice(*columns)],
                                    half=LOWER if lower else UPPER)
            left, right, beta = None, None, 1
    return True


def _letter(x):
    return "dz"[x.dtype.kind == "c"]


def _serves(letter, m, n):
    return by_remainders(letter, m, n, current_device()) and not (
        _cuda.graph_forgets())


def product_bytes(letter, m, n):
    """Memory for a product of m x n: the bytes of blocks of 16 x 16, and a cell."""
    return _planes(letter) * 256 * -(-m // 16) * -(-n // 16) + 8


def _room(letter, m, n, k, lines):
    """True if the pool has, or gets, the memory of such a product of so many lines, which is then
    there for it."""
    line = _planes(letter) * (-(-k // 128) * 128) + _LINE
    try:
        cupy.cuda.alloc(lines * line + product_bytes(letter, m, n) + 2 * m * -(-n // 16) + 2048)
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

    __slots__ = ("of", "letter", "lines", "k", "conjugated", "fewer", "count", "room", "plane",
                 "memory", "planes", "about")

    def __init__(self, x, fewer, conjugated):
        self.of, (self.lines, self.k), self.conjugated = x, x.shape, int(conjugated)
        self.letter, self.fewer = _letter(x), fewer
        self.count = (MODULI - fewer) * (1 if self.letter == "d" else 3) + 1
        self.room = -(-self.k // 128) * 128
        self.plane = self.lines * self.room

    @property
    def nbytes(self):
        return self.count * self.plane

    def part(self, first, last):
        """Lines first ... last - 1."""
        some = copy(self)
        some.of, some.lines = None if self.of is None else self.of[first:last], last - first
        some.planes, some.about = self.planes + first * self.room, self.about + first * _LINE
        return some

    def numbers(self):
        """What crt_split is told, after what it is told of both."""
        strides = (s // self.of.itemsize for s in self.of.strides)
        return (self.of.data.ptr, self.lines, *strides, self.planes, self.plane, self.about,
                self.conjugated)

    def describe(self, tensor, side):
        """Boxes of 128 of k and `side` lines of a plane."""
        tensor.describe(TensorMap.BYTE, self.planes, (self.k, self.lines, self.count),
                        (self.room, self.plane), (128, side, 1))


class Columns(Remainders):
    """Of a real matrix of which some columns follow others, for products of rows of it with rows of
    it, right to sqrt(k) 2^-53 of their lengths; `squares`, there when the first columns are, is at
    least what the squares of each row add up to. Rows that turn out to be longer have products of
    nan."""

    __slots__ = ("squares",)

    def __init__(self, k, squares):
        self.of, self.letter, self.lines, self.k = None, "d", len(squares), 0
        self.conjugated, self.squares = 0, squares
        self.fewer, self.room = _fewer("d", k, current_device()), -(-k // 128) * 128
        self.count, self.plane = MODULI - self.fewer, self.lines * self.room
        self.memory = cupy.cuda.alloc(self.nbytes + _LINE * self.lines)
        self.planes, self.about = self.memory.ptr, self.memory.ptr + self.nbytes

    def add(self, x, first):
        """The next columns of the lines from `first` on, a multiple of 128 but for the last."""
        values = constants("crt_split", "d", self.room, gpu(current_device()))
        some = self.part(first, self.lines)
        some.of, some.planes = x, some.planes + self.k
        blocks = -(-some.lines // values["LINES"])
        kernel_of("crt_split", "d", **values, KNOWN=1, FEWER=self.fewer).launch(
            blocks, 1, 32 * values["WARPS"], 1,
            pack(blocks, x.shape[1], self.room - self.k, self.room, *some.numbers(),
                 *some.numbers(), 0 if self.k else self.squares.data.ptr + 8 * first),
            crt_split_bytes("d", values))
        self.k += x.shape[1]


def split(*operands, conjugated=(0, 0)):
    """The `Remainders` of one or two matrices of double precision with as many columns, along which
    they are to be multiplied, or of their conjugates; any strides."""
    device, letter = current_device(), _letter(operands[0])
    fewer = _fewer(letter, operands[0].shape[1], device)
    made = [Remainders(x, fewer, flag) for x, flag in zip(operands, conjugated)]
    memory = cupy.cuda.alloc(sum(x.nbytes + _LINE * x.lines for x in made))
    at = memory.ptr
    for x in made:
        x.memory, x.planes, x.about = memory, at, at + x.nbytes
        at = x.about + _LINE * x.lines
    k = made[0].k
    values = constants("crt_split", letter, k, gpu(device))
    blocks = [-(-x.lines // values["LINES"]) for x in made]
    kernel_of("crt_split", letter, **values, FEWER=fewer).launch(
        sum(blocks), 1, 32 * values["WARPS"], 1,
        pack(blocks[0], k, made[0].room, made[0].room, *made[0].numbers(), *made[-1].numbers(), 0),
        crt_split_bytes(letter, values))
    return made


def multiply_remainders(alpha, a, b, beta, c, turns=None, half=WHOLE):
    """C := alpha A B^T + beta C, A and B split, each row of C in one piece; or of C only the half
    LOWER or UPPER, with the diagonal. `turns`: as of _kernel.in_turns."""
    device, sure, letter = current_device(), a.of is None, a.letter
    m, n, k = a.lines, b.lines, a.k
    down, across = -(-m // 16), -(-n // 16)  # blocks of C
    planes = cupy.cuda.alloc(product_bytes(letter, m, n))
    unsure = planes.ptr + product_bytes(letter, m, n) - 8
    marks = None if sure else cupy.cuda.alloc(2 * m * across)
    values = _constants(letter, isqrt(m * n), device)
    cluster, high, wide = values["CLUSTER"], 64 * values["GROUPS"], values["BN"]
    a.describe(_local.a, high)
    b.describe(_local.b, wide // cluster)
    _local.cells[0:8] = m, n, k, a.about, b.about, planes.ptr, 0 if sure else unsure, half
    tiles = a.count * -(-m // (high * cluster)) * -(-n // wide)
    kernel_of("gemm_crt", letter, **values, FEWER=a.fewer).launch(
        cluster * in_turns(tiles, multiprocessors(device) // cluster, turns), 1,
        128 * (values["GROUPS"] + 1), 1, _local.parameters, crt_bytes(values))
    values = constants("crt_join", letter, isqrt(m * n), gpu(device))
    kernel_of("crt_join", letter, **values, FEWER=a.fewer).launch(
        -(-down * across // values["WARPS"]), 1, 32 * values["WARPS"], 1, pack(
            m, n, k, planes.ptr, unsure, a.about, b.about, 0 if sure else marks.ptr,
            *bits(alpha), *bits(beta), c.data.ptr, c.strides[0] // c.itemsize, half))
    if sure:
        return
    place = _ladder.place
    _ladder.launch(_ladder.plan("gemm_tiled", letter, max(m, n, k), device, True), m, n, k, alpha,
                   place(a.of, *a.of.strides, a.conjugated),
                   place(b.of, *b.of.strides[::-1], b.conjugated), beta,
                   (c.data.ptr, c.strides[0] // c.itemsize, 1), marks.ptr)
