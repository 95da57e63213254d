"""LU, Cholesky, triangular, band and mixed-precision routines: each against its definition, in
units of n eps, and against SciPy's function of the same name.

A case says, for a random problem, what the routine is called with and how its result is judged.
Every property below is tested over all cases.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import lapack as scipy_lapack

import blasx

EPS = {"s": 2.0**-24, "d": 2.0**-53, "c": 2.0**-24, "z": 2.0**-53}
DTYPE = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}
GUARD = 7
quick = settings(max_examples=40, deadline=None)


@dataclass
class Problem:
    letter: str
    m: int
    n: int
    nrhs: int | None  # None: the right-hand side is a vector
    lower: int
    trans: int
    unit: int
    clean: int
    ties: bool  # entries from {-1, 0, 1}
    seed: int
    name: str = field(default="", init=False)

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        self.dtype, self.eps = np.dtype(DTYPE[self.letter]), EPS[self.letter]

    def random(self, *shape):
        x = self.rng.normal(size=shape)
        if self.dtype.kind == "c":
            x = x + 1j * self.rng.normal(size=shape)
        return x.astype(self.dtype)

    def matrix(self, m, n):
        if self.ties:
            return self.rng.integers(-1, 2, (m, n)).astype(self.dtype)
        return self.random(m, n)

    def regular(self):
        return self.random(self.n, self.n) + 3 * np.eye(self.n, dtype=self.dtype)

    def definite(self):
        x = self.random(self.n, self.n)
        return x @ x.conj().T + np.eye(self.n, dtype=self.dtype)

    def rhs(self):
        return self.random(self.n) if self.nrhs is None else self.random(self.n, self.nrhs)

    def half(self, a):
        """`a` with nan where a routine that is told one triangle must not look."""
        return np.where(triangle(a.shape, not self.lower, 1), np.nan, a).astype(a.dtype)

    def error(self, residual, *scale):
        """|residual|_1 / (n eps prod |scale|_1)."""
        residual = norm(residual)
        bound = max(self.n, self.m, 1) * self.eps * np.prod([norm(x) for x in scale])
        return 0.0 if residual == 0 else residual / bound

    def solution(self, a, x, b):
        return self.error(op(a, self.trans) @ wide(x) - b, a, x)


problems = st.builds(
    Problem, letter=st.sampled_from("sdcz"), m=st.integers(0, 12), n=st.integers(0, 12),
    nrhs=st.none() | st.integers(0, 3), lower=st.integers(0, 1), trans=st.integers(0, 2),
    unit=st.integers(0, 1), clean=st.integers(0, 1), ties=st.booleans(), seed=st.integers(0, 999))


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def norm(x):
    x = abs(wide(x))
    return float((x if x.ndim < 2 else x.sum(axis=0)).max(initial=0))


def op(a, trans):
    return [a, a.T, a.conj().T][trans]


def triangle(shape, lower, offset=0):
    """The mask of a triangle without its first `offset` diagonals."""
    return np.tri(*shape, -offset, bool) if lower else ~np.tri(*shape, offset - 1, bool)


def told(a, lower, unit=0):
    """The triangular matrix that a routine is told by one triangle."""
    a = np.where(triangle(a.shape, lower, unit), wide(a), 0)
    return a + np.eye(len(a)) if unit else a


def swapped(a, piv):
    a = a.copy()
    for i, p in enumerate(piv):
        a[[i, p]] = a[[p, i]]
    return a


def dense(ab, kl, ku):
    n = ab.shape[1]
    a = np.zeros((n, n), ab.dtype)
    for i, j in np.ndindex(n, n):
        if -ku <= i - j <= kl:
            a[i, j] = ab[kl + ku + i - j, j]
    return a


def letter_name(routine, letter):
    """The typed name; of the mixed routines, which have two, the one of this kind of number."""
    if routine in ("sgesv", "sposv"):
        return {"s": "ds", "d": "ds", "c": "zc", "z": "zc"}[letter] + routine[1:]
    return letter + routine


# The cases: arguments by name, and the judge of what the routine returns.


def getrf(p):
    a = p.matrix(p.m, p.n)

    def judge(lu, piv, info):
        k = min(p.m, p.n)
        lower, u = np.tril(wide(lu)[:, :k], -1) + np.eye(p.m, k), np.triu(lu[:k])
        zeros = np.flatnonzero(np.diag(u) == 0)
        assert info == (zeros[0] + 1 if zeros.size else 0)
        assert ((np.arange(k) <= piv) & (piv < p.m)).all() and piv.dtype == np.int32
        return p.error(swapped(a, piv) - lower @ u, a)
    return dict(a=a), judge


def factored(p):
    a = p.regular()
    lu, piv, _ = scipy_lapack.get_lapack_funcs("getrf", (a,))(a) if p.n else (a, [], 0)
    return a, dict(lu=lu, piv=np.array(piv, np.int32))


def getrs(p):
    (a, factors), b = factored(p), p.rhs()
    return factors | dict(b=b, trans=p.trans), lambda x, info: p.solution(a, x, b)


def gesv(p):
    a, b = p.regular(), p.rhs()
    p.trans = 0

    def judge(lu, piv, x, info):
        assert not info
        factor = p.error(swapped(a, piv) - (np.tril(lu, -1) + np.eye(p.n)) @ np.triu(lu), a)
        return max(factor, p.solution(a, x, b))
    return dict(a=a, b=b), judge


def getri(p):
    a, factors = factored(p)
    return factors, lambda x, info: p.error(a @ wide(x) - np.eye(p.n), a, x)


def condition(p, a, factor, kind):
    """An estimate bounds the inverse from below, and seldom by more than a few units."""
    def judge(rcond, info):
        if p.n == 0:
            return 0.0 if rcond == 1 else np.inf
        true = 1 / np.linalg.cond(wide(a), kind)
        return 0.0 if 0.99 * true <= rcond <= 10 * true else np.inf
    return dict(a=factor, anorm=float(np.linalg.norm(a, kind)) if p.n else 0.0), judge


def gecon(p):
    a, factors = factored(p)
    arguments, judge = condition(p, a, factors["lu"], np.inf if p.unit else 1)
    return arguments | dict(norm="I" if p.unit else "1"), judge


def laswp(p):
    a, k = p.matrix(p.m, p.n), p.m // 2
    piv = p.rng.integers(0, max(p.m, 1), p.m).astype(np.int32)
    step = 1 if p.lower else -1

    def judge(x):
        expected = a.copy()
        for i in range(k, p.m)[::step]:
            expected[[i, piv[i]]] = expected[[piv[i], i]]
        return 0.0 if np.array_equal(x, expected) else np.inf
    return dict(a=a, piv=piv, inc=step) | (dict(k1=k) if p.m else {}), judge


def potrf(p):
    a = p.definite()

    def judge(c, info):
        other = triangle(c.shape, not p.lower, 1)
        assert not info and (np.all(c[other] == 0) if p.clean else np.isnan(c[other]).all())
        c = told(c, p.lower)
        return p.error((c @ c.conj().T if p.lower else c.conj().T @ c) - a, a)
    return dict(a=p.half(a), lower=p.lower, clean=p.clean), judge


def cholesky(p):
    a = p.definite()
    c = np.linalg.cholesky(a)
    return a, c if p.lower else c.conj().T


def potrs(p):
    (a, c), b, p.trans = cholesky(p), p.rhs(), 0
    return dict(c=p.half(c), b=b, lower=p.lower), lambda x, info: p.solution(a, x, b)


def posv(p):
    a, b, p.trans = p.definite(), p.rhs(), 0

    def judge(c, x, info):
        assert not info and np.isnan(c[triangle(c.shape, not p.lower, 1)]).all()
        return p.solution(a, x, b)
    return dict(a=p.half(a), b=b, lower=p.lower), judge


def potri(p):
    a, c = cholesky(p)

    def judge(x, info):
        assert np.isnan(x[triangle(x.shape, not p.lower, 1)]).all()
        x = told(x, p.lower)
        x = x + x.conj().T - np.diag(x.diagonal())
        return p.error(a @ x - np.eye(p.n), a, x)
    return dict(c=p.half(c), lower=p.lower), judge


def pocon(p):
    a, c = cholesky(p)
    arguments, judge = condition(p, a, p.half(c), 1)
    return arguments | dict(uplo="UL"[p.lower]), judge


def unit_half(p, c):
    """One triangle, and a diagonal that must not be read if it is said to be of ones."""
    return p.half(np.where(np.eye(p.n) * p.unit, np.nan, c).astype(c.dtype))


def trtri(p):
    c = p.regular()
    t = told(c, p.lower, p.unit)
    arguments = dict(c=unit_half(p, c), lower=p.lower, unitdiag=p.unit)

    def judge(x, info):
        kept = triangle(x.shape, not p.lower, 1 - p.unit)
        assert not info and np.isnan(x[kept]).all()
        x = told(x, p.lower, p.unit)
        return p.error(t @ x - np.eye(p.n), t, x)
    return arguments, judge


def trtrs(p):
    a, b = p.regular(), p.rhs()
    return (dict(a=unit_half(p, a), b=b, lower=p.lower, trans=p.trans, unitdiag=p.unit),
            lambda x, info: p.solution(told(a, p.lower, p.unit), x, b))


def lauum(p):
    c = p.regular()
    np.fill_diagonal(c, c.diagonal().real)
    t = told(c, p.lower)
    product = t.conj().T @ t if p.lower else t @ t.conj().T

    def judge(x, info):
        assert np.isnan(x[triangle(x.shape, not p.lower, 1)]).all()
        return p.error(told(x, p.lower) - told(product, p.lower), t, t)
    return dict(c=p.half(c), lower=p.lower), judge


def band(p):
    """A band matrix in LAPACK's storage, with nan in the rows that are only room."""
    kl, ku = p.m % 4, p.m // 4
    ab = p.random(2 * kl + ku + 1, p.n)
    ab[:kl] = 0
    return ab, kl, ku


