"""Products on the GPU by kernels of ours; cuBLAS takes what they leave. By remainders: _gpu_crt.py.

gemm_small takes small ones, where cuBLAS would cost the host more than the product, gemm_tiled
those of orders where it is ahead of cuBLAS; which, tuned rows say, by the largest of m, n, k.

Products of single precision are by pairs of half precision on Hopper's tensor cores: split_lines
makes an operand's `Pairs`, gemm_wgmma multiplies two of them. An operand that is used more than
once is split once:

    u, = split(b.T)
    for a, c in ...:
        multiply_pairs(-1, *split(a), u, 1, c)      # c -= a b, rows of c in one piece

The row of gemm_wgmma for n is for tiles of C of m n = n^2 elements; it serves where k is at least
its `depth`, and m and n its `side`. Large ones, by the same of gemm_digits, are products of bytes,
three digits of a number (kernels/digits.cuh), where lines are even, which the GPU finds when it
splits them; where they are not, by pairs all the same. Rows of gemm_half, for products of half
precision and bfloat16 and what follows them, are for as many elements; `vendor`: where nothing
follows, cuBLAS is as fast.
"""

import threading
from math import isqrt
from struct import Struct

import cupy

from . import _cuda, _gpu_crt, _ladder
from ._gpu_crt import LOWER, UPPER, WHOLE
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
from ._spaces import (
    crt_bytes,
    digit_products_bytes,
    digits_bytes,
    digits_part,
    half_bytes,
    wgmma_bytes,
)
from ._tuned import at_least, capitals, constants, looked_up, row
from .batched import _gpu_blas

# The parameters of gemm_small, cell by cell: m n k alpha A(4) B(4) beta with_c C(3)
_SCALAR = {"s": "f4x", "d": "d", "c": "2f", "z": "2d"}
_PACK = {letter: Struct(f"<3q{s}8q{s}4q").pack_into for letter, s in _SCALAR.items()}
_SIDE = 16  # threads a side of a block
_LARGEST = 4096  # no row reaches so far

# Those of gemm_wgmma after its two maps: m n k, lines, A(4) B(4), alpha beta C(2), bias, whether
# it is asked; of gemm_digits: m n k, lines, alpha beta C(2), whether that is; of gemm_half:
# m n k, alpha beta C(2), bias, Z(2); of gemm_int8: m n k, C(2), scale, bias, and these where there
# is but one
_PACK_WGMMA, _PACK_HALF = Struct("<13q2f4q").pack_into, Struct("<3q2f5q").pack_into
_PACK_DIGITS, _PACK_BYTES = Struct("<5q2f3q").pack_into, Struct("<7q2f").pack_into
_OFFSETS_WGMMA = [8 * i for i in range(13)] + [104, 108, 112, 120, 128, 136]
_OFFSETS_DIGITS = [0, 8, 16, 24, 32, 40, 44, 48, 56, 64]
_OFFSETS_HALF = [0, 8, 16, 24, 28, 32, 40, 48, 56, 64]
_OFFSETS_BYTES = [*(8 * i for i in range(7)), 56, 60]
_LINE = 64  # bytes of what is known of a line, and of its few numbers (kernels/pairs.cuh)
_LONG = 2048  # lines that go by digits, unless a row says otherwise
TWICE, CONJUGATED = 1, 2  # kernels/operand_lines.cuh


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
        self.wgmma, self.digits, self.half, self.bytes = (
            ffi.new("void *[]", [self.a.place, self.b.place, *(cells + i for i in offsets)])
            for offsets in (_OFFSETS_WGMMA, _OFFSETS_DIGITS, _OFFSETS_HALF, _OFFSETS_BYTES))


_local = _Local()


@looked_up
def _kernel_on(letter, largest, device):
    """The kernel for products of that largest extent, or None past the last row."""
    found = row("gemm_small", letter, largest, gpu(device))
    return found and kernel_of("gemm_small", letter, **capitals(found))


