"""The CPU's batches: the same bits in every batch, place, number of threads and width of vectors;
the core of small LU and Cholesky beside LAPACK."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import lapack

import blasx
from blasx.batched import _cpu
from tests.problems import host, laid
from tests.sim.process import under_sanitizers

CALLS = {
    "getrf": lambda letter, a, b: getattr(blasx, letter + "getrf_batched")(a),
    "getrs": lambda letter, a, b: getattr(blasx, letter + "getrs_batched")(a, PIVOTS(a), b),
    "gesv": lambda letter, a, b: getattr(blasx, letter + "gesv_batched")(a, b),
    "potrf": lambda letter, a, b: getattr(blasx, letter + "potrf_batched")(a, lower=1),
    "potrs": lambda letter, a, b: getattr(blasx, letter + "potrs_batched")(a, b),
    "posv": lambda letter, a, b: getattr(blasx, letter + "posv_batched")(a, b),
}
ORDERS = (1, 2, 3, 5, 8, 13, 16, 17, 32, 33, 64, 70)
ROOT = Path(__file__).parent.parent
DTYPES = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}

every_routine = pytest.mark.parametrize("routine", CALLS)
every_letter = pytest.mark.parametrize("letter", "sdcz")
with_core = pytest.mark.skipif(_cpu._batch is None, reason="no compiler at installation")


def PIVOTS(a):
    return np.broadcast_to(np.arange(a.shape[1]), a.shape[:2])


def random(letter, *shape):
    rng = np.random.default_rng(shape[-1])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if letter in "cz" else x).astype(DTYPES[letter])


def problem(letter, n, batch=23):
    x = random(letter, batch, n, n)
    a = x @ x.conj().transpose(0, 2, 1) + n * np.eye(n, dtype=x.dtype)
    return a.astype(x.dtype), random(letter, batch, n, n)[:, :, :2].copy()


def bits(routine, letter, a, b):
    return [x.tobytes() for x in CALLS[routine](letter, a, b)]


def use(monkeypatch, **table):
    """Another table of tuned values: all plans anew."""
    values = _cpu.tuned() | table
    monkeypatch.setattr(_cpu, "tuned", lambda: values)
    _cpu.forget()


def without_core(monkeypatch):
    monkeypatch.setattr(_cpu, "_batch", None)
    _cpu.forget()


@pytest.fixture(autouse=True)
def plans():
    yield
    _cpu.forget()


@with_core
@every_letter
@pytest.mark.parametrize("n", [1, 3, 8, 21, 64])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_given_factors_are_solved_with(letter, n, trans):
    """The core beside LAPACK, right-hand sides that do not fill vectors, factors of any strides."""
    a, _ = problem(letter, n, 7)
    x = random(letter, 7, n, n) + a
    b = random(letter, 7, n, 11)
    lu, piv, _ = getattr(blasx, letter + "getrf_batched")(x)
    c = getattr(blasx, letter + "potrf_batched")(a, trans > 0)[0]
    room = np.full((7, 2 * n + 1, n + 2), np.nan, a.dtype)
    for f, scipy, factors, how in (
            ("getrs", lambda k: (lu[k], piv[k]), (lu, piv), trans),
            ("potrs", lambda k: (c[k],), (c,), int(trans > 0))):
        solve, one = getattr(blasx, letter + f + "_batched"), getattr(lapack, letter + f)
        y, info = solve(*factors, b, how)
        assert not info.any() and info.dtype == np.int32
        for k in range(7):
            expected = one(*scipy(k), b[k], how)[0]
            close = 50 * n * np.finfo(a.dtype).eps
            assert np.allclose(y[k], expected, rtol=close, atol=close * abs(expected).max())
        view = room[:, -1:0:-2, 1:-1]
        view[...] = factors[0]
        assert np.array_equal(solve(view, *factors[1:], b, how)[0], y)
        turned = factors[0].transpose(0, 2, 1).copy().transpose(0, 2, 1)
        assert np.array_equal(solve(turned, *factors[1:], b, how)[0], y)
        here = b.transpose(0, 2, 1).copy().transpose(0, 2, 1)
        assert solve(*factors, here, how, overwrite_b=1)[0] is here and np.array_equal(here, y)
        assert np.array_equal(solve(*factors, b[:, :, 0], how)[0], y[:, :, 0])


# -- how a batch is worked on does not show


@every_routine
@every_letter
@pytest.mark.parametrize("n", [1, 5, 32, 70])
def test_threads_do_not_show(monkeypatch, routine, letter, n):
    a, b = problem(letter, n)
    alone = bits(routine, letter, a, b)
    monkeypatch.setattr(_cpu, "_threads", lambda batch, microseconds: 3)
    monkeypatch.setattr(_cpu, "_parts", lambda *_: 3)
    _cpu.forget()
    assert alone == bits(routine, letter, a, b)
    without_core(monkeypatch)
    in_three = bits(routine, letter, a, b)
    monkeypatch.setattr(_cpu, "_parts", lambda *_: 1)
    assert in_three == bits(routine, letter, a, b)


@every_routine
@every_letter
@pytest.mark.parametrize("core", [pytest.param(True, marks=with_core), False])
def test_place_and_batch_do_not_show(monkeypatch, routine, letter, core):
    if not core:
        without_core(monkeypatch)
    for n in ORDERS:
        a, b = problem(letter, n)
        whole = CALLS[routine](letter, a, b)
        for part in (slice(0, 1), slice(3, 4), slice(5, 12), slice(22, 23)):
            for x, y in zip(whole, CALLS[routine](letter, a[part], b[part]), strict=True):
                assert x[part].tobytes() == y.tobytes(), n


@with_core
@every_routine
@every_letter
def test_the_processor_does_not_show(monkeypatch, routine, letter):
    """Vectors of 16, 32 and 64 bytes where the processor has them, shared by members or not."""
    widest = _cpu.WIDTH
    for n in ORDERS:
        a, b = problem(letter, n)
        expected = bits(routine, letter, a, b)
        for width in (16, 32, 64)[:{16: 1, 32: 2, 64: 3}[widest]]:
            monkeypatch.setattr(_cpu, "WIDTH", width)
            for shared in (0, 1000):
                row = {"to": 128, "SHARED": shared, "US": 1}
                use(monkeypatch, **{x: dict.fromkeys("sdcz", [row])
                                    for x in ("getrf", "getrs", "potrf", "potrs")})
                assert expected == bits(routine, letter, a, b), (n, width, shared)


def test_a_large_batch_is_shared_and_a_small_one_is_not(monkeypatch):
    monkeypatch.setattr(_cpu, "_cores", lambda: 8)
    assert _cpu._parts(10, 8) == 1
    assert _cpu._parts(10**6, 8) == 8
    assert 1 < _cpu._parts(1500, 8) < 8
    assert _cpu._parts(10**6, _cpu.tuned()["lapack"]["other"][-1]["to"] + 1) == 1


def test_a_failing_thread_is_heard(monkeypatch):
    def fails():
        raise KeyError("here")
    with pytest.raises(KeyError):
        _cpu._together(2, fails)


# -- LAPACK over a batch


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=with_core), False])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", ["rows", "columns", "every other"])
def test_each_turns_members_to_columns(monkeypatch, compiled, threads, order):
    if not compiled:
        without_core(monkeypatch)
    monkeypatch.setattr(_cpu, "_parts", lambda *_: threads)
    for letter in "sdcz":
        m, n = 7, 5
        a = {"rows": random(letter, 20, m, n),
             "columns": random(letter, 20, n, m).transpose(0, 2, 1),
             "every other": random(letter, 40, 2 * m, 3 * n)[::-2, ::2, ::3]}[order]
        q, tau = np.zeros_like(a), np.empty((20, n), a.dtype)
        info = _cpu.each(letter + "geqrf", 20, m, m, n, _cpu.Columns(a, q), m, tau,
                         _cpu.Scratch(n, a.dtype), n)
        assert not info.any()
        for k in range(20):
            expected = getattr(lapack, letter + "geqrf")(a[k], lwork=n)
            assert np.array_equal(q[k], expected[0]) and np.array_equal(tau[k], expected[1])
        here = a.copy() if order == "rows" else np.array(a.transpose(0, 2, 1)).transpose(0, 2, 1)
        _cpu.each(letter + "geqrf", 20, m, m, n, _cpu.Columns(here, here), m, tau,
                  _cpu.Scratch(n, a.dtype), n)
        assert np.array_equal(here, q)


# -- the core, and LAPACK in its place


@pytest.fixture(params=[pytest.param(True, marks=with_core), False], ids=["core", "LAPACK"])
def engine(request, monkeypatch):
    if not request.param:
        without_core(monkeypatch)
    return request.param


def test_without_a_compiler():
    """The extension is not there: LAPACK, looped over in Python."""
    run = subprocess.run([sys.executable, "-c", """