def gbtrf(p):
    ab, kl, ku = band(p)

    def judge(lu, ipiv, info):
        b = p.random(p.n)
        solve = scipy_lapack.get_lapack_funcs("gbtrs", (lu,))
        x = solve(lu, kl, ku, b, ipiv)[0] if p.n else b
        p.trans = 0
        return p.solution(dense(ab, kl, ku), x, b)
    return dict(ab=ab, kl=kl, ku=ku), judge


def gbtrs(p):
    ab, kl, ku = band(p)
    factor = scipy_lapack.get_lapack_funcs("gbtrf", (ab,))
    lu, ipiv = factor(ab, kl, ku)[:2] if p.n else (ab, np.zeros(0, np.int32))
    b = p.rhs()
    return (dict(ab=lu, kl=kl, ku=ku, b=b, ipiv=ipiv, trans=p.trans),
            lambda x, info: p.solution(dense(ab, kl, ku), x, b))


def gbsv(p):
    (ab, kl, ku), b, p.trans = band(p), p.rhs(), 0
    return (dict(kl=kl, ku=ku, ab=ab, b=b),
            lambda lub, piv, x, info: p.solution(dense(ab, kl, ku), x, b))


def sgesv(p):
    p = doubled(p)
    a, b = p.regular(), p.rhs()

    def judge(x, piv, iter, info):
        assert not info and (iter >= 0 or p.n < 4)  # n = 1 leaves the test no slack
        return p.solution(a, x, b)
    return dict(a=a, b=b), judge


