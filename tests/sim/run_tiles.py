"""Products of one matrix by Hopper's tensor cores on a GPU that is simulated, by the kernels
themselves (run_pairs.py and run_crt.py have models of them in NumPy, and all orders, strides and
kinds of numbers); for a process that has the sanitizers:  python -m tests.sim.run_tiles
FOLDER PART

Clusters of one block only: boxes for all blocks of a cluster are not simulated.
"""

import sys
from itertools import cycle, product
from unittest import mock

import numpy as np
from scipy.special import ndtr

from .gpu import Array, install

RING = {"GROUPS": 2, "BN": 64, "STAGES": 3, "CLUSTER": 1, "WIDE": 2}
PAIRS = {"GROUPS": 2, "BN": 64, "STAGES": 2, "EACH": 2, "WIDE": 2, "ONE_BY_ONE": 8, "RARE": 8,
         "MENDED": 6, "triangles": 2, "tf32": 1}
LINES = {"WARPS": 4, "HELD": 1, "LINES": 32, "CLUSTER": 1}
DIGITS = {"LINES": 16, "CLUSTER": 2, "WARPS": 4, "BLOCKS": 1}
REMAINDERS = RING | {"BN": 128, "STAGES": 2, "triangles": 2}


def on_gpu(x, order="C"):
    y = Array(x.shape, x.dtype, order=order)
    y[...] = x
    return y


def ran(kernel, call, *of, **how):
    """What the call answers, which had this kernel run."""
    import blasx
    with blasx.trace() as t:
        answer = call(*of, **how)
    assert kernel in str(t), str(t)
    return np.asarray(answer)


def functions(x):
    """{activation: (f(x), f'(x))}"""
    u, du = (8 / np.pi) ** 0.5 * (x + 0.044715 * x**3), (8 / np.pi) ** 0.5 * (1 + 0.134145 * x**2)
    with np.errstate(over="ignore"):
        s = 1 / (1 + np.exp(-u))
    density = np.exp(-x**2 / 2) / (2 * np.pi) ** 0.5
    return {"relu": (np.maximum(x, 0), x > 0), "gelu": (x * ndtr(x), ndtr(x) + x * density),
            "gelu_tanh": (x * s, s + x * s * (1 - s) * du), None: (x, 1)}


def halves(blasx, rng):
    """hgemm: layouts, edges, bias, f and f' at a matrix, with and without C."""
    for (m, n, k), orders in product(((136, 72, 136), (24, 88, 72)), ("CCC", "FFF", "CFC")):
        a, b, c, z = (rng.standard_normal(x).astype("f2") for x in ((m, k), (k, n), (m, n), (m, n)))
        of = {"row": rng.standard_normal(n).astype("f2"),
              "column": rng.standard_normal((m, 1)).astype("f2"), None: None}
        left, right = on_gpu(a, orders[0]), on_gpu(b, orders[1])
        for bias, f, slope, beta in ((None, None, 0, 0), ("row", "gelu", 0, 0),
                                     ("column", "relu", 0, 2), ("row", "gelu_tanh", 0, 1),
                                     ("row", "relu", 1, 0), (None, "gelu", 1, 2),
                                     ("column", "gelu_tanh", 1, 0)):
            x = 0.125 * a.astype("f8") @ b.astype("f8")
            x = x + (0 if bias is None else of[bias].astype("f8"))
            x = (x * functions(z.astype("f8"))[f][1] if slope else functions(x)[f][0])
            x = x + beta * c.astype("f8")
            to = on_gpu(c if beta else np.full_like(c, np.nan), orders[2])
            with np.errstate(over="ignore"):
                got = ran("gemm_half", blasx.hgemm, 0.125, left, right, beta, to, overwrite_c=1,
                          bias=None if bias is None else on_gpu(of[bias]), activation=f,
                          slope_at=on_gpu(z, orders[2]) if slope else None)
            assert (abs(got - x) <= 2**-10 * abs(x) + 2e-4).all(), (m, n, k, orders, bias, f, slope)