import sys
sys.modules["blasx._batch"] = None
import numpy as np, blasx
assert blasx.batched._cpu._batch is None
a = np.eye(3) * [[[2.0]], [[0.0]]]
lu, piv, x, info = blasx.gesv_batched(a, np.ones((2, 3)))
assert list(info) == [0, 1] and (x[0] == 0.5).all() and (x[1] == 1).all()
assert not blasx.posv_batched(a[:1], np.ones((1, 3)))[2].any()
"""], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("overwrite", [0, 1])
def test_info_without_right_hand_sides_is_the_factorizations(engine, overwrite):
    a, b = np.array([np.eye(3), np.zeros((3, 3))]), np.empty((2, 3, 0))
    flags = {"overwrite_a": overwrite, "overwrite_b": overwrite}
    for f in (blasx.dgesv_batched, blasx.dposv_batched):
        *_, x, info = f(a.copy(), b.copy(), **flags)
        assert x.shape == b.shape and list(info) == [0, 1]


@every_letter
@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (16, 16), (24, 24), (9, 4), (3, 8), (33, 20)])
def test_pivots_of_ties_are_lapacks(engine, letter, shape):
    """Entries of -1, 0, 1 until the first rounding, many of them singular."""
    a = np.sign(np.round(random(letter, 60, *shape).real)).astype(DTYPES[letter])
    if letter in "cz":
        a = a + 1j * a[::-1]
    lu, piv, info = getattr(blasx, letter + "getrf_batched")(a)
    steps = min(shape)
    for k in range(len(a)):
        x, first = a[k].copy(), 0
        for j in range(steps):
            sizes = abs(x[j:, j].real) + abs(x[j:, j].imag)
            p = j + int(np.argmax(sizes == sizes.max()))
            if max(shape) <= 4 or j == 0:
                assert piv[k, j] == p
            x[[j, piv[k, j]]] = x[[piv[k, j], j]]
            if x[j, j] == 0:
                first = first or j + 1
            else:
                x[j + 1:, j] /= x[j, j]
            x[j + 1:, j + 1:] -= np.outer(x[j + 1:, j], x[j, j + 1:])
        if max(shape) <= 4:
            assert info[k] == first
        assert (abs(np.tril(lu[k], -1)) <= 1.5).all()


@every_letter
@pytest.mark.parametrize("n", [2, 8, 20, 40])
def test_a_bad_member_touches_no_other(engine, letter, n):
    a, b = problem(letter, n, 19)
    good = [CALLS[r](letter, a, b) for r in ("gesv", "posv")]
    spoiled = a.copy()
    spoiled[3] = 0
    spoiled[5] = np.nan
    spoiled[6, :, n // 2] = np.inf
    spoiled[11, n - 1, n - 1] = np.nan
    spoiled[18, n // 2, n // 2] = -1
    others = np.setdiff1d(np.arange(19), [3, 5, 6, 11, 18])
    for routine, before in zip(("gesv", "posv"), good, strict=True):
        after = CALLS[routine](letter, spoiled, b)
        for x, y in zip(before, after, strict=True):
            assert x[others].tobytes() == y[others].tobytes()
        *_, x, info = after
        assert info[3] == 1 and np.array_equal(x[3], b[3])
        if routine == "posv":
            assert info[5] == 1 and info[11] == n and info[18] == n // 2 + 1
            assert np.array_equal(x[18], b[18])
        elif routine == "gesv":
            assert np.isnan(x[5]).any() and np.isnan(x[11]).any()


@every_letter
@pytest.mark.parametrize("n", [3, 8, 24, 40])
@pytest.mark.parametrize("power", [-1, 1])
def test_scaled_near_over_and_underflow(engine, letter, n, power):
    """Subnormal entries, and entries near the largest: X is that of the unscaled problem."""
    a, b = problem(letter, n, 9)
    top = np.finfo(a.dtype).maxexp
    scale = np.array(2, a.real.dtype) ** (power * (top - 12 - 2 * int(np.log2(n))))
    for routine, solution in (("gesv", 2), ("posv", 1)):
        x = CALLS[routine](letter, a, b)[solution]
        scaled = CALLS[routine](letter, a * scale, b * scale)[solution]
        tolerance = 100 * n * np.finfo(a.dtype).eps
        assert np.allclose(x, scaled, rtol=tolerance, atol=tolerance * abs(x).max())


@with_core
@every_letter
def test_a_subnormal_pivot_divides(letter):
    tiny = np.finfo(DTYPES[letter]).smallest_subnormal
    for n in (2, 24):
        a = np.zeros((5, n, n), DTYPES[letter])
        a[:] = np.eye(n)
        a[2, :2, :2] = [[8 * tiny, 1], [4 * tiny, 1]]
        lu, piv, info = getattr(blasx, letter + "getrf_batched")(a)
        assert not info.any() and lu[2, 1, 0] == 0.5 and lu[2, 1, 1] == 0.5


@pytest.mark.parametrize("letter", "sd")  # complex OpenBLAS takes reciprocals here, too
def test_solves_divide_by_subnormal_numbers(engine, letter):
    tiny = np.finfo(DTYPES[letter]).smallest_subnormal
    a, x = np.zeros((3, 5, 5), DTYPES[letter]), np.full((3, 5), 4 * tiny)
    a[:] = np.eye(5) * (8 * tiny)
    for lower, trans in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert (getattr(blasx, letter + "trsv_batched")(a, x, lower, trans) == 0.5).all()


@every_letter
@pytest.mark.parametrize("n", [1, 6, 20])
@pytest.mark.parametrize("overwrite", [0, 1])
def test_any_strides(engine, letter, n, overwrite):
    """Views of larger arrays, reversed, transposed, unaligned: the bits of the plain stack."""
    a, b = problem(letter, n, 7)
    flags = {"overwrite_a": overwrite, "overwrite_b": overwrite}

    def views(x):
        large = np.zeros((15, 2 * x.shape[1] + 1, 3 * x.shape[2] + 1), x.dtype)
        yield large[::-2, 1::2, 1::3][:7]
        yield large[1:8, :x.shape[1], :x.shape[2]]
        yield np.zeros((7, x.shape[2], x.shape[1]), x.dtype).transpose(0, 2, 1)
        raw = np.zeros(x.nbytes + 1, np.uint8)
        yield raw[1:].view(x.dtype).reshape(x.shape)

    for f, options in ((blasx.gesv_batched, {}), (blasx.posv_batched, {"lower": 0}),
                       (blasx.posv_batched, {"lower": 1})):
        expected = f(a, b, **options)
        for x, y in zip(views(a), views(b), strict=True):
            x[...], y[...] = a, b
            found = f(x, y, **options, **flags)
            for p, q in zip(expected, found, strict=True):
                # LAPACK factors the upper triangle by rows as a lower one, and rounds otherwise
                assert np.array_equal(p, q) if engine else np.allclose(p, q, rtol=1e-4, atol=1e-6)
            if overwrite:
                assert found[0] is x and found[-2] is y
            else:
                assert np.array_equal(x, a) and np.array_equal(y, b)


@every_letter
@pytest.mark.parametrize("layout", ["view", "steps", "reversed", "apart"])
def test_members_past_the_core_have_their_bits_alone(letter, layout):
    n = 133
    a, b = problem(letter, n, 3)
    (a, _), (b, _) = laid(a, layout), laid(b, layout)
    for routine, operands in (("getrf", (a,)), ("gesv", (a, b)), ("potrf", (a,)), ("posv", (a, b)),
                              ("potri", (a,)), ("geqrf", (a,)), ("slogdet", (a,)),
                              ("heevd" if letter in "cz" else "syevd", (a,))):
        f = getattr(blasx, f"{letter}{routine}_batched")
        whole = f(*operands)
        for i in range(3):
            for x, y in zip(whole, f(*(x[i:i + 1] for x in operands)), strict=True):
                assert x[i].tobytes() == y[0].tobytes(), (routine, i)


def test_products_of_halves_leave_c_alone(xp):
    a = xp.array([[[2, 1], [1, 3]]], np.float16)
    for beta in (0.0, 2.0):
        frame = xp.full((3, 4), 7, np.float16)
        c = frame[1].reshape(1, 2, 2)
        expected = [[[5 + 7 * beta, 5 + 7 * beta], [5 + 7 * beta, 10 + 7 * beta]]]
        assert np.array_equal(host(blasx.hgemm_batched(1, a, a, beta, c)), expected)
        assert (frame == 7).all()
        assert blasx.hgemm_batched(1, a, a, beta, c, overwrite_c=1) is c
        assert np.array_equal(host(c), expected) and (frame[::2] == 7).all()


@every_letter
def test_the_other_triangle_is_not_read(engine, letter):
    for n in (3, 8, 20, 40):
        a, b = problem(letter, n)
        for lower in (0, 1):
            poisoned = a.copy()
            part = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
            poisoned[:, part[0], part[1]] = np.nan
            f = getattr(blasx, letter + "posv_batched")
            c, x, info = f(a, b, lower)
            d, y, info2 = f(poisoned, b, lower)
            assert np.array_equal(x, y) and not info.any() and not info2.any(), (n, lower)
            assert np.isnan(d[:, part[0], part[1]]).all()
            d[:, part[0], part[1]] = c[:, part[0], part[1]]
            assert np.array_equal(c, d)


@with_core
@every_letter
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 3), (3, 5), (16, 16), (40, 33), (64, 7)])
def test_qr_is_lapacks(letter, shape):
    """The core's reflectors and tau beside LAPACK's, scaled and not; nan stays its member's."""
    a = random(letter, 11, *shape)
    a[2], a[3, :, 0] = 0, 0
    me = typed(a)
    f, _, tau, info = _cpu.own(me, "geqrf", a, 0)
    expected, scalars = np.linalg.qr(a, "raw")
    tolerance = 50 * max(shape) * np.finfo(a.dtype).eps
    assert np.allclose(f, expected.transpose(0, 2, 1), atol=tolerance * 10)
    assert np.allclose(tau, scalars, atol=tolerance * 10) and not info.any()
    for power in (-1, 1):
        top = np.finfo(a.dtype).maxexp
        scale = np.array(2, a.real.dtype) ** (power * (top - 10))
        g, _, t, _ = _cpu.own(me, "geqrf", a * scale, 0)
        rows = np.triu_indices(shape[0], 0, shape[1])
        assert np.allclose(t, tau, atol=1000 * tolerance)
        assert np.allclose(g[:, *rows] / scale, f[:, *rows], atol=1000 * tolerance)
    spoiled = a.copy()
    spoiled[5, -1, 0] = np.nan
    h, _, t, _ = _cpu.own(me, "geqrf", spoiled, 0)
    others = np.arange(11) != 5
    assert np.isnan(h[5]).any()
    assert h[others].tobytes() == f[others].tobytes()
    assert t[others].tobytes() == tau[others].tobytes()