def sposv(p):
    p = doubled(p)
    a, b = p.definite(), p.rhs()

    def judge(x, iter, info):
        assert not info and (iter >= 0 or p.n < 4)
        return p.solution(a, x, b)
    return dict(a=p.half(a), b=b, lower=p.lower), judge


def doubled(p):
    letter = {"s": "d", "c": "z"}.get(p.letter, p.letter)
    return Problem(letter, p.m, p.n, p.nrhs, p.lower, 0, p.unit, p.clean, p.ties, p.seed)


def lange(p):
    kind = "M1OIFE"[p.seed % 6]
    a = p.matrix(p.m, p.n)
    size = abs(wide(a))
    value = {"M": size.max, "I": size.sum(axis=1).max, "F": partial(np.sum, size**2)}.get(
        {"E": "F"}.get(kind, kind), size.sum(axis=0).max)
    value = (value(initial=0) if kind not in "FE" else np.sqrt(value())) if a.size else 0.0
    return dict(norm=kind, a=a), lambda x: p.error(x - value, value)


def lacpy(p):
    a, uplo = p.matrix(p.m, p.n), "AUL"[p.seed % 3]
    expected = {"A": np.asarray, "U": np.triu, "L": np.tril}[uplo](a)
    return (dict(a=a, uplo=uplo),
            lambda b: 0.0 if np.array_equal(b, expected) and b.dtype == p.dtype else np.inf)


CASES = [getrf, getrs, gesv, getri, gecon, laswp, potrf, potrs, posv, potri, pocon, trtri, trtrs,
         lauum, gbtrf, gbtrs, gbsv, sgesv, sposv, lange, lacpy]