def of_bytes(blasx, rng):
    """igemm: exact, and scaled by a number, for each column, for each row."""
    for m, n, k in ((136, 72, 160), (3, 130, 40)):
        a, b = (rng.integers(-128, 128, x).astype("i1") for x in ((m, k), (k, n)))
        left, right, exact = on_gpu(a), on_gpu(b, "F"), a.astype("f8") @ b.astype("f8")
        assert np.array_equal(ran("gemm_int8", blasx.igemm, left, right), exact)
        row, column = (rng.uniform(1e-3, 1e-2, x).astype("f4") for x in (n, (m, 1)))
        for scale, bias, f in ((row, column, "gelu"), (column, row, "relu"), (0.01, 0.5, None),
                               (row, None, "gelu_tanh")):
            x = functions(scale * exact + (0 if bias is None else bias))[f][0]
            scale, bias = (on_gpu(y) if isinstance(y, np.ndarray) else y for y in (scale, bias))
            got = ran("gemm_int8", blasx.igemm, left, right, scale=scale, bias=bias, activation=f)
            assert got.dtype == np.float32 and (abs(got - x) <= 1e-5 * (1 + abs(x))).all()


def pairs(blasx, rng):
    """sgemm and cgemm, one triangle of products, and high parts alone; lines that are not finite,
    and large numbers that meet zeros."""
    from blasx import _tuned
    for (m, n, k), orders in product(((70, 130, 200), (129, 66, 72)), ("CF", "FC")):
        a, b = (rng.standard_normal(x).astype("f4") for x in ((m, k), (k, n)))
        a[3] *= 1e-30
        a[:, ::3] *= np.float32(2.0**24)
        b[::3, 5] = 0
        a[7, 2] = np.inf
        left, right = on_gpu(a, orders[0]), on_gpu(b, orders[1])
        sizes = abs(a.astype("f8")) @ abs(b)
        with np.errstate(invalid="ignore"):
            exact, c = a.astype("f8") @ b.astype("f8"), rng.standard_normal((m, n)).astype("f4")
            for precision, bits in (("fp32", 21), ("tf32", 10)):
                got = ran("gemm_wgmma", blasx.sgemm, -0.5, left, right, 2, on_gpu(c),
                          precision=precision)
                good = np.isfinite(exact)
                wrong = abs(got - (2 * c.astype("f8") - 0.5 * exact))
                assert (wrong[good] <= (2.0**-bits * (sizes + 2 * abs(c)))[good]).all(), precision
                assert np.array_equal(np.isfinite(got), good)
    # where numbers were lost and meet what alone counts: elements lack all that these make
    for (letter, m, n, k), orders in product(
            (("s", 70, 90, 200), ("s", 70, 90, 520), ("c", 30, 30, 520)), ("CF", "FC")):
        a, b = (rng.standard_normal((2, *x)).astype("f4") for x in ((m, k), (k, n)))
        a, b = (x[0] + 1j * x[1] if letter == "c" else x[0] for x in (a, b))
        few, others = np.arange(5, k, 61), np.arange(k) % 61 != 5
        a[::2, others] *= np.float32(2.0**30)
        a[4, few] *= np.float32(1e-36)
        b[others, 3:60:7] = 0
        b[others, 2::11] *= np.float32(2.0**27)
        a[5::8, others] = 0
        if letter == "c":  # one part of a number is lost and the other is not
            b.real[few, 2::11] *= np.float32(2.0**27)
            a.imag[5::16], a.real[13::16] = 0, 0
            a.real[6::16, few] *= np.float32(2.0**30)
            b.imag[:, 3:60:14], b.real[:, 10:60:14] = 0, 0
        with _tuned.using("s", gemm_wgmma=PAIRS | {"ONE_BY_ONE": 2**20}):  # no tile as a whole
            got = ran("gemm_wgmma", getattr(blasx, letter + "gemm"), 2, on_gpu(a, orders[0]),
                      on_gpu(b, orders[1]))
        exact = 2 * a.astype("c16") @ b
        for part in ("real", "imag")[:1 + (letter == "c")]:
            sizes = {"real": (("real", "real"), ("imag", "imag")),
                     "imag": (("real", "imag"), ("imag", "real"))}[part]
            sizes = sum(2 * abs(getattr(a, x).astype("f8")) @ abs(getattr(b, y)) for x, y in sizes)
            wrong = abs(getattr(got, part) - getattr(exact, part))
            assert (wrong <= 2**-21 * sizes + 2**-149).all(), (letter, part)
    # all of a tile again, where it is wider
    a, b = (rng.standard_normal(x).astype("f4") for x in ((70, 40), (40, 100)))
    a[::7, ::3] *= np.float32(1e30)
    b[::3], a[69, 9] = 0, np.nan
    with _tuned.using("s", gemm_wgmma=PAIRS | {"BN": 128}):
        for orders in ("CF", "FC"):
            got = ran("gemm_wgmma", blasx.sgemm, 1, on_gpu(a, orders[0]), on_gpu(b, orders[1]))
            assert np.isnan(got[69]).all()
            exact, sizes = a[:69].astype("f8") @ b, abs(a[:69].astype("f8")) @ abs(b)
            assert (abs(got[:69] - exact) <= 2**-21 * sizes).all()
    a, b, row = (rng.standard_normal(x).astype("f4") for x in ((66, 70), (70, 90), 90))
    got = ran("gemm_wgmma", blasx.sgemm, 1.0, on_gpu(a), on_gpu(b), bias=on_gpu(row),
              activation="relu")
    exact, sizes = a.astype("f8") @ b + row, abs(a).astype("f8") @ abs(b) + abs(row)
    assert (abs(got - np.maximum(exact, 0)) <= 2**-21 * sizes).all()
    for letter, name, terms, lower in product("sc", ("syrk", "herk"), (1, 2), (0, 1)):
        name = name if terms == 1 else name[:-1] + "2k"
        hermitian = name[:2] == "he"
        if hermitian and letter == "s":
            continue
        of = [rng.standard_normal((140, 70)).astype("f4") for _ in range(2 * terms)]
        of = of[:terms] if letter == "s" else [x + 1j * y for x, y in zip(of[::2], of[1::2])]
        a, b = (x.astype("c16") for x in (of[0], of[-1]))
        x = a @ (b.conj().T if hermitian else b.T)
        x = x if terms == 1 else x + (x.conj().T if hermitian else x.T)
        c = (rng.standard_normal((140, 140)) + (1j if letter == "c" else 0)).astype(of[0].dtype)
        got = ran("gemm_wgmma", getattr(blasx, letter + name), 2, *map(on_gpu, of), -1,
                  on_gpu(c, "CF"[lower]), 0, lower)
        half = np.tri(140, dtype=bool) if lower else np.tri(140, dtype=bool).T
        before = c.copy()
        if hermitian:
            before[range(140), range(140)] = before.diagonal().real
        assert (abs(got - (2 * x - before)) <= 2e-4)[half].all(), (letter, name, lower)
        assert np.array_equal(got[~half], c[~half])
    a, b = ((rng.standard_normal(x) + 1j * rng.standard_normal(x)).astype("c8")
            for x in ((33, 70), (70, 65)))
    got = ran("gemm_wgmma", blasx.cgemm, 1, on_gpu(a), on_gpu(b))
    assert (abs(got - a.astype("c16") @ b) <= 2**-20 * (abs(a).astype("f8") @ abs(b))).all()
    a[::2] *= np.float32(2.0**30) * (rng.random(70) < 0.5) + 1
    b[:, ::3] *= np.exp(4 * rng.standard_normal((70, 22)))
    b[abs(a[0]) > 2.0**10, 3] = 0
    for orders in ("CF", "FC"):
        got = ran("gemm_wgmma", blasx.cgemm, 1, on_gpu(a, orders[0]), on_gpu(b, orders[1]))
        assert (abs(got - a.astype("c16") @ b) <= 2**-20 * (abs(a).astype("f8") @ abs(b))).all()


