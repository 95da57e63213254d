"""The launchers of the batched routines and their kernels, as tuned for Hopper, on a simulated GPU
(tests/sim/gpu.py): each routine's tester in one type, a member to a warp and one above order 32."""

from itertools import cycle
from pathlib import Path

import pytest

from testing.cases import CASES
from tests.sim.process import under_sanitizers

ROOT = Path(__file__).parent.parent
TYPED = [case.typed[next(x for x in (letter, *case.typed) if x in case.typed)]
         for case, letter in zip((c for c in CASES if c.group == "batched"), cycle("dzsc"))]


@pytest.mark.parametrize("name", TYPED)
def test_the_tester_passes(name, simulated):
    """Under AddressSanitizer and UBSan, another schedule at every launch."""
    asked = "-n 13,9,11 -n 12 -n 36 --batch 2 --nrhs 2 --check --niter 1 --nowarmup".split()
    run = under_sanitizers("gpu", simulated, name, *asked)
    assert run.returncode == 0 and run.stdout.count("  ok\n") == 3, run.stdout + run.stderr[-3000:]


def passes(text, simulated):
    """Run a program on the simulated GPU, under the sanitizers."""
    text = f"""
import sys
import numpy as np
from tests.sim import gpu
gpu.install(sys.argv[1])
import blasx
{text}
print("ok")
"""
    run = under_sanitizers(text, simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_inverses_of_definite_members(simulated):
    """Either triangle, by rows and by columns, in place and not, by each kernel, by two parts and
    three; a member with a zero on the diagonal, and one alone, with the same bits; of the other
    triangle nothing is read or lost."""
    text = """
rng = np.random.default_rng(0)
ways = (1, 0, 1), (0, 0, 0), (0, 1, 1), (1, 1, 0)
for letter, n, dtype, all_ways in (("z", 9, "c16", 1), ("s", 70, "f4", 1), ("c", 130, "c8", 1),
                                   ("z", 129, "c16", 0)):
    potri, eye = getattr(blasx, letter + "potri_batched"), np.eye(n)
    a = rng.standard_normal((3, n, n)).astype(dtype)
    a = (a @ a.conj().swapaxes(1, 2) / n + eye).astype(dtype)
    for lower, columns, overwrite in ways if all_ways else ways[:1]:
        half, other = (np.tril, np.triu) if lower else (np.triu, np.tril)
        c = np.linalg.cholesky(a)
        c = c if lower else c.conj().swapaxes(1, 2)
        c = (c + other(np.full((n, n), np.nan), 2 * lower - 1)).astype(dtype)
        c[1, 3, 3] = 0
        given = gpu.copied(c.swapaxes(1, 2)).swapaxes(1, 2) if columns else gpu.copied(c)
        x, info = potri(given, lower, overwrite)
        assert info.tolist() == [0, 4, 0] and (x is given) == overwrite
        x = np.array(x)
        assert np.array_equal(x[1], c[1], equal_nan=True)
        for i in (0, 2):
            assert np.array_equal(np.isnan(x[i]), np.isnan(c[i]))
            whole = half(x[i]) + half(x[i], 2 * (not lower) - 1).conj().T
            assert abs(a[i] @ whole - eye).max() < 1e3 * n * np.finfo(dtype).eps
        alone, _ = potri(gpu.copied(c[2:]), lower)
        assert np.array(alone)[0].tobytes() == x[2].tobytes()
"""
    passes(text, simulated)


def test_batches_of_none_launch_nothing(simulated):
    """An empty array is at address 0, and its members are 0 apart, as those are that all share."""
    text = """
for letter, dtype in (("s", "f4"), ("d", "f8"), ("c", "c8"), ("z", "c16")):
    h, square = "he" if letter in "cz" else "sy", lambda n: gpu.Array((0, n, n), dtype)
    for n in (3, 20, 70):
        a, lines = square(n), gpu.Array((0, n), dtype)
        for name, of in (("gemm", (1, a, a)), ("gemv", (1, a, lines)), (h + "mm", (1, a, a)),
                         (h + "rk", (1, a)), ("trmm", (1, a, a)), ("trsm", (1, a, a)),
                         ("trsv", (a, lines)), ("getrf", (a,)), ("getrf_nopiv", (a,)),
                         ("potrf", (a,)), ("potri", (a,)), ("posv", (a, a)), ("gesv", (a, a)),
                         ("geqrf", (a,)), ("gels", (a, a))):
            x = getattr(blasx, f"{letter}{name}_batched")(*of)
            assert (x[0] if isinstance(x, tuple) else x).shape == of[-1].shape, (name, n)
"""
    passes(text, simulated)


def test_columns_dealt_to_lanes(simulated):
    """Inverses and columns of Q, teams across warps: fewer reflectors than columns, or none; a
    member with nan, one singular, one with tiny pivots; each has the bits that it has alone."""
    text = """
rng = np.random.default_rng(0)
for letter, n, dtype in (("s", 17, "f4"), ("z", 9, "c16"), ("d", 5, "f8")):
    a = rng.standard_normal((9, n, n)).astype(dtype)
    a[1, 2, 3], a[2, :, 1], tiny = np.nan, 0, np.finfo(dtype).tiny
    a[3] = np.eye(n) * tiny / 2
    getrf, getri, geqrf, orgqr = (getattr(blasx, letter + name + "_batched") for name in (
        "getrf", "getri", "geqrf", "ungqr" if letter == "z" else "orgqr"))
    lu, piv, _ = getrf(gpu.copied(a))
    x, info = getri(lu, piv)
    assert info.tolist() == [0, 0, 2] + 6 * [0] and (x[2] == lu[2]).all()
    assert (np.array(x[3]) == np.eye(n) * (2 / tiny)).all()
    for i in range(9):
        alone, _ = getri(lu[i:i + 1], piv[i:i + 1])
        assert np.array(alone[0]).tobytes() == np.array(x[i]).tobytes(), (letter, i)
        if i > 3:
            assert abs(np.array(a[i] @ x[i]) - np.eye(n)).max() < 1e3 * n * np.finfo(dtype).eps
    a[2:4] = rng.standard_normal((2, n, n))
    qr, tau, _ = geqrf(gpu.copied(a))
    for k in (0, n // 2, n):
        q, info = orgqr(qr, tau[:, :k])
        assert not info.any()
        for i in range(9):
            alone, _ = orgqr(qr[i:i + 1], tau[i:i + 1, :k])
            assert np.array(alone[0]).tobytes() == np.array(q[i]).tobytes(), (letter, k, i)
            if i != 1:
                square = np.array(q[i]).conj().T @ np.array(q[i])
                assert abs(square - np.eye(n)).max() < 5 * n * np.finfo(dtype).eps
            if k == 0:
                assert (np.array(q[i]) == np.eye(n)).all()
"""
    passes(text, simulated)


def test_rotations_are_applied_in_passes(simulated):
    """QL in short passes: more than two are needed. How many there are does not change a bit."""
    text = """
from blasx import _tuned
a = np.random.default_rng(0).standard_normal((3, 36, 36))
a += a.swapaxes(1, 2)
def found(passes):
    with _tuned.using("d", steqr_lane=dict(LANES=1, WARPS=1, PARTS=passes), stedc_leaf=None):
        return [np.array(x) for x in blasx.dsyevd_batched(gpu.copied(a))]
w, v, info = found(60)
assert not info.any()
assert all((x == y).all() for x, y in zip(found(2), (w, v, info)))
assert abs(w - np.linalg.eigvalsh(a)).max() < 1e-13 * abs(w).max()
assert abs(a @ v - v * w[:, None]).max() < 1e-13 * abs(w).max()
"""
    passes(text, simulated)


def test_few_columns_of_a_triangle_are_those_of_many(simulated):
    """Blocks have no more warps than columns to fill, and that does not change a bit."""
    text = """
rng = np.random.default_rng(0)
for name, n, most in ("dtrmm", 36, 40), ("dtrsm", 36, 40), ("strmm", 66, 40), ("strsm", 98, 70):
    of = getattr(blasx, name + "_batched")
    a, b = (rng.uniform(-1, 1, (2, n, m)).astype(name[0].replace("s", "f")) for m in (n, most))
    a += 4 * np.eye(n, dtype=a.dtype)
    many, few = (np.array(of(1, gpu.copied(a), gpu.copied(b[:, :, :m]), lower=1))
                 for m in (most, 5))
    assert (few == many[:, :, :5]).all()
    off = np.tril(a) @ many - b if name[1:] == "trsm" else np.tril(a) @ b - many
    assert abs(off).max() < 100 * np.finfo(a.dtype).eps * abs(a).sum(1).max()
"""
    passes(text, simulated)


def test_one_column_times_q_is_that_of_many(simulated):
    """By fewer warps, and not a bit otherwise."""
    text = """
rng = np.random.default_rng(0)
a, c = (rng.standard_normal((2, 67, m)) for m in (67, 3))
qr, tau, _ = blasx.dgeqrf_batched(gpu.copied(a))
many, one = (np.array(blasx.dormqr_batched("L", "T", qr, tau, gpu.copied(c[:, :, :m]))[0])
             for m in (3, 1))
assert (one == many[:, :, :1]).all()
q = np.linalg.solve(np.triu(qr).swapaxes(1, 2), a.swapaxes(1, 2))
assert abs(q @ c - many).max() < 1e-11 * abs(np.linalg.inv(a)).max()
"""
    passes(text, simulated)


def test_strips_of_tiny_columns_and_of_no_reflectors(simulated):
    """The tensor cores multiply single precision in two parts, of which one underflows where C is
    tiny; Q of no reflectors is the identity, and reads none."""
    text = """
rng = np.random.default_rng(0)
for letter, dtype in ("s", "f4"), ("c", "c8"), ("d", "f8"):
    m, k, eps = 101, 21, np.finfo(dtype).eps
    un = "un" if letter == "c" else "or"
    geqrf, mqr, gqr = (getattr(blasx, letter + x + "_batched")
                       for x in ("geqrf", un + "mqr", un + "gqr"))
    qr, tau, _ = geqrf(gpu.copied(rng.standard_normal((1, m, k)).astype(dtype)))
    c = rng.standard_normal((1, m, 40)).astype(dtype)
    if dtype != "f8":
        c[0, :, 3] *= 2.0**-124
        c[0, :, 20:22] *= 2.0**120
        c[0, :, 30] = 0
    with blasx.trace() as ran:
        x = np.array(mqr("L", "N", qr, tau, gpu.copied(c))[0])[0]
    assert "ormqr_strips" in str(ran)
    right = c[0].astype("c16")
    for j in reversed(range(k)):
        h = np.array(qr)[0, :, j].astype("c16")
        h[:j], h[j] = 0, 1
        right -= np.outer(h * complex(np.array(tau)[0, j]), h.conj() @ right)
    norms = np.linalg.norm(right, axis=0)
    error = np.linalg.norm(x - right, axis=0)
    assert (error <= 10 * eps * norms).all(), (letter, error / norms / eps)
    n = 150
    none = gpu.copied(np.zeros((2, 0), dtype))
    with blasx.trace() as ran:
        q, info = gqr(gpu.copied(np.full((2, n, n), np.nan, dtype)), none)
    assert "orgqr_strips" in str(ran) and (np.array(q) == np.eye(n)).all() and not info.any()
    same, info = mqr("L", "N", gpu.copied(np.zeros((1, m, 0), dtype)), none[:1], gpu.copied(c))
    assert (np.array(same) == c).all()
"""
    passes(text, simulated)


def test_reflectors_that_are_alike(simulated):
    """As a matrix of ones has them: sums of their products are rounded to one side all the way, and
    what is wrong in T is so in every column. One sum of 128 is off by 59 units, four of 32 by 19.
    By panels few columns go by fewer warps, but in s, and have the same bits."""
    text = """
from blasx import _tuned
from blasx._routine import Typed
from blasx.batched._gpu_qr import by_panels_of
rng = np.random.default_rng(0)
for letter, few, dtype in ("s", 40, "f4"), ("d", 12, "f8"), ("c", 40, "c8"), ("z", 12, "c16"):
    n = 128
    of = getattr(blasx, letter + ("unmqr" if letter in "cz" else "ormqr") + "_batched")
    below, eps = np.sqrt(np.arange(n, 0, -1)), np.finfo(dtype).eps / 2
    v = np.tril(np.ones((1, n, n)) / (1 + below), -1).astype(dtype)
    tau = (1 + 1 / below)[None].astype(dtype)
    c = rng.standard_normal((1, n, 140)).astype(dtype)
    def product(c):
        with blasx.trace() as ran:
            return np.array(of("L", "N", gpu.copied(v), gpu.copied(tau), gpu.copied(c))[0]), ran
    by_strips, ran = product(c)
    assert "ormqr_strips" in str(ran)
    with _tuned.using(letter, ormqr_strips=None):
        (x, _), (some, ran) = product(c), product(c[:, :, :few])
    assert "ormqr_block" in str(ran) and np.array_equal(some, x[:, :, :few])
    fewer, usual = (by_panels_of(Typed("ormqr", letter), n, k).values["WARPS"] for k in (few, 140))
    assert fewer < usual or letter == "s"
    right = c[0].astype(np.result_type(dtype, np.longdouble))
    for j in reversed(range(n)):
        h = v[0, :, j].astype(right.dtype)
        h[j] = 1
        right -= np.outer(h * tau[0, j], h @ right)
    norm = lambda a: np.linalg.norm(a.astype("c16"))
    for found in x[0], by_strips[0]:
        assert norm(found - right) <= 25 * eps * norm(right), (letter, norm(found - right) / eps)
"""
    passes(text, simulated)


def test_a_step_outside_is_seen(simulated):
    """The arrays of the simulated GPU end where their memory does."""
    text = ("import sys; from tests.sim import gpu; kernels = gpu.install(sys.argv[1]); "
            "import blasx; from blasx.batched import _gpu_lu; import cupy; "
            "shrunk = cupy.ndarray((2, 40, 40)); "
            "_gpu_lu.pivots_and_infos = lambda batch, n: (cupy.ndarray((batch, n - 1), 'i4'),"
            " cupy.ndarray((batch,), 'i4')); "
            "shrunk[...] = cupy.eye(40); blasx.dgetrf_batched(shrunk)")
    run = under_sanitizers(text, simulated)
    assert run.returncode and "AddressSanitizer" in run.stderr, run.stderr[-3000:]


def test_eigenvectors_by_division(simulated):
    """Divide and conquer, as rows of larger orders have it: all parts joined, none, close and equal
    eigenvalues, graded members, one of rank one and noise, whose first eigenvalue takes QL of 32
    rows more than 30 sweeps, some that are not finite, both triangles, all types."""
    text = """
from contextlib import ExitStack
from blasx import _tuned
rng = np.random.default_rng(0)
tiles = dict(BM=32, BN=32, TM=16, TN=16, BK=16, STAGES=2, RESIDENT=0, WARPS=4, BLOCKS=1)
def members(n, letter):
    def normal():
        x = rng.standard_normal((n, n))
        return x + 1j * rng.standard_normal((n, n)) if letter in "cz" else x
    x = [normal() for _ in range(4)]
    q = np.linalg.qr(x[3])[0]
    steps = 2.0 ** -np.arange(n)
    tridiagonal = np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1)
    wilkinson = np.diag(abs(np.arange(n) - n // 2) + 0.0) + np.eye(n, k=1) + np.eye(n, k=-1)
    apart = np.diag(np.arange(n) % 5 + 0.0)
    x = [x[0] + x[0].conj().T, np.eye(n), np.zeros((n, n)), tridiagonal, wilkinson, apart,
         q * np.repeat([1, 2], [n - 3, 3]) @ q.conj().T, np.outer(x[1][0], x[1][0].conj()),
         q * steps @ q.conj().T, steps[:, None] * (x[2] + x[2].conj().T) * steps,
         1e-30 * (x[2] + x[2].conj().T),
         np.outer(x[1][0], x[1][0].conj()) + 2e-15 * (x[2] + x[2].conj().T),
         x[2] + x[2].conj().T, x[2] + x[2].conj().T]
    x[12][n // 2, 3] = x[12][3, n // 2] = np.nan
    x[13][0, 0] = np.inf
    return np.array(x)
for letter, n in ("s", 33), ("d", 64), ("c", 67), ("z", 40):
    x = members(n, letter).astype(dict(s="f4", d="f8", c="c8", z="c16")[letter])
    real = dict(c="s", z="d").get(letter, letter)
    eps = np.finfo(x.dtype).eps
    of = getattr(blasx, letter + ("heevd" if letter in "cz" else "syevd") + "_batched")
    with ExitStack() as stack:
        stack.enter_context(_tuned.using(letter, stedc_leaf=dict(WARPS=2, values=1),
                                         stedc_merge=dict(WARPS=2)))
        stack.enter_context(_tuned.using(real, gemm_block=tiles, gemm_split=None, gemm_warp=None,
                                         gemm_thread=None, gemm_lines=None))
        for lower, overwrite in (0, 0), (1, 1):
            with blasx.trace() as ran:
                w, v, info = map(np.array, of(gpu.copied(x), 1, lower, overwrite))
            assert "stedc_merge" in str(ran) and list(info) == [0] * 12 + [1] * 2, info
            assert np.isnan(w[12:]).all() and np.isnan(v[12:]).all()
            with blasx.trace() as ran:
                alone = np.array(of(gpu.copied(x), 0, lower, overwrite)[0])
            assert "stedc_merge" in str(ran) and np.array_equal(alone, w, equal_nan=True)
            for a, d, q in zip(x[:12].astype("c16"), w.astype("f8"), v.astype("c16")):
                size = abs(a).max() * n * eps
                assert abs(q * d @ q.conj().T - a).max() <= 2 * size
                assert abs(q.conj().T @ q - np.eye(n)).max() <= 2 * n * eps
                assert (np.diff(d) >= 0).all() and abs(d - np.linalg.eigvalsh(a)).max() <= 2 * size
            alone = [np.array(y)[0] for y in of(gpu.copied(x[3:4]), 1, lower, overwrite)]
            assert np.array_equal(alone[0], w[3]) and np.array_equal(alone[1], v[3])
"""
    passes(text, simulated)


def test_products_a_little_larger_than_whole_tiles(simulated):
    """By the rows that ship: m or n or both in the border, members alone as in their batch."""
    text = """
from blasx import _tuned
rng = np.random.default_rng(0)
for letter, m, n, k in (("c", 17, 18, 13), ("c", 32, 34, 36), ("c", 36, 20, 33), ("z", 33, 32, 30),
                        ("s", 68, 65, 64)):
    assert "BORDER" in _tuned.row("gemm_block", letter, max(m, n, k), 90)
    def random(*shape):
        x = rng.standard_normal(shape)
        x = x + 1j * rng.standard_normal(shape) if letter in "cz" else x
        return x.astype(dict(s="f4", c="c8", z="c16")[letter])
    a, b, c = random(3, m, k), random(3, k, n), random(3, m, n)
    of, eps = getattr(blasx, letter + "gemm_batched"), np.finfo(a.dtype).eps
    for beta in (0, -0.5):
        x = np.array(of(0.75, gpu.copied(a), gpu.copied(b), beta, gpu.copied(c)))
        want = 0.75 * a.astype("c16") @ b + beta * c
        assert abs(x - want).max() <= 4 * k * eps * abs(want).max(), (letter, m, n, k)
        for i in range(3):
            one = of(0.75, *(gpu.copied(y[i:i + 1]) for y in (a, b)), beta, gpu.copied(c[i:i + 1]))
            assert np.array_equal(np.array(one)[0], x[i])
"""
    passes(text, simulated)


def test_products_by_parts_of_numbers_of_any_size(simulated):
    """Single precision on the tensor cores, matrices with and without gaps between their rows:
    near underflow and below, near overflow, where sums are made again, and columns of either."""
    text = """
rng = np.random.default_rng(0)
for letter, n, dtype in (("s", 50, "f4"), ("s", 72, "f4"), ("c", 49, "c8"), ("c", 66, "c8")):
    def made(scale, gap=0):
        x = rng.standard_normal((2, n, n + gap))
        x = x + 1j * rng.standard_normal(x.shape) if letter in "cz" else x
        return (x * scale).astype(dtype)
    def judged(x, a, b, wanted=slice(None)):
        a, b = a.astype("c16"), b.astype("c16")
        error = abs(np.array(x) - a @ b) / (abs(a) @ abs(b) * 2.0**-24 + 2.0**-149)
        assert error[:, wanted].max() < n / 8, (letter, n, error[:, wanted].max())
    columns = np.where(np.arange(n) % 2, 2.0**-120, 2.0**90)
    for of_a, of_b in ((1, 1), (2.0**-122, 2.0**30), (2.0**-140, 2.0**60), (2.0**30, 2.0**-130),
                       (2.0**-60, 2.0**-62), (2.0**122, 2.0**-120),
                       (columns, 1 / columns[:, None])):
        for gap in (0, 2):
            a, b = made(np.pad(of_a, (0, gap)) if np.ndim(of_a) else of_a, gap), made(of_b, 0)
            a = a if gap == 0 else gpu.copied(a)[:, :, :n]
            x = getattr(blasx, letter + "gemm_batched")(1, gpu.copied(a) if gap == 0 else a,
                                                        gpu.copied(b))
            judged(x, np.array(a), b)
    for scale in (1, 2.0**-63, 2.0**60):
        a = made(scale)
        x = getattr(blasx, letter + "syrk_batched")(1, gpu.copied(a), lower=1)
        judged(np.tril(np.array(x)) + np.triu(a.astype("c16") @ a.astype("c16").swapaxes(1, 2), 1),
               a, a.swapaxes(1, 2))
        c, of = made(scale * scale), getattr(blasx, letter + "syrk_batched")
        for lower in (0, 1):  # the same bits however C lies
            x, y = (np.array(of(0.5, gpu.copied(a), 2, z, lower=lower)) for z in (
                gpu.copied(c), gpu.copied(c.swapaxes(1, 2)).swapaxes(1, 2)))
            assert np.array_equal(x, y)
            assert np.array_equal(np.triu(x, 1), np.triu(c, 1)) == lower
    s, b = made(2.0**-121), made(2.0**20)
    s = np.tril(s) + np.tril(s, -1).swapaxes(1, 2)
    x = getattr(blasx, letter + "symm_batched")(1, gpu.copied(s), gpu.copied(b), lower=1)
    judged(x, s, b)
"""
    passes(text, simulated)


NUMBERS = """
rng = np.random.default_rng(0)
def random(letter, *shape):
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if letter in "cz" else x
    return x.astype(dict(s="f4", d="f8", c="c8", z="c16")[letter])
def same(x, y):
    return np.array(x).tobytes() == np.array(y).tobytes()
"""


RANKS = NUMBERS + """
for letter, n, k in SIZES:
    apart = random(letter, 3, n * k + 5)
    whole = gpu.copied(apart)[:, :n * k].reshape(3, n, k)
    assert whole.strides[0] == apart.strides[0]
    a = np.array(whole)
    wide = a.astype(np.result_type(a.dtype, "c16" if letter in "cz" else "f8"))
    eps = np.finfo(a.dtype).eps
    for name in ("syrk", "herk")[:1 + (letter in "cz")]:
        of = getattr(blasx, f"{letter}{name}_batched")
        alpha = -0.75 + 0.5j * (letter in "cz" and name == "syrk")
        alpha = alpha if letter in "cz" and name == "syrk" else alpha.real
        def right(a):
            return alpha * a @ (a.conj() if name == "herk" else a).swapaxes(1, 2)
        bound = (k + 4) * eps * abs(wide) @ abs(wide).swapaxes(1, 2)
        for lower, half in (0, np.triu), (1, np.tril):
            with blasx.trace() as ran:
                x = np.array(of(alpha, whole, lower=lower))
            assert [call.variant for call in ran.calls] == ["syrk_lines"], ran
            assert (abs(x - half(right(wide))) <= half(bound)).all(), (letter, n, k, name, lower)
            assert name == "syrk" or not x.imag[:, range(n), range(n)].any()
            for i in range(3):
                assert same(of(alpha, gpu.copied(a[i:i + 1]), lower=lower)[0], x[i])
            assert same(of(alpha, gpu.copied(a[1]), lower=lower)[0], x[1])
            spoiled = a.copy()
            spoiled[1, 2, 3], spoiled[1, 5, 4] = np.nan, np.inf
            y = np.array(of(alpha, gpu.copied(spoiled), lower=lower))
            assert same(y[[0, 2]], x[[0, 2]])
            lost = np.zeros((n, n), bool)
            lost[[2, 5]] = lost[:, [2, 5]] = True
            assert np.array_equal(~np.isfinite(y[1]), half(lost))
            assert (abs(y[1] - x[1])[~lost] <= 2 * half(bound[1])[~lost]).all()
            assert not of(0, gpu.copied(spoiled), lower=lower).any()
            if letter not in "sc":
                continue
            for up, row in (-60, 0), (0, -120), (58, 0):
                scale = np.full((n, 1), 2.0**up)
                scale[3] *= 2.0**row
                y = np.array(of(alpha, gpu.copied((scale * a).astype(a.dtype)), lower=lower))
                back = y / scale / scale.T
                tiny = half(k * 2.0**-148 / scale / scale.T)
                assert (abs(back - half(right(wide))) <= half(bound) + tiny).all(), (n, k, up, row)
"""


def test_ranks_of_odd_orders_by_lines(simulated):
    """By the rows that ship: both triangles, the other zero, a real diagonal; members that lie
    apart, and one alone, as among others and beside numbers that are not finite; numbers near
    underflow, and products near the largest."""
    passes(RANKS.replace("SIZES", """(
        ("s", 17, 17), ("s", 35, 47), ("s", 50, 46), ("s", 69, 65), ("s", 113, 75),
        ("d", 17, 25), ("d", 41, 33), ("d", 67, 69), ("c", 19, 17), ("c", 33, 39), ("c", 61, 55),
        ("z", 17, 23), ("z", 35, 35), ("z", 49, 57))"""), simulated)


def test_ranks_of_rows_apart(simulated):
    """The same of rows in whole lines of memory, which lie apart in shared memory."""
    passes("""
from contextlib import ExitStack
from blasx import _tuned
rows = ExitStack()
def padded(letter, team, deep):
    rows.enter_context(_tuned.using(letter, syrk_lines=dict(
        TEAM=team, RM=1, DEEP=deep, STAGES=1, WARPS=team, BLOCKS=1, PADDED=1)))
padded("s", 4, 32), padded("d", 3, 16), padded("c", 2, 16), padded("z", 2, 8)
""" + RANKS.replace("SIZES", """(
        ("s", 64, 64), ("s", 32, 48), ("s", 52, 64), ("d", 48, 32), ("d", 32, 32), ("c", 32, 32),
        ("c", 30, 32), ("z", 24, 24), ("z", 31, 24))"""), simulated)


def test_symmetric_products_by_lines(simulated):
    """By the rows that ship, orders whose rows are multiples of 128 bytes among them: A on either
    side, of either triangle, by rows and by columns, one for all members; members that begin
    anywhere in 16 bytes, and one alone, have the bits they have among others and beside numbers
    that are not finite; numbers near underflow."""
    text = NUMBERS + """
from blasx import _tuned
def begins(x, numbers):
    room = gpu.copied(np.concatenate([x.ravel()[:1]] * numbers + [x.ravel()]))
    return room[numbers:].reshape(x.shape)
cases = [("s", 9, 9), ("s", 35, 29), ("d", 16, 14), ("d", 41, 33), ("c", 16, 16), ("c", 19, 16),
         ("z", 16, 12), ("z", 21, 19), ("z", 25, 25)]
for i, (letter, m, n) in enumerate(cases):
    for name in ("symm", "hemm")[:1 + (letter in "cz")]:
        of, hermitian = getattr(blasx, f"{letter}{name}_batched"), name == "hemm"
        for side, lower in ((0, i % 2), (1, hermitian)):
            order, alpha, beta = n if side else m, 0.75 + 0.5j * (letter in "cz"), -0.5
            half = np.tri(order, dtype=bool) if lower else np.tri(order, dtype=bool).T
            a, b, c = (random(letter, 3, *shape) for shape in ((order, order), (m, n), (m, n)))
            alpha = alpha if letter in "cz" else alpha.real
            across = a.conj().swapaxes(1, 2) if hermitian else a.swapaxes(1, 2)
            full = np.where(half, a, across).astype(np.result_type(a.dtype, "f8"))
            if hermitian:
                full[:, range(order), range(order)] = full[:, range(order), range(order)].real
            a[:, ~half] = np.nan
            def judged(x, full, b, c=0):
                left, right = (b, full) if side else (full, b)
                bound = (order + 4) * np.finfo(a.dtype).eps * (abs(left) @ abs(right) + abs(c))
                assert (abs(np.array(x) - alpha * left @ right - beta * c) <= bound).all(), (
                    letter, m, n, name, side, lower)
            with blasx.trace() as ran:
                x = np.array(of(alpha, gpu.copied(a), gpu.copied(b), side=side, lower=lower))
            judged(x, full, b)
            if not side or _tuned.row("symm_lines", letter, max(m, n), 90)["STAGES"] == 1:
                assert [call.variant for call in ran.calls] == ["symm_lines"], ran
            for first in 1, 3:
                y = of(alpha, begins(a, first), begins(b, first), side=side, lower=lower)
                assert same(y, x)
            for i in range(3):
                alone = of(alpha, gpu.copied(a[i]), gpu.copied(b[i:i + 1]), side=side, lower=lower)
                assert same(alone[0], x[i])
            spoiled = a.copy()
            spoiled[1, 2, 2], spoiled[1, 3, 3] = np.inf, np.nan
            y = np.array(of(alpha, gpu.copied(spoiled), gpu.copied(b), side=side, lower=lower))
            assert same(y[[0, 2]], x[[0, 2]]) and not np.isfinite(y[1]).all()
            judged(of(alpha, gpu.copied(a), gpu.copied(b), beta, gpu.copied(c), side=side,
                      lower=lower), full, b, c)
            judged(of(alpha, gpu.copied(a[1]), gpu.copied(b), side=side, lower=lower), full[1], b)
            at, bt = (gpu.copied(z.swapaxes(1, 2)).swapaxes(1, 2) for z in (a, b))
            ct = gpu.copied(c.swapaxes(1, 2)).swapaxes(1, 2)
            z = of(alpha, at, bt, beta, ct, side=side, lower=lower, overwrite_c=1)
            assert z is ct
            judged(z, full, b, c)
            if letter in "sc":
                up, down = 2.0**-118, 2.0**90
                y = np.array(of(alpha, gpu.copied((a * up).astype(a.dtype)),
                                gpu.copied((b * down).astype(a.dtype)), side=side, lower=lower))
                judged(y / up / down, full, b)
"""
    passes(text, simulated)


def test_triangles_with_few_columns(simulated):
    """Fewer lanes by the rows that ship for few columns, and the same bits as by the others."""
    text = """
from blasx import _tuned
rng = np.random.default_rng(0)
for letter, n in ("c", 19), ("s", 20), ("d", 17):
    a = rng.standard_normal((5, n, n)) / n + np.eye(n)
    b = rng.standard_normal((5, n, 40))
    a, b = (x.astype(dict(s="f4", d="f8", c="c8")[letter]) for x in (a, b))
    for routine in "trsm", "trmm":
        of = getattr(blasx, f"{letter}{routine}_batched")
        with blasx.trace() as ran:
            whole = np.array(of(1, gpu.copied(a), gpu.copied(b), lower=1))
        lanes = [r["LANES"] * r["C"] for few in (40, 8, 3, 1)
                 for r in [_tuned.row(routine + "_small", letter, n, 90, few)]]
        assert lanes[0] > lanes[1] >= lanes[2] >= lanes[3] and lanes[0] > lanes[3], lanes
        for few in 8, 3, 1:
            x = np.array(of(1, gpu.copied(a), gpu.copied(b[:, :, :few].copy()), lower=1))
            assert np.array_equal(x, whole[:, :, :few]), (letter, routine, few)
"""
    passes(text, simulated)


def test_lu_without_pivots_is_one_contract(simulated):
    """The CPU's and every kernel's, however the result lies: the factors of members of which no
    step rounds, also where pivots are zero or tiny, and for a member alone the bits it has among
    others."""
    text = """
from blasx import _tuned
from tests.sim.run import check_without_pivots, without_pivots
rng = np.random.default_rng(0)
for letter, dtype, m, n, kernel in (
        ("s", "f4", 7, 7, "getrf_small"), ("d", "f8", 24, 20, "getrf_small"),
        ("z", "c16", 33, 40, "getrf_shared"), ("c", "c8", 40, 33, "getrf_nopiv")):
    of = getattr(blasx, letter + "getrf_nopiv_batched")
    a, *right = without_pivots(rng, np.dtype(dtype), 6, m, n)
    check_without_pivots(a, *of(a), *right)
    with _tuned.using(letter, **{} if kernel == "getrf_shared" else dict(getrf_shared=None)):
        for i in (0, 1):
            x = gpu.copied(a) if i else gpu.copied(a.swapaxes(1, 2).copy()).transpose(0, 2, 1)
            with blasx.trace() as ran:
                lu, info = of(x, i)
            assert ran.calls[0].variant == kernel and (lu is x) == i, ran
            check_without_pivots(a, np.array(lu), np.array(info), *right)
            alone, _ = of(gpu.copied(a[4:5]))
            assert np.array_equal(np.array(alone)[0], np.array(lu)[4])
"""
    passes(text, simulated)


def test_lu_without_pivots_by_blocks(simulated):
    """Members larger than a block takes, as if that were 40: square, tall, wide, a zero pivot."""
    text = """
from blasx.batched import _gpu, _gpu_lu
_gpu.ANYWHERE, _gpu.most = 0, lambda letter, model: 40
_gpu_lu.most = _gpu.most
rng = np.random.default_rng(0)
for name, m, n in ("dgetrf_nopiv", 100, 100), ("zgetrf_nopiv", 90, 43), ("sgetrf_nopiv", 43, 90):
    a = rng.standard_normal((3, m, n)) + 2 * max(m, n) ** 0.5 * np.eye(m, n)
    if name[0] == "z":
        a = a + 1j * rng.standard_normal(a.shape)
    a = a.astype(dict(s="f4", d="f8", z="c16")[name[0]])
    a[1, 41], a[1, :41, 41] = 0, 0
    of, eps = getattr(blasx, name + "_batched"), np.finfo(a.dtype).eps
    for i in (0, 1):
        lu, info = of(gpu.copied(a), i)
        lu, info = np.array(lu), np.array(info)
        assert list(info) == [0, 42, 0], info
        k = min(m, n)
        l, u = np.tril(lu[:, :, :k], -1) + np.eye(m, k, dtype=a.dtype), np.triu(lu[:, :k])
        for j in (0, 2):
            assert abs(l[j] @ u[j] - a[j]).max() < 30 * eps * (abs(l[j]) @ abs(u[j])).max()
        alone, _ = of(gpu.copied(a[2:]), i)
        assert np.array_equal(np.array(alone)[0], lu[2])
"""
    passes(text, simulated)


def test_lu_in_global_memory_is_that_in_lines(simulated):
    """However the result lies, in place or not, with room for lines or without: the same bits."""
    text = """
from blasx import _tuned
from blasx.batched import _gpu, _gpu_lu
rng = np.random.default_rng(0)
block = dict(WARPS=2, ROWS=2, NB=16, RESIDENT=0, CHUNK=32, TM=16, TN=16, BLOCKS=1, UNROLL=1)
rooms, room, _gpu_lu.CROSSINGS = [], _gpu_lu.room_in_lines, 2
_gpu_lu.room_in_lines = lambda a: rooms.append(a.shape) or room(a)
for letter, m, n in ("d", 67, 67), ("z", 48, 83), ("s", 90, 64), ("c", 71, 41):
    a = rng.standard_normal((3, m, n))
    if letter in "cz":
        a = a + 1j * rng.standard_normal(a.shape)
    a = a.astype(dict(s="f4", d="f8", c="c8", z="c16")[letter])
    a[1, :, 20] = 0
    getrf = getattr(blasx, letter + "getrf_batched")
    with _tuned.using(letter, getrf_shared=None, getrf_block=block):
        kept, _gpu_lu.MEMORY = _gpu_lu.MEMORY, 0
        right = [np.array(x) for x in getrf(gpu.copied(a))]
        _gpu_lu.MEMORY = kept
        assert not rooms and list(right[2]) == [0, 21, 0]
        for by_columns in (0, 1):
            for i in (0, 1):
                x = gpu.copied(a.swapaxes(1, 2).copy()).transpose(0, 2, 1) if by_columns else (
                    gpu.copied(a))
                lu, piv, info = getrf(x, i)
                assert (lu is x) == i and (i or np.array_equal(np.array(x), a))
                assert len(rooms) == (by_columns or n * a.itemsize % 128 > 0), (letter, rooms)
                rooms.clear()
                for got, want in zip((lu, piv, info), right):
                    assert np.array(got).tobytes() == want.tobytes(), (letter, by_columns, i)
"""
    passes(text, simulated)


def test_cholesky_by_panels(simulated):
    """As the row of order 300 and more would have it, in panels of 48: triangles, odd ends, members
    that fail, and what must be left alone."""
    text = """
from blasx import _tuned
from testing.errors import cholesky_info, untouched
rng = np.random.default_rng(0)
for name, lower, n in ("cpotrf", 1, 136), ("zpotrf", 0, 71), ("dpotrf", 1, 71):
    a = rng.standard_normal((3, n, n))
    if name[0] in "cz":
        a = a + 1j * rng.standard_normal(a.shape)
    a = a @ a.conj().swapaxes(1, 2) / n + np.eye(n)
    a[1, 50, 50] = -1
    a = a.astype(dict(c="c8", z="c16", d="f8")[name[0]])
    hidden, uplo = a.copy(), "UL"[lower]
    hidden[:, *(np.triu_indices(n, 1) if lower else np.tril_indices(n, -1))] = np.nan
    with _tuned.using(name[0], potrf_panels=dict(NB=48)):
        of = getattr(blasx, name + "_batched")
        for i in (0, 1):
            c, info = of(gpu.copied(hidden), lower, i)
            c, info = np.array(c), np.array(info)
            error, right = cholesky_info(a, c, uplo, info, np.finfo(a.dtype).eps)
            assert error < np.finfo(a.dtype).eps and right and list(info) == [0, 51, 0], error
            assert untouched(c, hidden, uplo)
            alone, _ = of(gpu.copied(hidden[2:]), lower, i)
            assert np.array_equal(np.array(alone)[0], c[2], equal_nan=True)
"""
    passes(text, simulated)
