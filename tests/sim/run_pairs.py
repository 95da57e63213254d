"""blasx.sgemm by pairs, and hgemm, on a GPU that is simulated, products by models in NumPy; for
a process that has the sanitizers:  python -m tests.sim.run_pairs FOLDER

The launchers, the splitting kernels, and the rule by which gemm_wgmma computes elements again:
what it must answer for every order of A, B and C, transposes, alpha and beta, and special values.
Of gemm_half and gemm_int8 what they are told: operands as they lie, bias, what follows.
"""

import sys
from itertools import product
from unittest import mock

import numpy as np
from scipy.special import ndtr

from .gpu import Array, install
from .run_split import LINE, NOT_FINITE, good

TILES = {"GROUPS": 1, "BN": 128, "STAGES": 4, "EACH": 4, "WIDE": 16, "ONE_BY_ONE": 8,
         "RARE": 8, "MENDED": 6}
HALVES = {"GROUPS": 1, "BN": 128, "STAGES": 4, "CLUSTER": 2, "WIDE": 8}
LINES = {"WARPS": 4, "HELD": 1, "LINES": 32, "CLUSTER": 1}


def at(address, dtype, shape, strides=None):
    """What is in memory at an address."""
    import ctypes
    dtype = np.dtype(dtype)
    strides = strides or [dtype.itemsize * int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    length = dtype.itemsize + sum((n - 1) * s for n, s in zip(shape, strides))
    raw = (ctypes.c_char * length).from_address(address)
    return np.ndarray(shape, dtype, raw, strides=strides)


def entries(lines, k, address, next, step, how, parts):
    """The real lines of an operand of real or of complex numbers (kernels/operand_lines.cuh)."""
    strides = 4 * next, 4 * step
    if parts == 1:
        return at(address, "f4", (lines, k), strides).astype(float)
    x = at(address, "c8", (lines // (1 + how % 2), k // 2), strides).astype(complex)
    x = x.conj() if how & 2 else x
    rows = [[x.real, -x.imag], [x.imag, x.real]] if how & 1 else [[x.real, x.imag]]
    return np.stack([np.stack(r, -1) for r in rows], 1).reshape(lines, k)


def multiply(pairs, numbers, scalars, across, parts, with_bias):
    """gemm_wgmma, but that sums are exact; returns how many elements it computed again."""
    m, n, k, a_about, b_about, *of, C, ld, bias = numbers
    alpha, beta = map(np.float32, scalars)
    sides, lines = [], []
    for (address, (columns, rows, _), (row, plane)), about, turned in zip(
            pairs, (a_about, b_about), across):
        assert row % 16 == 0 == plane % 16 and address % 16 == 0
        halves = at(address, "f2", (2, rows, columns), (plane, row, 2)).astype(float)
        sides.append(halves.swapaxes(1, 2) if turned else halves)
        lines.append(at(about, LINE, (sides[-1].shape[1],)))
        assert sides[-1].shape[2] == k
    (ah, al), (bh, bl) = sides
    x = (al @ bh.T + ah @ bl.T + ah @ bh.T).astype(np.float32)
    again = ~good(x, *((about["lost"], about["sizes"]) for about in lines))
    down, rest = (lines[0][f][:, None] * lines[1][f] for f in ("down", "rest"))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = x * down * rest
        a, b = entries(m, k, *of[:4], parts), entries(n, k, *of[4:], parts)
        x[again] = (a @ b.T)[again].astype(np.float32)
        c = at(C, "f4", (m, n), (4 * ld, 4))
        before = at(bias, "f4", (n,)) if with_bias else c
        c[...] = alpha * x + beta * before if beta else alpha * x
    return int(again.sum())


def multiply_half(sides, numbers, scalars, values):
    """gemm_half, in double precision."""
    m, n, k, C, ld, bias, Z, ldz = numbers
    x, y = (halves.T if across else halves for halves, across in zip(
        (at(address, "f2", shape[1::-1], (pitch, 2)).astype(float)
         for address, shape, (pitch, _) in sides),
        (values["A_ACROSS"], values["B_ACROSS"])))
    assert x.shape == (m, k) and y.shape == (n, k)
    assert all(pitch % 16 == 0 == address % 16 for address, _, (pitch, _) in sides)
    total = scalars[0] * x @ y.T
    if values["BIAS"]:
        of = at(bias, "f2", (n if values["BIAS"] == 1 else m,)).astype(float)
        total += of if values["BIAS"] == 1 else of[:, None]
    z = at(Z, "f2", (m, n), (2 * ldz, 2)).astype(float) if values["ACTIVATION"] > 3 else 0
    total = {0: total, 1: np.maximum(total, 0), 2: total * ndtr(total),
             5: total * gelu_slope(z)}[values["ACTIVATION"]]
    c = at(C, "f2", (m, n), (2 * ld, 2))
    c[...] = total + scalars[1] * c.astype(float) if scalars[1] else total


def gelu_slope(x):
    return ndtr(x) + x * np.exp(-x**2 / 2) / (2 * np.pi) ** 0.5


def multiply_bytes(sides, numbers, values):
    """gemm_int8, exactly."""
    m, n, k, C, ld, scale, bias, times, more = numbers
    x, y = (at(address, "i1", shape[1::-1], (pitch, 1)).astype(float)
            for address, shape, (pitch, _) in sides)
    assert x.shape == (m, k) and y.shape == (n, k)
    assert all(pitch % 16 == 0 == address % 16 for address, _, (pitch, _) in sides)
    total, c = x @ y.T, at(C, "f4" if values["SCALE_OF"] else "i4", (m, n), (4 * ld, 4))
    if values["SCALE_OF"]:
        total *= at(scale, "f4", ((1, n), (m, 1))[values["SCALE_OF"] - 2]) if scale else times
        total += at(bias, "f4", ((1, n), (m, 1))[values["BIAS"] - 1]) if bias else more
    c[...] = {0: total, 1: np.maximum(total, 0), 2: total * ndtr(total)}[values["ACTIVATION"]]


def of_bytes(blasx, rng):
    """igemm: any strides, edges, scales and bias of all kinds."""
    for (m, n, k), ta, tb, gap in product(((24, 40, 72), (5, 3, 17)), (0, 1), (0, 1), (0, 1)):
        a, b = (Array((y + gap, x + 2 * gap), "i1", order="F" if gap else "C")[gap:, gap:x + gap]
                if t else Array((x + gap, y), "i1")[gap:]
                for x, y, t in ((m, k, ta), (k, n, tb)))
        for x in (a, b):
            x[...] = rng.integers(-128, 128, x.shape)
        exact = np.asarray(a.T if ta else a).astype(int) @ np.asarray(b.T if tb else b).astype(int)
        with blasx.trace() as ran:
            c = np.asarray(blasx.igemm(a, b, ta, tb))
        assert "gemm_int8" in str(ran) and c.dtype == np.int32 and np.array_equal(c, exact)
        for scale, bias, f in product((0.5, (n,), (m, 1)), (None, 2.0, (n,), (m, 1)),
                                      (None, "relu", "gelu")):
            scale, bias = (x if not isinstance(x, tuple) else Array(x, "f4") for x in (scale, bias))
            for x in (scale, bias):
                if isinstance(x, Array):
                    x[...] = rng.standard_normal(x.shape)
            c = np.asarray(blasx.igemm(a, b, ta, tb, scale=scale, bias=bias, activation=f))
            x = np.asarray(scale) * exact + (0 if bias is None else np.asarray(bias))
            x = {None: x, "relu": np.maximum(x, 0), "gelu": x * ndtr(x)}[f]
            assert c.dtype == np.float32 and (abs(c - x) <= 1e-6 * abs(x) + 1e-3).all()


def halves(blasx, rng):
    """hgemm where operands lie in steps of 16 bytes."""
    for (m, n, k), ta, tb in product(((24, 40, 72), (16, 8, 136)), (0, 1), (0, 1)):
        for orders in product("CF", repeat=3):
            a, b, c = (Array(shape, "f2", order=order) for shape, order in zip(
                ((k, m) if ta else (m, k), (n, k) if tb else (k, n), (m, n)), orders))
            of_row, of_column = Array((n,), "f2"), Array((m, 2), "f2")[:, 1:]
            for x in (a, b, c, of_row, of_column):
                x[...] = rng.standard_normal(x.shape)
            left, right = (np.asarray(x.T if t else x).astype(float)
                           for x, t in ((a, ta), (b, tb)))
            for bias, activation, beta in ((None, None, 0), (of_row, "relu", 2),
                                           (of_column, "gelu", 0), (of_column, None, 1)):
                x = 0.5 * left @ right + (0 if bias is None else np.asarray(bias).astype(float))
                x = {None: x, "relu": np.maximum(x, 0), "gelu": x * ndtr(x)}[activation]
                x = x + beta * np.asarray(c).astype(float)
                if not beta:
                    c[...] = np.nan
                with blasx.trace() as ran:
                    out = blasx.hgemm(0.5, a, b, beta, c, ta, tb, 1, bias=bias,
                                      activation=activation)
                assert out is c and (abs(np.asarray(c) - x) <= 2**-10 * abs(x) + 1e-6).all()
                assert "gemm_half" in str(ran)
            z = Array((m, n), "f2", order=orders[0])
            z[...] = rng.standard_normal(z.shape)
            blasx.hgemm(0.5, a, b, 0, c, ta, tb, 1, bias=of_row, activation="gelu", slope_at=z)
            x = 0.5 * left @ right + np.asarray(of_row).astype(float)
            x *= gelu_slope(np.asarray(z).astype(float))
            assert (abs(np.asarray(c) - x) <= 2**-10 * abs(x) + 1e-6).all()


def with_bias(blasx, rng):
    """A bias along the lines of C is added as they are stored, another one after that."""
    a, b, of_row, of_column = (Array(shape, "f4") for shape in ((33, 70), (70, 17), (17,), (33, 1)))
    for x in (a, b, of_row, of_column):
        x[...] = rng.standard_normal(x.shape)
    left, right = (np.asarray(x).astype(float) for x in (a, b))
    for order, bias, activation in product("CF", (of_row, of_column), (None, "relu")):
        c = Array((33, 17), "f4", order=order)
        c[...] = np.nan
        with blasx.trace() as ran:
            out = blasx.sgemm(0.5, a, b, 0, c, overwrite_c=1, bias=bias, activation=activation)
        assert out is c and "gemm_wgmma" in str(ran)
        exact = 0.5 * left @ right + np.asarray(bias)
        size = 0.5 * abs(left) @ abs(right) + abs(np.asarray(bias))
        exact = np.maximum(exact, 0) if activation else exact
        assert (abs(c - exact) <= 2**-21 * size).all(), (order, bias.shape)


def main(folder):
    kernels = install(folder)
    import blasx
    from blasx import _gpu_gemm, _kernel, _trace, _tuned
    from blasx._kernel import ffi
    simulated, described, again = kernels.launch, {}, []

    def describe(self, kind, address, extents, strides, box):
        assert box[0] * (2 if kind == self.HALF else 1) == 128 and extents[2] == box[2]
        described[id(self)] = address, extents, strides

    def launch(kernel, *of):
        local = _gpu_gemm._local
        if kernel.name == "gemm_half":
            if _trace._open:
                _trace.note("gemm_half")
            read = [ffi.cast(f"{t} *", p)[0] for t, p in zip(
                ["int64_t"] * 3 + ["float"] * 2 + ["int64_t"] * 5, list(of[4])[2:])]
            return multiply_half([described[id(x)] for x in (local.a, local.b)],
                                 read[:3] + read[5:], read[3:5], kernel.constants)
        if kernel.name == "gemm_int8":
            if _trace._open:
                _trace.note("gemm_int8")
            read = [ffi.cast(f"{t} *", p)[0] for t, p in zip(
                ["int64_t"] * 7 + ["float"] * 2, list(of[4])[2:])]
            return multiply_bytes([described[id(x)] for x in (local.a, local.b)], read,
                                  kernel.constants)
        if kernel.name != "gemm_wgmma":
            return simulated(kernel, *of)
        if _trace._open:
            _trace.note("gemm_wgmma")
        parameters = of[4]
        assert [parameters[0], parameters[1]] == [local.a.place, local.b.place]
        numbers = [int(ffi.cast("int64_t *", parameters[i])[0])
                   for i in (*range(2, 15), *range(17, 20))]
        assert kernel.constants["HALF_OF_C"] == 0  # halves: run_potrf.py
        scalars = [ffi.cast("float *", parameters[i])[0] for i in (15, 16)]
        again.append(multiply([described[id(x)] for x in (local.a, local.b)], numbers, scalars,
                              [kernel.constants[x] for x in ("A_ACROSS", "B_ACROSS")],
                              1 + kernel.constants["COMPLEX"], kernel.constants["BIAS"]))

    rng = np.random.default_rng(0)
    with (mock.patch.object(kernels, "launch", launch),
          _tuned.using("s", gemm_small=None, gemm_tiled=None, gemm_wgmma=TILES, split_lines=LINES),
          mock.patch.object(_kernel.TensorMap, "describe", describe),
          _tuned.using("c", gemm_small=None, gemm_tiled=None),
          _tuned.using("h", gemm_half=HALVES), _tuned.using("i", gemm_int8=HALVES),
          mock.patch.object(_gpu_gemm, "multiprocessors", lambda device: 2)):
        halves(blasx, rng)
        of_bytes(blasx, rng)
        for (m, n, k), ta, tb in product(((33, 17, 70), (5, 130, 64)), (0, 1), (0, 1)):
            for orders in product("CF", repeat=3):
                a, b, c = (Array(shape, "f4", order=order) for shape, order in zip(
                    ((k, m) if ta else (m, k), (n, k) if tb else (k, n), (m, n)), orders))
                for x in (a, b, c):
                    x[...] = rng.standard_normal(x.shape)
                left, right = (np.asarray(x).astype(float) for x in (a.T if ta else a,
                                                                     b.T if tb else b))
                for alpha, beta in ((1, 0), (-0.5, 2)):
                    exact, size = alpha * left @ right, abs(alpha) * abs(left) @ abs(right)
                    if beta:
                        exact, size = exact + beta * np.asarray(c), size + abs(beta * c)
                    else:
                        c[...] = np.nan
                    out = blasx.sgemm(alpha, a, b, beta, c, ta, tb, overwrite_c=1)
                    assert out is c and (abs(c - exact) <= 2**-21 * size).all(), (m, n, k, orders)
        with_bias(blasx, rng)
        for (m, n, k), ta, tb in product(((18, 20, 35),), (0, 1, 2), (0, 1, 2)):
            for orders in product("CF", repeat=3):
                a, b, c = (Array(shape, "c8", order=order) for shape, order in zip(
                    ((k, m) if ta else (m, k), (n, k) if tb else (k, n), (m, n)), orders))
                for x in (a, b, c):
                    x[...] = rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape)
                left, right = (np.asarray((x, x.T, x.T.conj())[t]).astype(complex)
                               for x, t in ((a, ta), (b, tb)))
                exact = 2 * np.asarray(c) - 0.5 * left @ right
                size = 2 * abs(np.asarray(c)) + 0.5 * abs(left) @ abs(right)
                out = blasx.cgemm(-0.5, a, b, 2, c, ta, tb, overwrite_c=1)
                assert out is c and (abs(c - exact) <= 2**-20 * size).all(), (ta, tb, orders)
        assert sum(again) < 80, again
        # lines that are not finite, lost numbers: all of A, B and C apart, with steps between
        big = Array((90, 200), "f4")
        big[...] = rng.standard_normal(big.shape)
        a, b = big[::2, 1:141:2], big[::2, 3:143:2].T
        a[3, 5], a[4, 6], b[7, 8] = np.inf, np.nan, -np.inf
        a[6, :35] *= np.float32(2.0**30)
        b[:35, 9] = 0
        before = len(again)
        out = blasx.sgemm(1, a, b)
        with np.errstate(invalid="ignore"):
            exact = (np.asarray(a).astype(float) @ np.asarray(b).astype(float)).astype("f4")
        assert np.array_equal(np.isnan(out), np.isnan(exact)) and np.isnan(exact).any()
        good = np.isfinite(exact)
        assert np.array_equal(out[np.isinf(exact)], exact[np.isinf(exact)])
        size = abs(np.asarray(a).astype(float))[:, :] @ abs(np.asarray(b).astype(float))
        assert (abs(out - exact)[good] <= 2**-21 * size[good]).all()
        assert again[before] >= 3 * 45 and NOT_FINITE
    assert "split_lines" in kernels.launched
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
