"""Products of a batch on the GPU: a warp for a tile of a small member, a team of warps for one of a
larger member (kernels/products.cuh; line_products.cuh of members as lines of memory), cuBLAS
where a tuned row says so.

Every routine is a product C := alpha A B + beta C of strided operands (rows, columns, members; 0
for an operand that all members share): transposes, sides and triangles are strides.
"""

from functools import cache
from struct import Struct
from typing import NamedTuple

import cupy

from .. import _cuda
from .._kernel import Kernel, current_device, gpu, pack
from .._tuned import capitals, constants, looked_up, row
from .._types import TYPES
from ._block import line_bytes, product_bytes, syrk_bytes

_BITS = Struct("<q"), Struct("<d")
ALL, LOWER, HERMITIAN = 0, 1, 2  # the part of C that is wanted (kernels/operands.cuh)
OTHERS_ZERO, UPPER = 4, 8  # or of these two with one of them
ON_THE_RIGHT, OF_LOWER, IS_HERMITIAN = 1, 2, 4  # A, for kernels/symm_lines.cu


class Operand(NamedTuple):
    """Address, and strides in elements; conjugated if so."""

    at: int
    rows: int
    columns: int
    members: int
    conjugated: int = 0

    @property
    def T(self):
        return Operand(self.at, self.columns, self.rows, self.members, self.conjugated)

    @property
    def across(self):
        """1 if neighbours in a column, and not those in a row, are next to each other."""
        return int(self.rows == 1 and self.columns != 1)

    @property
    def conj(self):
        return self._replace(conjugated=1 - self.conjugated)

    def cells(self):
        return self.at, self.rows, self.columns, self.members


def operand(x, conjugated=0):
    """A stack of matrices, or one matrix for all members."""
    size = x.itemsize
    *members, rows, columns = x.strides
    shared = x.ndim == 2 or x.shape[0] == 1
    return Operand(x.data.ptr, rows // size, columns // size, 0 if shared else members[0] // size,
                   int(conjugated))


def bits(x):
    """A number of the launch: its parts' double precision, as 64-bit integers."""
    x = complex(x)
    return [_BITS[0].unpack(_BITS[1].pack(part))[0] for part in (x.real, x.imag)]


