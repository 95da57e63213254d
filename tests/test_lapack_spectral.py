"""QR, least squares, eigenvalues, singular values and Bunch-Kaufman: each routine against its
definition, in units of n eps, and against SciPy's function of the same name.

A case says, for a random problem, what the routine is called with and how its results are judged.
Every property below is tested over all cases.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import GUARD, laid
from scipy.linalg import lapack as scipy_lapack

import blasx

EPS = {"s": 2.0**-24, "d": 2.0**-53, "c": 2.0**-24, "z": 2.0**-53}
DTYPE = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}
quick = settings(max_examples=25)


@dataclass
class Problem:
    letter: str
    m: int
    n: int
    nrhs: int | None  # None: the right-hand side is a vector
    lower: int
    adjoint: int  # trans = T or C
    vectors: int
    itype: int
    range: str
    seed: int
    rng: np.random.Generator = field(init=False)

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        self.dtype, self.eps = np.dtype(DTYPE[self.letter]), EPS[self.letter]
        self.uplo, self.trans = "UL"[self.lower], "N"
        if self.adjoint:
            self.trans = "C" if self.dtype.kind == "c" else "T"

    def random(self, *shape):
        x = self.rng.normal(size=shape)
        if self.dtype.kind == "c":
            x = x + 1j * self.rng.normal(size=shape)
        return x.astype(self.dtype)

    def hermitian(self):
        x = self.random(self.n, self.n)
        return x + H(x)

    def definite(self):
        x = self.random(self.n, self.n)
        return x @ H(x) + self.dtype.type(self.n) * np.eye(self.n, dtype=self.dtype)

    def rhs(self, rows):
        return self.random(rows) if self.nrhs is None else self.random(rows, self.nrhs)

    def half(self, a):
        """`a` with nan where a routine that is told one triangle must not look."""
        kept = np.tri(self.n, dtype=bool)
        return np.where(kept if self.lower else kept.T, a, np.nan).astype(self.dtype)

    def error(self, residual, *scale):
        """|residual| / (n eps prod |scale|), in the 1-norm."""
        size = norm(residual)
        return size and size / (max(self.n, self.m) * self.eps * np.prod([norm(x) for x in scale]))


problems = st.builds(
    Problem, letter=st.sampled_from("sdcz"), m=st.integers(0, 11), n=st.integers(0, 11),
    nrhs=st.none() | st.integers(0, 3), lower=st.integers(0, 1), adjoint=st.integers(0, 1),
    vectors=st.integers(0, 1), itype=st.integers(1, 3), range=st.sampled_from("AIV"),
    seed=st.integers(0, 999))


def H(x):
    return np.asarray(x).conj().T


def wide(x):
    return np.asarray(x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def norm(x):
    x = abs(wide(x))
    return float((x if x.ndim < 2 else x.sum(axis=0)).max(initial=0))


def orthonormal(p, q):
    """|I - Q^H Q| of the columns."""
    q = wide(q)
    return p.error(np.eye(q.shape[1]) - H(q) @ q, 1)


def scipys(p, base):
    """SciPy's function for this type; sy is he and or is un for the complex ones."""
    swap = {"sy": "he", "or": "un"} if p.dtype.kind == "c" else {}
    return getattr(scipy_lapack, p.letter + swap.get(base[:2], base[:2]) + base[2:])


# -- orthogonal factors


def reflectors(p, m, n, k):
    """(qr, tau) of k reflectors in an (m, n) matrix, and the Q they stand for, (m, m)."""
    a = p.random(m, n)
    if not k:
        return a, np.zeros(0, p.dtype), np.eye(m)
    qr, tau, _, _ = scipys(p, "geqrf")(np.asfortranarray(a[:, :k]))
    full = np.zeros((m, m), p.dtype)
    full[:, :k] = qr
    a[:, :k] = qr
    return a, tau, wide(scipys(p, "orgqr")(full, tau)[0])


