"""blasx.sgemm by pairs on a GPU that is simulated, its product by a model in NumPy; for a process
that has the sanitizers:  python -m tests.sim.run_pairs FOLDER

The launchers, the splitting kernels, and the rule by which gemm_wgmma computes elements again:
what it must answer for every order of A, B and C, transposes, alpha and beta, and special values.
"""

import sys
from itertools import product
from unittest import mock

import numpy as np

from .gpu import Array, install
from .run_split import LINE, NOT_FINITE

TILES = {"GROUPS": 1, "BN": 128, "STAGES": 4, "EACH": 4, "WIDE": 16}
LINES = {"WARPS": 4, "HELD": 1, "LINES": 32, "CLUSTER": 1}


def at(address, dtype, shape, strides=None):
    """What is in memory at an address."""
    import ctypes
    dtype = np.dtype(dtype)
    strides = strides or [dtype.itemsize * int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    length = dtype.itemsize + sum((n - 1) * s for n, s in zip(shape, strides))
    raw = (ctypes.c_char * length).from_address(address)
    return np.ndarray(shape, dtype, raw, strides=strides)


def multiply(pairs, numbers, scalars, across):
    """gemm_wgmma, but that sums are exact; returns how many elements it computed again."""
    m, n, k, a_about, b_about, A, ars, acs, B, brs, bcs, C, ld = numbers
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
    lost = lines[0]["lost"][:, None] + lines[1]["lost"]
    again = ~(np.abs(x) >= np.float32(2**11) * lost.astype(np.float32))
    down, rest = (lines[0][f][:, None] * lines[1][f] for f in ("down", "rest"))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = x * down * rest
        a = at(A, "f4", (m, k), (4 * ars, 4 * acs)).astype(float)
        b = at(B, "f4", (n, k), (4 * brs, 4 * bcs)).astype(float)
        x[again] = (a @ b.T)[again].astype(np.float32)
        c = at(C, "f4", (m, n), (4 * ld, 4))
        c[...] = alpha * x + beta * c if beta else alpha * x
    return int(again.sum())


def main(folder):
    kernels = install(folder)
    import blasx
    from blasx import _gpu_gemm, _kernel, _tuned
    from blasx._kernel import ffi
    simulated, described, again = kernels.launch, {}, []

    def describe(self, kind, address, extents, strides, box):
        assert box[0] * 2 == 128 and kind == self.HALF and extents[2] == 2
        described[id(self)] = address, extents, strides

    def launch(kernel, *of):
        if kernel.name != "gemm_wgmma":
            return simulated(kernel, *of)
        parameters, local = of[4], _gpu_gemm._local
        assert [parameters[0], parameters[1]] == [local.a.place, local.b.place]
        numbers = [int(ffi.cast("int64_t *", parameters[i])[0]) for i in (*range(2, 13), 15, 16)]
        scalars = [ffi.cast("float *", parameters[i])[0] for i in (13, 14)]
        again.append(multiply([described[id(x)] for x in (local.a, local.b)], numbers, scalars,
                              [kernel.constants[x] for x in ("A_ACROSS", "B_ACROSS")]))

    rng = np.random.default_rng(0)
    with (mock.patch.object(kernels, "launch", launch),
          _tuned.using("s", gemm_small=None, gemm_tiled=None, gemm_wgmma=TILES, split_lines=LINES),
          mock.patch.object(_kernel.TensorMap, "describe", describe),
          mock.patch.object(_gpu_gemm, "_multiprocessors", lambda device: 2)):
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
        assert sum(again) < 50, again
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