class Tiles:
    """A product kernel with one set of constants; `launch` runs it on a batch."""

    def __init__(self, name, letter, values):
        self.kernel = Kernel(name, letter, **values)
        self.values, self.threads = values, 32 * values["WARPS"]

    def launch(self, m, n, k, half, symmetric, *operands):
        v, batch = self.values, operands[-1]
        if "PM" in v:
            warps = -(-v["DOWN"] * v["ACROSS"] * batch // 32)
        else:
            warps = -(-m // v["TM"]) * -(-n // v["TN"]) * batch
        self.kernel.launch(-(-warps // v["WARPS"]), 1, self.threads, 1,
                           pack(m, n, k, half, symmetric, *numbers(*operands)))


class Blocks(Tiles):
    """The same by kernels/products.cuh."""

    def __init__(self, name, letter, values):
        super().__init__(name, letter, values)
        self.half = name.startswith("syrk")
        self.shared = product_bytes(letter, values, self.half, name.endswith("split"))
        self.teams = values["WARPS"] * values["TM"] * values["TN"] // (values["BM"] * values["BN"])
        self.high, self.wide = (values[x] + values.get("BORDER", 0) for x in ("BM", "BN"))

    def launch(self, m, n, k, half, symmetric, *operands):
        hermitian = bool(half & HERMITIAN) or symmetric == 2
        self.by_tiles(m, n, operands[-1], m, n, k, hermitian | half & (OTHERS_ZERO | UPPER),
                      numbers(*operands))

    def by_tiles(self, most_m, most_n, batch, m, n, k, hermitian, rest):
        """Tiles enough for members of so many rows and columns; m, n, k and `rest` as the kernel
        is told them."""
        down, across = -(-most_m // self.high), -(-most_n // self.wide)
        tiles = (down * (down + 1) // 2 if self.half else down * across) * batch
        self.kernel.launch(-(-tiles // self.teams), 1, self.threads, 1,
                           pack(m, n, k, hermitian, down, across, *rest), self.shared)


class Lines(Tiles):
    """kernels/line_products.cuh; of symm_lines.cu `symmetric` says where A is, and what."""

    def takes(self, m, n, k):
        """Whether rows lie so that they are read from different banks."""
        if self.values.get("PADDED"):
            return _in_packs(self.kernel.letter, n, k)
        return _spread(TYPES[self.kernel.letter].dtype.itemsize, m, n, k)

    def launch(self, m, n, k, half, symmetric, a, b, c, o, alpha, beta, batch):
        v = self.values
        down, teams = -(-m // (16 * v["RM"] * v["DOWN"])), v["WARPS"] // (v["DOWN"] * v["ACROSS"])
        shared = line_bytes(self.kernel.letter, v, m, n, k)
        self.kernel.launch(
            -(-down * batch // teams), 1, self.threads, 1,
            pack(m, n, k, down, symmetric, shared // TYPES[self.kernel.letter].dtype.itemsize, a.at,
                 a.members, b.at, b.members, *c.cells(), o.at, o.members, *bits(alpha),
                 *bits(beta), batch), teams * shared)


class Circles(Tiles):
    """kernels/syrk_lines.cu"""

    def takes(self, n, k):
        """Whether no more than two lanes, or the fewest there can be, read from the same bank."""
        if self.values.get("PADDED"):
            return _in_packs(self.kernel.letter, n, k)
        near, even = self.values.get("ADJACENT") or 1, k & -k
        return (near <= 2 * even and (even <= 2 * near or near == 4)
                and _spread(TYPES[self.kernel.letter].dtype.itemsize, n, n, k))

    def launch(self, n, k, lower, hermitian, a, o, alpha, batch):
        v, letter = self.values, self.kernel.letter
        teams, shared = v["WARPS"] // v["TEAM"], syrk_bytes(letter, v, n, k)
        self.kernel.launch(
            -(-batch // teams), 1, self.threads, 1,
            pack(n, k, shared // TYPES[letter].dtype.itemsize, lower, hermitian, a.at, a.members,
                 o.at, o.members, *bits(alpha), batch), teams * shared)


class Triangles(Tiles):
    """kernels/other_triangle.cu"""

    def launch(self, n, a, x, hermitian, batch):
        tile = self.values["TILE"]
        teams, down = max(1, self.threads // tile**2), -(-n // tile)
        self.kernel.launch(-(-down * (down + 1) // 2 * batch // teams), 1, self.threads, 1,
                           pack(*a.cells(), *x.cells(), hermitian, n, batch))


def numbers(a, b, c, o, alpha, beta, batch):
    """What all product kernels are told."""
    return (*a.cells(), a.conjugated, *b.cells(), b.conjugated, *c.cells(), *o.cells(),
            *bits(alpha), *bits(beta), batch)


@cache
def tiles(name, letter, **values):
    """One object for all orders that are served by the same constants."""
    kind = KINDS.get(name) or (Blocks if "BM" in values else Tiles)
    return kind(name, letter, values)


KINDS = {"gemm_lines": Lines, "symm_lines": Lines, "syrk_lines": Circles,
         "other_triangle": Triangles}


ALWAYS, IN_SHORT_STEPS, IN_WHOLE_STEPS = VENDOR = 1, 2, 3  # when a row says others are faster
IN_STEPS = ALWAYS, IN_WHOLE_STEPS
SKINNY = 24  # rows or columns from which on cuBLAS's sums do not depend on the size of the batch


@looked_up
def _plan(kernel, letter, n, device, when=(), across=(0, 0)):
    """The kernel with its constants for order n, A and B lying `across` or by rows; None past the
    last row, and where cuBLAS is better in one of the cases of `when`."""
    found = row(kernel, letter, n, gpu(device))
    if not found or found.get("vendor") in when:
        return None
    values = capitals(found)
    if "BM" in values:  # slices lie as operands do
        values |= {"A_ACROSS": across[0], "B_ACROSS": across[1]}
    return tiles(kernel, letter, **values)


def tiled(letter, n, device, across=(0, 0)):
    """The kernel of tiles for order n, also where cuBLAS is better: what a product goes by that
    is to have the same bits among others of other sizes."""
    return (_plan("gemm_split", letter, n, device, (), across)
            or _plan("gemm_block", letter, n, device, (), across))


@looked_up
def left_to_cublas(letter, order, device):
    """Whether no product of that order by operands in whole steps is by a kernel of ours."""
    return not any(_plan(kernel, letter, order, device, IN_STEPS)
                   for kernel in ("gemm_thread", "gemm_warp", "gemm_split", "gemm_block"))


def _cases(letter, m, n, k, *operands):
    """When cuBLAS may be asked: `vendor` of a row is one of these. Never where its sums depend on
    the size of the batch: of few rows or columns, and of complex k = 1. IN_WHOLE_STEPS: lines of
    all operands are multiples of 16 bytes apart; where the first begins does not count, for a
    member alone must be treated as in its batch."""
    if min(m, n) < SKINNY or k == 1 and TYPES[letter].is_complex:
        return ()
    size = TYPES[letter].dtype.itemsize
    whole = all((x.rows if x.columns == 1 else x.columns) * size % 16 == 0 for x in operands)
    return IN_STEPS if whole else (ALWAYS, IN_SHORT_STEPS)


def product(me, m, n, k, a, b, c, o, alpha, beta, batch, half=ALL, symmetric=0, alone=False):
    """O := alpha A B + beta C; where `symmetric` A is so, of its lower triangle. `alone`: a member
    is not of a batch, and has its sums split up as suits it."""
    if not (m and n and batch):
        return
    k = 0 if alpha == 0 else k
    if o.columns != 1 and o.rows == 1 and not half and not symmetric:
        a, b, c, o, m, n = b.T, a.T, c.T, o.T, n, m
    letter, order, device = me.letter, max(m, n, k), current_device()
    across, plan = (a.across, 0 if half else b.across), None  # of a half B is A the other way
    if not (half or symmetric) and all(_by_rows(x) for x in (a, b, o)):
        plan = _plan("gemm_thread", letter, order, device)
        if not plan and _are_lines(m, n, k, a, b, o):
            lines = _plan("gemm_lines", letter, order, device)
            plan = lines if lines and lines.takes(m, n, k) else None
    by_block = "syrk_block" if half else "symm_block" if symmetric else "gemm_block"
    if half:
        plan = _plan("syrk_split", letter, order, device, (), across)
    plan = plan or _plan("gemm_warp", letter, order, device)
    if not (plan or half or symmetric):
        plan = _plan("gemm_split", letter, order, device, (), across)
    plan = plan or _plan(by_block, letter, order, device, _cases(letter, m, n, k, a, b, o), across)
    if not plan and not _cublas(me, m, n, k, a, b, c, o, alpha, beta, batch, alone):
        plan = _plan(by_block, letter, order, device, (), across)
    if plan:
        plan.launch(m, n, k, half, symmetric, a, b, c, o, alpha, beta, batch)


def _by_rows(x):
    """True if neighbours in a row of x are next to each other."""
    return x.columns == 1 and not x.conjugated and 0 <= x.rows < 2**31


def _are_lines(m, n, k, a, b, o):
    """Whether rows follow each other without gaps. The tiles of a team are as wide as the order, so
    members must be nearly square."""
    return a.rows == k and b.rows == o.rows == n and 2 * min(m, n, k) > max(m, n, k)


def _spread(size, m, n, k):
    """Whether rows of n and of k one after the other, where they begin at multiples of 16 bytes, do
    not all begin at one bank."""
    return max(m, n, k) * size % 16 or (n * size % 128 and k * size % 128)


def _in_packs(letter, n, k):
    """Whether rows of n and of k are multiples of 16 bytes."""
    size = TYPES[letter].dtype.itemsize
    return n * size % 16 == 0 and k * size % 16 == 0


def _cublas(me, m, n, k, a, b, c, o, alpha, beta, batch, alone):
    """The product by cuBLAS; False if it cannot take the operands as they lie."""
    columns = [_by_columns(x, extents) for x, extents in
               ((b.T, (n, k)), (a.T, (k, m)), (o.T, (n, m)))]
    in_place = beta == 0 or c.cells() == o.cells()
    if None in columns or columns[2][1] != 0 or not in_place or k == 0:
        return False
    (ldb, op_b), (lda, op_a), (ldc, _) = columns
    alpha, beta = _cuda.scalar(me, alpha), _cuda.scalar(me, beta)
    call = _cuda.blas if alone else _cuda.blas_same_bits
    if me.type.sums == me.letter:
        call(
            me.L + "gemmStridedBatched", op_b, op_a, n, m, k, alpha, b.at, ldb, b.members, a.at,
            lda, a.members, beta, o.at, ldc, o.members, batch)
    else:
        t = me.type.cuda
        call(
            "GemmStridedBatchedEx", op_b, op_a, n, m, k, alpha, b.at, t, ldb, b.members, a.at, t,
            lda, a.members, beta, o.at, t, ldc, o.members, batch, _cuda.COMPUTE_32F,
            _cuda.DEFAULT_ALGORITHM)
    return True


def _by_columns(x, shape):
    """(leading dimension, operation) of an operand of that shape, or None."""
    m, n = shape
    if x.rows == 1 and x.columns >= m and not x.conjugated:
        return x.columns, 0
    if x.columns == 1 and x.rows >= n:
        return x.rows, 2 if x.conjugated else 1
    return None


# -- routines


def gemm(me, alpha, a, b, beta, c, batch, conj_a, conj_b, overwrite_c):
    (m, k), n = a.shape[-2:], b.shape[-1]
    out = _out(me, c, (batch, m, n), overwrite_c)
    c, beta = (out, 0) if c is None else (c, beta)
    if c is not out and beta != 0 and not any(
            _plan(kernel, me.letter, max(m, n, k), current_device(), VENDOR)
            for kernel in ("gemm_warp", "gemm_split", "gemm_block")):
        out[...] = c  # cuBLAS works in place
        c = out
    product(me, m, n, k, operand(a, conj_a and me.is_complex),
            operand(b, conj_b and me.is_complex), operand(c), operand(out), alpha, beta, batch)
    return out


def gemv(me, alpha, a, x, beta, y, batch, conj_a, overwrite_y):
    m, n = a.shape[-2:]
    out = _out(me, y, (batch, m, 1), overwrite_y)
    y, beta = (out, 0) if y is None else (y, beta)
    if out.size:
        a, x, y, o = operand(a, conj_a and me.is_complex), operand(x), operand(y), operand(out)
        by_columns = a.rows == 1 and a.columns != 1
        plan = vectors(me.letter, m if by_columns else n, current_device())
        plan(m, 0 if alpha == 0 else n, by_columns, a, x, y, o, alpha, beta, batch)
    return out


class Vectors:
    """gemv_batched with one set of constants."""

    def __init__(self, letter, values):
        self.kernel, self.values = Kernel("gemv_batched", letter, **values), values
        self.few = 16 // TYPES[letter].dtype.itemsize  # numbers to 16 bytes

    def __call__(self, m, n, by_columns, a, x, y, o, alpha, beta, batch):
        v = self.values
        rows, teams = (self.few * v["DOWN"], 1) if by_columns else (v["R"], 32 // v["LANES"])
        work = -(-m // rows) * batch
        self.kernel.launch(
            -(-work // (teams * v["WARPS"])), 1, 32 * v["WARPS"], 1,
            pack(m, n, by_columns, *a.cells(), a.conjugated, x.at, x.rows, x.members, y.at, y.rows,
                 y.members, o.at, o.rows, o.members, *bits(alpha), *bits(beta), batch))


@looked_up
def vectors(letter, n, device):
    return Vectors(letter, constants("gemv_batched", letter, n, gpu(device)))


def symm(me, alpha, a, b, beta, c, batch, side, lower, hermitian, overwrite_c):
    m, n = b.shape[-2:]
    out = _out(me, c, (batch, m, n), overwrite_c)
    if not out.size:
        return out
    c, beta = (out, 0) if c is None else (c, beta)
    x, y, z, o = operand(a), operand(b), operand(c), operand(out)
    if o.columns != 1 and o.rows == 1:  # C^T by rows
        x, y, z, o, m, n = x.T, y.T, z.T, o.T, n, m
        side, lower = not side, not lower
    order, device = n if side else m, current_device()
    left, right = (y, x) if side else (x, y)
    if all(_by_rows(of) for of in (left, right, o)) and alpha != 0 and _are_lines(
            m, n, order, left, right, o):
        plan = _plan("symm_lines", me.letter, max(m, n), device)
        if plan and plan.takes(m, n, order) and (not side or plan.values["STAGES"] == 1):
            how = side * ON_THE_RIGHT | lower * OF_LOWER | hermitian * IS_HERMITIAN
            plan.launch(m, n, order, ALL, how, left, right, z, o, alpha, beta, batch)
            return out
    when = _cases(me.letter, m, n, order, x, y, o)
    if not _plan("symm_block", me.letter, max(m, n), device, when):
        whole = cupy.ndarray((batch if x.members else 1, order, order), me.dtype)
        full = operand(whole)
        _plan("other_triangle", me.letter, order, device).launch(
            order, *((x, full) if lower else (x.T, full.T)), hermitian, len(whole))
        product(me, m, n, order, *((y, full) if side else (full, y)), z, o, alpha, beta, batch)
        return out
    if side:  # C^T = A^T B^T
        x, y, z, o, m, n = x.T, y.T, z.T, o.T, n, m
        lower = not lower
    if not lower:  # of A^T = A, or conj(A), the lower triangle is stored
        x = x.T.conj if hermitian else x.T
    product(me, m, n, m, x, y, z, o, alpha, beta, batch, symmetric=1 + hermitian)
    return out


def syrk(me, alpha, a, beta, c, batch, trans, lower, hermitian, overwrite_c):
    n, k = a.shape[-2:]
    half = (HERMITIAN if hermitian else LOWER) | (0 if lower else UPPER)
    x = operand(a, trans == 2 and me.is_complex)
    if c is None and alpha != 0:
        out = _by_lines(me, alpha, x, n, k, batch, lower, hermitian)
        if out is not None:
            return out
    if c is None:
        out, beta, half = cupy.ndarray((batch, n, n), me.dtype), 0, half | OTHERS_ZERO
    else:
        out = c if overwrite_c else c.copy()
    o, y = operand(out), x.T.conj if hermitian else x.T
    product(me, n, n, k, x, y, o, o, alpha, beta, batch, half)
    return out


def _by_lines(me, alpha, x, n, k, batch, lower, hermitian):
    """One triangle of alpha A A^T and the other zero, by lines of memory, or None."""
    o = Operand(0, n, 1, n * n)
    if not (_by_rows(x) and _are_lines(n, n, k, x, o, o)):
        return None
    plan = _plan("syrk_lines", me.letter, max(n, k), current_device())
    if not plan or not plan.takes(n, k):
        return None
    out = cupy.ndarray((batch, n, n), me.dtype)
    if batch:
        plan.launch(n, k, lower, hermitian, x, operand(out), alpha, batch)
    return out


def _out(me, c, shape, overwrite):
    return c if overwrite and c is not None else cupy.ndarray(shape, me.dtype)