def geqrf(p, routine="geqrf"):
    a = p.random(p.m, p.n)

    def judge(qr, tau, work, info):
        assert not info and work[0].real >= 1
        b = a
        if routine == "gelqf":
            qr, b = H(qr), H(a)
        k = min(p.m, p.n)
        full = np.zeros((b.shape[0], b.shape[0]), p.dtype)
        full[:, :k] = np.asarray(qr)[:, :k]
        q = wide(scipys(p, "orgqr")(full, tau)[0]) if k else np.eye(b.shape[0])
        return p.error(q[:, :k] @ np.triu(qr[:k]) - b, a) + orthonormal(p, q)
    return dict(a=a), judge


def gelqf(p):
    return geqrf(p, "gelqf")


def orgqr(p):
    m, n = max(p.m, p.n), min(p.m, p.n)
    a, tau, q = reflectors(p, m, n, n // (1 + p.vectors))
    return (dict(a=a, tau=tau),
            lambda x, work, info: p.error(x - q[:, :n], 1) + orthonormal(p, x) + info)


def orglq(p):
    arguments, judge = orgqr(p)
    return (dict(a=H(arguments["a"]), tau=arguments["tau"]),
            lambda x, work, info: judge(H(x), work, info))


def ormqr(p, rows=False):
    c = p.random(p.m, p.n)
    side = "LR"[p.lower]
    order = p.n if p.lower else p.m
    k = order // (1 + p.vectors)
    a, tau, q = reflectors(p, order, k, k)
    op = H(q) if p.adjoint != rows else q
    product = wide(c) @ op if p.lower else op @ wide(c)
    return (dict(side=side, trans=p.trans, a=H(a) if rows else a, tau=tau, c=c),
            lambda x, work, info: p.error(x - product, 1, c) + info)


def ormlq(p):
    return ormqr(p, rows=True)


def geqp3(p):
    a = p.random(p.m, p.n)

    def judge(qr, jpvt, tau, work, info):
        assert sorted(jpvt) == list(range(1, p.n + 1)) and jpvt.dtype == np.int32
        d = abs(np.diag(qr))
        assert (d[1:] <= d[:-1] * (1 + 10 * p.n * p.eps)).all()
        r = np.triu(qr[:min(p.m, p.n)])
        b = wide(a[:, jpvt - 1])
        return p.error(H(r) @ wide(r) - H(b) @ b, a, H(a)) + info
    return dict(a=a), judge


# -- least squares


def solution(p, a, x, b):
    """A residual orthogonal to the range of A, and x in the range of A^H."""
    a, x, b = wide(a), wide(x), wide(b)
    m, n = a.shape
    x, b = x[:n], b[:m]
    r = b - a @ x
    size = norm(a) * norm(x) + norm(b)
    error = p.error(H(a) @ r if m > n else r, H(a) if m > n else 1, size) if size else 0
    if 0 < m < n:
        q = np.linalg.qr(H(a))[0]
        error += p.error(x - q @ (H(q) @ x), norm(x) * np.linalg.cond(a)) if norm(x) else 0
    return error


def gels(p):
    a, b = p.random(p.m, p.n), p.rhs(max(p.m, p.n))
    given = H(a) if p.adjoint else a

    def judge(lqr, x, info):
        assert x.shape == b.shape and lqr.shape == a.shape
        return solution(p, given, x, b) + info
    return dict(a=a, b=b, trans=p.trans), judge


def gelsd(p):
    a, b = p.random(p.m, p.n), p.rhs(max(p.m, p.n))
    query = getattr(blasx, p.letter + "gelsd_lwork")(p.m, p.n, p.nrhs or 1)[:-1]
    names = ["lwork", "size_rwork", "size_iwork"] if len(query) == 3 else ["lwork", "size_iwork"]

    def judge(x, s, rank, info):
        true = np.linalg.svd(wide(a), compute_uv=False)
        assert rank == min(p.m, p.n)
        return solution(p, a, x, b) + p.error(s - true, true) + info
    return dict(a=a, b=b) | {k: int(v.real) for k, v in zip(names, query)}, judge


# -- eigenvalues and singular values


def eigenpairs(p, a, w, z):
    return p.error(wide(a) @ z - z * wide(w), a) + orthonormal(p, z)


def syevd(p):
    a = p.hermitian()

    def judge(w, v, info):
        true = np.linalg.eigvalsh(wide(a))
        return p.error(w - true, a) + (p.vectors and eigenpairs(p, a, w, v)) + info
    return dict(a=p.half(a), compute_v=p.vectors, lower=p.lower), judge


def selection(p, true):
    """Arguments that ask for a part of the spectrum, and the part."""
    low, high = p.n // 3, p.n // 3 + (p.n + 1) // 2
    if p.range == "I" and p.n:
        return dict(range="I", il=low + 1, iu=high), slice(low, high)
    if p.range == "V" and p.n:  # half way between neighbours, where no rounding decides
        ends = np.concatenate([[true[0] - 1], true, [true[-1] + 1]])
        vl, vu = (float(ends[k:k + 2].mean()) for k in (low, high))
        return dict(range="V", vl=vl, vu=vu), slice(low, high)
    return {}, slice(None)


def selected(p, a, pairs=eigenpairs, true=None, **arguments):
    true = np.linalg.eigvalsh(wide(a)) if true is None else true
    how, part = selection(p, true)

    def judge(w, z, m, fail, info):
        assert m == len(true[part]) and fail.dtype == np.int32 and w.shape == (p.n,)
        vectors = pairs(p, a, w[:m], z[:, :m]) if p.vectors else 0
        assert p.vectors or z.shape == (0, 0)
        return p.error(w[:m] - true[part], np.append(norm(a), true)) + vectors + info
    return dict(a=p.half(a)) | arguments | how, judge


def syevr(p):
    return selected(p, p.hermitian(), compute_v=p.vectors, lower=p.lower)


def syevx(p):
    return syevr(p)


def generalized(p):
    """A, B, the eigenvalues in double precision, and the judge of eigenpairs."""
    a, b = p.hermitian(), p.definite() / p.dtype.type(max(p.n, 1))
    factor, h = np.linalg.cholesky(wide(b)), wide(a)
    inverse = np.linalg.inv(factor)
    c = inverse @ h @ H(inverse) if p.itype == 1 else H(factor) @ h @ factor

    def pairs(p, a, w, z):
        a, z, w = wide(a), wide(z), wide(w)
        r = {1: a @ z - b @ z * w, 2: a @ (b @ z) - z * w, 3: b @ (a @ z) - z * w}[p.itype]
        gram = H(z) @ (np.linalg.solve(wide(b), z) if p.itype == 3 else b @ z)
        return (p.error(r, a, b, b, np.linalg.inv(wide(b)))
                + p.error(gram - np.eye(z.shape[1]), b, np.linalg.inv(wide(b))))
    return a, b, np.linalg.eigvalsh(c), pairs


def sygvd(p):
    a, b, true, pairs = generalized(p)

    def judge(w, v, info):
        return (p.error(w - true, np.append(norm(a), true), np.linalg.cond(wide(b)) if p.n else 1)
                + (p.vectors and pairs(p, a, w, v)) + info)
    return dict(a=p.half(a), b=p.half(b), itype=p.itype, jobz="NV"[p.vectors], uplo=p.uplo), judge


def sygvx(p):
    a, b, true, pairs = generalized(p)
    return selected(p, a, pairs, true, b=p.half(b), itype=p.itype, jobz="NV"[p.vectors],
                    uplo=p.uplo)


def geev(p):
    a = p.random(p.n, p.n)

    def judge(*results):
        *w, vl, vr, info = results
        values = wide(w[0] if len(w) == 1 else w[0] + 1j * w[1])
        error = p.error(values.sum() - np.trace(wide(a)), a)
        for asked, v, b, x in ((p.lower, vl, H(a), values.conj()), (p.vectors, vr, a, values)):
            assert v.shape == (p.n if asked else 1, p.n)
            if asked:
                v = v.astype(complex)
                for j in np.flatnonzero(w[1] > 0) if len(w) == 2 else ():
                    v[:, j], v[:, j + 1] = v[:, j] + 1j * v[:, j + 1], v[:, j] - 1j * v[:, j + 1]
                error += p.error(wide(b) @ v - v * x, b) + p.error(
                    np.linalg.norm(v, axis=0) - 1, 1)
        return error + info
    return dict(a=a, compute_vl=p.lower, compute_vr=p.vectors), judge


def gesvd(p):
    a, k = p.random(p.m, p.n), min(p.m, p.n)

    def judge(u, s, vt, info):
        assert (s[1:] <= s[:-1]).all() and (s >= 0).all()
        error = p.error(s - np.linalg.svd(wide(a), compute_uv=False), a) + info
        if not p.vectors:
            return error
        assert u.shape == (p.m, p.m if p.lower else k) and vt.shape == (p.n if p.lower else k, p.n)
        return (error + orthonormal(p, u) + orthonormal(p, H(vt))
                + p.error((wide(u)[:, :k] * s) @ vt[:k] - a, a))
    return dict(a=a, compute_uv=p.vectors, full_matrices=p.lower), judge


def gesdd(p):
    return gesvd(p)


# -- symmetric indefinite


def symmetric(p, hermitian):
    x = p.random(p.n, p.n)
    return x + (H(x) if hermitian else x.T)


def sytrf(p, hermitian=False):
    a, b = symmetric(p, hermitian), p.random(p.n, 1)

    def judge(ldu, ipiv, info):
        other = ~np.tri(p.n, dtype=bool) if p.lower else ~np.tri(p.n, dtype=bool).T
        assert np.isnan(ldu[other]).all() and ipiv.dtype == np.int32
        solve = getattr(scipy_lapack, p.letter + ("hetrs" if hermitian else "sytrs"))
        x = solve(ldu, ipiv, b, lower=p.lower)[0] if p.n else b
        return p.error(a @ wide(x) - b, a, x) + info
    return dict(a=p.half(a), lower=p.lower), judge


def hetrf(p):
    return sytrf(p, hermitian=True)


def sytrs(p, hermitian=False):
    a, b = symmetric(p, hermitian), p.rhs(p.n)
    factor = getattr(scipy_lapack, p.letter + ("hetrf" if hermitian else "sytrf"))
    ldu, ipiv, _ = factor(p.half(a), lower=p.lower)
    return (dict(a=ldu, ipiv=ipiv, b=b, lower=p.lower),
            lambda x, info: p.error(a @ wide(x) - b, a, x) + info)


def hetrs(p):
    return sytrs(p, hermitian=True)


def sysv(p, hermitian=False):
    a, b = symmetric(p, hermitian), p.rhs(p.n)
    return (dict(a=p.half(a), b=b, lower=p.lower),
            lambda ldu, ipiv, x, info: p.error(a @ wide(x) - b, a, x) + info)


def hesv(p):
    return sysv(p, hermitian=True)


# Each case: the operands that may be overwritten, and the results that then lie where they were.
CASES = {
    geqrf: {"a": 0}, gelqf: {"a": 0}, orgqr: {"a": 0}, orglq: {"a": 0}, ormqr: {"c": 0},
    ormlq: {"c": 0}, geqp3: {"a": 0}, gels: {"a": 0, "b": 1}, gelsd: {"a": None, "b": None},
    syevd: {"a": 1}, syevr: {"a": None}, syevx: {"a": None}, sygvd: {"a": 1, "b": None},
    sygvx: {"a": None, "b": None}, geev: {"a": None}, gesvd: {"a": None}, gesdd: {"a": None},
    sytrf: {"a": 0}, hetrf: {"a": 0}, sytrs: {"b": 0}, hetrs: {"b": 0}, sysv: {"a": 0, "b": 2},
    hesv: {"a": 0, "b": 2}}
every_case = pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__)
layouts = st.sampled_from(("F", "C", "view", "rows", "steps", "reversed"))
LIMIT = 60  # n eps; the sum of a few errors