@looked_up
def _tiled(letter, largest, device):
    """What launches gemm_tiled for products of that largest extent, and the least m and n for which
    it is used: cuBLAS shares a long k among blocks."""
    found = row("gemm_tiled", letter, largest, gpu(device))
    if not found or "vendor" in found:
        return None, 2**63
    return _ladder.plan("gemm_tiled", letter, largest, device), found.get("side", 1)


def _in_steps(*operands):
    """True if lines of all operands are multiples of 16 bytes apart."""
    bits = 0
    for x in operands:
        bits |= x.data.ptr | max(x.strides)
    return bits % 16 == 0


def multiply(me, alpha, a, b, beta, c, trans_a, trans_b, by_parts=True, or_digits=True):
    """C := alpha op(A) op(B) + beta C by a kernel of ours where there is a row; else False.
    `by_parts`: single precision may be by pairs, `or_digits`, double precision by remainders."""
    m, n = c.shape
    a_row, a_col = a.strides
    b_row, b_col = b.strides
    if trans_a:
        a_row, a_col = a_col, a_row
    if trans_b:
        b_row, b_col = b_col, b_row
    k = a.shape[0] if trans_a else a.shape[1]
    device, largest = current_device(), max(m, n, k)
    kernel = _kernel_on(me.letter, min(largest, _LARGEST), device)
    if kernel is None:
        plan, side = _tiled(me.letter, min(largest, _LARGEST), device)
        if min(m, n) >= side and k * k <= m * n and _in_steps(a, b, c):
            place = _ladder.place
            _ladder.launch(plan, m, n, k, alpha, place(a, a_row, a_col, trans_a == 2),
                           place(b, b_row, b_col, trans_b == 2), beta, place(c, *c.strides))
            return True
        if me.letter in "dz" and by_parts and _gpu_crt.pays(m, n, k, device, me.letter):
            return _gpu_crt.multiply(alpha, a, b, beta, c, trans_a, trans_b)
        if me.letter not in "sc" or not by_parts or not by_pairs(
                m, n, k, me.is_complex, device) or _cuda.graph_forgets():
            return False
        a, b = a.T if trans_a else a, b if trans_b else b.T
        flags = trans_a == 2, trans_b == 2
        if c.strides[1] != c.itemsize:  # C^T = B^T A^T
            a, b, c, flags = b, a, c.T, flags[::-1]
        if me.is_complex:
            alpha, beta = complex(alpha), complex(beta)
            if alpha.imag or beta.imag or any(min(x.strides) != c.itemsize for x in (a, b)):
                return False
            alpha, beta = alpha.real, beta.real
        elif or_digits and by_digits(m, n, k, device):
            multiply_digits(alpha, a, b, beta, c)
            return True
        multiply_pairs(alpha, *split(a, b, conjugated=flags), beta, c)
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


def multiply_with_bias(me, alpha, a, b, bias, c, trans_a, trans_b):
    """C := alpha op(A) op(B) + bias, bias (1, n) or (m, 1), by one kernel where that is by pairs of
    half precision and the bias lies along the lines of C; else False."""
    device, (m, n), k = current_device(), c.shape, a.shape[0] if trans_a else a.shape[1]
    if me.letter != "s" or not by_pairs(m, n, k, False, device) or (
            _cuda.graph_forgets()):
        return False
    a, b = a.T if trans_a else a, b if trans_b else b.T
    if c.strides[1] != c.itemsize:  # C^T = B^T A^T
        a, b, c, bias = b, a, c.T, bias.T
    if bias.shape[0] != 1 or c.strides[1] != c.itemsize:
        return False
    multiply_pairs(alpha, *split(a, b), 1, c, bias=cupy.ascontiguousarray(bias))
    return True