# The operands that may be overwritten, and the results that then lie where they were.
OVERWRITES = {
    getrf: {"a": 0}, getrs: {"b": 0}, gesv: {"a": 0, "b": 2}, getri: {"lu": 0}, laswp: {"a": 0},
    potrf: {"a": 0}, potrs: {"b": 0}, posv: {"a": 0, "b": 1}, potri: {"c": 0}, trtri: {"c": 0},
    trtrs: {"b": 0}, lauum: {"c": 0}, gbtrf: {"ab": 0}, gbtrs: {"b": 0},
    gbsv: {"ab": 0, "b": 2}, sgesv: {}, sposv: {}}
BAND = (gbtrf, gbtrs, gbsv)  # of the GPU's arrays they overwrite copies
IN_PLACE_BY_ROWS = (potrf, potri, trtri, lauum)  # the other triangle of the transpose
every_case = pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__)


def laid(x, layout, xp=np):
    """A copy of `x` by columns or rows, whole, in the middle of a frame, or with gaps; its frame.
    """
    order = layout[0]
    if x.ndim == 1:
        frame = xp.full(2 * len(x) + 3, GUARD, x.dtype)
        view = frame[1:len(x) + 1] if layout != "F gaps" else frame[1:2 * len(x) + 1:2]
    elif "whole" in layout:
        frame = view = xp.full(x.shape, GUARD, x.dtype, order=order)
    elif "frame" in layout:
        frame = xp.full((x.shape[0] + 3, x.shape[1] + 2), GUARD, x.dtype, order=order)
        view = frame[1:x.shape[0] + 1, 1:x.shape[1] + 1]
    else:
        frame = xp.full((2 * x.shape[0] + 1, x.shape[1]), GUARD, x.dtype, order=order)
        view = frame[:-1:2, ::-1]
    view[...] = xp.asarray(x)
    return view, frame


def host(result):
    """What a routine returns, as a tuple on the host."""
    return tuple(x if isinstance(x, (np.ndarray, int, float)) else x.get() if x.ndim else x.item()
                 for x in as_tuple(result))


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


layouts = st.sampled_from(("F whole", "F frame", "F gaps", "C whole", "C frame"))


def prepared(case, p, layout, xp=np):
    arguments, judge = case(p)
    arrays = {k: laid(x, layout, xp) for k, x in arguments.items() if isinstance(x, np.ndarray)}
    return arguments | {k: view for k, (view, _) in arrays.items()}, arrays, arguments, judge


@every_case
@pytest.mark.filterwarnings("ignore::blasx.TransferWarning")
@quick
@given(problems, layouts)
def test_definition(xp, case, p, layout):
    """The error is a few n eps; operands stay as they were; SciPy returns the same kinds."""
    call, arrays, original, judge = prepared(case, p, layout, xp)
    name = letter_name(case.__name__, p.letter)
    returned = getattr(blasx, name)(**call)
    result = host(returned)
    assert judge(*result) < 10
    for k in arrays:
        np.testing.assert_array_equal(*host((call[k], original[k])))
    if xp is not np:
        assert all(isinstance(x, xp.ndarray) for x in as_tuple(returned))
    elif hasattr(scipy_lapack, name) and all(x.size for x, _ in arrays.values()):
        scipys = as_tuple(getattr(scipy_lapack, name)(**call))
        for ours, theirs in zip(result, scipys, strict=True):
            assert type(ours) is type(theirs) and np.shape(ours) == np.shape(theirs)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype
            if isinstance(ours, int):
                assert ours == theirs


