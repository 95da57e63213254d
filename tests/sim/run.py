"""Runs one kernel, built by `build`, through its problems; for a process that has the sanitizers.

    python -m tests.sim.run LIBRARY KERNEL LETTER CONSTANTS(json) [n ...]

Operands lie in blocks of exactly their size from malloc, so that AddressSanitizer sees a step
outside. Every problem runs under four schedules: the results must be the same to the bit. They are
judged against LAPACK's: LU on small integers, where ties abound and the first steps are exact, must
give its pivots; everything else has its residual taken.
"""

import ctypes
import json
import sys

import numpy as np
from cffi import FFI
from scipy.linalg import lapack

from blasx._types import TYPES

from .build import PREFIX

SCHEDULES = range(4)
PASS = 30  # residuals are in units of n eps

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
ffi = FFI()


class Memory:
    """An array of exactly its size, with an order of axes of its own, poisoned or a copy."""

    def __init__(self, like, order="C"):
        self.address = libc.malloc(max(like.nbytes, 1))
        raw = (ctypes.c_char * like.nbytes).from_address(self.address)
        axes = {"C": (0, 1, 2), "F": (0, 2, 1), "batch last": (1, 2, 0)}[order][:like.ndim]
        if like.ndim == 2 and order != "C":
            axes = (1, 0) if order == "batch last" else (0, 1)
        shape = [like.shape[i] for i in axes]
        self.array = np.frombuffer(raw, like.dtype).reshape(shape).transpose(np.argsort(axes))
        self.array[...] = like

    def __del__(self):
        libc.free(self.address)

    def matrix(self, transposed=False):
        next_, row, col = (s // self.array.itemsize for s in self.array.strides)
        return [self.address, *((col, row) if transposed else (row, col)), next_]


class Simulated:
    """A built kernel; calling it launches it and returns the outputs."""

    def __init__(self, library, name, letter, constants):
        ffi.cdef(f"void {PREFIX}{name}(unsigned, unsigned, int, const uint64_t *);", override=True)
        self.launch = getattr(ffi.dlopen(library), PREFIX + name)
        self.letter, self.dtype = letter, TYPES[letter].dtype
        self.threads = 32 * constants["WARPS"]
        self.members = constants["WARPS"] * (32 // (constants["LR"] * constants["LC"]))
        self.order, self.unpivoted = constants["N"], constants.get("UNPIVOTED", 0)

    def run(self, schedule, batch, *numbers):
        cells = ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in (*numbers, batch)])
        self.launch(-(-batch // self.members), self.threads, schedule, cells)


def same_under_all_schedules(outputs):
    for other in outputs[1:]:
        for x, y in zip(outputs[0], other, strict=True):
            assert x.tobytes() == y.tobytes(), "the result depends on the schedule"
    return outputs[0]


def poisoned(shape, dtype, order):
    like = np.full(shape, -99 if np.dtype(dtype).kind == "i" else np.nan, dtype)
    return Memory(like, order)


# -- problems


def general(rng, dtype, batch, m, n):
    """Random members, and the awkward ones: ties, singular, zero, nan, tiny."""
    a = rng.standard_normal((batch, m, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal((batch, m, n))
    a = a.astype(dtype)
    smallest = np.finfo(dtype).smallest_subnormal
    last = np.eye(m, n)
    last[-1:, -1:] = 0  # of a square one, the last pivot alone is zero
    tied = a[0].copy()  # after the first interchange the lower of two equals is the later row
    tied[:, :2], tied[-1:, :1], tied[:1, 1:2], tied[m // 2:m // 2 + 1, 1:2] = 0, 1, 1, -1
    awkward = [rng.integers(-1, 2, (m, n)), np.zeros((m, n)), last, np.ones((m, n)),
               np.full((m, n), np.nan), a[0] * (smallest * 64), np.eye(m, n)[::-1], tied]
    for i, x in enumerate(awkward[:max(batch - 1, 0)]):
        a[i + 1] = x
    return a


def without_pivots(rng, dtype, batch, m, n):
    """Members for LU without pivoting, the factors of those of which no step rounds (nan of the
    others), and the infos: whole numbers, tiny ones, a pivot that is zero and counts as 1, huge
    ones; then members with a large diagonal, the last nan."""
    def whole(*shape):
        x = rng.integers(-1, 2, (2, *shape))
        return (x[0] + 1j * x[1] if dtype.kind == "c" else x[0]).astype(dtype)

    order, limits = min(m, n), np.finfo(dtype)
    a = whole(batch, m, n) / dtype.type(3) + 4 * max(m, n) * np.eye(m, n, dtype=dtype)
    a[-1], right, infos = np.nan, np.full_like(a, np.nan), np.zeros(batch, np.int32)
    tiny, huge, k = 64 * limits.smallest_subnormal, 2.0**(limits.maxexp - 3), np.arange(order)
    cases = (1, None), (tiny, None), (1, order // 2), (huge, None)
    for i, (size, zero) in enumerate(cases):
        lower, upper = np.tril(whole(m, order), -1), np.triu(whole(order, n), 1) * (size < huge)
        upper[k, k] = rng.choice([1, -1, 2], order) if size < huge else 1
        if zero is not None:
            upper[zero, zero], infos[i] = 1, zero + 1
        a[i] = (lower + np.eye(m, order, dtype=dtype)) @ upper * dtype.type(size)
        if zero is not None:
            a[i, zero, zero] -= 1
            upper[zero, zero] = 0
        right[i] = 0
        right[i, :, :order] = lower
        right[i, :order] += upper * dtype.type(size)
    return a, right, infos


def positive(rng, dtype, batch, n):
    x = general(rng, dtype, 1, n, n)[0]
    a = np.array([x @ x.conj().T / n + np.eye(n)] * batch, dtype)
    a += np.arange(batch).reshape(-1, 1, 1) * np.eye(n)
    if batch > 2 and n:
        a[1, n // 2, n // 2] = -1
        a[2, n - 1, n - 1] = np.nan
    return a


def residual(a, x, y):
    """|a - x y| / (n eps |a|) of one member, in the 1-norm."""
    if not a.size or not np.isfinite(a).all():
        return 0.0
    wide = np.result_type(a.dtype, np.float64)
    n, eps = max(a.shape), np.finfo(a.dtype).eps
    size = np.abs(a.astype(wide)).sum(0).max()
    scale = 1 / size if size else 1.0
    error = np.abs(a.astype(wide) * scale - (x.astype(wide) * scale) @ y.astype(wide)).sum(0).max()
    tiny = np.finfo(a.dtype).smallest_subnormal / eps * n  # rounding of subnormals is absolute
    return error / (n * eps) if size > tiny else 0.0


def check_lu(a, lu, piv, info):
    m, n = a.shape
    k = min(m, n)
    assert all(j <= piv[j] < m for j in range(k)), piv
    if not a.size or not np.isfinite(a).all():
        return
    diagonal = np.diag(lu)[:k]
    zeros = np.flatnonzero(diagonal == 0)
    assert info == (zeros[0] + 1 if zeros.size else 0), (info, diagonal)
    left, right = np.tril(lu[:, :k], -1) + np.eye(m, k), np.triu(lu[:k])
    assert np.abs(left.real).max() + np.abs(left.imag).max() <= 2.5
    permuted = a.copy()
    for j, p in enumerate(piv):
        permuted[[j, p]] = permuted[[p, j]]
    assert residual(permuted, left, right) < PASS, residual(permuted, left, right)


def check_without_pivots(a, lu, info, right, infos):
    assert np.array_equal(info, infos), (info, infos)
    for x, found, exact in zip(a, lu, right):
        k = min(x.shape)
        left, upper = np.tril(found[:, :k], -1) + np.eye(*x.shape)[:, :k], np.triu(found[:k])
        if np.isnan(exact).any():
            assert residual(x, left, upper) < PASS, residual(x, left, upper)
        else:
            assert np.array_equal(found, exact), (found, exact)


def check_solved(a, b, x, info):
    if info:
        assert (x == b).all() or np.isnan(b).any()
        return
    if not np.isfinite(a).all():
        return
    if not np.isfinite(x).all():
        assert not np.isfinite(np.linalg.solve(a, b)).all(), "LAPACK's solution is finite"
        return
    wide = np.result_type(a.dtype, np.float64)
    error = np.abs(a.astype(wide) @ x - b).max()
    size = np.abs(a.astype(wide)).sum(1).max() * np.abs(x).max() + np.abs(b).max()
    assert error <= PASS * len(a) * np.finfo(a.dtype).eps * size + np.finfo(a.dtype).tiny, (
        error / size)


def check_cholesky(a, c, lower, info):
    n = len(a)
    half = np.tril if lower else np.triu
    done = info - 1 if info else n
    factor = half(c)[:, :done] if lower else half(c)[:done].conj().T
    other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    assert np.array_equal(c[other], a[other], equal_nan=True), "the other triangle"
    full = half(a) + (half(a, -1 if lower else 1)).conj().T
    assert residual(full[:done, :done], factor[:done], factor[:done].conj().T) < PASS
    diagonal = np.diag(a).real  # OpenBLAS lets nan pass as a pivot, LAPACK does not
    reference = getattr(lapack, TYPES_LETTER[a.dtype.char] + "potrf")
    expected = n if np.isnan(diagonal).any() else reference(a, lower=lower)[1]
    assert info == expected, (info, expected)


TYPES_LETTER = {t.dtype.char: letter for letter, t in TYPES.items()}


# -- kernels


def getrf_small(sim, rng, n, order, in_place):
    for m, cols in {(n, n), (n, max(n - 1, 1)), (max(n - 2, 1), n)}:
        if sim.unpivoted:
            a, *right = without_pivots(rng, sim.dtype, 2 * sim.members + 5, m, cols)
        else:
            a = general(rng, sim.dtype, 2 * sim.members + 3, m, cols)
        outputs = []
        for schedule in SCHEDULES:
            source = Memory(a, order)
            target = source if in_place else poisoned(a.shape, a.dtype, order)
            piv = poisoned((len(a), min(m, cols)), np.int32, "C")
            info = poisoned((len(a),), np.int32, "C")
            sim.run(schedule, len(a), *source.matrix(), *target.matrix(),
                    0 if sim.unpivoted else piv.address, info.address, m, cols)
            outputs.append([x.array.copy() for x in (target, piv, info)])
        lu, piv, info = same_under_all_schedules(outputs)
        if sim.unpivoted:
            check_without_pivots(a, lu, info, *right)
            continue
        for member in zip(a, lu, piv, info):
            check_lu(*member)
        for i in range(2):  # small integers, and a random one: LAPACK's pivots
            reference = getattr(lapack, sim.letter + "getrf")(a[i])
            if i == 0 or exact_for(a[i]):
                assert np.array_equal(piv[i], reference[1]), (piv[i], reference[1])


def exact_for(a):
    """True if elimination rounds nowhere, so that ties are ties for everyone: entries that stay
    integers, found by doing it in fractions."""
    from fractions import Fraction
    if np.abs(a.imag).any():
        return False
    rows = [[Fraction(int(x)) for x in row.real] for row in a]
    for k in range(min(a.shape)):
        p = max(range(k, len(rows)), key=lambda i: (abs(rows[i][k]), -i))
        rows[k], rows[p] = rows[p], rows[k]
        if rows[k][k] == 0:
            continue
        for row in rows[k + 1:]:
            row[k] /= rows[k][k]
            if row[k].denominator & (row[k].denominator - 1):
                return False
            for j in range(k + 1, len(row)):
                row[j] -= row[k] * rows[k][j]
    return all(abs(x.numerator) < 2**20 and x.denominator < 2**10 for row in rows for x in row)


def gesv_small(sim, rng, n, order, in_place):
    for nrhs in (1, 5):
        a = general(rng, sim.dtype, 2 * sim.members + 3, n, n)
        b = general(rng, sim.dtype, 1, len(a) * n, nrhs)[0].reshape(len(a), n, nrhs)
        outputs = []
        for schedule in SCHEDULES:
            source, given = Memory(a, order), Memory(b, order)
            lu = source if in_place else poisoned(a.shape, a.dtype, order)
            x = given if in_place else poisoned(b.shape, a.dtype, order)
            piv = poisoned((len(a), n), np.int32, "C")
            info = poisoned((len(a),), np.int32, "C")
            sim.run(schedule, len(a), *source.matrix(), *lu.matrix(), piv.address,
                    *given.matrix(), *x.matrix(), info.address, n, nrhs)
            outputs.append([y.array.copy() for y in (lu, piv, x, info)])
        lu, piv, x, info = same_under_all_schedules(outputs)
        for i in range(len(a)):
            check_lu(a[i], lu[i], piv[i], info[i])
            check_solved(a[i], b[i], x[i], info[i])


def getrs_small(sim, rng, n, order, in_place):
    for nrhs, trans in ((1, 0), (5, 0), (1, 1), (3, 2)):
        a = general(rng, sim.dtype, 1 + sim.members, n, n)
        a[1:] = rng.standard_normal(a[1:].shape)
        lus = [getattr(lapack, sim.letter + "getrf")(x) for x in a]
        lu, piv = np.array([x[0] for x in lus]), np.array([x[1] for x in lus], np.int32)
        b = general(rng, sim.dtype, 1, len(a) * n, nrhs)[0].reshape(len(a), n, nrhs)
        outputs = []
        for schedule in SCHEDULES:
            factors, pivots, given = Memory(lu, order), Memory(piv), Memory(b, order)
            x = given if in_place else poisoned(b.shape, a.dtype, order)
            info = poisoned((len(a),), np.int32, "C")
            sim.run(schedule, len(a), *factors.matrix(trans != 0), pivots.address,
                    *given.matrix(), *x.matrix(), info.address, trans, n, nrhs)
            outputs.append([y.array.copy() for y in (x, info)])
        x, info = same_under_all_schedules(outputs)
        assert not info.any()
        op = (lambda y: y, lambda y: y.T, lambda y: y.conj().T)[trans]
        for i in range(len(a)):
            check_solved(op(a[i]), b[i], x[i], 0)


def potrf_small(sim, rng, n, order, in_place):
    for lower in (0, 1):
        a = positive(rng, sim.dtype, 2 * sim.members + 3, n)
        other = np.full((n, n), np.inf)  # not nan, which is what outputs hold before
        other = np.triu(other, 1) if lower else np.tril(other, -1)
        a = a + other.astype(a.dtype)
        outputs = []
        for schedule in SCHEDULES:
            source = Memory(a, order)
            target = source if in_place else poisoned(a.shape, a.dtype, order)
            info = poisoned((len(a),), np.int32, "C")
            sim.run(schedule, len(a), *source.matrix(not lower), *target.matrix(not lower),
                    info.address, n)
            outputs.append([x.array.copy() for x in (target, info)])
        c, info = same_under_all_schedules(outputs)
        for member in zip(a, c, info):
            check_cholesky(member[0], member[1], lower, member[2])


def posv_small(sim, rng, n, order, in_place):
    for lower, nrhs in ((0, 1), (1, 5)):
        a = positive(rng, sim.dtype, 2 * sim.members + 3, n)
        b = general(rng, sim.dtype, 1, len(a) * n, nrhs)[0].reshape(len(a), n, nrhs)
        outputs = []
        for schedule in SCHEDULES:
            source, given = Memory(a, order), Memory(b, order)
            c = source if in_place else poisoned(a.shape, a.dtype, order)
            x = given if in_place else poisoned(b.shape, a.dtype, order)
            info = poisoned((len(a),), np.int32, "C")
            sim.run(schedule, len(a), *source.matrix(not lower), *c.matrix(not lower),
                    *given.matrix(), *x.matrix(), info.address, not lower, n, nrhs)
            outputs.append([y.array.copy() for y in (c, x, info)])
        c, x, info = same_under_all_schedules(outputs)
        for i in range(len(a)):
            check_cholesky(a[i], c[i], lower, info[i])
            check_solved(a[i], b[i], x[i], info[i])


def potrs_small(sim, rng, n, order, in_place):
    for lower, nrhs in ((0, 1), (1, 5), (0, 2)):
        by = np.arange(1, 2 + sim.members, dtype=sim.dtype)  # so that no member is another
        a = positive(rng, sim.dtype, 2, n)[0] * by[:, None, None]
        c = np.array([getattr(lapack, sim.letter + "potrf")(x, lower=lower)[0] for x in a])
        b = general(rng, sim.dtype, 1, len(a) * n, nrhs)[0].reshape(len(a), n, nrhs)
        outputs = []
        for schedule in SCHEDULES:
            factors, given = Memory(c, order), Memory(b, order)
            x = given if in_place else poisoned(b.shape, a.dtype, order)
            info = poisoned((len(a),), np.int32, "C")
            sim.run(schedule, len(a), *factors.matrix(not lower), *given.matrix(), *x.matrix(),
                    info.address, not lower, n, nrhs)
            outputs.append([y.array.copy() for y in (x, info)])
        x, info = same_under_all_schedules(outputs)
        assert not info.any()
        for i in range(len(a)):
            check_solved(a[i], b[i], x[i], 0)


def main(library, name, letter, constants, *orders):
    sim = Simulated(library, name, letter, json.loads(constants))
    rng = np.random.default_rng(7)
    layouts = [("C", False), ("F", True), ("batch last", False)]
    for i, n in enumerate(map(int, orders)):
        with np.errstate(all="ignore"):
            globals()[name](sim, rng, n, *layouts[i % len(layouts)])
    print("ok", name, letter, *orders)


if __name__ == "__main__":
    main(*sys.argv[1:])