def of_few(blasx, rng):
    """Lines with few numbers that are not zero: what they make is rounded once, with alpha 1 and a
    permutation nothing is; beside one that is not finite they count as all others."""
    for (m, n, k), orders in product(((70, 130, 200), (129, 66, 72)), ("CF", "FC")):
        for letter in "sc":
            a, b = (rng.standard_normal(x) + (1j * rng.standard_normal(x) if letter == "c" else 0)
                    for x in ((m, k), (k, n)))
            b *= rng.random((k, n)).argsort(0) < np.arange(n) % 11  # so many in column j
            b[:, :40] = np.eye(k)[rng.permutation(k)[:40]].T
            a[:30, 9:] = 0
            a[0] = -0.0
            a, b = (x.astype("f4" if letter == "s" else "c8") for x in (a, b))
            a[2] *= np.float32(1e-38)
            of, wide = (on_gpu(a, orders[0]), on_gpu(b, orders[1])), b.astype("c16")
            exact, c = a.astype("c16") @ wide, a[:, :1] * b[:1]
            got = ran("gemm_wgmma", getattr(blasx, letter + "gemm"), 1, *of)
            assert np.array_equal(got[:, :40], a @ b[:, :40]) and not np.signbit(got[0].real).any()
            few = ((a != 0).sum(1) <= 8)[:, None] | ((b != 0).sum(0) <= 8)
            for x, y in ((got.real, exact.real), (got.imag, exact.imag)):
                assert (abs(x - y) <= 1.001 * 2**-24 * abs(y) + 2**-150)[few].all()
            assert 0.5 < few.mean() < 1
            assert (abs(got - exact) <= 2**-20 * (abs(a) @ abs(wide)) + 2**-148).all()
            twice = ran("gemm_wgmma", getattr(blasx, letter + "gemm"), -2, *of, 0.5, on_gpu(c))
            assert (abs(twice + 2 * got - c / 2) <= 2**-22 * (abs(got) + abs(c)) + 2**-148).all()
            a[40, 3] = np.inf
            with np.errstate(invalid="ignore"):
                got = ran("gemm_wgmma", getattr(blasx, letter + "gemm"), 1, on_gpu(a), of[1])
                right = a.real @ b.real - a.imag @ b.imag
            assert np.array_equal(np.isnan(got.real), np.isnan(right)) and np.isnan(right[40]).any()
            assert np.array_equal(np.delete(got.real, 40, 0)[:, :40],
                                  np.delete(right, 40, 0)[:, :40])
    got = ran("gemm_wgmma", blasx.sgemm, 1, on_gpu(b.real), on_gpu(np.eye(n, dtype="f4")),
              precision="tf32")
    assert (abs(got - b.real) <= 2**-11 * abs(b.real)).all() and (got != b.real).any()


