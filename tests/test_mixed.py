"""Mixed precision: gesv that is told a precision to factor in, on NumPy arrays; and the kernels and
the drivers of mixed precision and of tall least squares on a GPU that is simulated."""

import warnings

import numpy as np
import pytest

import blasx
from blasx import _tuned, refined
from tests.sim.process import under_sanitizers

EPS = {"fp32": 2.0**-24, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}
FALLS = {  # with singular values 1 ... 1/cond: up to the first number never, from the second always
    ("fp32", "ir"): (1e6, 1e10), ("tf32", "ir"): (1e2, 1e7), ("fp16", "ir"): (1e2, 1e7),
    ("bf16", "ir"): (1e1, 1e6), ("fp32", "gmres"): (1e8, 1e99), ("tf32", "gmres"): (1e5, 1e99),
    ("fp16", "gmres"): (1e5, 1e99), ("bf16", "gmres"): (1e3, 1e99)}


def system(rng, n, cond, is_complex=False, nrhs=2):
    def normal(*shape):
        return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if is_complex else 0)

    u, v = (np.linalg.qr(normal(n, n))[0] for _ in "uv")
    return u * np.logspace(0, -np.log10(cond), n) @ v, normal(n, nrhs)


def backward(a, b, x):
    """The largest normwise backward error of a column, in infinity norms, in more than double: what
    the sums of the host's BLAS lose is as large as what is left after refinement."""
    a, b, x = (y.astype("G" if y.dtype.kind == "c" else "g") for y in (a, b, x))
    size = abs(a).sum(1).max() * abs(x).max(0) + abs(b).max(0)
    return (abs(b - a @ x).max(0) / size).max()


def solved(a, b, **how):
    """(Refined, whether it said that it had fallen back)"""
    gesv = blasx.zgesv if a.dtype.kind == "c" else blasx.dgesv
    before = a.copy(), b.copy()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = gesv(a, b, **how)
    assert np.array_equal(a, before[0], equal_nan=True) and np.array_equal(b, before[1])
    assert all(w.category is blasx.RefinementWarning and w.filename == __file__ for w in said)
    return found, bool(said)


@pytest.mark.parametrize("factor, refine", FALLS)
def test_right_whatever_the_condition_and_says_when_it_fell_back(factor, refine):
    rng, (never, always) = np.random.default_rng(5), FALLS[factor, refine]
    n = 150 if refine == "ir" else 100
    for cond in 10.0 ** np.arange(1, 15, 1 if refine == "ir" else 2):
        for is_complex in (False, True)[:1 + (cond in (1e1, 1e7))]:
            a, b = system(rng, n, cond, is_complex)
            found, fell_back = solved(a, b, factor=factor, refine=refine)
            error = backward(a, b, found.x)
            assert max(error, found.backward_error) <= 2.0**-53 * n**0.5, (cond, error)
            assert found.backward_error > 0
            assert fell_back == (found.iter < 0) and found.info == 0 and found.iter in (
                -31, *range(31))
            assert not fell_back or cond > never, (cond, found.iter)
            assert fell_back or cond < always, (cond, found.iter)


@pytest.mark.parametrize("factor", refined.FACTORS)
def test_factors_are_of_the_precision_that_was_asked_for(factor):
    """|P S - L U| is of the size of its eps, and no better."""
    a, b = system(np.random.default_rng(1), 260, 3.0)
    found, _ = solved(a, b, factor=factor)
    assert found.lu.dtype == np.float32 and found.iter >= 0
    lower, upper = (found.lu.astype(float) * m for m in (np.tri(260, 260, -1), np.tri(260).T))
    s = found.r[:, None] * a * found.c
    for j, p in enumerate(found.piv):
        s[[j, p]] = s[[p, j]]
    error = abs(s - (lower + np.eye(260)) @ upper).max() / abs(s).max()
    assert EPS[factor] / 4 < error < 64 * EPS[factor], (factor, error / EPS[factor])
    assert all(np.frexp(x)[0].tolist() == [0.5] * 260 for x in (found.r, found.c))
    assert 8 < abs(s).max() <= 16


