"""blasx.linalg against numpy.linalg: shapes from 0, broadcasting, types, and what fails."""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.linalg import LinAlgError

import blasx
from blasx import linalg

with warnings.catch_warnings(action="ignore"):  # pytest does not know its marks
    from numpy.linalg.tests import test_linalg as numpys

TYPES = ("f4", "f8", "c8", "c16", "i4", "?")
stacks = st.sampled_from([(), (0,), (1,), (3,), (2, 3), (2, 0)])
orders = st.integers(0, 6)
seeds = st.integers(0, 2**32 - 1)
types = st.sampled_from(TYPES)
layouts = st.sampled_from("CFS")
quick = settings(max_examples=60, deadline=None)


def matrices(rng, shape, dtype="f8", layout="C", shift=True):
    """Random matrices, far from singular where square; S is a view with gaps."""
    a = rng.normal(size=shape) * 3
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=shape)
    if shift and shape[-1] == shape[-2]:
        a = a + 12 * np.eye(shape[-1])
    a = np.asarray(a, dtype)
    if layout == "S":
        wide = np.zeros(shape[:-2] + (2 * shape[-2], shape[-1] + 1), dtype)
        wide[..., ::2, 1:] = a
        return wide[..., ::2, 1:]
    return a.swapaxes(-1, -2).copy().swapaxes(-1, -2) if layout == "F" else a


def definite(rng, shape, dtype="f8", layout="C"):
    a = matrices(rng, shape, dtype if np.dtype(dtype).kind in "fc" else "f8", "C", False)
    return matrices_like(a @ a.conj().swapaxes(-1, -2) + 10 * np.eye(shape[-1], dtype=a.dtype),
                         layout)


def matrices_like(a, layout):
    return a.swapaxes(-1, -2).copy().swapaxes(-1, -2) if layout != "C" else a


def tolerance(dtype):
    return 2e-4 if np.dtype(dtype).char in "fF" else 1e-11


def same(ours, numpys):
    """Equal to rounding, of equal type and shape."""
    numpys = np.asarray(numpys)
    assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
    np.testing.assert_allclose(ours, numpys, rtol=tolerance(ours.dtype),
                               atol=tolerance(ours.dtype) * max(1, np.max(abs(numpys), initial=0)))


@quick
@given(stacks, orders, types, layouts, seeds)
def test_functions_of_a_square_matrix(stack, n, dtype, layout, seed):
    a = matrices(np.random.default_rng(seed), (*stack, n, n), dtype, layout)
    if dtype == "?":
        a = a | np.eye(n, dtype=bool)
        a = np.triu(a)
    before = a.copy()
    same(linalg.inv(a), np.linalg.inv(a))
    same(linalg.det(a), np.linalg.det(a))
    for ours, theirs in zip(linalg.slogdet(a), np.linalg.slogdet(a), strict=True):
        same(ours, theirs)
    np.testing.assert_array_equal(a, before)


@quick
@given(stacks, orders, types, layouts, st.booleans(), seeds)
def test_cholesky(stack, n, dtype, layout, upper, seed):
    a = definite(np.random.default_rng(seed), (*stack, n, n), dtype, layout)
    same(linalg.cholesky(a, upper=upper), np.linalg.cholesky(a, upper=upper))
    if n > 1:  # the other triangle is not read
        spoilt = np.where(np.tri(n, n, -1).T if not upper else np.tri(n, n, -1), np.nan, a)
        same(linalg.cholesky(spoilt, upper=upper), np.linalg.cholesky(a, upper=upper))