# -- eigenvalues and singular values


def typed(a):
    """What the core asks of a typed name."""
    letter = next(x for x, t in DTYPES.items() if np.dtype(t) == a.dtype)
    return SimpleNamespace(letter=letter, dtype=a.dtype, real=a.real.dtype, name="core")


def spectral_problems(letter, m, n):
    """Random, graded, rank deficient, zero, diagonal, near over- and underflow."""
    a = random(letter, 5, m, n)
    yield a
    yield np.zeros_like(a)
    yield np.ones_like(a)
    yield a * np.eye(m, n, dtype=a.dtype)
    yield (a * np.logspace(0, -8 if letter in "sc" else -30, n)).astype(a.dtype)
    yield (a * np.logspace(-8 if letter in "sc" else -30, 0, n)).astype(a.dtype)
    deficient = a.copy()
    deficient[:, m // 2] = deficient[:, 0]
    yield deficient
    limits = np.finfo(a.dtype)
    yield a * np.array(2, a.real.dtype) ** (limits.maxexp - 12)
    yield a * np.array(2, a.real.dtype) ** (limits.minexp + 30)


def wide(a, scale=1.0):
    return a.astype("c16" if a.dtype.kind == "c" else "f8") / scale


def worst(residual, a):
    return np.linalg.norm(residual, axis=(1, 2)).max() / (max(a.shape[1:]) * np.finfo(a.dtype).eps)


def unitary(x):
    return x.conj().transpose(0, 2, 1) @ x - np.eye(x.shape[2])


@with_core
@every_letter
@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 13, 32, 40])
@pytest.mark.parametrize("lower", [0, 1])
def test_eigenvalues_of_the_core(letter, n, lower):
    for x in spectral_problems(letter, n, n):
        a = x / 2 + x.conj().transpose(0, 2, 1) / 2
        poisoned = a.copy()
        other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
        poisoned[:, other[0], other[1]] = np.nan
        w, v, info = _cpu.eigen(typed(a), poisoned, lower)
        assert not info.any() and (np.diff(w) >= 0).all() and np.isnan(poisoned).any() == (n > 1)
        scale = float(abs(a).max()) or 1.0
        h, z, values = wide(a, scale), wide(v), wide(w, scale)
        norm = max(np.linalg.norm(h, 2, axis=(1, 2)).max(), np.finfo("f8").tiny)
        assert worst(h @ z - z * values[:, None], a) <= 30 * norm
        assert worst(unitary(z), a) <= 30
        alone, none, _ = _cpu.eigen(typed(a), poisoned[2:3], lower, 0)
        assert none is None and np.allclose(alone[0], w[2], rtol=0, atol=30 * n * scale * np.finfo(
            a.dtype).eps)
        assert np.array_equal(_cpu.eigen(typed(a), poisoned[2:3], lower)[1][0], v[2])
        view = np.zeros((5, 2 * n, n + 2), a.dtype).transpose(0, 2, 1)[:, 2:, ::2]
        view[...] = poisoned
        again, here, _ = _cpu.eigen(typed(a), view, lower, 1, 1)
        assert here is view and np.array_equal(view, v) and np.array_equal(again, w)


