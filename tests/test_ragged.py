"""Members of different sizes: `_vbatched` gives each what `_batched` gives it alone."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blasx
from blasx._types import TYPES
from testing.cases import CASES
from testing.options import Options
from tests.sim.process import under_sanitizers

ROOT = Path(__file__).parents[1]
on_gpu = pytest.param("gpu", marks=pytest.mark.gpu)
devices = pytest.mark.parametrize("device", ["cpu", on_gpu])
sizes = st.lists(st.sampled_from((0, 1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 40)), max_size=12)


def to(device, x):
    if device == "cpu":
        return x
    import cupy
    return cupy.asarray(x)


def host(x):
    return x if isinstance(x, np.ndarray) else x.get()


def problem(letter, orders, seed, columns=(0, 1, 3)):
    """Matrices with diagonals that dominate, one of them not, and right-hand sides."""
    rng, t = np.random.default_rng(seed), TYPES[letter]
    a, b = [], []
    for i, n in enumerate(orders):
        x = rng.standard_normal((n, n, 2)) @ ((1, 1j) if t.is_complex else (1, 0))
        x = x @ x.conj().T + np.eye(n)
        if i == 1 and n:
            x[n // 2] = x[:, n // 2] = 0
        nrhs = columns[i % len(columns)]
        y = rng.standard_normal((n, max(nrhs, 1)))
        a.append(x.astype(t.dtype))
        b.append((y if nrhs else y[:, 0]).astype(t.dtype))
    return a, b


def same(found, expected):
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        x, y = host(x), host(y)
        assert x.shape == y.shape and x.dtype == y.dtype
        assert x.tobytes() == y.tobytes() or np.isnan(y).any(), i


CALLS = {  # routine: its call, and how many of its results are members
    "getrf": (lambda f, a, b: f(a), 2),
    "gesv": (lambda f, a, b: f(a, b), 3),
    "potrf": (lambda f, a, b: f(a, 1), 1),
    "posv": (lambda f, a, b: f(a, b, 1), 2),
}


@devices
@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("routine", CALLS)
@settings(max_examples=12, deadline=None)
@given(orders=sizes, seed=st.integers(0, 99), packed=st.booleans())
def test_members_come_out_as_alone(device, routine, letter, orders, seed, packed):
    call, members = CALLS[routine]
    one, many = (getattr(blasx, f"{letter}{routine}_{kind}") for kind in ("batched", "vbatched"))
    a, b = problem(letter, orders, seed, (1, 2) if packed else (0, 1, 3))
    a, b = [to(device, x) for x in a], [to(device, x) for x in b]
    alone = [call(one, x[None], y[None]) for x, y in zip(a, b)]
    given = (pack(a), pack(b)) if packed else (a, b)
    found = call(many, *given)
    for k in range(members):
        one_by_one = [result[k][0] for result in alone]
        same(found[k], one_by_one)
    assert host(found[-1]).tolist() == [int(host(r[-1])[0]) for r in alone]
    assert all(isinstance(x, blasx.Ragged if packed else list) for x in found[:-1])


def pack(x):
    """One buffer, also of no members."""
    return blasx.Ragged.pack(x) if x else blasx.Ragged(np.empty(0), [])


shapes = st.lists(st.tuples(*[st.sampled_from((0, 1, 2, 7, 8, 20, 33, 40))] * 2), max_size=8)


def randoms(letter, sizes, seed):
    rng, t = np.random.default_rng(seed), TYPES[letter]
    return [(rng.standard_normal((*size, 2)) @ ((1, 1j) if t.is_complex else (1, 0))
             ).astype(t.dtype) for size in sizes]


def checked(letter, found, expected, scale=1):
    tolerance = 500 * np.finfo(TYPES[letter].dtype).eps * scale
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(host(x), y, rtol=0, atol=tolerance * (1 + abs(y).max(initial=0)))


@devices
@pytest.mark.parametrize("letter", "sdcz")
@settings(max_examples=8, deadline=None)
@given(shapes=shapes, seed=st.integers(0, 99), packed=st.booleans())
def test_qr_and_products_are_those_of_numpy(device, letter, shapes, seed, packed):
    a = randoms(letter, shapes, seed)
    b = randoms(letter, [(m, 1 + i % 3) for i, (m, _) in enumerate(shapes)], seed + 1)
    h = "C" if TYPES[letter].is_complex else "T"
    given = [[to(device, x) for x in y] for y in (a, b)]
    given = [pack(x) if packed else x for x in given]
    qr, tau, info = getattr(blasx, letter + "geqrf_vbatched")(given[0])
    assert isinstance(qr, blasx.Ragged if packed else list) and not host(info).any()
    reflectors = [x[:, :len(t)] for x, t in zip(qr, tau)]
    name = letter + ("un" if h == "C" else "or") + "mqr_vbatched"
    c, _ = getattr(blasx, name)("L", h, reflectors, list(tau), given[1])
    back, _ = getattr(blasx, name)("L", "N", reflectors, list(tau), c)
    checked(letter, back, b)
    r, _ = getattr(blasx, name)("L", "N", reflectors, list(tau),
                                [to(device, np.triu(host(x))) for x in qr])
    checked(letter, r, a)
    products = getattr(blasx, letter + "gemm_vbatched")(2.0, *given, trans_a=2)
    checked(letter, products, [2 * x.conj().T @ y for x, y in zip(a, b)], 10)


@devices
@pytest.mark.parametrize("letter", "sdcz")
@settings(max_examples=8, deadline=None)
@given(orders=sizes, seed=st.integers(0, 99))
def test_triangles_and_eigenvalues_are_those_of_numpy(device, letter, orders, seed):
    a, b = problem(letter, orders, seed, (1, 2, 5))
    given = [to(device, x) for x in a]
    kind = "heevd" if TYPES[letter].is_complex else "syevd"
    w, v, info = getattr(blasx, f"{letter}{kind}_vbatched")(given)
    assert not host(info).any()
    checked(letter, w, [np.linalg.eigvalsh(x) for x in a], 4)
    for A, W, V in zip(a, map(host, w), map(host, v)):
        checked(letter, [A @ V], [V * W], 40 * (1 + abs(A).max(initial=0)))
    t = [np.tril(x) + (abs(x).sum(initial=0) + 1) * np.eye(len(x), dtype=x.dtype) for x in a]
    x = getattr(blasx, letter + "trsm_vbatched")(2.0, [to(device, y) for y in t],
                                                 [to(device, y) for y in b], lower=1)
    checked(letter, x, [2 * np.linalg.solve(A, B) for A, B in zip(t, b)])


@devices
def test_least_squares_of_every_shape(device):
    a = randoms("z", ((9, 4), (4, 9), (0, 3), (40, 33), (5, 5)), 0)
    b = randoms("z", [(max(x.shape), 2) for x in a], 1)
    lqr, x, info = blasx.zgels_vbatched(*([to(device, y) for y in z] for z in (a, b)))
    assert [y.shape for y in lqr] == [y.shape for y in a] and not host(info).any()
    for A, B, X in zip(a, b, map(host, x)):
        m, n = A.shape
        right = np.linalg.lstsq(A, B[:m], rcond=None)[0]
        np.testing.assert_allclose(X[:n], right, atol=1e-10)


@devices
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_solves_with_the_factors(device, trans):
    a, b = problem("z", (3, 17, 0, 40, 8), 1, (0, 2))
    a[1] = a[1] + np.eye(17)
    a, b = [to(device, x) for x in a], [to(device, x) for x in b]
    lu, piv, _ = blasx.zgetrf_vbatched(a)
    x, info = blasx.zgetrs_vbatched(lu, piv, b, trans)
    c, _ = blasx.zpotrf_vbatched(a)
    y, info = blasx.zpotrs_vbatched(c, b)
    assert not host(info).any()
    for A, B, X, Y in zip(a, b, x, y):
        A, B, X, Y = map(host, (A, B, X, Y))
        op = (A, A.T, A.conj().T)[trans]
        np.testing.assert_allclose(op @ X, B, atol=1e-11)
        np.testing.assert_allclose(A @ Y, B, atol=1e-11)


@devices
def test_in_place_and_in_a_buffer_with_gaps(device):
    a, b = problem("d", (2, 5, 33), 3, (1,))
    data = to(device, np.full(1500, np.nan))
    r = blasx.Ragged(data, [x.shape for x in a], [7, 40, 100])
    for mine, x in zip(r, a):
        mine[...] = to(device, x)
    lu, piv, info = blasx.dgetrf_vbatched(r, overwrite_a=1)
    assert lu is r and np.isnan(host(data)[:7]).all() and np.isnan(host(data)[11:40]).all()
    same(lu, [blasx.dgetrf_batched(to(device, x[None]))[0][0] for x in a])
    given = [to(device, x.copy()) for x in a]
    c = blasx.dpotrf_vbatched(given, 1, overwrite_a=1)[0]
    assert all(x is y for x, y in zip(c, given, strict=True))


RAGGED = [case for case in CASES if case.group == "vbatched"]


@pytest.mark.parametrize("case", RAGGED, ids=[case.name for case in RAGGED])
def test_members_that_share_memory_are_not_overwritten(case):
    """Not with one another, and not with those of another operand; nothing is touched. Blocks of
    one array are members like others."""
    f = case.function("d")
    p = case.problem("d", (4, 4, 4), case.variants()[0], np.random.default_rng(0),
                     Options(batch=3, nrhs=4))
    given = dict(inspect.signature(f).bind(*p.args, **p.kwargs).arguments)
    if "c" in inspect.signature(f).parameters:
        given["c"] = [np.ones((4, 4)) for _ in range(3)]
    given = {k: [np.resize(y, (4, 4)[:y.ndim]) for y in x] if isinstance(x, list) else x
             for k, x in given.items()}
    for k in [k for k in given if f"overwrite_{k}" in inspect.signature(f).parameters]:
        x, flag = given[k], {f"overwrite_{k}": 1}
        wrong = [{k: [x[0], x[1], x[1]]}, {k: [x[0], x[0].T, x[2]]},
                 {k: blasx.Ragged(np.resize(x[0], 40), [(4, 4)] * 3, [0, 20, 12])}]
        wrong += [{k: [*x[:2], y[0][::-1]]} for o, y in given.items()
                  if isinstance(y, list) and o != k and y[0].shape == (4, 4)]
        for change in wrong:
            before = [[z.tobytes() for z in y] for y in (given | change).values()
                      if isinstance(y, list | blasx.Ragged)]
            with pytest.raises(ValueError, match=rf"^d{case.name}: {k}\[\d\] .*shared"):
                f(**given | change | flag)
            assert before == [[z.tobytes() for z in y] for y in (given | change).values()
                              if isinstance(y, list | blasx.Ragged)]
        large = np.zeros((4, 12))
        blocks = [large[:, i::3] for i in range(3)]
        for y, z in zip(blocks, x):
            y[...] = z
        expected = f(**given | {k: [y.copy() for y in x]})
        found = f(**given | {k: blocks} | flag)
        for y, z in zip(*((r if isinstance(r, tuple) else (r,)) for r in (expected, found))):
            np.testing.assert_allclose(np.array(z), np.array(y), 1e-9, 1e-9)


def test_wrong_calls_name_routine_and_argument():
    a, b = problem("d", (2, 3), 0, (1,))
    for call, what in (
            (lambda: blasx.dgetrf_vbatched(a[0]), r"dgetrf_vbatched: a "),
            (lambda: blasx.dgetrf_vbatched([1, 2]), r"dgetrf_vbatched: a\[0\] "),
            (lambda: blasx.dgetrf_vbatched(["x"]), r"dgetrf_vbatched: a\[0\] "),
            (lambda: blasx.dpotrf_vbatched([np.ones((2, 3))]), r"dpotrf_vbatched: a "),
            (lambda: blasx.dgesv_vbatched(a, b[:1]), r"dgesv_vbatched: b "),
            (lambda: blasx.dgesv_vbatched(a, b[::-1]), r"dgesv_vbatched: b\[0\] "),
            (lambda: blasx.dgetrs_vbatched(a, [[0, 5], [0, 1, 2]], b), r"dgetrs_vbatched: piv"),
            (lambda: blasx.dgetrs_vbatched(a, [[0, 2**32 + 1], [0, 1, 2]], b),
             r"dgetrs_vbatched: piv\[0\] "),
            (lambda: blasx.dgetrs_vbatched(a, [[0, 1]], b), r"dgetrs_vbatched: piv "),
            (lambda: blasx.dgetrs_vbatched(a, blasx.Ragged(np.zeros(5), [[2], [3]]), b),
             r"dgetrs_vbatched: piv "),
            (lambda: blasx.dgetrs_vbatched(a, blasx.Ragged(np.full(5, 4), [[2], [3]]), b),
             r"dgetrs_vbatched: piv\[0\] "),
            (lambda: blasx.dpotrf_vbatched(a, 7), r"dpotrf_vbatched: lower "),
            (lambda: blasx.dgetrf_vbatched([x + 1j for x in a]), r"dgetrf_vbatched: a\[0\] "),
            (lambda: blasx.dgemm_vbatched(1.0, a, a[::-1]), r"dgemm_vbatched: b\[0\] "),
            (lambda: blasx.dgemm_vbatched(1.0, a, a, c=a[:1]), r"dgemm_vbatched: c "),
            (lambda: blasx.dtrsm_vbatched(1.0, a, b[::-1]), r"dtrsm_vbatched: b\[0\] "),
            (lambda: blasx.dgels_vbatched(a, b[::-1]), r"dgels_vbatched: b\[0\] "),
            (lambda: blasx.dormqr_vbatched("L", "T", a, [np.ones(1)] * 2, b),
             r"dormqr_vbatched: tau\[0\] "),
            (lambda: blasx.dsyevd_vbatched(a, 3), r"dsyevd_vbatched: compute_v "),
            (lambda: blasx.Ragged([1.0], [(1, 1)]), "Ragged: data "),
            (lambda: blasx.Ragged(np.zeros(4), [2, 2]), "Ragged: .* shapes "),
            (lambda: blasx.Ragged(np.zeros(4), [(2.0, 2.0)]), "Ragged: shapes "),
            (lambda: blasx.Ragged(np.zeros(4), [(2,), (1, 2)]), "Ragged: shapes "),
            (lambda: blasx.Ragged(np.zeros(4), [(2**32, 2**32)]), "Ragged: "),
            (lambda: blasx.Ragged(np.zeros(4), [(2, 2)], [0.0]), "Ragged: offsets "),
            (lambda: blasx.Ragged.pack([]), "Ragged: arrays "),
            (lambda: blasx.Ragged.pack([a[0], b[1][0]]), "Ragged: arrays "),
            (lambda: blasx.Ragged.pack([a[0], a[1] + 1j]), "Ragged: arrays "),
            (lambda: blasx.Ragged(np.zeros(3), [(2, 2)]), "Ragged: "),
            (lambda: blasx.Ragged(np.zeros(9), [(2, 2)], [-1]), "Ragged: ")):
        with pytest.raises((ValueError, TypeError), match=what):
            call()


def test_classes_of_numpys_arrays_are_taken_in_any_place():
    class Own(np.ndarray):
        pass

    a = np.eye(2).view(Own)
    for pack in list, tuple:
        for members in ((a, np.eye(2)), (np.eye(2), a)):
            assert not blasx.dgetrf_vbatched(pack(members))[2].any()
    with pytest.raises(TypeError, match="dgetrs_vbatched: piv"):
        blasx.dgetrs_vbatched([np.eye(2)] * 2, [np.arange(2), range(2)], [np.ones(2)] * 2)


def test_the_generic_name_takes_the_type_of_the_members():
    a, _ = problem("c", (2, 3), 0)
    assert blasx.getrf_vbatched(a)[0][0].dtype == np.complex64
    assert blasx.getrf_vbatched(blasx.Ragged.pack(a))[0].data.dtype == np.complex64
    assert blasx.getrf_vbatched([])[2].shape == (0,)


@pytest.mark.parametrize("family, letter", [
    ("lu", "d"), ("few", "s"), ("few", "d"), ("small", "s"), ("joined", "s"), ("joined", "z"),
    ("windows", "s"), ("cholesky", "s"), ("columns", "d"), ("lines of L", "c"), ("two sweeps", "d"),
    ("small triangles", "z"), ("by panels", "d"),
    ("by panels", "c"), ("by blocks", "c"), ("by columns", "s"), ("by warps", "d"),
    ("beside", "s"), ("beside", "z"),
    ("qr", "c"), ("tiles", "s"), ("left", "d"), ("mixed", "d"), ("lanes", "c"), ("lanes", "s"),
    ("strips", "c"), ("strips", "d"), ("panels", "d"), ("passing", "z"),
    ("blas", "z"), ("eigen", "c"), ("staying", "d"),
    ("rotations", "s"), ("rotations of rows", "z"), ("division", "d")])
def test_the_launcher_and_its_kernels_run_on_the_cpu(simulated, family, letter):
    """Under AddressSanitizer and UBSan, to the bit as `_batched` (tests/sim/run_vbatched.py)."""
    run = under_sanitizers("run_vbatched", simulated, letter, family)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


@pytest.mark.parametrize("letter", "sdcz")
def test_what_serves_a_member_alone_serves_it_among_others(simulated, letter):
    """At every end of a row and up to 64 right-hand sides (tests/sim/run_served.py). No kernel
    runs, and a Python without sanitizers takes a quarter of the time."""
    run = subprocess.run([sys.executable, "-m", "tests.sim.run_served", str(simulated), letter],
                         cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]