def prepared(case, p, layout):
    """The routine, its arguments laid out, their frames and the judge of what it returns."""
    name = case.__name__
    if name.startswith("he"):
        p.letter = {"s": "c", "d": "z"}.get(p.letter, p.letter)
        p.__post_init__()
    elif p.dtype.kind == "c" and case not in (sytrf, sytrs, sysv):
        name = {"or": "un", "sy": "he"}.get(name[:2], name[:2]) + name[2:]
    arguments, judge = case(p)
    arrays = {k: laid(x, layout) for k, x in arguments.items() if isinstance(x, np.ndarray)}
    call = arguments | {k: view for k, (view, _) in arrays.items()}
    return p.letter + name, call, {k: frame for k, (_, frame) in arrays.items()}, judge


def kinds(results):
    return [(type(x), np.shape(x), np.asarray(x).dtype) for x in results]


@every_case
@quick
@given(problems, layouts)
def test_definition(case, p, layout):
    """Errors of a few n eps; operands stay as they were; SciPy returns the same kinds."""
    name, call, frames, judge = prepared(case, p, layout)
    before = {k: x.tobytes() for k, x in frames.items()}
    results = getattr(blasx, name)(**call)
    assert judge(*results) < LIMIT
    assert {k: x.tobytes() for k, x in frames.items()} == before
    theirs = getattr(scipy_lapack, name, None)
    if theirs and all(call[k].size for k in frames):
        if "mqr" in name:
            call["lwork"] = max(call["c"].shape)
        expected = kinds(theirs(**call))
        ours = kinds(results)
        if case in (geqrf, orgqr, ormqr, geqp3):  # work is of the best size, not of 3 n
            expected[-2] = ours[-2]
        assert ours == expected