def rank_k(me, alpha, terms, beta, c, lower, flags):
    """One triangle of C := alpha A A^T + beta C, or of alpha A B^T + alpha' B A^T + beta C, where
    factors to the left or to the right are conjugated if the flags say so, and then alpha' is
    conj(alpha), on the tensor cores where rows say of how many products they take triangles; else
    False."""
    (n, k), device = terms[0].shape, current_device()
    products = [(alpha, terms[0], terms[-1])]
    if len(terms) == 2:
        products += [(alpha.conjugate() if any(flags) else alpha, *terms[::-1])]
    if me.letter in "dz" and _gpu_crt.pays(n, n, k, device, me.letter, len(terms)):
        done = _gpu_crt.rank_k(products, beta, c, lower, flags)
        if done and any(flags):
            c.imag[cupy.arange(n), cupy.arange(n)] = 0  # whatever it was in C
        return done
    if me.letter not in "sc" or not by_pairs(n, n, k, me.is_complex, device) or (
            len(terms) > _triangles(isqrt((1 + me.is_complex) * n * n), device)) or (
            _cuda.graph_forgets()):
        return False
    if me.is_complex:
        alpha, beta = complex(alpha), complex(beta)
        if alpha.imag or beta.imag or any(min(x.strides) != c.itemsize for x in terms):
            return False
        alpha, beta = alpha.real, beta.real
    by_rows = c if c.strides[1] == c.itemsize else c.T
    if by_rows is not c:
        lower, flags, terms = not lower, flags[::-1], terms[::-1]
    lines = () if me.is_complex else split(*terms)  # complex ones differ by the side they are on
    for i, j in ((0, -1), (-1, 0))[:len(terms)]:
        left, right = (lines[i], lines[j]) if lines else split(terms[i], terms[j], conjugated=flags)
        multiply_pairs(alpha, left, right, beta, by_rows, half=LOWER if lower else UPPER)
        beta = 1
    if any(flags):
        c.imag[cupy.arange(n), cupy.arange(n)] = 0  # whatever it was in C
    return True


@looked_up
def _leaf_on(letter, n, device):
    found = row("level3_halves", letter, n, gpu(device))
    return (found["LEAF"], found.get("side", 1)) if found else (0, 2**63)


def leaf(me, n, other):
    """The largest order of triangles that cuBLAS is to take of one of order n, whose other operand
    has so many rows or columns; 0: all of it."""
    order, side = _leaf_on(me.letter, n, current_device())
    return order if other >= side else 0


# -- by pairs of half precision


def by_pairs(m, n, k, is_complex, device):
    """True if products of these extents are faster by pairs than by cuBLAS."""
    parts = 1 + is_complex
    side, depth, _ = _by_tiles(isqrt(parts * m * n), device)
    return min(m, n) >= side and parts * k >= depth


def by_halves(m, n, k, device, precision="fp16"):
    """True if products of real operands rounded to that precision are faster by the high parts of
    pairs, too."""
    return by_pairs(m, n, k, False, device) and k >= _by_tiles(isqrt(m * n), device)[2][precision]


@looked_up
def _by_tiles(order, device):
    """The least m and n, and k, for which gemm_wgmma is used for that many elements of C; the least
    k for products of the high parts alone, by precision."""
    found = row("gemm_wgmma", "s", order, gpu(device)) or {"side": 2**63}
    return found.get("side", 1), found.get("depth", 1), {
        precision: found.get(precision, 2**63) for precision in ("fp16", "tf32")}


@looked_up
def _triangles(order, device):
    """Of how many products one triangle was measured to be faster than cuBLAS's syrk, syr2k."""
    return row("gemm_wgmma", "s", order, gpu(device)).get("triangles", 0)


@looked_up
def _constants(order, device):
    """Those of the first row from that order on that has some."""
    return capitals(at_least("gemm_wgmma", "s", order, gpu(device)))


@looked_up
def _by_lines(k, is_complex, device):
    values = constants("split_lines", "s", k, gpu(device))
    return kernel_of("split_lines", "s", **values, COMPLEX=int(is_complex))