@with_core
@every_letter
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (8, 8), (13, 6), (5, 17), (33, 33)])
@pytest.mark.parametrize("full", [0, 1])
def test_singular_values_of_the_core(letter, shape, full):
    for a in spectral_problems(letter, *shape):
        u, s, vh, info = _cpu.svd(typed(a), a, 1, full)
        k = min(shape)
        assert u.shape[2] == (shape[0] if full else k) and vh.shape[1] == (shape[1] if full else k)
        assert not info.any() and (s >= 0).all() and (np.diff(s) <= 0).all()
        scale = float(abs(a).max()) or 1.0
        x, left, right, values = wide(a, scale), wide(u), wide(vh), wide(s, scale)
        norm = max(values.max(), np.finfo("f8").tiny)
        residual = left[:, :, :k] * values[:, None] @ right[:, :k] - x
        assert worst(residual, a) <= 30 * norm
        assert worst(unitary(left), a) <= 30
        assert worst(unitary(right.conj().transpose(0, 2, 1)), a) <= 30
        none, alone, _, _ = _cpu.svd(typed(a), a[3:4], 0)
        assert none is None and np.allclose(
            alone[0], s[3], rtol=0, atol=30 * max(shape) * scale * np.finfo(a.dtype).eps)
        assert np.array_equal(_cpu.svd(typed(a), a[3:4], 1, full)[0][0], u[3])