@every_case
@quick
@given(problems)
def test_overwriting_is_in_place_and_stays_inside(case, p):
    """A column-major view is truly overwritten where SciPy returns what it overwrites, and nothing
    around it is."""
    name, call, frames, judge = prepared(case, p, "view")
    results = getattr(blasx, name)(**call, **{f"overwrite_{k}": 1 for k in CASES[case]})
    assert judge(*results) < LIMIT
    for k, place in CASES[case].items():
        assert place is None or not call[k].size or np.shares_memory(results[place], call[k]), k
    for k, frame in frames.items():
        call[k][...] = GUARD
        assert (frame == GUARD).all(), k


A, B, TAU = np.eye(4), np.ones((4, 2)), np.ones(4)
READONLY = np.eye(4)
READONLY.flags.writeable = False


@pytest.mark.parametrize(("routine", "arguments", "more", "complaint"), [
    ("geqrf", (A,), {"lwork": 3}, "lwork must be at least 4, got 3"),
    ("geqrf", (READONLY,), {"overwrite_a": 1}, "a must be writeable"),
    ("geqrf", (A,), {"mode": "native"}, "mode must be auto on the CPU"),
    ("geqrf", (A,), {"mode": np.array(["a", "b"])}, "mode must be auto on the CPU"),
    ("orgqr", (A[:2], TAU), {}, "a must be of at least as many rows"),
    ("orgqr", (A, np.ones(5)), {}, "tau must be of at most 4"),
    ("ormqr", ("L", "X", A, TAU, B), {}, "trans must be one of N, T, got 'X'"),
    ("ormqr", ("L", "C", A, TAU, B), {}, "trans must be one of N, T, got 'C'"),
    ("ormqr", ("R", "N", A, TAU, B), {}, "a must be of shape"),
    ("ormqr", ("M", "N", A, TAU, B), {}, "side must be one of L, R"),
    ("gels", (A, B[:3]), {}, "b must be of shape"),
    ("gels", (A, A), {"overwrite_b": 1}, "b must be an array of its own"),
    ("gelsd", (A, B, 1000, 1), {}, "size_iwork must be from"),
    ("gelsd", (A, B, 1000, 2**31), {}, "size_iwork must be from"),
    ("syevd", (A[:3],), {}, "a must be square"),
    ("syevd", (A,), {"lower": 2}, "lower must be one of 0, 1"),
    ("syevd", (A,), {"lrwork": 99}, "unexpected argument lrwork"),
    ("syevr", (A,), {"range": "I", "il": 0}, "il must be from 1 to 4"),
    ("syevr", (A,), {"range": "V", "vl": 2.0}, "vu must be greater than vl"),
    ("syevx", (A,), {"range": "Q"}, "range must be one of A, V, I"),
    ("sygvd", (A, A[:3, :3]), {}, "b must be of shape"),
    ("sygvd", (A, A), {"itype": 4}, "itype must be one of 1, 2, 3"),
    ("geev", (A,), {"compute_vl": 7}, "compute_vl must be one of 0, 1"),
    ("gesvd", (A,), {"lwork": 0}, "lwork must be from 1"),
    ("gesdd", (A * 1j,), {}, "a must be real"),
    ("gesdd", ("abc",), {}, "a must be an array of numbers"),
    ("sytrs", (A, np.zeros(4, np.intc), B), {}, "ipiv must be the pivots of dsytrf"),
    ("sytrs", (A, [-1, 2, 3, 4], B), {}, "ipiv must be the pivots of dsytrf"),
    ("sytrs", (A, np.full(4, -2**31, np.intc), B), {}, "ipiv must be the pivots of dsytrf"),
    ("sytrs", (A, 2**32 + np.arange(1, 5), B), {}, "ipiv must be integers of 32 bits, got 42949"),
    ("sysv", (A, B[:2]), {}, "b must be of shape")])