@pytest.mark.parametrize("factor", refined.FACTORS)
def test_rows_and_columns_of_any_size(factor):
    """Far outside half and single precision; the scaled system is solved as well as the given."""
    rng, n = np.random.default_rng(2), 40
    a, x = system(rng, n, 10.0)
    left, right = (10.0 ** rng.uniform(-140, 140, n) for _ in "lr")
    scaled = left[:, None] * a * right
    b = left[:, None] * (a @ x)
    found, fell_back = solved(scaled, b, factor=factor)
    assert not fell_back and found.backward_error < 2.0**-53 * n**0.5
    assert abs(found.x * right[:, None] - x).max() < 1e-12 * abs(x).max()


def test_one_vector_and_empty_systems():
    a, b = system(np.random.default_rng(3), 9, 10.0)
    for how in refined.REFINES:
        found, _ = solved(a, b[:, 0], factor="fp16", refine=how)
        lu, piv, x, info, *_ = found
        assert x.shape == (9,) and backward(a, b[:, :1], x[:, None]) < 2.0**-51
        zero, _ = solved(a, 0 * b, factor="bf16", refine=how)
        assert zero.iter == 0 and not zero.x.any() and zero.backward_error == 0
        for n, nrhs in ((0, 2), (4, 0), (0, 0)):
            found, fell_back = solved(np.eye(n), np.zeros((n, nrhs)), factor="fp16", refine=how)
            assert found.x.shape == (n, nrhs) and found.iter == found.info == 0 and not fell_back


def test_singular_and_nan_matrices():
    a, b = system(np.random.default_rng(4), 8, 10.0)
    a[:, 3] = 0
    for how in refined.REFINES:
        found, fell_back = solved(a, b, factor="fp16", refine=how)
        assert fell_back and found.iter == -3 and found.info == 4 and np.array_equal(found.x, b)
        a[2, 2] = np.nan
        found, fell_back = solved(a, b, factor="fp16", refine=how)
        assert fell_back and found.iter == -2 and np.isnan(found.backward_error)
        a[2, 2] = 1
    with np.errstate(all="raise"):
        good, b = system(np.random.default_rng(4), 8, 10.0)
        b[1, 1] = np.inf
        found, fell_back = solved(good, b, factor="fp32")
    assert fell_back and not np.isfinite(found.x[:, 1]).all()


def test_what_scales_lose_is_solved_as_dgesv_solves_it():
    """Columns whose powers of ten differ by more than those of double precision."""
    a, b = np.array([[1e200, 1e-150], [2e200, 3e-150]]), np.ones(2)
    found, fell_back = solved(a, b, factor="fp32")
    assert fell_back and found.backward_error < 2.0**-52
    for x, y in zip(found, blasx.dgesv(a, b)):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal([found.r, found.c], 1)


@pytest.mark.parametrize("a, b, steps", [
    (np.array([[2.0]]), [1e39], -2), (np.array([[1e-5]]), [1e35], -31),
    (np.ones((3, 1)), [1e39] * 3, -2),
    (np.arange(1.0, 7).reshape(3, 2), np.array([1, -2, 3]) * 1e-170, -2),
    (np.arange(1.0, 7).reshape(2, 3), np.array([[1, 1e-170], [2, 1e-170], [0, 0]]), -2),
    (np.arange(1.0, 7).reshape(2, 3), np.array([[1, 0], [2, 0], [0, 0]]), 1)])
def test_least_squares_that_single_precision_cannot_hold(a, b, steps):
    """What underflows, or is infinite, has not converged; zeros have."""
    for gels, mixed, factor in ((blasx.dgels, blasx.dsgels, 1), (blasx.zgels, blasx.zcgels, 1j)):
        x, iter, info = mixed(a * factor, b)
        want = gels(a * factor, b)[1][:a.shape[1]]
        assert (iter == steps if steps < 0 else 0 <= iter <= 2) and info == 0
        np.testing.assert_allclose(x, want, rtol=1e-13)