def of_digits(a, b):
    """What products by digits are (kernels/digits.cuh), with 2^8 dropped once, rounded."""
    def digits(x):
        most, room = abs(x).max(1).astype("f8"), 127 * 0x10101
        down = np.frexp(most)[1] - 23
        down += np.ldexp(most, -down) > room
        times = np.full(len(x), 1.0)
        for more in (1.25, 1.5, 1.75):
            times[np.ldexp(most, -down).astype("f4") * np.float32(more) <= room] = more
        q = np.ldexp(x.astype("f8"), -down[:, None]) * times[:, None]
        q = np.rint(q.astype("f4")).astype("f8")
        low = (q + 128) % 256 - 128
        middle = ((q - low) / 256 + 128) % 256 - 128
        return down, times, ((q - low) / 256 - middle) / 256, middle, low
    (da, fa, x, y, z), (db, fb, u, v, w) = digits(a), digits(b.T)
    least = (x @ w.T + y @ v.T + z @ u.T + 128) // 256
    whole = 256 * (x @ u.T) + x @ v.T + y @ u.T + least
    return np.ldexp((whole / (fa[:, None] * fb)).astype("f4"), da[:, None] + db + 24)


def close_to(got, exact, xp):
    """Whether they are the same, but for some that lie half way between two numbers, and are the
    other one."""
    off = ~((got == exact) | (xp.isnan(got) & xp.isnan(exact)))
    return (abs(got - exact)[off] <= 2**-23 * abs(exact)[off]).all() and off.mean() < 1e-3