def test_wrong_calls_name_routine_and_argument(routine, arguments, more, complaint):
    held = [np.copy(x) for x in arguments]
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(blasx, "d" + routine)(*arguments, **more)
    assert str(caught.value).startswith(f"d{routine}: {complaint}")
    assert all(np.array_equal(x, y) for x, y in zip(arguments, held, strict=True))


@pytest.mark.parametrize("letter", "sdcz")
def test_what_fails_says_so_by_info(letter):
    def call(routine, *arguments):
        return getattr(blasx, letter + routine)(*(x.astype(DTYPE[letter]) for x in arguments))

    singular = np.diag([1.0, 0, 1])
    kind = "sy" if letter in "sd" else "he"
    assert call("gels", singular, np.ones(3))[-1] == 2
    assert call("sytrf", singular)[-1] == 2
    ldu, ipiv, x, info = call("sysv", singular, np.ones(3))
    assert info == 2 and (x == 1).all()
    assert call(f"{kind}gvd", np.eye(3), -np.eye(3))[-1] == 4
    assert call(f"{kind}gvx", np.eye(3), np.diag([1.0, -1, 1]))[-1] == 5
    zero = call("gels", np.zeros((3, 2)), np.ones(3))
    assert zero[-1] == 0 and not zero[1].any()


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_eigenvalues_of_what_is_not_finite_are_nan(letter, wrong, capfd):
    a = np.eye(3, dtype=DTYPE[letter])
    geev = getattr(blasx, letter + "geev")
    for vectors in ((0, 0), (0, 1), (1, 1)):
        like = geev(a, *vectors)
        a[0, 2] = wrong
        *found, info = geev(a, *vectors)
        assert info == 1 and all(np.isnan(x).all() for x in found)
        assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in like[:-1]]
        a[0, 2] = 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("routine", ["geqrf", "gelqf", "geqp3"])
def test_a_query_only_asks(letter, routine):
    a = np.asfortranarray(np.ones((5, 3), DTYPE[letter]))
    result = getattr(blasx, letter + routine)(a, lwork=-1, overwrite_a=1)
    assert (a == 1).all() and result[-1] == 0
    best = int(result[-2][0].real)
    assert len(getattr(blasx, letter + routine)(a)[-2]) == best >= 3
