"""Runs gemm_thread, gemm_lines, gemm_warp, gemm_block, gemm_split, symm_lines, symm_block,
syrk_block, syrk_split, syrk_lines or gemv_batched, built by `build` with ENTRY, through its
problems; for a process that has the sanitizers:

    python -m tests.sim.run_blas LIBRARY KERNEL LETTER CONSTANTS(json)

All layouts, edges, halves and symmetric operands, a shared operand, beta = 0 over what must not be
read; four schedules agree to the bit, and what is not C's stays as it was.
"""

import json
import sys
from itertools import product

import numpy as np
from cffi import FFI

from blasx._types import TYPES
from blasx.batched._block import line_bytes, product_bytes, syrk_bytes

from .build import PREFIX
from .run import SCHEDULES, Memory
from .run_gemm import random

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, int schedule, unsigned shared,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared); }}
"""
PROBLEMS = [  # m n k, layouts of A B C, conjugates, half, symmetric, beta, shared A
    ((9, 5, 3), "FCC", (0, 0), 0, 0, 0.5, 0),
    ((16, 16, 16), "CCC", (0, 0), 0, 0, 0, 1),
    ((7, 20, 12), "CFC", (1, 0), 0, 0, 0, 0),
    ((24, 16, 8), "FFC", (0, 0), 0, 0, 0.5, 0),
    ((33, 17, 21), "FFF", (0, 1), 0, 0, -1, 0),
    ((4, 4, 4), "CCC", (0, 0), 0, 0, 2, 0),
    ((17, 40, 0), "CCC", (0, 0), 0, 0, 2, 0),
    ((18, 18, 5), "CFC", (0, 0), 1, 0, 1, 0),
    ((20, 20, 8), "FCF", (0, 1), 2, 0, 0, 0),
    ((20, 20, 8), "CCC", (0, 1), 2, 0, 2, 0),
    ((40, 40, 24), "FCC", (0, 0), 1, 0, 0, 1),
    ((19, 6, 19), "CCC", (0, 0), 0, 1, 0.5, 0),
    ((36, 9, 36), "FCC", (1, 0), 0, 2, 0, 0),
    ((32, 24, 32), "CFC", (0, 0), 0, 1, 0, 0),
    ((40, 8, 40), "FFC", (0, 0), 0, 1, 0, 0),
]

BY_ROWS = [((m, n, k), "CCC", (0, 0), 0, 0, beta, shared) for m, n, k, beta, shared in (
    (4, 4, 4, 0, 0), (3, 3, 2, 0.5, 1), (13, 16, 8, -1, 0), (16, 8, 12, 0, 0), (11, 9, 7, -1, 0))]
LINES = [((m, n, k), "CCC", (0, 0), 0, 0, beta, shared) for m, n, k, beta, shared in (
    (33, 33, 33, 0, 0), (17, 21, 49, 0.5, 1), (20, 31, 3, 0, 0), (35, 2, 64, -1, 0),
    (1, 1, 1, 0, 0), (13, 38, 18, 0, 1), (50, 9, 25, 0, 0), (49, 33, 77, 0, 0), (36, 36, 36, 0, 0),
    (20, 12, 28, 0.5, 0), (32, 32, 32, 0, 0), (25, 24, 16, 0.5, 0))]
SYMMETRIC = [(m, n, beta, shared) for m, n, beta, shared in (
    (33, 33, 0, 0), (17, 21, 0.5, 1), (20, 31, 0, 0), (35, 20, -1, 0), (1, 1, 0, 0),
    (13, 8, 0, 1), (50, 27, 0, 0), (36, 36, 0.5, 0), (2, 3, 0, 0),
    (32, 32, 0, 0), (16, 20, 0.5, 0))]
RANKS = ((33, 33), (17, 12), (1, 1), (47, 25), (16, 35), (65, 65), (30, 30), (36, 36), (81, 41),
         (32, 32), (64, 40), (44, 64))
VECTORS = ((4, 4), (5, 3), (32, 32), (33, 70), (64, 17))


def bits(x):
    return [int(np.float64(part).view(np.int64)) for part in (complex(x).real, complex(x).imag)]


class Kernel:
    def __init__(self, library, name, letter, values):
        ffi = self.ffi = FFI()
        ffi.cdef(f"void {PREFIX}{name}(unsigned, unsigned, int, unsigned, const uint64_t *);")
        self.run = getattr(ffi.dlopen(library), PREFIX + name)
        self.values, self.block, self.name, self.letter = values, "BM" in values, name, letter
        self.shared = product_bytes(letter, values, name.startswith("syrk"),
                                    name.endswith("split")) if self.block else 0

    def __call__(self, schedule, m, n, k, half, symmetric, a, b, c, o, alpha, beta, batch):
        v, letter, shared, flags = self.values, self.letter, self.shared, [half, symmetric]
        operands = [*a, *b, *c, *o, *bits(alpha), *bits(beta), batch]
        if self.name in ("gemm_lines", "symm_lines"):
            down = -(-m // (16 * v["RM"] * v["DOWN"]))
            teams, room = v["WARPS"] // (v["DOWN"] * v["ACROSS"]), line_bytes(letter, v, m, n, k)
            blocks, shared = -(-down * batch // teams), teams * room
            flags = [down, symmetric, room // TYPES[letter].dtype.itemsize]
            operands = [a[0], a[3], b[0], b[3], *c, o[0], o[3], *bits(alpha), *bits(beta), batch]
        elif self.name == "gemm_thread":
            blocks = -(-v["DOWN"] * v["ACROSS"] * batch // (32 * v["WARPS"]))
        elif self.block:
            down, across = (-(-x // (v[side] + v.get("BORDER", 0)))
                            for x, side in ((m, "BM"), (n, "BN")))
            teams = v["WARPS"] * v["TM"] * v["TN"] // (v["BM"] * v["BN"])
            tiles = down * (down + 1) // 2 if self.name.startswith("syrk") else down * across
            blocks, flags = -(-tiles * batch // max(teams, 1)), [2 in flags, down, across]
        else:
            blocks = -(-(-(-m // v["TM"]) * -(-n // v["TN"])) * batch // v["WARPS"])
        numbers = [m, n, k, *flags, *operands]
        cells = self.ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers])
        self.run(blocks, 32 * v["WARPS"], schedule, shared, cells)


def lie_padded(kernel, *extents):
    """Whether rows are multiples of 16 bytes, if they are to be."""
    size = TYPES[kernel.letter].dtype.itemsize
    return not kernel.values.get("PADDED") or not any(x * size % 16 for x in extents)


class Numbers:
    """How numbers of a type lie in memory: as themselves, but bfloat16 as 16 bits."""

    def __init__(self, letter):
        self.dtype = TYPES[letter].dtype if letter != "b" else np.dtype("u2")
        self.as_numbers = np.dtype("f4") if letter == "b" else self.dtype
        self.eps = {"b": 2.0**-8}.get(letter) or np.finfo(self.dtype).eps

    def stored(self, x):
        x = x.astype(self.as_numbers)
        if self.dtype == self.as_numbers:
            return x
        word = x.view("u4")
        word = word + 0x7fff + (word >> 16 & 1)
        return np.where(np.isnan(x), 0x7fff, word >> 16).astype("u2")

    def read(self, x):
        return x if self.dtype == self.as_numbers else (x.astype("u4") << 16).view("f4")


def run(kernel, numbers, rng, sizes, layouts, conj, half, symmetric, beta, shared):
    m, n, k = sizes
    dtype = numbers.as_numbers
    batch, alpha = 3, 0.75 + (0.25j if dtype.kind == "c" and half != 2 else 0)

    def rounded(*shape):
        return numbers.read(numbers.stored(random(rng, dtype, *shape)))

    a, b = rounded(1 if shared else batch, m, k), rounded(batch, k, n)
    c = rounded(batch, m, n)
    if not beta:
        c[...] = np.nan
    full = a
    if symmetric:
        other = a.swapaxes(1, 2).conj() if symmetric == 2 else a.swapaxes(1, 2)
        full = np.where(np.tri(m, dtype=bool), a, other)
        if symmetric == 2:
            full[:, range(m), range(m)] = full[:, range(m), range(m)].real
        a = np.where(np.tri(m, dtype=bool), a, np.nan)
    if half:  # of a product that is symmetric or Hermitian
        b = a.swapaxes(1, 2).conj() if half == 2 else a.swapaxes(1, 2)
        b = b.conj() if conj[1] else b
        layouts = layouts[0] + ("F" if layouts[0] == "C" else "C") + layouts[2]
    wide = np.result_type(dtype, np.float64)
    left, right = (x.astype(wide).conj() if f else x.astype(wide) for x, f in zip((full, b), conj))
    expected = alpha * left @ right + (beta * c if beta else 0)
    if half == 2:
        expected[:, range(m), range(m)] = expected[:, range(m), range(m)].real
        if dtype.kind == "c":
            c.imag[:, range(m), range(m)] = np.nan
    wanted = np.tri(m, n, dtype=bool) if half else np.ones((m, n), bool)
    results = []
    for schedule in SCHEDULES:
        A, B, C = (Memory(numbers.stored(x), layout) for x, layout in zip((a, b, c), layouts))
        out = Memory(numbers.stored(np.full(c.shape, -7)), layouts[2])
        at = [x.matrix()[:3] + [0 if len(x.array) == 1 else x.matrix()[3]] for x in (A, B)]
        kernel(schedule, m, n, k, half, symmetric, [*at[0], conj[0]], [*at[1], conj[1]],
               C.matrix(), out.matrix(), alpha, beta, batch)
        results.append(numbers.read(out.array.copy()))
    assert len({x.tobytes() for x in results}) == 1, "the result depends on the schedule"
    assert (results[0][:, ~wanted] == -7).all(), "elements outside"
    error = np.abs(results[0] - expected)[:, wanted].max()
    assert error < 4 * (k + 2) * numbers.eps * np.abs(expected[:, wanted]).max(), (
        error, sizes, layouts)


def run_extremes(kernel, numbers, rng):
    """Infinities, nan and the largest numbers give what sums of products in turn do; the tiniest
    are not lost."""
    v, m, n, tiny, largest = kernel.values, 33, 20, 2.0**-140, np.finfo("f4").max
    k = min(24, v["BK"] * v["STAGES"] if kernel.block and v["RESIDENT"] else 24)
    a, b = (random(rng, numbers.dtype, 1, *shape) for shape in ((m, k), (k, n)))
    a[0, 0, 0], a[0, 1, 1], a[0, 2, 2:4] = np.inf, np.nan, (-np.inf, np.inf)
    a[0, 3, 0], b[0, 0], b[0, 1:, 0] = largest, 0.999, 0
    a[0, 8:16, :] *= np.float32(tiny)
    A, B, out = Memory(a), Memory(b), Memory(np.full((1, m, n), -7, numbers.dtype))
    kernel(0, m, n, k, 0, 0, [*A.matrix(), 0], [*B.matrix(), 0], out.matrix(), out.matrix(), 1, 0,
           1)
    judge_extremes(kernel, a, b, out.array)


def judge_extremes(kernel, a, b, out):
    """Whether A B is infinite and nan where it should be, and right elsewhere."""
    k, largest = a.shape[-1], np.finfo("f4").max
    (ar, ai), (br, bi) = ([x.real.astype("f8"), x.imag.astype("f8")] for x in (a, b))
    bounded = [np.nan_to_num(abs(re) + abs(im), nan=0, posinf=0) for re, im in ((ar, ai), (br, bi))]
    bound, parts = bounded[0] @ bounded[1], [(out, ar @ br)]
    if kernel.letter == "c":
        re, im = (np.where(abs(x) > largest, x * np.inf, x) for x in (
            ar @ br - ai @ bi, ar @ bi + ai @ br))
        parts = [(out.real, re - 0 * im), (out.imag, im + 0 * re)]  # times 1 + 0 i
    judge_parts(parts, bound, k)


def judge_parts(parts, bound, k, wanted=slice(None)):
    """Whether real parts of single precision are infinite, nan and right where they should be."""
    for found, exact in parts:
        expected, found = exact.astype("f4")[wanted], found[wanted]
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        assert np.array_equal(np.isinf(found), np.isinf(expected))
        error = np.where(np.isfinite(expected), found.astype("f8") - expected, 0)
        assert (abs(error) <= 4 * np.finfo("f4").eps * bound[wanted] + k * 2.0**-149).all()


def run_beside_nothing(kernel, numbers, rng):
    """What lies past the last row and column does not decide how the others are summed: they have
    the bits that they have in a whole tile."""
    v, k, bits_of = kernel.values, 24, []
    a, b = random(rng, numbers.dtype, 1, v["BM"], k), random(rng, numbers.dtype, 1, k, v["BN"])
    for less in (0, 5):
        m, n = v["BM"] - less, v["BN"] - less
        A, B, out = Memory(a[:, :m].copy()), Memory(b[:, :, :n].copy()), Memory(
            np.full((1, m, n), -7, numbers.dtype))
        kernel(0, m, n, k, 0, 0, [*A.matrix(), 0], [*B.matrix(), 0], out.matrix(), out.matrix(),
               1, 0, 1)
        bits_of.append(out.array[0, :v["BM"] - 5, :v["BN"] - 5].tobytes())
    assert bits_of[0] == bits_of[1]


def run_alone(kernel, numbers, rng):
    """Members that begin anywhere in 16 bytes have the bits that they have alone."""
    n, batch = 32 if kernel.values.get("PADDED") else 33, 4
    a, b = random(rng, numbers.dtype, batch, n, n), random(rng, numbers.dtype, batch, n, n)

    def product(a, b):
        A, B, out = Memory(a), Memory(b), Memory(np.full(a.shape, -7, numbers.dtype))
        kernel(0, n, n, n, 0, 0, [*A.matrix(), 0], [*B.matrix(), 0], out.matrix(), out.matrix(),
               1, 0, len(a))
        return out.array.copy()

    together = product(a, b)
    for i in range(batch):
        assert product(a[i:i + 1], b[i:i + 1]).tobytes() == together[i].tobytes()


def symmetric_matrix(rng, dtype, order, lower, hermitian):
    """A matrix, and what is given of it; where its diagonal is real, that is not."""
    a = random(rng, dtype, order, order)
    half = np.tri(order, dtype=bool) if lower else np.tri(order, dtype=bool).T
    full = np.where(half, a, a.T.conj() if hermitian else a.T)
    if hermitian:
        full[range(order), range(order)] = full.diagonal().real
    return full, np.where(half, a, dtype.type(np.nan))


def run_symmetric(kernel, numbers, rng, m, n, right, how, beta, shared):
    """symm_lines: A on either side, of either triangle; four schedules; members alone as among
    others."""
    lower, hermitian, batch, dtype = how >> 1 & 1, how >> 2, 3, numbers.dtype
    order, alpha = n if right else m, 0.75 + 0.25j * (dtype.kind == "c")
    full, seen = (np.array(x) for x in zip(*(
        symmetric_matrix(rng, dtype, order, lower, hermitian)
        for _ in range(1 if shared else batch))))
    b, c = random(rng, dtype, batch, m, n), random(rng, dtype, batch, m, n)
    if not beta:
        c[...] = np.nan
    left, other = (b, full) if right else (full, b)
    wide = np.result_type(dtype, np.float64)
    expected = alpha * left.astype(wide) @ other.astype(wide) + (beta * c if beta else 0)

    def made(schedule, a, b, c):
        A, B, C = Memory(a), Memory(b), Memory(c)
        out = Memory(np.full(c.shape, np.nan, dtype))
        of_a, of_b = A.matrix()[:3] + [0 if shared else order**2], B.matrix()
        left, other = (of_b, of_a) if right else (of_a, of_b)
        kernel(schedule, m, n, order, 0, how | right, [*left, 0], [*other, 0], C.matrix(),
               out.matrix(), alpha, beta, len(b))
        return out.array.copy()

    found = [made(schedule, seen, b, c) for schedule in SCHEDULES]
    assert len({x.tobytes() for x in found}) == 1, "the result depends on the schedule"
    error = np.abs(found[0] - expected).max()
    assert error < 4 * (order + 2) * numbers.eps * np.abs(expected).max(), (error, m, n, right, how)
    for i in range(batch):
        alone = made(0, seen if shared else seen[i:i + 1], b[i:i + 1], c[i:i + 1])
        assert alone[0].tobytes() == found[0][i].tobytes()


def run_symmetric_extremes(kernel, numbers, rng, right, how):
    """As run_extremes."""
    largest, v, dtype = np.finfo("f4").max, kernel.values, numbers.dtype
    n = min(32 if v.get("PADDED") else 33, 8 * v["RN"] * v["ACROSS"], 16 * v["RM"] * v["DOWN"])
    full, seen = symmetric_matrix(rng, dtype, n, how >> 1 & 1, how >> 2)
    for i, j, x in (0, 0, np.inf), (1, 1, np.nan), (2, 3, -np.inf), (2, 4, np.inf), (5, 6, largest):
        for of in full, seen:
            of[i, j] = of[j, i] = x
    b = random(rng, dtype, n, n)
    if right:
        b[:, 5:7], b[:, 7:] = 0.999, 0
    else:
        b[5:7], b[7:] = 0.999, 0
    half = np.tri(n, dtype=bool) if how & 2 else np.tri(n, dtype=bool).T
    seen = np.where(half, seen, dtype.type(7))
    A, B, out = Memory(seen[None]), Memory(b[None]), Memory(np.full((1, n, n), -7, dtype))
    left, other = (B, A) if right else (A, B)
    kernel(0, n, n, n, 0, how | right, [*left.matrix(), 0], [*other.matrix(), 0], out.matrix(),
           out.matrix(), 1, 0, 1)
    judge_extremes(kernel, *((b, full) if right else (full, b)), out.array[0])


class Rank:
    """syrk_lines on members that lie in memory of exactly their size."""

    def __init__(self, kernel, dtype):
        self.kernel, self.dtype = kernel, dtype

    def __call__(self, schedule, a, alpha, lower, hermitian, batch=None):
        v, letter, (members, n, k) = self.kernel.values, self.kernel.letter, a.shape
        batch, teams, room = batch or members, v["WARPS"] // v["TEAM"], syrk_bytes(letter, v, n, k)
        A, out = Memory(a), Memory(np.full((batch, n, n), np.nan, self.dtype))
        numbers = [n, k, room // self.dtype.itemsize, lower, hermitian, A.address,
                   n * k if members > 1 else 0, out.address, n * n, *bits(alpha), batch]
        cells = self.kernel.ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers])
        self.kernel.run(-(-batch // teams), 32 * v["WARPS"], schedule, teams * room, cells)
        return out.array.copy()


def run_ranks(rank, rng, n, k, turn):
    """Both triangles, the other zero (of complex ones each in its `turn` Hermitian); four
    schedules; members alone as among others; one A for all."""
    dtype, batch = rank.dtype, 5
    is_complex = dtype.kind == "c"
    a = random(rng, dtype, batch, n, k)
    wide = a.astype(np.result_type(dtype, np.float64))
    for hermitian in (0, 1)[:1 + is_complex]:
        alpha = 0.75 + 0.25j * (is_complex and not hermitian)
        across = wide.swapaxes(1, 2)
        right = alpha * wide @ (across.conj() if hermitian else across)
        error = 4 * (k + 4) * np.finfo(dtype).eps * (abs(wide) @ abs(across))
        for lower in ((hermitian + turn) % 2,) if is_complex else (0, 1):
            half = np.tril if lower else np.triu
            found = [rank(schedule, a, alpha, lower, hermitian) for schedule in SCHEDULES]
            assert len({x.tobytes() for x in found}) == 1, "the result depends on the schedule"
            assert (abs(found[0] - half(right)) <= half(error)).all(), (n, k, hermitian, lower)
            if hermitian:
                assert not found[0].imag[:, range(n), range(n)].any()
            for i in (0, 3, 4):
                alone = rank(i % 4, a[i:i + 1], alpha, lower, hermitian, 1 + i % 2)
                assert all(x.tobytes() == found[0][i].tobytes() for x in alone)


def run_rank_extremes(rank, rng, n, k):
    """As run_extremes."""
    dtype, largest = rank.dtype, np.finfo("f4").max
    a = random(rng, dtype, 2, n, k)
    a[1, 0, 0], a[1, 1, 1], a[1, 2, 2:4] = np.inf, np.nan, (-np.inf, np.inf)
    a[1, 3, 0], a[1, 4], a[1, 4, 0] = largest, 0, 0.999
    a[1, 8:16] *= np.float32(2.0**-120)
    ar, ai = a[1].real.astype("f8"), a[1].imag.astype("f8")
    bound = np.nan_to_num(abs(ar) + abs(ai), nan=0, posinf=0)
    bound = bound @ bound.T
    for hermitian in (0, 1)[:1 + (dtype.kind == "c")]:
        sign = 1 - 2 * hermitian
        for lower in (0, 1):
            half = (np.tril if lower else np.triu)(np.ones((n, n), bool))
            x = rank(0, a, 1, lower, hermitian)
            assert rank(0, a[:1], 1, lower, hermitian)[0].tobytes() == x[0].tobytes()
            parts = [(x[1], ar @ ar.T)]
            if dtype.kind == "c":
                re, im = ar @ ar.T - sign * (ai @ ai.T), sign * (ar @ ai.T) + ai @ ar.T
                re, im = (np.where(abs(y) > largest, y * np.inf, y) for y in (re, im))
                real = np.eye(n, dtype=bool) & bool(hermitian)  # times 1 + 0 i
                parts = [(x[1].real, np.where(real, re, re - 0 * im)),
                         (x[1].imag, np.where(real, 0, im + 0 * re))]
            judge_parts(parts, bound, k, half)
            assert not x[1][~half].any()


def run_vectors(kernel, dtype, rng, m, n, order, conjugated, beta):
    """gemv_batched, by rows or by columns."""
    v, batch, alpha = kernel.values, 3, 0.75
    a, x, y = (random(rng, dtype, *shape) for shape in ((batch, m, n), (1, n), (batch, m)))
    if not beta:
        y[...] = np.nan
    wide = np.result_type(dtype, np.float64)
    expected = alpha * ((a.conj() if conjugated else a).astype(wide) @ x[0].astype(wide))
    expected += beta * y if beta else 0
    columns, few = order == "F", 16 // dtype.itemsize
    work = batch * -(-m // (few * v["DOWN"] if columns else v["R"]))
    blocks = -(-work // (v["WARPS"] * (1 if columns else 32 // v["LANES"])))
    results = []
    for schedule in SCHEDULES:
        A, X, Y = Memory(a, order), Memory(x), Memory(y)
        out = Memory(np.full(y.shape, np.nan, dtype))
        numbers = [m, n, columns, *A.matrix(), conjugated, X.address, 1, 0, Y.address, 1, m,
                   out.address, 1, m, *bits(alpha), *bits(beta), batch]
        cells = kernel.ffi.new("uint64_t[]", [int(z) & 2**64 - 1 for z in numbers])
        kernel.run(blocks, 32 * v["WARPS"], schedule, 0, cells)
        results.append(out.array.copy())
    assert len({z.tobytes() for z in results}) == 1, "the result depends on the schedule"
    error = np.abs(results[0] - expected).max() / np.abs(expected).max()
    assert error < 4 * (n + 2) * np.finfo(dtype).eps, (error, m, n, order)


def run_triangles(kernel, dtype, rng, n, a_order, x_order, hermitian):
    """other_triangle: what A has above the diagonal is not seen."""
    v, batch = kernel.values, 5
    teams, down = max(1, 32 * v["WARPS"] // v["TILE"] ** 2), -(-n // v["TILE"])
    a = random(rng, dtype, batch, n, n)
    low = np.tril(a)
    if hermitian:
        low[:, range(n), range(n)] = low[:, range(n), range(n)].real
    across = np.tril(low, -1).swapaxes(1, 2)
    a[:, np.triu(np.ones((n, n), bool), 1)] = np.nan
    for schedule in SCHEDULES:
        A, X = Memory(a, a_order), Memory(np.full(a.shape, np.nan, dtype), x_order)
        numbers = [*A.matrix(), *X.matrix(), hermitian, n, batch]
        cells = kernel.ffi.new("uint64_t[]", [int(z) & 2**64 - 1 for z in numbers])
        kernel.run(-(-down * (down + 1) // 2 * batch // teams), 32 * v["WARPS"], schedule, 0, cells)
        assert np.array_equal(X.array, low + (across.conj() if hermitian else across))


def main(library, name, letter, values):
    kernel, numbers = Kernel(library, name, letter, json.loads(values)), Numbers(letter)
    rng = np.random.default_rng(0)
    if name == "other_triangle":
        for n, orders in (1, "CC"), (7, "FC"), (9, "CF"), (33, "CC"), (40, "FF"):
            run_triangles(kernel, numbers.dtype, rng, n, *orders, int(letter in "cz" and n != 9))
        return
    if name == "gemv_batched":
        for i, (m, n) in enumerate(VECTORS):
            for order in "CF":
                run_vectors(kernel, numbers.dtype, rng, m, n, order, i % 2, (0, -0.5)[i % 2])
        return
    v = kernel.values
    if name == "syrk_lines":
        rank = Rank(kernel, numbers.dtype)
        for turn, (n, k) in enumerate(RANKS):
            if n <= 16 * v["RM"] * v["TEAM"] and lie_padded(kernel, n, k):
                run_ranks(rank, rng, n, k, turn)
        if letter in "sc":
            with np.errstate(all="ignore"):
                less, k = (4, 24) if v.get("PADDED") else (1, 25)
                run_rank_extremes(rank, rng, 16 * v["RM"] * v["TEAM"] - less, k)
        return
    if name == "symm_lines":
        sides = (0, 1) if v["STAGES"] == 1 else (0,)
        hows = (0, 2, 4, 6) if letter in "cz" else (0, 2)
        most = 16 * v["RM"] * v["DOWN"], 8 * v["RN"] * v["ACROSS"]
        for turn, (m, n, beta, shared) in enumerate(SYMMETRIC):
            of_turn = ((0, 6), (2, 4))[turn % 2] if letter in "cz" else hows
            for right, how in product(sides, of_turn):
                order = n if right else m
                if m <= most[0] and n <= most[1] and lie_padded(kernel, n, order) and (
                        v["STAGES"] > 1 or order <= v["DEEP"]):
                    run_symmetric(kernel, numbers, rng, m, n, right, how, beta, shared)
        if letter in "sc":
            with np.errstate(all="ignore"):
                for right, how in product(sides, (0, 6) if letter == "c" else hows):
                    run_symmetric_extremes(kernel, numbers, rng, right, how)
        return
    for sizes, layouts, conj, half, symmetric, beta, shared in (
            {"gemm_thread": BY_ROWS, "gemm_lines": LINES}.get(name, PROBLEMS)):
        m, n, k = sizes
        if name == "gemm_lines":
            fits = n <= 8 * v["RN"] * v["ACROSS"] and (v["STAGES"] > 1 or k <= v["DEEP"])
            fits &= lie_padded(kernel, n, k)
        elif kernel.block:
            kind = "syrk" if half else "symm" if symmetric else "gemm"
            fits = name.startswith(kind) and (not v["RESIDENT"] or k <= v["BK"] * v["STAGES"])
            fits &= kind == "gemm" or not v["RESIDENT"] or max(m, k) <= v["BM"]
            fits &= letter in "cz" or 2 not in (half, symmetric)
        else:
            fits = name != "gemm_thread" or m <= v["PM"] * v["DOWN"] and n <= v["PN"] * v["ACROSS"]
        if fits:
            run(kernel, numbers, rng, sizes, layouts, conj, half, symmetric, beta, shared)
    if name == "gemm_split":
        run_beside_nothing(kernel, numbers, rng)
    if name == "gemm_lines":
        run_alone(kernel, numbers, rng)
    if name in ("gemm_split", "gemm_lines") and letter in "sc":
        with np.errstate(all="ignore"):
            run_extremes(kernel, numbers, rng)


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("ok")