def multiply_halves(alpha, a, b, beta, c, trans_a, trans_b, precision):
    """C := alpha op(A) op(B) + beta C, all real, by products of half precision of their scaled
    lines, which keep as many bits as TF32, where that is faster than cuBLAS; else False."""
    a, b = a.T if trans_a else a, b if trans_b else b.T
    if c.strides[1] != c.itemsize:  # C^T = B^T A^T
        a, b, c = b, a, c.T
    if not by_halves(*c.shape, a.shape[1], current_device(), precision) or (
            _cuda.graph_forgets()):
        return False
    multiply_pairs(alpha, *split(a, b), beta, c, high_only=True)
    return True


class Pairs:
    """The lines of an operand, split; `of`, from which they were, is read again where numbers were
    lost, and must not change before the last product. Lines that lie side by side (`across`) do so
    in the halves' planes, too."""

    __slots__ = ("of", "lines", "k", "next", "step", "parts", "how", "across", "extents", "room",
                 "plane", "memory", "pairs", "about")

    def __init__(self, x, how):
        self.of, self.how = x, how
        self.next, self.step = (s // 4 for s in x.strides)
        self.parts = 1 + (x.dtype.kind == "c")
        self.lines, self.k = x.shape[0] * (1 + (how & TWICE)), x.shape[1] * self.parts
        self.across = abs(self.next) < abs(self.step)
        self.extents = (self.k, self.lines) if self.across else (self.lines, self.k)
        self.room = -(-self.extents[1] // 8) * 8
        self.plane = 2 * self.extents[0] * self.room

    @property
    def nbytes(self):
        return 2 * self.plane

    @property
    def known(self):
        """Bytes of what is known of the lines, and of which numbers are lost."""
        return -(-(_LINE + 8 * -(-self.k // 64)) * self.lines // 16) * 16

    def shared(self, values):
        """(warps of split_lines to a line, 0 where lines are side by side; blocks)"""
        cluster, warps, lines = values["CLUSTER"], values["WARPS"], len(self.of)
        if self.across:
            return 0, -(-lines * self.parts // values["LINES"]) * cluster
        team = 1
        while team < warps and 128 * team * values["HELD"] < self.k:
            team *= 2
        return team, -(-lines // (warps // team * cluster)) * cluster

    def numbers(self, team):
        """What split_lines is told, after what it is told of both."""
        strides = self.next, self.step
        if self.parts == 2:  # real numbers side by side
            strides = (1, self.step) if self.across else (self.next, 1)
        return (self.of.data.ptr, len(self.of), *strides, team, self.how, self.pairs, self.room,
                self.about)

    def describe(self, tensor, side, parts):
        """Boxes of 64 of k and `side` lines, or, across, 64 of these, of the high part or of both.
        """
        rows, columns = self.extents
        pitch = 2 * self.room
        tensor.describe(TensorMap.HALF, self.pairs, (columns, rows, 2), (pitch, self.plane),
                        (64, 64 if self.across else side, parts))


def split(*operands, conjugated=(0, 0), asked=0, memory=None):
    """The `Pairs` of one or two matrices of single precision with as many columns, along which they
    are to be multiplied; any strides. Two complex ones, in lines or side by side, are a left and a
    right operand. `asked`: where a number of 32 bits is; if it is 0, nothing is done.
    `memory`: for them, of who has some."""
    device = current_device()
    is_complex = operands[0].dtype.kind == "c"
    made = [Pairs(x, (TWICE * is_complex * i) | CONJUGATED * conjugated[i])
            for i, x in enumerate(operands)]
    memory = memory or cupy.cuda.alloc(sum(x.nbytes + x.known for x in made))
    at = memory.ptr
    for x in made:
        x.memory, x.pairs, x.about = memory, at, at + x.nbytes
        at = x.about + x.known
    kernel = _by_lines(made[0].k, is_complex, device)
    values = kernel.constants
    shares = [x.shared(values) for x in made]
    numbers = [x.numbers(team) for x, (team, _) in zip(made, shares)]
    kernel.launch(sum(blocks for _, blocks in shares), 1, 32 * values["WARPS"], 1, pack(
        shares[0][1], *numbers[0][:2], operands[0].shape[1], *numbers[0][2:], *numbers[-1],
        asked), 512 * values["WARPS"] * values["HELD"])
    return made


def multiply_pairs(alpha, a, b, beta, c, high_only=False, turns=None, half=WHOLE, bias=None,
                   asked=0):
    """C := alpha A B^T + beta C, A and B split, each row of C in one piece; or of C only the half
    LOWER or UPPER, with the diagonal; beta is of the numbers `bias` of each column, if given.
    `high_only`: of A and B what half precision has of their scaled lines; as many bytes are under
    way in twice the stages. `turns`: as of _kernel.in_turns; `asked`: as of split.
    """
    device = current_device()
    m, n = a.lines, b.lines
    values, planes = _constants(isqrt(m * n), device), 2 - high_only
    values = values | {"STAGES": values["STAGES"] * (1 + high_only)}
    kernel = kernel_of("gemm_wgmma", "s", **values, A_ACROSS=int(a.across), B_ACROSS=int(b.across),
                       COMPLEX=a.parts - 1, HIGH_ONLY=int(high_only), HALF_OF_C=half,
                       BIAS=int(bias is not None))
    high, wide = 64 * values["GROUPS"], values["BN"]
    a.describe(_local.a, high, planes)
    b.describe(_local.b, wide, planes)
    _PACK_WGMMA(_local.cells, 0, m, n, a.k, a.about, b.about, a.of.data.ptr, a.next, a.step, a.how,
                b.of.data.ptr, b.next, b.step, b.how, alpha, beta, c.data.ptr, c.strides[0] // 4,
                0 if bias is None else bias.data.ptr, asked)
    tiles = -(-m // high) * -(-n // wide)
    kernel.launch(in_turns(tiles, multiprocessors(device), turns), 1, 128 * (values["GROUPS"] + 1),
                  1, _local.wgmma, wgmma_bytes(values, planes))


# -- by digits


@looked_up
def _digit_rows(order, k, device):
    """The row of gemm_digits for that many elements of C, or None, and the constants of
    split_digits for lines of k numbers, or None where they are too long."""
    found, lines = (row(kernel, "s", n, gpu(device))
                    for kernel, n in (("gemm_digits", order), ("split_digits", k)))
    return found, lines and capitals(lines)


def by_digits(m, n, k, device):
    """True if products of these extents were measured to be faster by digits than by pairs, and
    lines are long enough for errors that add up by chance."""
    found, lines = _digit_rows(isqrt(m * n), k, device)
    return bool(found and lines) and (
        min(m, n) >= found.get("side", 1) and k >= found.get("depth", _LONG))


def multiply_digits(alpha, a, b, beta, c):
    """C := alpha A B^T + beta C, of real A and B, each row of C in one piece, by their digits where
    all lines are even (kernels/digits.cuh), else by pairs; both are launched, one of them works."""
    device, (m, k), n = current_device(), a.shape, len(b)
    found, lines = _digit_rows(isqrt(m * n), k, device)
    values, room, part = capitals(found), -(-k // 128) * 128, digits_part(k, lines)
    planes = 3 * room * (m + n)
    of_pairs = [Pairs(x, 0) for x in (a, b)]
    memory = cupy.cuda.alloc(max(planes + _LINE * (m + n),  # for either
                                 sum(x.nbytes + x.known for x in of_pairs)))
    uneven, places, at = cupy.zeros(1, "u4"), [], memory.ptr
    for x in (a, b):
        places.append((at, memory.ptr + planes + (_LINE * m if places else 0)))
        at += 3 * room * m
    cluster = lines["CLUSTER"]
    blocks = [-(-len(x) // lines["LINES"]) * cluster for x in (a, b)]
    numbers = [(x.data.ptr, len(x), *(s // 4 for s in x.strides), *place)
               for x, place in zip((a, b), places)]
    kernel_of("split_digits", "s", **lines).launch(
        sum(blocks), 1, 32 * lines["WARPS"], 1,
        pack(blocks[0], k, part, room, *numbers[0], *numbers[1], uneven.data.ptr),
        digits_bytes(k, lines))
    high, wide = 64 * values["GROUPS"], values["BN"] // values["CLUSTER"]
    for x, (planes, _), tensor, side in zip((a, b), places, (_local.a, _local.b), (high, wide)):
        tensor.describe(TensorMap.BYTE, planes, (k, len(x), 3), (room, room * len(x)),
                        (128, side, 1))
    _PACK_DIGITS(_local.cells, 0, m, n, k, *(about for _, about in places), alpha, beta,
                 c.data.ptr, c.strides[0] // 4, uneven.data.ptr)
    _launch_ring(kernel_of("gemm_digits", "s", **values, A_ACROSS=0, B_ACROSS=0), values, m, n,
                 device, _local.digits, digit_products_bytes(values))
    multiply_pairs(alpha, *split(a, b, asked=uneven.data.ptr, memory=memory), beta, c,
                   asked=uneven.data.ptr)


# -- half precision and bfloat16

ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3}
SLOPE = 3  # their slopes, further on
_KIND = {"h": TensorMap.HALF, "b": TensorMap.BFLOAT16}


def multiply_half(me, alpha, a, b, beta, c, trans_a, trans_b, bias=None, activation=None,
                  slope_at=None):
    """C := f(alpha op(A) op(B) + bias) + beta C, bias (n,) or (m, 1), or (...) times f' of
    `slope_at`, where there is a row and the operands lie in whole steps of 16 bytes; else False."""
    device, (m, n) = current_device(), c.shape
    order = isqrt(m * n)
    values, vendor = _half_values(me.letter, order, device)
    if not values or vendor and bias is activation is None:
        return False
    a, b = a.T if trans_a else a, b if trans_b else b.T
    if c.strides[1] != c.itemsize:  # C^T = B^T A^T
        a, b, c, m, n = b, a, c.T, n, m
        bias = bias if bias is None else bias.T
        slope_at = slope_at if slope_at is None else slope_at.T
    places = _place(a), _place(b)
    if None in places or c.strides[1] != c.itemsize:
        return False
    of_bias = 0 if bias is None else 1 if bias.shape != (m, 1) else 2
    if of_bias and bias.size > 1 and bias.strides[2 - of_bias] != bias.itemsize:
        bias = cupy.ascontiguousarray(bias)
    z, function = (0, 0), ACTIVATIONS[activation]
    if slope_at is not None:
        if slope_at.strides[1] != c.itemsize:
            slope_at = cupy.ascontiguousarray(slope_at)
        z, function = (slope_at.data.ptr, slope_at.strides[0] // 2), function + SLOPE
    cluster, wide = values["CLUSTER"], values["BN"]
    kernel = _half_kernel(me.letter, order, device, places[0][0], places[1][0], of_bias, function)
    high = 64 * values["GROUPS"]
    for (across, pitch), x, tensor, side in zip(
            places, (a, b), (_local.a, _local.b), (high, wide // cluster)):
        rows, columns = x.shape[::-1] if across else x.shape
        tensor.describe(_KIND[me.letter], x.data.ptr, (columns, rows, 1), (pitch, pitch * rows),
                        (64, 64 if across else side, 1))
    _PACK_HALF(_local.cells, 0, m, n, a.shape[1], alpha, beta, c.data.ptr, c.strides[0] // 2,
               0 if bias is None else bias.data.ptr, *z)
    _launch_ring(kernel, values, m, n, device, _local.half, half_bytes(values))
    return True


def for_cublas(letter, m, n, k, a, b, c):
    """Whether a product of half precision or bfloat16 is cuBLAS's, which takes it as it lies."""
    return (min(m, n) >= _gpu_blas.SKINNY and _in_steps(a, b, c)
            and _gpu_blas.left_to_cublas(letter, max(m, n, k), current_device()))


def multiply_bytes(a, b, c, scale, bias, activation):
    """C := A B, of bytes, of 32 bits, or f(scale A B + bias) in single precision, `scale` and
    `bias` a number, (1, n) or (m, 1), in row-major C, where there is a row; else False."""
    (m, n), k, device = c.shape, a.shape[1], current_device()
    found = row("gemm_int8", "i", isqrt(m * n), gpu(device))
    if not found:
        return False
    values = capitals(found)
    a, b = (_bytes_along(x) for x in (a, b.T))
    which, places, numbers, kept = [], [], [], []
    for x in (scale, bias):
        one = x is None or x.__class__ is float
        kept.append(None if one else cupy.ascontiguousarray(x))
        which.append(0 if one else 1 if x.shape == (1, n) else 2)
        places.append(0 if one else kept[-1].data.ptr)
        numbers.append(x if one and x is not None else 0)
    kernel = kernel_of("gemm_int8", "i", **values, A_ACROSS=0, B_ACROSS=0,
                       SCALE_OF=0 if scale is None else 1 + which[0], BIAS=which[1],
                       ACTIVATION=ACTIVATIONS[activation])
    high, wide = 64 * values["GROUPS"], values["BN"] // values["CLUSTER"]
    for x, tensor, side in ((a, _local.a, high), (b, _local.b, wide)):
        tensor.describe(TensorMap.BYTE, x.data.ptr, (k, len(x), 1),
                        (x.strides[0], x.strides[0] * len(x)), (128, side, 1))
    _PACK_BYTES(_local.cells, 0, m, n, k, c.data.ptr, c.strides[0] // 4, *places, *numbers)
    _launch_ring(kernel, values, m, n, device, _local.bytes, crt_bytes(values))
    return True


def _launch_ring(kernel, values, m, n, device, parameters, shared):
    """Launch a kernel of tile_ring.cuh: a cluster for each tile, as many as there is room for."""
    cluster = values["CLUSTER"]
    tiles = -(-m // (64 * values["GROUPS"] * cluster)) * -(-n // values["BN"])
    kernel.launch(cluster * min(tiles, multiprocessors(device) // cluster), 1,
                  128 * (values["GROUPS"] + 1), 1, parameters, shared)


def _bytes_along(x):
    """x with its rows in steps of 16 bytes, as they are if they can be."""
    if x.strides[1] == 1 and (x.strides[0] | x.data.ptr) % 16 == 0 and x.strides[0] >= x.shape[1]:
        return x
    out = cupy.empty((len(x), -(-x.shape[1] // 16) * 16), "i1")[:, :x.shape[1]]
    out[...] = x
    return out


@looked_up
def _half_values(letter, order, device):
    """The constants of gemm_half for that many elements of C, and whether cuBLAS is as fast."""
    found = row("gemm_half", letter, order, gpu(device))
    return found and capitals(found), bool(found) and "vendor" in found


@looked_up
def _half_kernel(letter, order, device, a_across, b_across, of_bias, function):
    return kernel_of("gemm_half", letter, **_half_values(letter, order, device)[0],
                     A_ACROSS=a_across, B_ACROSS=b_across, BIAS=of_bias, ACTIVATION=function)


def _place(x):
    """(whether lines lie side by side, bytes from one row of memory to the next) of the lines of an
    operand, or None where boxes of it cannot be copied."""
    down, along = x.strides
    across = int(along != x.itemsize)
    pitch, inner, width = (along, down, len(x)) if across else (down, along, x.shape[1])
    whole = (pitch | x.data.ptr) % 16 == 0 and pitch >= width * x.itemsize
    return (across, pitch) if inner == x.itemsize and whole else None
