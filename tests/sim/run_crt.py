"""dgemm by remainders on a simulated GPU, gemm_crt by exact sums in NumPy; for a process that has
the sanitizers:  python -m tests.sim.run_crt FOLDER [SEED]

The launchers, crt_split, crt_join and the marked tiles of gemm_tiled, against exact integers:
errors are at most (k + 3) 2^-53 (|alpha A| |B| + |beta C|) for numbers of every kind; the same bits
for all constants of crt_split.
"""

import sys
from contextlib import contextmanager
from itertools import cycle, product
from math import isqrt, prod
from unittest import mock

import numpy as np

from .gpu import Array, install
from .run_pairs import at

MODULI = (256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197)
PRODUCT = {"GROUPS": 1, "BN": 128, "STAGES": 4, "CLUSTER": 2, "WIDE": 8, "triangles": 2}
SPLITS = ({"LINES": 16, "DEEP": 128, "WARPS": 4, "BLOCKS": 1},
          {"LINES": 32, "DEEP": 256, "WARPS": 8, "BLOCKS": 1})
JOIN = {"WARPS": 2, "BLOCKS": 1}
TILES = {"BM": 32, "BN": 32, "TM": 16, "TN": 16, "WARPS": 4, "BK": 16, "STAGES": 2, "STEP": 8,
         "AHEAD": 1, "GROUP": 2, "BLOCKS": 1}
LINE = np.dtype([("shift", "i4"), ("length", "f4"), ("loss", "f4"), ("fair", "u4")])
LEAST = 1074  # every number of double precision is an integer times 2^-LEAST