@with_core
@every_letter
def test_nan_and_inf_end_and_stay(letter):
    for n in (1, 3, 12):
        a = random(letter, 6, n, n)
        a = a + a.conj().transpose(0, 2, 1)
        spoiled = a.copy()
        spoiled[1, -1, -1], spoiled[4] = np.nan, np.inf
        others = [0, 2, 3, 5]
        for found, good in ((_cpu.eigen(typed(a), spoiled), _cpu.eigen(typed(a), a)),
                            (_cpu.svd(typed(a), spoiled), _cpu.svd(typed(a), a))):
            for x, y in zip(found, good, strict=True):
                assert x[others].tobytes() == y[others].tobytes()
            values = found[0] if len(found) == 3 else found[1]
            assert found[-1][1] or np.isnan(values[1]).any()
            assert found[-1][4] or not np.isfinite(values[4]).all()


# -- under sanitizers


PLANTED = {  # file, what the text says, what it shall say
    "no bug": None,
    "a row past the end": ("pack.h", "i < rows; ++i", "i <= rows; ++i"),
    "a member past the last": ("pack.h", "w < count ? w : count - 1", "w"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_the_core_under_sanitizers(tmp_path, bug):
    """AddressSanitizer and UBSan over all types and widths (tests/sim/run_core.py)."""
    from tests.sim.build_core import build
    library = build(tmp_path, PLANTED[bug])
    run = under_sanitizers("run_core", library)
    if PLANTED[bug]:
        assert run.returncode and "AddressSanitizer" in run.stderr, run.stderr[-3000:]
    else:
        assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]