def digits(blasx, rng):
    """sgemm of even lines, which the model gives; others are as without digits. Each kind of line
    in each size and in each order, each size in each order."""
    from blasx import _tuned
    spoil = {"even": lambda a: a, "large": lambda a: a.__setitem__((3, 7), 1e4),
             "small": lambda a: a.__setitem__((5, slice(128, 256, 2)), 1e-5),
             "same": lambda a: a.__setitem__(9, 0.1),
             "nan": lambda a: a.__setitem__((0, 0), np.nan)}
    for turn, (m, n, k) in enumerate(((136, 72, 400), (24, 140, 256))):
        for orders, (what, change) in zip(cycle(("CF", "FC")[::1 - 2 * turn]), spoil.items()):
            a, b = (rng.standard_normal(x).astype("f4") for x in ((m, k), (k, n)))
            a[2], a[4] = 0, 1e-39 * a[4]
            b[:, 5] *= np.float32(2.0**60)
            change(a)
            c, of = rng.standard_normal((m, n)).astype("f4"), (on_gpu(a, orders[0]),
                                                               on_gpu(b, orders[1]))
            with _tuned.using("s", gemm_digits=RING | {"side": 1, "depth": 1},
                              split_digits=DIGITS):
                got = ran("gemm_digits", blasx.sgemm, 1.0, *of)
                twice = ran("gemm_digits", blasx.sgemm, -2.0, *of, 0.5, on_gpu(c))
            exact = of_digits(a, b) if what == "even" else ran(
                "gemm_wgmma", blasx.sgemm, 1.0, *of, variant="native")
            assert close_to(got, exact, np), (m, n, k, orders, what)
            wrong = abs(twice + 2 * got.astype("f8") - c / 2)
            assert not (wrong > 2**-23 * abs(twice)).any()


def remainders(blasx, rng):
    """dgemm and one triangle of a product: k + 3 times 2^-53 of |A| |B|."""
    a, b = (rng.standard_normal(x) * 2.0 ** rng.integers(-9, 9, x) for x in ((40, 150), (150, 70)))
    got = ran("gemm_crt", blasx.dgemm, 1.0, on_gpu(a), on_gpu(b, "F"), variant="crt")
    exact = np.asarray(a, np.longdouble) @ np.asarray(b, np.longdouble)
    assert (abs(got - exact) <= 153 * 2**-53 * (abs(a) @ abs(b))).all()
    got = ran("gemm_crt", blasx.dsyrk, 1.0, on_gpu(a), lower=1)
    exact = np.asarray(a, np.longdouble) @ np.asarray(a.T, np.longdouble)
    half = np.tri(40, dtype=bool)
    assert (abs(got - exact) <= 153 * 2**-53 * (abs(a) @ abs(a.T)))[half].all()
    assert not got[~half].any()


PARTS = {part.__name__: part for part in (halves, of_bytes, pairs, of_few, digits, remainders)}


def main(folder, part):
    install(folder)
    import blasx
    from blasx import _gpu_crt, _gpu_gemm, _tuned
    rng = np.random.default_rng(0)
    few = dict(gemm_small=None, gemm_tiled=None)
    with (_tuned.using("s", **few, gemm_wgmma=PAIRS, split_lines=LINES), _tuned.using("c", **few),
          _tuned.using("d", gemm_small=None, gemm_crt=REMAINDERS),
          _tuned.using("h", gemm_half=RING), _tuned.using("i", gemm_int8=RING),
          mock.patch.object(_gpu_gemm, "multiprocessors", lambda device: 3),
          mock.patch.object(_gpu_crt, "multiprocessors", lambda device: 3)):
        PARTS[part](blasx, rng)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