def remainder(sums, p):
    """The byte that gemm_crt makes of sums of 32 bits (struct Modulus)."""
    shift = 2**31 + (128 - 2**31) % p
    x = sums + shift
    assert ((0 <= x) & (x < 2**32)).all()
    x -= (x.astype(np.uint64) * np.uint64(2**39 // p) >> np.uint64(39)).astype(np.int64) * p
    assert ((0 <= x) & (x < 256)).all() and ((x - 128 - sums) % p == 0).all()
    return (x - 128).astype(np.int8)


def multiply(sides, m, n, k, of_a, of_b, to, unsure, half):
    """gemm_crt"""
    bytes_of = [at(address, "i1", (rows, lines, columns), (plane, row, 1)).astype(float)
                for address, (columns, lines, rows), (row, plane) in sides]
    a, b = bytes_of
    planes = len(a) - 1 if unsure else len(a)  # of remainders
    parts = 3 if planes > 15 else 1
    moduli = planes // parts
    assert moduli in (14, 15) and planes == parts * moduli
    assert a.shape[1:] == (m, k) and b.shape == (len(a), n, k)
    assert all(row % 16 == plane % 16 == address % 16 == 0 for address, _, (row, plane) in sides)
    down, across = -(-m // 16), -(-n // 16)
    # block, lane (g, t), s, r, two columns
    c = at(to, "i1", (planes + 1, down, across, 8, 4, 2, 2, 2))
    lines = np.concatenate([at(of_a, LINE, (m,)), at(of_b, LINE, (n,))])
    lines = lines[lines["length"] > 0]
    terms = k * (parts + 1)  # twice the real ones
    pairs = 2.0**59 * (1 + 2.0**-10) * (terms / prod(MODULI[:moduli])) ** 0.5
    enough = int((k + pairs) / 2) + 1
    few = bool((lines["fair"] & 0xffffff < enough).any() and (lines["loss"] > 0).any())
    few = few and unsure > 0
    if unsure:
        at(unsure, "u4", (1,))[0] = few
    for i, p in enumerate((*np.repeat(MODULI[:moduli], parts).tolist(), *[None] * few)):
        sums = (a[i] @ b[i].T).astype(np.int64)
        whole = np.zeros((16 * down, 16 * across), np.int8)
        whole[:m, :n] = remainder(sums, p) if p else np.frexp(sums)[1]
        if half:  # what is not asked for is not there
            whole[:m, :n][~np.tri(m, n, dtype=bool) if half == 1 else np.tri(m, n, -1, bool)] = 77
        c[i] = whole.reshape(down, 2, 8, across, 2, 4, 2).transpose(0, 3, 2, 5, 4, 1, 6)


def integers(x):
    """Exactly, times 2^LEAST."""
    fraction, exponent = np.frexp(np.asarray(x))
    whole = np.ldexp(fraction, 53).astype(np.int64).astype(object)
    return whole * 2 ** (exponent.astype(object) - 53 + LEAST + 60) // 2**60


def sizes(x):
    """The absolute values of `integers`, of which columns may be parts of complex numbers."""
    k = x.shape[1] // 2
    return np.frompyfunc(isqrt, 1, 1)(x[:, :k]**2 + x[:, k:]**2)


def bound_holds(rng, out, alpha, a, b, beta, c, rounding, is_complex=False):
    """Whether `out` is as near to alpha a b + beta c as double precision is, where some rows and
    columns meet; alpha and beta are multiples of 1/8. `rounding`: units of 2^-53"""
    rows, columns = (rng.choice(n, min(n, 7), replace=False) for n in out.shape)
    x, y, z = integers(a[rows]), integers(b[:, columns]), integers(c[rows][:, columns])
    out = out[rows][:, columns]
    one, eighths = 2**LEAST, [int(8 * of) for of in (alpha, beta)]
    exact = eighths[0] * (x @ y) + eighths[1] * z * one
    products = sizes(x) @ sizes(y.T).T if is_complex else abs(x) @ abs(y)
    size = abs(eighths[0]) * products + abs(eighths[1]) * abs(z) * one
    wrong = abs(8 * one * integers(out) - exact)
    # and products and sums that are subnormal are a unit of 2^-1074 off each
    return (wrong * 2**53 <= rounding * size + (8 * (a.shape[1] + 3) * one << 53)).all()


def numbers(kind, rng, lines, k):
    """Lines of numbers of a kind."""
    x = rng.standard_normal((lines, k))
    match kind:
        case "uniform":
            return rng.random((lines, k))
        case "graded":  # lines of all sizes
            return x * 10.0 ** np.linspace(-150, 150, lines)[:, None]
        case "spread":  # numbers of all sizes
            return x * np.exp(3 * rng.standard_normal((lines, k)))
        case "far apart":
            return x * 2.0 ** rng.integers(-140, 140, (lines, k))
        case "cancelling":
            x[:, k // 2:k // 2 * 2] = -x[:, :k // 2] * (1 + 2.0**-40 * x[:, :k // 2])
        case "one large":
            x[:, 0], x[:, 1:k // 2] = 2.0**70, 0
        case "large meets zeros":
            x[:, :k // 2] *= 2.0**60 if lines % 2 else 0
        case "subnormal":
            x = np.round(8 * x) * 2.0**-1074
            x[::3] = 0
        case "vanishing":  # scaled, what counts is below the smallest number
            x[:, :k // 2] *= 2.0**500 if lines % 2 else 0
            x[:, k // 2:] *= 2.0**-640 if lines % 2 else 2.0**400
        case "integers":
            return rng.integers(-2**20, 2**20, (lines, k)).astype(float)
        case "sparse":
            x[rng.random((lines, k)) < 0.9] = 0
    return x


KINDS = ("normal", "uniform", "graded", "spread", "far apart", "cancelling", "one large",
         "large meets zeros", "vanishing", "subnormal", "integers", "sparse")


def laid_out(x, order):
    """By rows, by columns, as a view with steps, or backwards."""
    if order == "S":
        room = Array((2 * x.shape[0], 3 * x.shape[1]))[::2, 1::3]
    elif order == "V":
        room = Array((x.shape[0] + 3, x.shape[1] + 5), order="F")[1:-2, 2:-3]
    elif order == "B":
        room = Array(x.shape)[::-1, ::-1]
    else:
        room = Array(x.shape, order=order)
    room[...] = x
    return room


@contextmanager
def products(kernels, marked=None):
    """gemm_crt is what `multiply` does; how many elements are computed again."""
    from blasx import _gpu_crt, _kernel, _trace
    simulated, described = kernels.launch, {}

    def describe(self, kind, address, extents, strides, box):
        assert kind == self.BYTE and box[0] == 128 and box[2] == 1
        described[id(self)] = address, extents, strides

    def launch(kernel, *of):
        local = _gpu_crt._local
        if kernel.name == "gemm_tiled" and marked is not None:
            marks = _kernel.ffi.cast("uint64_t *", of[4][18])[0]
            m, n = (int(_kernel.ffi.cast("int64_t *", of[4][i])[0]) for i in range(2))
            words = at(marks, "u2", (m, -(-n // 16)))
            marked.append(int(np.unpackbits(words.view("u1")).sum()))
        if kernel.name != "gemm_crt":
            return simulated(kernel, *of)
        if _trace._open:
            _trace.note("gemm_crt")
        parameters = of[4]
        assert [parameters[0], parameters[1]] == [local.a.place, local.b.place]
        multiply([described[id(x)] for x in (local.a, local.b)], *local.cells)

    with (mock.patch.object(kernels, "launch", launch),
          mock.patch.object(_kernel.TensorMap, "describe", describe),
          mock.patch.object(_gpu_crt, "multiprocessors", lambda device: 2)):
        yield


def complex_products(blasx, rng, using, marked):
    """zgemm of all kinds of numbers, transposes and orders, syrk to her2k: each part within
    (k + 5) 2^-53 |A| |B| of exact numbers."""
    orders = cycle("CFSVB")

    def lines(kind, m, k):
        return numbers(kind, rng, m, k) + 1j * numbers(kind, rng, m, k)

    def turned(x, flag, order=None):
        y = (x, x.T, x.T.conj())[flag]
        room = laid_out(y.real, order or next(orders))
        z = Array(room.shape, "c16", order="F" if room.strides[0] < room.strides[1] else "C")
        z[...] = y
        return z

    def right(out, alpha, a, b, beta, c):
        """Real products of twice the terms."""
        stacked = np.hstack([a.real, -a.imag]), np.hstack([a.imag, a.real])
        for part, left, before in zip((out.real, out.imag), stacked, (c.real, c.imag)):
            assert bound_holds(rng, part, alpha, left, np.vstack([b.real, b.imag]), beta, before,
                               a.shape[1] + 5, True)

    for kind, (ta, tb) in product(("normal", "graded", "spread", "cancelling", "one large",
                                   "large meets zeros", "integers"), ((0, 0), (2, 1), (1, 2))):
        (m, n, k), (alpha, beta) = ((33, 20, 70), (1, 0)) if ta else ((17, 33, 40), (-0.5, 2))
        a, b = lines(kind, m, k), lines(kind, n + 1, k)[1:].T
        left, other = turned(a, ta), turned(b, tb)
        before = a @ b * rng.standard_normal((m, n)) if beta else np.full((m, n), np.nan + 0j)
        c = turned(before, 0)
        with using(SPLITS[0] | {"fewer": ta % 2}, "z"), blasx.trace() as ran:
            out = blasx.zgemm(alpha, left, other, beta, c, ta, tb, 1, variant="crt")
        assert out is c and "gemm_crt" in str(ran)
        right(np.asarray(out), alpha, a, b, beta, before if beta else 0 * a @ b)
        if kind == "normal":
            assert marked[-1] == 0
    a, b, c = lines("normal", 20, 30), lines("normal", 30, 18), lines("normal", 20, 18)
    with using(SPLITS[0], "z"):
        out = blasx.zgemm(2 - 1j, turned(a, 0), turned(b, 0), 1j, turned(c, 0), variant="crt")
        assert abs(np.asarray(out) - ((2 - 1j) * a @ b + 1j * c)).max() < 1e-13
        a[3, 5] = np.inf
        out = np.asarray(blasx.zgemm(1, turned(a, 0), turned(b, 0), variant="crt"))
        assert np.isfinite(np.delete(out, 3, 0)).all() and not np.isfinite(out[3]).any()
    for letter, name, trans, lower, order in product("dz", ("syrk", "herk", "syr2k", "her2k"),
                                                     (0, 1), (0, 1), "CF"):
        hermitian = name[:2] == "he"
        if letter == "d" and hermitian:
            continue
        terms = [numbers("normal", rng, 37, 90) if letter == "d" else lines("normal", 37, 90)
                 for _ in range(2 if "2" in name else 1)]
        a, b, c = terms[0], terms[-1], terms[0][:, :37] + 0
        flag = trans * (2 if hermitian else 1)
        alpha = -0.5 if letter == "d" or name == "herk" else -0.5 + 1j
        x = [laid_out(y.T if flag else y, "F") if letter == "d" else turned(y, flag) for y in terms]
        room = laid_out(c, order) if letter == "d" else turned(c, 0, order)
        with using(SPLITS[1], letter), blasx.trace() as ran:
            out = getattr(blasx, letter + name)(alpha, *x, 2, room, flag, lower, 1)
        wide = a.astype(np.clongdouble)  # NumPy's own sums in double are no better than these
        exact = alpha * wide @ (b.conj().T if hermitian else b.T)
        if "2" in name:
            exact = exact + (exact.conj().T if hermitian else exact.T)
        wanted = np.tri(37, dtype=bool) if lower else ~np.tri(37, k=-1, dtype=bool)
        before = c.copy()
        if hermitian:
            before[np.arange(37), np.arange(37)] = before.diagonal().real
        assert out is room and "gemm_crt" in str(ran)
        assert np.array_equal(np.asarray(out)[~wanted], c[~wanted])
        assert abs(np.asarray(out) - exact - 2 * before)[wanted].max() < 1e-13
        if hermitian:
            assert not np.asarray(out).diagonal().imag.any()


def main(folder, seed=0):
    kernels = install(folder)
    import blasx
    from blasx import _gpu_crt, _tuned
    assert prod(MODULI) > 2**117 and len(MODULI) == _gpu_crt.MODULI
    marked = []
    rng = np.random.default_rng(int(seed))
    splits, orders, flags = cycle(SPLITS), cycle(product("CFSVB", "CFSVB", "CFV")), cycle(range(4))

    def using(split, letter="d"):
        return _tuned.using(letter, gemm_small=None, gemm_crt=PRODUCT, crt_split=split,
                            crt_join=JOIN, gemm_tiled=TILES)

    def check(kind, m, n, k, variant, alpha=1, beta=0, rounding=None, fewer=0):
        a, b = numbers(kind, rng, m, k), numbers(kind, rng, n + 1, k)[1:].T
        flag, order_of = next(flags), next(orders)
        left, right = (laid_out(x.T if flag & bit else x, order)
                       for x, bit, order in zip((a, b), (1, 2), order_of))
        before = a @ b * rng.standard_normal((m, n)) if beta else np.full((m, n), np.nan)
        found = []
        for split in SPLITS if kind in ("normal", "far apart") else [next(splits)]:
            c = laid_out(before, order_of[2])
            with using(split | {"fewer": fewer}), blasx.trace() as ran:
                out = blasx.dgemm(alpha, left, right, beta, c, flag & 1, flag >> 1, 1,
                                  variant=variant)
            assert out is c and "gemm_crt" in str(ran)
            found.append(np.array(out))
        assert all(np.array_equal(x, found[0]) for x in found), (kind, "bits")
        assert bound_holds(rng, found[0], alpha, a, b, beta, before if beta else 0 * found[0],
                           k + 3 if rounding is None else rounding), (kind, m, n, k, alpha, beta)
        return marked[-1] / (m * n)

    with products(kernels, marked):
        again = {}
        for kind in KINDS:
            for (m, n, k), (alpha, beta) in zip(((33, 20, 70), (17, 33, 9)), ((1, 0), (-0.5, 2))):
                check(kind, m, n, k, "crt", alpha, beta, fewer=1)
                again[kind] = check(kind, m, n, k, "crt", alpha, beta)
        # What is ordinary is not computed again, and is better than the bound by far; what is exact
        # is right to the last bit, though little is left of large numbers
        assert again["integers"] == 0 and again["uniform"] == 0, again
        for kind in ("normal", "uniform", "graded"):
            assert check(kind, 20, 18, 300, "auto", rounding=2) == 0
        assert check("normal", 5, 6, 5000, "auto", rounding=6, fewer=1) == 0
        assert check("integers", 18, 33, 300, "auto", 1.5, 0, rounding=1) == 0
        assert check("large meets zeros", 20, 18, 200, "crt") == 1
        a, few = numbers("integers", rng, 16, 40), rng.integers(-9, 9, (16, 2)).astype(float)
        with using(SPLITS[1]):
            c = blasx.dgemm(1, laid_out(np.hstack([a, few, -a]), "C"),
                            laid_out(np.hstack([a, few, a]).T, "F"), variant="crt")
        assert np.array_equal(c, few @ few.T)
        # Not finite, and out of range: what double precision makes of it
        a, b = numbers("normal", rng, 20, 50), numbers("normal", rng, 50, 18)
        a[3, 5], a[4, 6], b[7, 8], a[9] = np.inf, np.nan, -np.inf, 0
        a[12], b[:, 3] = a[12] * 2.0**1000, b[:, 3] * 2.0**1000
        with np.errstate(all="ignore"), using(SPLITS[0]):
            exact = a @ b
            exact[12, 3] = np.inf * (a[12] / 2.0**1000 @ b[:, 3])  # not of what overflows first
            c = np.asarray(blasx.dgemm(1, laid_out(a, "C"), laid_out(b, "C"), variant="crt"))
        good = np.isfinite(exact)
        assert np.array_equal(np.isnan(c), np.isnan(exact)) and np.isnan(c).any()
        assert np.array_equal(c[np.isinf(exact)], exact[np.isinf(exact)]) and np.isinf(c).any()
        assert np.allclose(c[good], exact[good], rtol=1e-10, atol=1e-10)
        assert marked[-1] == 2 * 18 + 20 - 2  # two rows and a column
        # Some lines of an operand against others; blocks of C and of k
        x, c = laid_out(numbers("normal", rng, 50, 70), "C"), Array((16, 26))
        with using(SPLITS[0]):
            lines, = _gpu_crt.split(x)
            _gpu_crt.multiply_remainders(2, lines.part(8, 24), lines.part(24, 50), 0, c)
        assert bound_holds(rng, np.array(c), 2, np.asarray(x[8:24]), np.asarray(x[24:]).T, 0,
                           np.zeros((16, 26)), 73)
        complex_products(blasx, rng, using, marked)
        # One half of C, and nothing beside it
        for half, wanted in ((_gpu_crt.LOWER, np.tri(42, 26, dtype=bool)),
                             (_gpu_crt.UPPER, ~np.tri(42, 26, -1, dtype=bool))):
            before = rng.standard_normal((42, 26))
            c = laid_out(before, "C")
            with using(SPLITS[1]):
                lines, = _gpu_crt.split(x)
                _gpu_crt.multiply_remainders(2, lines.part(8, 50), lines.part(24, 50), -1, c,
                                             half=half)
            exact = 2 * np.asarray(x[8:50]) @ np.asarray(x[24:]).T - before
            assert np.array_equal(np.asarray(c)[~wanted], before[~wanted])
            assert abs(np.asarray(c) - exact)[wanted].max() < 1e-12
        with (mock.patch.object(_gpu_crt, "DEPTH", 48), mock.patch.object(_gpu_crt, "ROOM", 1)):
            check("normal", 17, 300, 100, "crt", 1, 2)
    assert {"crt_split", "crt_join", "gemm_tiled"} <= set(kernels.launched)
    print("ok", again)


if __name__ == "__main__":
    main(*sys.argv[1:])