def test_numbers_are_rounded_to_nearest_even():
    rng = np.random.default_rng(6)
    x = (rng.standard_normal((50, 7)) * 10.0 ** rng.integers(-4, 4, (50, 7))).astype("f4")
    x[0] = 0, -0.0, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, np.inf
    assert np.array_equal(refined.rounded(x, "fp16"), x.astype("f2").astype("f4"))
    for factor, bits in refined.BITS.items():
        fraction, exponent = np.frexp(x.astype(float))
        right = np.ldexp(np.rint(fraction * 2.0 ** (bits + 1)), exponent - bits - 1)
        assert np.array_equal(refined.rounded(x, factor), right.astype("f4")), factor
        z = (x[1:] + 1j * x[1:, ::-1])[::2, ::3].astype("c8")
        real, imag = (refined.rounded(x, factor) for x in (z.real, z.imag))
        assert np.array_equal(refined.rounded(z, factor), real + 1j * imag)


def test_wrong_calls_name_the_argument():
    a, b = system(np.random.default_rng(7), 4, 10.0)
    for name, how, word in (("dgesv", dict(factor="fp8"), "factor"),
                            ("dgesv", dict(factor="fp16", refine="cg"), "refine"),
                            ("dgesv", dict(refine=1), "refine"),
                            ("dgesv", dict(refine="gmres"), "refine"),
                            ("dgesv", dict(factor="fp16", memory=2**20), "memory"),
                            ("dgesv", dict(factor="fp16", device="cpu"), "device"),
                            ("sgesv", dict(factor="fp16"), "factor")):
        with pytest.raises(ValueError, match=f"^{name}: {word} must be"):
            getattr(blasx, name)(a, b, **how)
    assert type(blasx.gesv(a, b, factor="fp32")) is refined.Refined
    assert type(blasx.gesv(a, b)) is tuple


def test_gmres_finds_what_it_can_in_so_many_steps():
    rng = np.random.default_rng(8)
    for n, is_complex in ((30, False), (30, True), (1, False)):
        a, b = system(rng, n, 30.0, is_complex, 1)
        few = np.eye(n) + 0.1 * np.outer(a[:, 0], a[0])  # two steps
        for matrix in (a, few):
            for inner in (1e-4, 1e-8):
                d = refined.gmres(np, lambda v, m=matrix: m @ v, b[:, 0], inner)
                rest = np.linalg.norm(b[:, 0] - matrix @ d) / np.linalg.norm(b)
                assert rest < 2 * inner
    assert not refined.gmres(np, lambda v: v, np.zeros(3), 1e-4).any()
    assert not refined.gmres(np, lambda v: v * np.nan, np.ones(3), 1e-4).any()


@pytest.mark.parametrize("helps", [True, False])
def test_gmres_is_asked_for_more_where_nothing_came_of_it(monkeypatch, helps):
    """As where (L U)^-1 A is of condition 1e4: a residual of it 1e-4 smaller says nothing then."""
    asked, gmres = [], refined.gmres

    def idle(xp, operator, b, inner):
        asked.append(inner)
        return gmres(xp, operator, b, inner) if helps and inner < refined.INNER else 0 * b

    monkeypatch.setattr(refined, "gmres", idle)
    a, b = system(np.random.default_rng(3), 60, 1e3, False, 1)
    found, fell_back = solved(a, b, factor="fp16", refine="gmres")
    assert fell_back == (not helps) and backward(a, b, found.x) <= 2.0**-53 * 60**0.5
    assert asked[:2] == [1e-4, 1e-8] and set(asked[2:]) == ({1e-8} if helps else set())


# -- without a GPU


@pytest.mark.parametrize("module", ["run_solves", "run_refined"])
def test_on_a_simulated_gpu(simulated, module):
    run = under_sanitizers(module, simulated)
    assert run.returncode == 0 and "ok" in run.stdout, run.stderr[-3000:]


def test_compiles_without_drift_or_spills():
    """trsv_blocks, permutation, orhr_top and lag2s, one variant each, on Hopper."""
    resources = pytest.importorskip("tests.sim.resources", exc_type=ImportError)
    keys = [resources.label(kernel, letter, _tuned.capitals(_tuned.table(90)[kernel][letter][-1]))
            for kernel, letter in (("trsv_blocks", "s"), ("permutation", "s"), ("orhr_top", "s"),
                                   ("lag2s", "z"))]
    wrong = list(resources.complaints(resources.measure(keys, ["sm_90a"]), resources.recorded()))
    assert not wrong, "\n".join(wrong)