@pytest.mark.parametrize("case", OVERWRITES, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::blasx.TransferWarning")
@quick
@given(problems, layouts)
def test_overwriting_is_in_place_and_stays_inside(xp, case, p, layout):
    """Column-major views are truly overwritten, and nothing around a view is."""
    call, arrays, _, judge = prepared(case, p, layout, xp)
    flags = OVERWRITES[case] or {"a": None}
    routine = getattr(blasx, letter_name(case.__name__, p.letter))
    result = as_tuple(routine(**call, **{f"overwrite_{k}": 1 for k in flags}))
    assert judge(*host(result)) < 10
    in_place = layout in ("F whole", "F frame") or (
        case in IN_PLACE_BY_ROWS and layout != "F gaps")
    for k, place in OVERWRITES[case].items():
        if in_place and call[k].size and (xp is np or case not in BAND):
            assert xp.shares_memory(result[place], arrays[k][1])
    for view, frame in arrays.values():
        if view is not frame:
            view[...] = GUARD
            assert (frame == GUARD).all()


@quick
@given(problems, st.sampled_from(("F frame", "C whole")))
def test_pivots_on_ties_are_lapacks(p, layout):
    """Entries of {-1, 0, 1}: the first of equal pivots, info of the first zero, bit for bit."""
    p.ties = True
    a = p.matrix(max(p.m, 1), max(p.n, 1))
    for ours, theirs in zip(getattr(blasx, p.letter + "getrf")(laid(a, layout)[0]),
                            getattr(scipy_lapack, p.letter + "getrf")(a), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def singular(n, k):
    """Diagonal, with a zero at place k, from 1."""
    a = np.eye(n)
    a[k - 1, k - 1] = 0
    return a


EYE, PIV, ONES = np.eye(4), np.arange(4, dtype=np.int32), np.ones((4, 2))
BAD = singular(4, 3)
BANDED = np.array([[0, 0, 0, 0.0], [0, 0, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0]])


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize(("routine", "arguments", "untouched"), [
    ("getrf", (BAD,), None), ("gesv", (BAD, ONES), 2), ("getri", (BAD, PIV), 0),
    ("potrf", (BAD,), None), ("posv", (BAD, ONES), 1), ("potri", (BAD,), 0),
    ("trtri", (BAD,), 0), ("trtrs", (BAD, ONES), 0), ("gbtrf", (BANDED, 1, 1), None),
    ("gbsv", (1, 1, BANDED, ONES), 2)], ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("layout", ["F whole", "F frame"])
@pytest.mark.filterwarnings("ignore::blasx.TransferWarning")
def test_singular_matrices_have_info_and_leave_the_rest(xp, routine, arguments, untouched, letter,
                                                       layout):
    def call(module, overwrite, xp):
        arrays = [laid(x.astype(DTYPE[letter]) if x.dtype.kind == "f" else x, layout, xp)[0]
                  if isinstance(x, np.ndarray) else x for x in arguments]
        flags = {f"overwrite_{k}": overwrite for k in OVERWRITES[globals()[routine]]}
        return host(getattr(module, letter + routine)(*arrays, **flags))

    for overwrite in (0, 1):
        result = call(blasx, overwrite, xp)
        assert result[-1] == call(scipy_lapack, 0, np)[-1] == 3
        if untouched is not None:
            index = {"gesv": 1, "posv": 1, "trtrs": 1, "gbsv": 3}.get(routine, 0)
            np.testing.assert_array_equal(result[untouched], arguments[index])


@pytest.mark.parametrize("layout", ["F whole", "F frame", "C whole"])
@pytest.mark.parametrize("letter", "sdcz")
def test_nan_neither_hangs_nor_hides(xp, letter, layout):
    def call(routine, *arguments):
        return host(getattr(blasx, letter + routine)(*arguments))

    a = laid(np.full((6, 6), np.nan, DTYPE[letter]), layout, xp)[0]
    b = xp.ones((6, 1), DTYPE[letter])
    assert np.isnan(call("getrf", a)[0]).all()
    assert np.isnan(call("gesv", a, b)[2]).all()
    assert np.isnan(call("trtrs", a, b)[0]).all()
    for kind in "M1IF":
        assert np.isnan(call("lange", kind, a))
    if letter in "dz":
        mixed = getattr(blasx, letter_name("sgesv", letter))
        assert not np.isfinite(host(mixed(a, b))[0]).any()
    for k in range(6):
        c = xp.eye(6, dtype=DTYPE[letter])
        c[k, k] = np.nan
        for lower in (0, 1):
            assert call("potrf", c, lower)[1] == k + 1
            for overwrite in (0, 1):
                x, info = call("posv", c, b, lower, 0, overwrite)[1:]
                assert info == k + 1 and (x == 1).all()


def test_flags_are_words_or_bytes():
    a = np.array([[3.0, 4]])
    assert blasx.dlange(b"f", a) == blasx.dlange("Frobenius", a) == 5
    assert blasx.dgecon(np.eye(2), np.inf) == (0, -5) == (0, blasx.dgecon(np.eye(2), np.nan)[1])
    assert blasx.dpocon(np.eye(2), 1, "lower") == blasx.dgecon(np.eye(2), 1, b"O") == (1, 0)


@pytest.mark.parametrize("letter", "sdcz")
def test_frobenius_neither_overflows_nor_underflows(xp, letter):
    lange, limits = getattr(blasx, letter + "lange"), np.finfo(DTYPE[letter])
    for value in (float(limits.max) / 8, float(limits.tiny) * 8):
        a = xp.full((3, 3), value, DTYPE[letter])
        assert float(lange("F", a)) == pytest.approx(3 * value)
    a[1, 1] = np.inf
    assert float(lange("F", a)) == np.inf


@pytest.mark.parametrize("order", "FC")
@pytest.mark.parametrize(("letter", "gesv", "posv"), [("d", "dsgesv", "dsposv"),
                                                      ("z", "zcgesv", "zcposv")])
def test_mixed_precision_falls_back_to_double(xp, letter, gesv, posv, order):
    """Too ill-conditioned, too large or indefinite for single precision: iter < 0, and the answer
    of the double factorization."""
    def call(name, a, b, **flags):
        given = xp.asarray(a, order=order)
        result = host(getattr(blasx, name)(given, xp.asarray(b), **flags))
        np.testing.assert_array_equal(host(given)[0], a)
        return result

    n = 20
    p = Problem(letter, n, n, 2, 1, 0, 0, 0, False, 1)
    q = np.linalg.qr(p.random(n, n))[0]
    spectrum = np.logspace(0, -11, n)
    hard, b = np.asarray((q * spectrum) @ q.conj().T, order=order), p.rhs()
    hard = np.asarray((hard + hard.conj().T) / 2, order=order)
    for scale, reason in ((1.0, (-3, -31)), (1e100, (-2,))):
        a = hard * scale
        x, piv, steps, info = call(gesv, a, b)
        assert steps in reason + (-31,) and info == 0 and p.solution(a, x, b) < 10
        x, steps, info = call(posv, a, b, lower=1)
        assert steps in reason and info == 0 and p.solution(a, x, b) < 10
    a, b_ = np.diag([1e-30, 1]).astype(hard.dtype), np.array([1e20, 1])  # x is, too
    for name in (gesv, posv):
        x, *_, steps, info = call(name, a, b_)
        np.testing.assert_allclose(x, [1e50, 1])
        assert steps == -2 and info == 0
    assert call(posv, -hard, b)[1:] == (-3, 1)
    assert call(gesv, 0 * hard, b)[2:] == (-3, 1)


def test_mixed_precision_overwrites_only_for_the_double_factorization():
    p = Problem("d", 9, 9, 1, 0, 0, 0, 0, False, 2)
    a, b = np.asfortranarray(p.regular()), p.rhs()
    keep = a.copy()
    assert blasx.dsgesv(a, b, overwrite_a=1)[2] >= 0 and (a == keep).all()
    a *= 1e100
    keep = a.copy()
    assert blasx.dsgesv(a, b, overwrite_a=1)[2] == -2
    np.testing.assert_array_equal(a, blasx.dgetrf(keep)[0])


def test_butterflies_are_dsgesv_where_pivots_cost_nothing():
    p = Problem("d", 30, 30, 2, 0, 0, 0, 0, False, 3)
    a, b = p.regular(), p.rhs()
    for scale, fell_back in ((1, False), (1e100, True)):
        x, piv, steps, info = blasx.dsgesv(a * scale, b)
        found = blasx.dsgesv_rbt(a * scale, b)
        np.testing.assert_array_equal(found[0], x)
        assert found[1:] == (steps, info) and (steps < 0) == fell_back


@quick
@given(problems)
def test_lacpy_and_laset_write_one_triangle_in_place(p):
    uplo = "AUL"[p.seed % 3]
    a = p.matrix(p.m, p.n)
    mask = np.ones(a.shape, bool) if uplo == "A" else triangle(a.shape, uplo == "L")
    for layout in ("F frame", "C frame", "F gaps"):
        b, frame = laid(np.full(a.shape, GUARD, a.dtype), layout)
        assert getattr(blasx, p.letter + "lacpy")(a, uplo, b) is not None
        np.testing.assert_array_equal(b, np.where(mask, a, GUARD))
        b[...] = GUARD
        getattr(blasx, p.letter + "laset")(p.m, p.n, 2, 3.5, uplo, b)
        expected = np.where(mask, np.where(np.eye(p.m, p.n), 3.5, 2), GUARD)
        np.testing.assert_array_equal(b, expected)
        b[...] = GUARD
        assert (frame == GUARD).all()
    fresh = getattr(blasx, p.letter + "laset")(p.m, p.n, 2, 3.5, uplo.lower())
    np.testing.assert_array_equal(fresh, np.where(expected == GUARD, 0, expected))
    assert fresh.dtype == p.dtype


def test_tall_operands_of_trtrs():
    """Rows past the order of A: they are not read, and of B left alone."""
    a, b = np.vstack((2 * np.eye(3), np.full((2, 3), np.nan))), np.ones((6, 2))
    x, info = blasx.dtrtrs(a, b)
    np.testing.assert_array_equal(x, np.vstack((b[:3] / 2, b[3:])))
    assert info == 0 and blasx.dtrtrs(a, b, lda=5)[1] == 0


def test_laswp_steps():
    a, piv = np.arange(12.0).reshape(6, 2), np.array([5, 1, 4, 3, 2], np.int32)
    for inc in (1, -1, 2, -2, 4):
        for k1 in (0, 1):
            np.testing.assert_array_equal(blasx.dlaswp(a, piv, k1, k1, 0, inc),
                                          scipy_lapack.dlaswp(a, piv, k1, k1, 0, inc))
    np.testing.assert_array_equal(blasx.dlaswp(a, piv, 0, 2, inc=2),
                                  scipy_lapack.dlaswp(a, piv, 0, 2, inc=2))
    np.testing.assert_array_equal(blasx.dlaswp(a, piv, 0, 2, off=2), blasx.dlaswp(a, piv[2:]))


def test_workspace_queries_are_scipys():
    for letter in "sdcz":
        ours, theirs = (getattr(m, letter + "getri_lwork") for m in (blasx, scipy_lapack))
        assert ours(50) == theirs(50) and ours(0)[1] == 0
        lu, getri = np.eye(3, dtype=DTYPE[letter]), getattr(blasx, letter + "getri")
        assert getri(lu, [0, 1, 2], ours(3))[1] == getri(lu, [0, 1, 2], ours(3)[0])[1] == 0


@pytest.mark.parametrize(("call", "copies"), [
    (lambda f, c: blasx.dgetrf(c, overwrite_a=1), 1),
    (lambda f, c: blasx.dgetrf(f, overwrite_a=1), 0),
    (lambda f, c: blasx.dgetrf(f[1:, 1:], overwrite_a=1), 0),
    (lambda f, c: blasx.dpotrf(c[1:, 1:], overwrite_a=1), 0),
    (lambda f, c: blasx.dtrtrs(c, f[:, :1]), 0),
    (lambda f, c: blasx.dgesv(c, f[:, 1:], overwrite_a=1), 1)])
def test_trace_counts_what_row_order_costs(call, copies):
    a = np.eye(5)
    with blasx.trace() as t:
        call(np.asfortranarray(a), a.copy())
    assert t.calls[-1].copies == copies and t.calls[-1].device == "cpu"


def readonly(x):
    x = x.copy()
    x.flags.writeable = False
    return x


SHARED = np.asfortranarray(np.eye(6))
WRONG = [
    ("dgetrf", ("a",), dict(a="x"), TypeError), ("dgetrf", ("a",), dict(a=EYE * 1j), TypeError),
    ("dgetrf", ("a",), dict(a=readonly(EYE), overwrite_a=1), ValueError),
    ("dgetrf", ("a",), dict(a=np.ones((2, 2, 2))), ValueError),
    ("dgetrf", ("a",), dict(a=np.broadcast_to(1.0, (2**31, 2))), ValueError),
    ("dgetrf", ("mode", "native", "auto on the CPU"), dict(a=EYE, mode="native"), ValueError),
    ("dgetrs", ("lu",), dict(lu=ONES, piv=PIV, b=ONES), ValueError),
    ("dgetrs", ("piv", "4"), dict(lu=EYE, piv=[0, 1, 2, 4], b=ONES), ValueError),
    ("dgetrs", ("piv",), dict(lu=EYE, piv=[0, 1], b=ONES), ValueError),
    ("dgetrs", ("piv",), dict(lu=EYE, piv=[0.5, 1, 2, 3], b=ONES), TypeError),
    ("dgetrs", ("b", "(3, 2)"), dict(lu=EYE, piv=PIV, b=ONES[:3]), ValueError),
    ("dgetrs", ("trans", "3"), dict(lu=EYE, piv=PIV, b=ONES, trans=3), ValueError),
    ("dgetrs", ("b", "lu"), dict(lu=SHARED, piv=np.arange(6), b=SHARED[:, :2], overwrite_b=1),
     ValueError),
    ("dgesv", ("a", "b"), dict(a=SHARED, b=SHARED[:, :2], overwrite_a=1), ValueError),
    ("dgesv", ("a", "(4, 2)"), dict(a=ONES, b=ONES), ValueError),
    ("dgetri", ("lwork", "2"), dict(lu=EYE, piv=PIV, lwork=2), ValueError),
    ("dgecon", ("norm", "x"), dict(a=EYE, anorm=1, norm="x"), ValueError),
    ("dgecon", ("anorm", "-1"), dict(a=EYE, anorm=-1), ValueError),
    ("dlaswp", ("piv",), dict(a=EYE, piv=[9]), ValueError),
    ("dlaswp", ("inc", "0"), dict(a=EYE, piv=PIV, inc=0), ValueError),
    ("dlaswp", ("k2", "9"), dict(a=EYE, piv=PIV, k2=9), ValueError),
    ("dlaswp", ("k2",), dict(a=EYE, piv=PIV, inc=2), ValueError),
    ("dlaswp", ("off",), dict(a=EYE, piv=PIV, off=4), ValueError),
    ("dpotrf", ("lower", "2"), dict(a=EYE, lower=2), ValueError),
    ("dpotrf", ("clean", "7"), dict(a=EYE, clean=7), ValueError),
    ("dpotrf", ("mode", "cusolver", "auto on the CPU"), dict(a=EYE, mode="cusolver"), ValueError),
    ("dpotrs", ("b",), dict(c=EYE, b=np.ones(3)), ValueError),
    ("dposv", ("b",), dict(a=EYE, b=readonly(ONES), overwrite_b=1), ValueError),
    ("dpotri", ("c",), dict(c=ONES), ValueError),
    ("dpocon", ("uplo", "Q"), dict(a=EYE, anorm=1, uplo="Q"), ValueError),
    ("dtrtri", ("unitdiag", "2"), dict(c=EYE, unitdiag=2), ValueError),
    ("dtrtrs", ("a", "(2, 4)"), dict(a=ONES.T, b=ONES), ValueError),
    ("dtrtrs", ("lda", "3"), dict(a=EYE, b=ONES, lda=3), ValueError),
    ("dlauum", ("lower",), dict(c=EYE, lower="L"), ValueError),
    ("dgbtrf", ("ab", "6"), dict(ab=EYE, kl=2, ku=1), ValueError),
    ("dgbtrf", ("kl", "-1"), dict(ab=EYE, kl=-1, ku=1), ValueError),
    ("dgbtrs", ("ldb", "3"), dict(ab=EYE, kl=1, ku=1, b=ONES, ipiv=PIV, ldb=3), ValueError),
    ("dgbsv", ("ab", "(4, 4)"), dict(kl=0, ku=1, ab=EYE, b=ONES), ValueError),
    ("dsgesv", ("a",), dict(a=ONES, b=ONES), ValueError),
    ("dsposv", ("lower", "5"), dict(a=EYE, b=ONES, lower=5), ValueError),
    ("dlange", ("norm", "q"), dict(norm="q", a=EYE), ValueError),
    ("dlange", ("norm", "1"), dict(norm=1, a=EYE), TypeError),
    ("dlacpy", ("b", "float32"), dict(a=EYE, b=np.eye(4, dtype="f4")), TypeError),
    ("dlaset", ("a", "(4, 4)"), dict(m=3, n=4, alpha=0, beta=0, a=EYE), ValueError),
    ("dlaset", ("alpha",), dict(m=3, n=4, alpha=1j, beta=0), TypeError),
]


@pytest.mark.parametrize(("name", "words", "arguments", "error"), WRONG,
                         ids=[f"{w[0]}-{w[1][0]}" for w in WRONG])
def test_wrong_calls_name_routine_and_argument_and_touch_nothing(name, words, arguments, error):
    small = {k: x for k, x in arguments.items() if isinstance(x, np.ndarray) and x.size < 99}
    before = {k: x.copy() for k, x in small.items()}
    with pytest.raises(error) as refused:
        getattr(blasx, name)(**arguments)
    message = str(refused.value)
    assert message.startswith(f"{name}: ") and all(w in message for w in words)
    for k, x in small.items():
        np.testing.assert_array_equal(x, before[k])