pairs = st.sampled_from([((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((1,), (4,)), ((4,), (1,)),
                         ((2, 1), (3,)), ((3,), (2, 1)), ((2, 3), (1, 3)), ((1, 3), (2, 1)),
                         ((0,), (1,)), ((), (0,)), ((2, 1, 2), (1, 3, 1))])


@quick
@given(pairs, orders, st.sampled_from([None, 0, 1, 3]), types, types, layouts, layouts, seeds)
def test_solve(pair, n, nrhs, ta, tb, la, lb, seed):
    rng = np.random.default_rng(seed)
    a = matrices(rng, (*pair[0], n, n), "f8" if ta == "?" else ta, la)
    if nrhs is None:
        b = matrices(rng, (1, n), tb)[0]
    else:
        b = matrices(rng, (*pair[1], n, nrhs), tb, lb, False)
    a0, b0 = a.copy(), b.copy()
    expected = np.linalg.solve(a, b)
    same(linalg.solve(a, b), expected)
    factors = linalg.lu_factor(a.astype(expected.dtype))
    same(linalg.lu_solve(factors, b), expected)
    for trans, at in ((1, a.swapaxes(-1, -2)), (2, a.conj().swapaxes(-1, -2))):
        same(linalg.lu_solve(factors, b, trans), np.linalg.solve(at, b))
    np.testing.assert_array_equal(a, a0)
    np.testing.assert_array_equal(b, b0)


@quick
@given(stacks, orders, orders, types, seeds)
def test_lu_factor_is_scipys(stack, m, n, dtype, seed):
    a = matrices(np.random.default_rng(seed), (*stack, m, n), dtype, shift=False)
    lu, piv = linalg.lu_factor(a)
    assert lu.shape == a.shape and piv.shape == (*stack, min(m, n)) and piv.dtype == np.int32
    if not a.size:
        return
    expected = a.astype(lu.dtype).reshape(-1, m, n)
    for x, f, p in zip(expected, lu.reshape(expected.shape), piv.reshape(len(expected), -1),
                       strict=True):
        with warnings.catch_warnings(action="ignore"):  # SciPy warns of singular matrices
            f0, p0 = scipy.linalg.lu_factor(x)
        np.testing.assert_array_equal(p, p0)
        same(np.asarray(f), f0)


@pytest.mark.parametrize("stack", [(), (3,), (2, 3)])
def test_lu_may_be_had_in_place(stack):
    rng = np.random.default_rng(0)
    a, b = matrices(rng, (*stack, 5, 5), layout="F"), matrices(rng, (*stack, 5, 2), layout="F")
    expected = np.linalg.solve(a, b)
    lu, piv = linalg.lu_factor(a, overwrite_a=True)
    x = linalg.lu_solve((lu, piv), b, overwrite_b=True)
    np.testing.assert_allclose(x, expected, atol=1e-12)
    if len(stack) < 2:
        assert np.shares_memory(lu, a) and np.shares_memory(x, b)
    with pytest.raises(ValueError, match="read-only"):
        a.flags.writeable = False
        linalg.lu_factor(a, overwrite_a=True)


def test_one_matrix_is_not_copied_for_its_many_right_hand_sides():
    rng = np.random.default_rng(0)
    a, b = matrices(rng, (40, 40)), rng.normal(size=(50, 40, 2))
    with blasx.trace() as t:
        x = linalg.solve(a, b)
    assert [c.name for c in t.calls] == ["dgesv", "linalg.solve"]
    np.testing.assert_allclose(x, np.linalg.solve(a, b), atol=1e-12)


# -- what has no answer


@quick
@given(st.sampled_from([(), (5,), (2, 3)]), st.integers(1, 5), st.data())
def test_the_exception_names_the_singular_members(stack, n, data):
    a = np.broadcast_to(2 * np.eye(n), (*stack, n, n)).copy()
    bad = data.draw(st.lists(st.sampled_from(list(np.ndindex(*stack))), min_size=1, unique=True))
    where = {i: data.draw(st.integers(1, n)) for i in sorted(bad)}
    for i, k in where.items():
        a[i][k - 1] = 0
        a[i][:, k - 1] = 0
    calls = [lambda: linalg.solve(a, np.ones(n)), lambda: linalg.inv(a),
             lambda: linalg.cholesky(a), lambda: linalg.lu_solve(linalg.lu_factor(a), np.ones(n))]
    for call in calls:
        with pytest.raises(LinAlgError) as caught:
            call()
        assert caught.value.indices == list(where)
        assert caught.value.infos == list(where.values())
        assert not stack or all(str(k) in str(caught.value) for k in where.values())
    det = np.asarray(linalg.det(a))
    assert all(det[i] == (0 if i in where else 2.0**n) or i not in where
               for i in np.ndindex(*stack))
    sign, log = linalg.slogdet(a)
    assert all(np.asarray(sign)[i] == 0 and np.asarray(log)[i] == -np.inf for i in where)


def test_slogdet_does_not_overflow():
    big = np.stack([np.diag([1e200] * 8), np.diag([-1e-200] * 7 + [1])])
    sign, log = linalg.slogdet(big)
    np.testing.assert_allclose(log, [1600 * np.log(10), -1400 * np.log(10)])
    np.testing.assert_array_equal(sign, [1, -1])
    assert linalg.det(np.stack([np.diag([1e200, 1e200, 1e-200, 1e-200])]))[0] == pytest.approx(1)


def test_the_determinant_of_an_infinite_pivot_is_infinite():
    a = np.stack([np.diag([np.inf, -2, 1]), np.diag([1, -np.inf, -1])])
    assert [list(x) for x in linalg.slogdet(a)] == [[-1, 1], [np.inf, np.inf]]
    assert list(linalg.det(a)) == [-np.inf, np.inf]


@pytest.mark.parametrize("dtype", "fdFD")
def test_a_zero_pivot_is_singular_whatever_the_others_are(dtype):
    a = np.stack([np.diag([np.inf, 0]), np.diag([0, -np.inf]), [[0, np.nan], [0, 1]]]).astype(dtype)
    with np.errstate(invalid="ignore"):
        numpys = np.linalg.slogdet(a)
    for ours, theirs in zip(linalg.slogdet(a), numpys, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    assert not linalg.det(a).any()


@pytest.mark.parametrize("call", [linalg.svd, linalg.eigh, linalg.eigvalsh, linalg.pinv,
                                  lambda a: linalg.lstsq(a, np.ones(2))])
def test_a_stack_that_does_not_converge_names_its_members(call):
    a = np.ones((4, 2, 2))
    a[1] = a[3] = np.nan
    with pytest.raises(LinAlgError) as caught:
        call(a)
    assert caught.value.indices == [(1,), (3,)]


@pytest.mark.parametrize("call", [
    linalg.eigh, linalg.eigvalsh, lambda a: linalg.svd(a, hermitian=True),
    lambda a: linalg.pinv(a, hermitian=True)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_matrix_without_eigenvalues_raises_as_a_stack_does(call, value):
    for a in (np.full((2, 2), value), np.full((1, 2, 2), value)):
        with pytest.raises(LinAlgError, match="did not converge"):
            call(a)


def test_a_singular_matrix_raises_without_right_hand_sides():
    for shape in ((2, 2), (3, 2, 2)):
        with pytest.raises(LinAlgError, match="Singular"):
            linalg.solve(np.zeros(shape), np.ones((*shape[:-1], 0)))
        assert linalg.solve(np.zeros(shape) + np.eye(2), np.ones((*shape[:-1], 0))).size == 0
    with pytest.raises(LinAlgError, match="Singular"):
        linalg.lu_solve((np.zeros((2, 2)), np.arange(2)), np.ones((2, 0)))
    assert linalg.solve(np.ones((0, 0)), np.ones((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("call", [
    lambda: linalg.solve(np.ones((2, 3)), np.ones(2)),
    lambda: linalg.solve(np.eye(2), np.ones(3)),
    lambda: linalg.solve(np.eye(2), 1.0),
    lambda: linalg.solve(np.ones((3, 2, 2)) + np.eye(2), np.ones((4, 2, 1))),
    lambda: linalg.inv(np.ones(3)),
    lambda: linalg.qr(np.eye(2), mode="economic"),
    lambda: linalg.eigh(np.eye(2), UPLO="lower"),
    lambda: linalg.lu_solve((np.eye(2), np.array([0, 1, 2])), np.ones(2)),
    lambda: linalg.pinv(np.eye(2), rcond=1e-3, rtol=1e-3),
])
def test_bad_shapes_and_flags(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("a", [np.eye(2, dtype="f2"), np.eye(2, dtype="g"), np.eye(2, dtype=object),
                               "matrix", None])
def test_bad_types(a):
    with pytest.raises(TypeError, match="linalg.inv: a"):
        linalg.inv(a)


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: linalg.solve(np.ones((2, 3, 3)), np.ones((4, 3, 1))), ValueError,
     r"linalg.solve: the stacks of a and b .* \(2,\) and \(4,\)"),
    (lambda: linalg.lstsq(np.ones((2, 3, 3)), np.ones((4, 3, 1))), ValueError,
     r"linalg.lstsq: the stacks of a and b .* \(2,\) and \(4,\)"),
    (lambda: linalg.lu_solve(3, np.ones(3)), TypeError, "linalg.lu_solve: lu_and_piv .* got 3"),
    (lambda: linalg.pinv(np.eye(3), "x"), TypeError, "linalg.pinv: rcond must .* got 'x'"),
    (lambda: linalg.lstsq(np.eye(3), np.ones(3), np.ones(2)), TypeError, "linalg.lstsq: rcond"),
    (lambda: linalg.solve([[1, 2], [3]], np.ones(2)), ValueError, "linalg.solve: a .* ragged"),
    (lambda: linalg.inv(np.ndarray), TypeError, "linalg.inv: a .* got type"),
    (lambda: linalg.eigh(np.eye(2), np.array("L")), ValueError, "linalg.eigh: UPLO"),
    (lambda: linalg.qr(np.eye(2), np.array(["r", "raw"])), ValueError, "linalg.qr: mode"),
    (lambda: linalg.lu_solve(linalg.lu_factor(np.eye(2)), np.ones(2), 3), ValueError,
     "linalg.lu_solve: trans .* got 3"),
    (lambda: linalg.lu_solve(linalg.lu_factor(np.eye(2)), np.ones(2), np.zeros(2, "V8")),
     ValueError, "linalg.lu_solve: trans"),
    (lambda: linalg.pinv(np.eye(3), rtol="x"), TypeError, "linalg.pinv: rtol .* got 'x'"),
    (lambda: linalg.pinv(np.eye(3), np.zeros(3, "M8[s]")), TypeError, "linalg.pinv: rcond"),
    (lambda: linalg.pinv(np.zeros((2, 3, 3)), np.ones(3)), ValueError,
     r"linalg.pinv: the stacks of a and rcond .* \(2,\) and \(3,\)"),
])
def test_wrong_calls_name_function_and_argument(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("flag", [None, "", "yes", 1.0, np.ones(2), [True]])
def test_flags_are_truth_values(flag):
    a = np.eye(2)
    for name, argument in [("cholesky", "upper"), ("lu_factor", "overwrite_a"),
                           ("svd", "full_matrices"), ("svd", "compute_uv"), ("svd", "hermitian"),
                           ("pinv", "hermitian")]:
        for operand in (a, np.stack([a, a]), a[:0, :0]):
            with pytest.raises(TypeError, match=f"linalg.{name}: {argument} must be True or False"):
                getattr(linalg, name)(operand, **{argument: flag})
    with pytest.raises(TypeError, match="linalg.lu_solve: overwrite_b must be True or False"):
        linalg.lu_solve(linalg.lu_factor(a), np.ones(2), overwrite_b=flag)


# -- orthogonal factorizations, eigenvalues, least squares


@quick
@given(stacks, orders, orders, types, layouts, st.sampled_from(["reduced", "complete", "r", "raw"]),
       seeds)
def test_qr(stack, m, n, dtype, layout, mode, seed):
    a = matrices(np.random.default_rng(seed), (*stack, m, n), dtype, layout, False)
    ours, theirs = linalg.qr(a, mode), np.linalg.qr(a, mode)
    if mode == "r":
        same(ours, theirs)
        return
    assert type(ours) is type(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
    if mode != "raw" and a.size:
        eps = 30 * np.finfo(ours.Q.dtype).eps
        k = ours.Q.shape[-1]
        np.testing.assert_allclose(ours.Q.conj().swapaxes(-1, -2) @ ours.Q,
                                   np.broadcast_to(np.eye(k), (*stack, k, k)), atol=eps)
        np.testing.assert_allclose(ours.Q @ ours.R, a, atol=eps * max(1, abs(a).max()))


@quick
@given(stacks, orders, types, layouts, st.sampled_from("LUlu"), seeds)
def test_eigh(stack, n, dtype, layout, UPLO, seed):
    a = matrices(np.random.default_rng(seed), (*stack, n, n), dtype, layout)
    ours, theirs = linalg.eigh(a, UPLO), np.linalg.eigh(a, UPLO)
    assert type(ours) is type(theirs)
    same(ours.eigenvalues, theirs.eigenvalues)
    same(linalg.eigvalsh(a, UPLO), theirs.eigenvalues)
    w, v = ours
    assert (v.shape, v.dtype) == (theirs[1].shape, theirs[1].dtype)
    half = np.tril(a, -1) if UPLO in "Ll" else np.triu(a, 1).conj().swapaxes(-1, -2)
    whole = half + half.conj().swapaxes(-1, -2) + np.eye(n) * a.real
    same(((v * w[..., None, :]) @ v.conj().swapaxes(-1, -2)).astype(v.dtype),
         whole.astype(v.dtype))


@quick
@given(stacks, orders, orders, types, layouts, st.booleans(), seeds)
def test_svd_and_pinv(stack, m, n, dtype, layout, full, seed):
    a = matrices(np.random.default_rng(seed), (*stack, m, n), dtype, layout)
    ours, theirs = linalg.svd(a, full), np.linalg.svd(a, full)
    assert type(ours) is type(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
    same(ours.S, theirs.S)
    same(linalg.svd(a, compute_uv=False), theirs.S)
    k = min(m, n)
    product = (ours.U[..., :k] * ours.S[..., None, :]) @ ours.Vh[..., :k, :]
    same(product.astype(ours.U.dtype), a.astype(ours.U.dtype))
    np.testing.assert_allclose(a @ linalg.pinv(a) @ a if a.size else a, a,
                               atol=tolerance(ours.U.dtype) * 100)
    assert linalg.pinv(a, rtol=None).shape == (*stack, n, m)


@pytest.mark.parametrize("stack", [(), (2,)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_pinv_finds_the_rank_of_what_is_deficient(stack, dtype):
    rng = np.random.default_rng(5)
    a = np.broadcast_to(rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30)), (*stack, 40, 30))
    exact = np.linalg.pinv(a, rcond=1e-10)
    limit = {} if np.dtype(dtype).char in "fF" else {"rtol": None}  # 1e-15 is less than the noise
    same(linalg.pinv(a.astype(dtype), **limit), exact.astype(dtype))


@quick
@given(stacks, orders, st.sampled_from(["f4", "f8", "c16"]), seeds)
def test_svd_of_a_hermitian_matrix(stack, n, dtype, seed):
    a = definite(np.random.default_rng(seed), (*stack, n, n), dtype)
    a = a - 12 * np.eye(n, dtype=a.dtype)
    u, s, vh = linalg.svd(a, hermitian=True)
    same(s, np.linalg.svd(a, compute_uv=False))
    same(linalg.svd(a, compute_uv=False, hermitian=True), s)
    same(((u * s[..., None, :]) @ vh).astype(a.dtype), a)
    if a.size:  # a - 12 I may be nearly singular: pinv is known to cond(a) eps
        cond = np.linalg.cond(a)[..., None, None]
        same((linalg.pinv(a, hermitian=True) / cond).astype(a.dtype),
             (linalg.pinv(a) / cond).astype(a.dtype))


@quick
@given(orders, orders, st.sampled_from([None, 0, 1, 3]), types, types, st.booleans(), seeds)
def test_lstsq(m, n, nrhs, ta, tb, deficient, seed):
    rng = np.random.default_rng(seed)
    a = matrices(rng, (m, n), ta, shift=False)
    if deficient and n > 1:
        a[:, -1] = a[:, 0]
    b = matrices(rng, (m, nrhs or 1), tb, shift=False)[:, :nrhs]
    b = b[:, 0] if nrhs is None else b
    ours, theirs = linalg.lstsq(a, b), np.linalg.lstsq(a, b)
    if ours[2] != theirs[2]:  # float32: NumPy decides the rank in double
        assert ours[2] < theirs[2]
        return
    assert type(ours[2]) is int
    for i in (0, 1, 3):
        if theirs[3].size and theirs[3].min() > 0.05 * theirs[3].max():
            same(ours[i], theirs[i])
        else:
            assert (ours[i].shape, ours[i].dtype) == (theirs[i].shape, theirs[i].dtype)


@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (4, 0), (0, 4)])
@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((), (4,)), ((4,), ()), ((0,), (1,))])
def test_lstsq_of_a_stack(m, n, shapes):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(*shapes[0], m, n)), rng.normal(size=(*shapes[1], m, 2))
    x, residuals, rank, s = linalg.lstsq(a, b)
    whole = np.broadcast_shapes(*shapes)
    assert x.shape == (*whole, n, 2) and rank.shape == whole and s.shape == (*whole, min(m, n))
    assert residuals.shape == ((*whole, 2) if m > n else (*whole, 0))
    for i in np.ndindex(*whole):
        one = np.linalg.lstsq(np.broadcast_to(a, (*whole, m, n))[i],
                              np.broadcast_to(b, (*whole, m, 2))[i])
        same(x[i], one[0])
        same(s[i], one[3])
        assert rank[i] == one[2]
        if m > n:
            same(residuals[i], one[1])


# -- other libraries' arrays, lists, traces


class Speaks:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **keywords):
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.fixture
def library(monkeypatch):
    """`Speaks` as the array class of a library of its own, with a from_dlpack."""
    import sys
    monkeypatch.setitem(sys.modules, "speaks", SimpleNamespace(
        from_dlpack=lambda x: Speaks(np.asarray(x))))
    monkeypatch.setattr(Speaks, "__module__", "speaks")


def test_dlpack_in_kind(library):
    a = np.random.default_rng(0).normal(size=(3, 4, 4)) + 4 * np.eye(4)
    x = linalg.solve(Speaks(a), Speaks(np.ones((4, 1))))
    assert type(x) is Speaks
    np.testing.assert_allclose(a @ x.x, np.ones((3, 4, 1)), atol=1e-12)
    sign, log = linalg.slogdet(Speaks(a[0]))
    assert type(sign) is type(log) is Speaks and sign.x.shape == ()
    assert type(linalg.eigh(Speaks(a)).eigenvectors) is Speaks
    factors = linalg.lu_factor(Speaks(a))
    assert type(linalg.lu_solve(factors, Speaks(np.ones(4)))) is Speaks


def test_lists_and_byte_order():
    assert linalg.det([[1, 2], [3, 4]]) == pytest.approx(-2)
    same(linalg.solve([[2, 0], [0, 4]], [2, 4]), np.array([1.0, 1.0]))
    same(linalg.inv(np.array([[2, 0], [0, 4]], ">f4")), np.array([[0.5, 0], [0, 0.25]], "f4"))


class Subclass(np.ndarray):
    pass


@pytest.mark.parametrize("name", sorted({*linalg.__all__} - {"lu_factor", "lu_solve"}))
@pytest.mark.parametrize("of", [lambda a: a.view(Subclass), np.ma.masked_array, np.asarray])
@pytest.mark.parametrize("stack", [(), (2,)])
def test_subclasses_of_ndarray_are_answered_as_numpy_does(name, of, stack):
    a = definite(np.random.default_rng(0), (*stack, 3, 3))
    b = np.ones(3)
    for operands in {"solve": [(of(a), b), (a, of(b)), (a, of(a))],
                     "lstsq": [] if stack else [(of(a), b), (a, of(b)), (a, of(a))],
                     }.get(name, [(of(a),)]):
        ours, theirs = getattr(linalg, name)(*operands), getattr(np.linalg, name)(*operands)
        if not isinstance(theirs, tuple):
            ours, theirs = (ours,), (theirs,)
        for x, y in zip(ours, theirs, strict=True):
            assert isinstance(x, int) and name == "lstsq" or type(x) is type(y)
            assert np.shape(x) == np.shape(y)


def test_calls_are_traced_by_their_names():
    with blasx.trace() as t:
        linalg.cholesky(np.eye(3))
    assert t.calls[-1].name == "linalg.cholesky" and t.calls[-1].syncs == 0


# -- NumPy's own tests of the names that we have


OURS = SimpleNamespace(**{**vars(np.linalg), **{f: getattr(linalg, f) for f in linalg.__all__}})


@pytest.fixture(autouse=True)
def numpys_tests_meet_our_names(monkeypatch):
    """Inside NumPy's test module, `linalg` and the names imported from it are ours."""
    monkeypatch.setattr(numpys, "linalg", OURS)
    monkeypatch.setattr(numpys, "assert_almost_equal",  # NumPy works on float32 in float64
                        partial(numpys.assert_almost_equal, single_decimal=5))
    for name in linalg.__all__:
        if hasattr(numpys, name):
            monkeypatch.setattr(numpys, name, getattr(linalg, name))


def numpys_class(name, *but):
    """NumPy's test class, without some of its tests."""
    return type(name, (getattr(numpys, name),), dict.fromkeys(but))


(TestSolve, TestInv, TestDet, TestPinv, TestPinvHermitian, TestSVD, TestSVDHermitian, TestEigh,
 TestEigvalsh, TestCholesky, TestQR) = map(numpys_class, (
     "TestSolve", "TestInv", "TestDet", "TestPinv", "TestPinvHermitian", "TestSVD",
     "TestSVDHermitian", "TestEigh", "TestEigvalsh", "TestCholesky", "TestQR"))
TestLstsq = numpys_class("TestLstsq", "test_incompatible_dims")  # the message


# -- on a GPU, against NumPy on the CPU


@pytest.fixture
def cupy():
    """CuPy, where there is a GPU for it."""
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("no GPU")
    return cupy


ON_ONE = {
    "inv": [()], "det": [()], "slogdet": [()], "cholesky": [(), {"upper": True}], "eigvalsh": [()],
    "pinv": [()], "svd": [{"compute_uv": False}],
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4"])
@pytest.mark.parametrize("stack", [(), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("n", [0, 1, 5, 40])
def test_gpu_agrees_with_the_cpu(cupy, dtype, stack, n):
    rng = np.random.default_rng(n)
    a = definite(rng, (*stack, n, n), dtype)
    on_gpu = cupy.asarray(a)
    for name, variants in ON_ONE.items():
        for flags in variants:
            ours = getattr(linalg, name)(on_gpu, **dict(flags))
            theirs = getattr(np.linalg, name)(a, **dict(flags))
            for x, y in zip(*((r if isinstance(r, tuple) else (r,)) for r in (ours, theirs)),
                            strict=True):
                assert type(x) is cupy.ndarray
                if np.isfinite(y).all():  # a determinant that overflows may do so in any direction
                    same(x.get(), y)
    q, r = linalg.qr(on_gpu)
    same((q @ r).get(), a.astype(q.dtype))
    w, v = linalg.eigh(on_gpu)
    same(((v * w[..., None, :]) @ v.conj().swapaxes(-1, -2)).get(), a.astype(v.dtype))
    u, s, vh = linalg.svd(on_gpu)
    same(((u * s[..., None, :]) @ vh).get(), a.astype(u.dtype))


@pytest.mark.gpu
@pytest.mark.parametrize("pair", [((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 1), (3,))])
@pytest.mark.parametrize("nrhs", [None, 0, 1, 3])
def test_gpu_solves_and_synchronises_once(cupy, pair, nrhs):
    rng = np.random.default_rng(7)
    a = matrices(rng, (*pair[0], 6, 6))
    b = rng.normal(size=6) if nrhs is None else rng.normal(size=(*pair[1], 6, nrhs))
    on_gpu = cupy.asarray(a), cupy.asarray(b)
    with blasx.trace() as t:
        x = linalg.solve(*on_gpu)
        y = linalg.lu_solve(linalg.lu_factor(on_gpu[0]), on_gpu[1])
    same(x.get(), np.linalg.solve(a, b))
    same(y.get(), np.linalg.solve(a, b))
    syncs = {call.name: call.syncs for call in t.calls}
    assert syncs["linalg.lu_factor"] == 0 and syncs["linalg.solve"] == 1
    assert sum(syncs.values()) == 2


@pytest.mark.gpu
def test_gpu_names_the_failing_members(cupy):
    a = cupy.asarray(np.broadcast_to(np.eye(4), (2, 3, 4, 4)))
    a[0, 2, 1, 1] = a[1, 0, 3, 3] = 0
    for call in (lambda: linalg.solve(a, cupy.ones(4)), lambda: linalg.inv(a),
                 lambda: linalg.cholesky(a)):
        with pytest.raises(LinAlgError) as caught:
            call()
        assert caught.value.indices == [(0, 2), (1, 0)] and caught.value.infos == [2, 4]


@pytest.mark.gpu
@pytest.mark.parametrize("stack", [(), (2, 3)])
def test_gpu_least_squares(cupy, stack):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(*stack, 7, 3)), rng.normal(size=(*stack, 7, 2))
    for ours, theirs in zip(linalg.lstsq(cupy.asarray(a), cupy.asarray(b)), linalg.lstsq(a, b),
                            strict=True):
        ours = ours.get() if isinstance(ours, cupy.ndarray) else np.asarray(ours)
        np.testing.assert_allclose(ours, theirs, atol=1e-11)


@pytest.mark.gpu
def test_devices_do_not_mix(cupy):
    with pytest.raises(TypeError, match="all on one device"):
        linalg.solve(cupy.eye(2), np.ones(2))
