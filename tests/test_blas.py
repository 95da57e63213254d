"""Every BLAS routine against its definition, in higher precision, and against SciPy's own tests.

A case states what a routine computes: its arguments by name, the output as stored, and a bound on
the rounding errors of each element, in units of eps. What is stored and must not be read is NaN;
what must not be written is bounded by 0.
"""

import inspect
import itertools
import re
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import cublas_on_cpu
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import blasx
from blasx import _cuda, blas
from testing.case import as_tuple

TYPES = {"s": np.dtype("f4"), "d": np.dtype("f8"), "c": np.dtype("c8"), "z": np.dtype("c16")}
SLACK = 8  # allowed errors, in units of the bound

draws = st.fixed_dictionaries({
    **{name: st.integers(0, 5) for name in ("m", "n", "k")},
    **{name: st.integers(0, 2) for name in ("kl", "ku", "trans", "trans_b", "offx", "offy")},
    **{name: st.integers(0, 1) for name in ("lower", "side", "diag", "given")},
    "incx": st.sampled_from([1, -1, 2, -2]), "incy": st.sampled_from([1, -1, 2, -3]),
    "alpha": st.sampled_from([0, 1, -1, 0.7, 0.7 + 0.3j]),
    "beta": st.sampled_from([0, 1, -1, -0.4, -0.4 + 0.3j]),
    "layouts": st.lists(st.sampled_from("FCfcx"), min_size=3, max_size=3),
    "seed": st.integers(0, 2**32 - 1),
})


class Draw(SimpleNamespace):
    """One drawn problem of one type: sizes, flags, scalars that fit it, and its arrays."""

    def __init__(self, letter, values):
        super().__init__(**values)
        self.dtype, self.complex = TYPES[letter], letter in "cz"
        self.rng = np.random.default_rng(self.seed)
        if not self.complex:
            self.alpha, self.beta = self.alpha.real, self.beta.real

    def array(self, *shape):
        x = self.rng.normal(size=shape)
        return (x + 1j * self.rng.normal(size=shape) if self.complex else x).astype(self.dtype)

    def nan(self, *shape):
        return np.full(shape, np.nan, self.dtype)

    def read(self, x):
        """`x`, or NaN where alpha = 0 leaves it unread."""
        return x if self.alpha else np.full_like(x, np.nan)

    def vector(self, n, off, inc):
        """Storage of a vector, and where its elements are; what lies between is NaN."""
        where = off + np.arange(n) * abs(inc)
        x = self.nan(off + (n - 1) * abs(inc) + 2 if n else off + 1)
        x[where] = self.array(n)
        return x, where if inc > 0 else where[::-1]


def wide(x):
    """In at least 64 bits of mantissa, where the machine has them."""
    return np.asarray(x).astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def op(a, trans):
    return (a, a.T, a.conj().T)[trans]


def half(d, n, hermitian=None, unit=False):
    """A whole matrix of which one triangle is stored: symmetric, Hermitian or (None) triangular.

    Returns the matrix and what is stored: NaN outside the triangle, and on a unit diagonal.
    """
    a = d.array(n, n)
    a = np.tril(a) if d.lower else np.triu(a)
    stored = a + np.where(np.tri(n, n, 0 if d.lower else -1, bool) ^ (not d.lower), 0, d.nan(n, n))
    if hermitian is None:
        a[np.diag_indices(n)] = 1 if unit else a.diagonal() + 3
        stored[np.diag_indices(n)] = np.nan if unit else a.diagonal()
        return wide(a), stored.astype(d.dtype)
    other = np.tril(a, -1) if d.lower else np.triu(a, 1)
    if hermitian:
        a[np.diag_indices(n)] = a.diagonal().real
    return wide(a + op(other, 2 if hermitian else 1)), stored.astype(d.dtype)


def band(d, a, kl, ku):
    """A band matrix as LAPACK stores it, with a row too many; NaN where there is no element."""
    m, n = a.shape
    stored = d.nan(kl + ku + 2, n)
    for i, j in np.argwhere(np.tri(m, n, ku, bool) & ~np.tri(m, n, -kl - 1, bool)):
        stored[ku + i - j, j] = a[i, j]
    return stored


def banded(a, kl, ku):
    return np.triu(np.tril(a, ku), -kl)


def packed(d, stored):
    """The columns of a triangle, one after the other, and an element too many."""
    n = len(stored)
    r, c = np.tril_indices(n)  # its columns are the rows of the other triangle
    at = (c, r) if not d.lower else tuple(np.array([(i, j) for j in range(n) for i in range(j, n)],
                                                   int).reshape(-1, 2).T)
    return np.append(stored[at], d.nan(1)), at


def answer(arguments, out, value, bound, **more):
    """What a case returns: `value` and `bound` have the shape of the output as stored."""
    return SimpleNamespace(arguments=arguments, out=out, value=value, bound=bound, **more)


# -- level 1


def vectors(d, **extra):
    """x and y of n elements each, and the arguments that describe them."""
    (x, at), (y, to) = d.vector(d.n, d.offx, d.incx), d.vector(d.n, d.offy, d.incy)
    return x, at, y, to, dict(x=x, y=y, n=d.n, offx=d.offx, incx=d.incx, offy=d.offy,
                              incy=d.incy, **extra)


def written(storage, where, value, bound):
    """The output as stored: elements at `where` replaced, all others as they were."""
    v, b = wide(storage), np.zeros(storage.shape)
    v[where], b[where] = value, bound
    return v, b


def dot(d, conjugate=False):
    x, at, y, to, arguments = vectors(d)
    x, y = wide(x)[at], wide(y)[to]
    return answer(arguments, None, (x.conj() if conjugate else x) @ y, d.n * (abs(x) @ abs(y)))


def dotc(d):
    return dot(d, conjugate=True)


def one(d):
    x, at = d.vector(d.n, d.offx, abs(d.incx))
    return wide(x)[at], dict(x=x, n=d.n, offx=d.offx, incx=abs(d.incx))


def nrm2(d):
    x, arguments = one(d)
    value = np.sqrt((abs(x) ** 2).sum())
    return answer(arguments, None, value, d.n * value)


def asum(d):
    x, arguments = one(d)
    value = (abs(x.real) + abs(x.imag)).sum()
    return answer(arguments, None, value, d.n * value)


def iamax(d):
    x, arguments = one(d)
    return answer(arguments, None, np.argmax(abs(x.real) + abs(x.imag)) if d.n else -1, 0)


def axpy(d):
    x, at, y, to, arguments = vectors(d, a=d.alpha)
    ax, y_ = d.alpha * wide(x)[at], wide(y)[to]
    return answer(arguments, "y", *written(y, to, ax + y_, abs(ax) + abs(y_)), implicit=True)


def copy(d):
    x, at, y, to, arguments = vectors(d)
    return answer(arguments, "y", *written(y, to, x[at], 0), implicit=True)


def swap(d):
    x, at, y, to, arguments = vectors(d)
    (v, b), (w, e) = written(x, at, y[to], 0), written(y, to, x[at], 0)
    return answer(arguments, ("x", "y"), (v, w), (b, e), implicit=True)


def scal(d):
    x, at = d.vector(d.n, d.offx, abs(d.incx))
    value = d.alpha * wide(x)[at]
    return answer(dict(a=d.alpha, x=x, n=d.n, offx=d.offx, incx=abs(d.incx)), "x",
                  *written(x, at, value, 2 * abs(value)), implicit=True)


def rscal(d):
    d.alpha = d.alpha.real
    return SimpleNamespace(**{**vars(scal(d)), "implicit": False})


def rot(d):
    c, s = 0.6, -0.8
    x, at, y, to, arguments = vectors(d, c=c, s=s)
    u, v = wide(x)[at], wide(y)[to]
    size = 2 * (abs(u) + abs(v))
    (p, b), (q, e) = (written(x, at, c * u + s * v, size), written(y, to, c * v - s * u, size))
    return answer(arguments, ("x", "y"), (p, q), (b, e))


def rotm(d):
    flag = d.kl - 2.0  # -2: H = I; -1: all four; 0: ones on the diagonal
    param = np.array([flag, 0.3, -0.2, 0.9, 1.7], d.dtype)
    h = {-2: (1, 0, 0, 1), -1: param[1:], 0: (1, *param[2:4], 1)}[int(flag)]
    x, at, y, to, arguments = vectors(d, param=param)
    u, v = wide(x)[at], wide(y)[to]
    size = 4 * (abs(u) + abs(v))
    p, b = written(x, at, h[0] * u + h[2] * v, size)
    q, e = written(y, to, h[1] * u + h[3] * v, size)
    return answer(arguments, ("x", "y"), (p, q), (b, e))


# -- level 2


def product(d, a, stored, **arguments):
    """y := alpha a x + beta y."""
    rows, cols = a.shape
    x, at = d.vector(cols, d.offx, d.incx)
    y, to = d.vector(rows, d.offy, d.incy)
    ax = d.alpha * (a @ wide(x)[at])
    size = (cols + 2) * abs(d.alpha) * (abs(a) @ abs(wide(x)[at]))
    arguments |= {k: d.read(v) for k, v in stored.items()}
    arguments |= dict(alpha=d.alpha, x=d.read(x), beta=d.beta, offx=d.offx, incx=d.incx,
                      offy=d.offy, incy=d.incy)
    if not d.given:
        y = np.zeros((rows - 1) * abs(d.incy) + 1 + d.offy if rows else 0, d.dtype)
        return answer(arguments, "y", *written(y, to, ax, size), absent=True)
    by = d.beta * wide(y)[to]
    if not d.beta:
        y[to], by = np.nan, 0
    return answer(arguments | dict(y=y), "y", *written(y, to, ax + by, size + 3 * abs(by)))


def gemv(d):
    a = d.array(d.m, d.n)
    return product(d, op(wide(a), d.trans), dict(a=a), trans=d.trans)


def gbmv(d):
    a = banded(d.array(d.m, d.n), d.kl, d.ku)
    return product(d, op(wide(a), d.trans), dict(a=band(d, a, d.kl, d.ku)), m=d.m, n=d.n,
                   kl=d.kl, ku=d.ku, trans=d.trans)


def symv(d, hermitian=False):
    a, stored = half(d, d.n, hermitian)
    return product(d, a, dict(a=stored), lower=d.lower)


def sbmv(d, hermitian=False):
    a, stored = half(d, d.n, hermitian)
    k = d.kl
    stored = band(d, stored, k if d.lower else 0, 0 if d.lower else k)
    stored = np.vstack([stored, d.nan(1, d.n)])
    return product(d, banded(a, k, k), dict(a=stored), k=k, lower=d.lower)


def spmv(d, hermitian=False):
    a, stored = half(d, d.n, hermitian)
    return product(d, a, dict(ap=packed(d, stored)[0]), n=d.n, lower=d.lower)


def ger(d, conjugate=False):
    d.incx, d.incy = np.sign(d.incx).item(), np.sign(d.incy).item()
    x, y, a = d.array(d.m), d.array(d.n), d.array(d.m, d.n)
    u, v = wide(x)[::d.incx], wide(y)[::d.incy]
    xy = d.alpha * np.outer(u, v.conj() if conjugate else v)
    arguments = dict(alpha=d.alpha, x=d.read(x), y=d.read(y), incx=d.incx, incy=d.incy)
    if not d.given:
        return answer(arguments, "a", xy, 3 * abs(xy), absent=True)
    return answer(arguments | dict(a=a), "a", wide(a) + xy, 3 * abs(xy) + abs(a) * (d.alpha != 0))


def update(d, vectors, hermitian):
    """alpha x x^T or alpha (x y^T + y x^T), its bound, and the vectors as arguments."""
    alpha = d.alpha
    if len(vectors) == 1:
        alpha = d.alpha = d.alpha.real if hermitian else d.alpha
    (x, at), (y, to) = vectors[0], vectors[-1]
    u, v = wide(x)[at], wide(y)[to]
    t = alpha * np.outer(u, v.conj() if hermitian else v)
    t = t if len(vectors) == 1 else t + op(t, 2 if hermitian else 1)
    size = 4 * abs(alpha) * (np.outer(abs(u), abs(v)) + np.outer(abs(v), abs(u)))
    if hermitian:
        t[np.diag_indices(d.n)] = t.diagonal().real
    arguments = dict(alpha=alpha, lower=d.lower, x=d.read(x), offx=d.offx, incx=d.incx, n=d.n)
    if len(vectors) == 2:
        arguments |= dict(y=d.read(y), offy=d.offy, incy=d.incy)
    return t, size, arguments


def syr(d, hermitian=False, terms=1):
    both = [d.vector(d.n, d.offx, d.incx), d.vector(d.n, d.offy, d.incy)][:terms]
    t, size, arguments = update(d, both, hermitian)
    triangle = np.tri(d.n, d.n, 0, bool) if d.lower else ~np.tri(d.n, d.n, -1, bool)
    a = np.zeros((d.n, d.n), d.dtype)
    if d.given:
        a = d.array(d.n, d.n) if not hermitian else half(d, d.n, True)[0].astype(d.dtype)
        arguments |= dict(a=a)
    value = wide(a) + np.where(triangle, t, 0)
    bound = np.where(triangle & (d.alpha != 0), size + abs(a), 0)
    return answer(arguments, "a", value, bound, absent=not d.given)


def her(d):
    return syr(d, hermitian=True)


def syr2(d):
    return syr(d, terms=2)


def her2(d):
    return syr(d, hermitian=True, terms=2)


def spr(d, hermitian=False, terms=1):
    both = [d.vector(d.n, d.offx, d.incx), d.vector(d.n, d.offy, d.incy)][:terms]
    t, size, arguments = update(d, both, hermitian)
    a, _ = half(d, d.n, hermitian)
    ap, at = packed(d, a.astype(d.dtype))
    value, bound = wide(ap), np.zeros(ap.shape)
    value[:-1] += t[at]
    bound[:-1] = (size[at] + abs(ap[:-1])) * (d.alpha != 0)
    return answer(arguments | dict(ap=ap), "ap", value, bound)


def hpr(d):
    return spr(d, hermitian=True)


def spr2(d):
    return spr(d, terms=2)


def hpr2(d):
    return spr(d, hermitian=True, terms=2)


def multiplied(d, a, stored, **arguments):
    """x := op(A) x."""
    x, at = d.vector(d.n, d.offx, d.incx)
    a, u = op(a, d.trans), wide(x)[at]
    arguments |= dict(x=x, offx=d.offx, incx=d.incx, lower=d.lower, trans=d.trans, diag=d.diag)
    return answer(arguments | stored, "x",
                  *written(x, at, a @ u, (d.n + 2) * (abs(a) @ abs(u))))


def solved(d, a, stored, **arguments):
    """x := op(A)^-1 x, judged by its residual."""
    p = multiplied(d, a, stored, **arguments)
    x, at = d.vector(d.n, d.offx, d.incx)
    a, b = op(a, d.trans), wide(x)[at]
    p.arguments["x"] = x

    def residual(got):
        y = wide(got)[at]
        assert (abs(a @ y - b) <= SLACK * EPS(d) * (d.n + 2) * (abs(a) @ abs(y))).all()
        untouched = np.setdiff1d(np.arange(x.size), at)
        np.testing.assert_array_equal(got[untouched], x[untouched])
    return answer(p.arguments, "x", x, None, residual=residual)


def trmv(d, run=multiplied):
    a, stored = half(d, d.n, unit=d.diag)
    return run(d, a, dict(a=stored))


def tbmv(d, run=multiplied):
    a, stored = half(d, d.n, unit=d.diag)
    k, below, above = d.kl, d.kl * d.lower, d.kl * (1 - d.lower)
    stored = np.vstack([band(d, stored, below, above), d.nan(1, d.n)])
    return run(d, banded(a, below, above) if d.n else a, dict(a=stored), k=k)


def tpmv(d, run=multiplied):
    a, stored = half(d, d.n, unit=d.diag)
    return run(d, a, dict(ap=packed(d, stored)[0]), n=d.n)


def EPS(d):
    return np.finfo(d.dtype).eps


# -- level 3


def accumulated(d, value, size, arguments, triangle=True):
    """C := value + beta C in the triangle (or all) of C."""
    c = d.array(*value.shape)
    arguments |= dict(beta=d.beta)
    if not d.given:
        return answer(arguments, "c", np.where(triangle, value, 0), np.where(triangle, size, 0),
                      absent=True)
    if triangle is not True and "her" in d.name:
        c[np.diag_indices(len(c))] = c.diagonal().real
    bc = d.beta * wide(c)
    if not d.beta:
        c, bc = np.where(triangle, np.nan, c).astype(d.dtype), 0 * bc
    return answer(arguments | dict(c=c), "c", np.where(triangle, value + bc, c),
                  np.where(triangle, size + 3 * abs(bc), 0))


def gemm(d):
    a, b = d.array(d.m, d.k), d.array(d.k, d.n)
    u, v = wide(a), wide(b)
    a, b = op(a, d.trans), op(b, d.trans_b)
    return accumulated(d, d.alpha * (u @ v), (d.k + 3) * abs(d.alpha) * (abs(u) @ abs(v)),
                       dict(alpha=d.alpha, a=d.read(a), b=d.read(b), trans_a=d.trans,
                            trans_b=d.trans_b))


def symm(d, hermitian=False):
    a, stored = half(d, d.n if d.side else d.m, hermitian)
    b = d.array(d.m, d.n)
    u, v = (wide(b), a) if d.side else (a, wide(b))
    size = (len(a) + 3) * abs(d.alpha) * (abs(u) @ abs(v))
    return accumulated(d, d.alpha * (u @ v), size, dict(
        alpha=d.alpha, a=d.read(stored), b=d.read(b), side=d.side, lower=d.lower))


def syrk(d, hermitian=False, terms=1):
    if hermitian:
        d.alpha, d.beta = d.alpha if terms == 2 else d.alpha.real, d.beta.real
    d.trans = min(d.trans, 1) * (1 + (hermitian or d.trans == 2 and not d.complex))
    a, b = d.array(d.n, d.k), d.array(d.n, d.k)
    u, v = wide(a), wide(b if terms == 2 else a)
    t = d.alpha * (u @ op(v, 2 if hermitian else 1))
    t = t if terms == 1 else t + op(t, 2 if hermitian else 1)
    if hermitian:
        t[np.diag_indices(d.n)] = t.diagonal().real
    size = abs(u) @ abs(v).T
    a, b = op(a, d.trans), op(b, d.trans)
    arguments = dict(alpha=d.alpha, a=d.read(a), trans=d.trans, lower=d.lower)
    if terms == 2:
        arguments |= dict(b=d.read(b))
    triangle = np.tri(d.n, d.n, 0, bool) if d.lower else ~np.tri(d.n, d.n, -1, bool)
    return accumulated(d, t, 2 * (d.k + 3) * abs(d.alpha) * (size + size.T), arguments, triangle)


def trmm(d):
    a, stored = half(d, d.n if d.side else d.m, unit=d.diag)
    b, a = d.array(d.m, d.n), op(a, d.trans)
    u, v = (wide(b), a) if d.side else (a, wide(b))
    return answer(dict(alpha=d.alpha, a=d.read(stored), b=d.read(b), side=d.side, lower=d.lower,
                       trans_a=d.trans, diag=d.diag), "b", d.alpha * (u @ v),
                  (len(a) + 3) * abs(d.alpha) * (abs(u) @ abs(v)))


def trsm(d):
    p = trmm(d)
    a, _ = half(d, 0)
    a, stored = half(d, d.n if d.side else d.m, unit=d.diag)
    b, a = d.array(d.m, d.n), op(a, d.trans)
    p.arguments |= dict(a=d.read(stored), b=d.read(b))

    def residual(x):
        x = wide(x)
        ax, size = (x @ a, abs(x) @ abs(a)) if d.side else (a @ x, abs(a) @ abs(x))
        bound = SLACK * EPS(d) * ((len(a) + 2) * size + abs(d.alpha) * abs(b))
        assert (abs(ax - d.alpha * wide(b)) <= bound).all()
        assert d.alpha or not x.any()
    return answer(p.arguments, "b", b, None, residual=residual)


def names(letters, pattern="{}{}"):
    return lambda base: [(pattern.format(x, base), x) for x in letters]


SDCZ, SD, CZ = names("sdcz"), names("sd"), names("cz")
CASES = [
    (dot, SD("dot")), (dot, CZ("dotu")), (dotc, CZ("dotc")),
    *((f, [*SD(f.__name__), ("sc" + f.__name__, "c"), ("dz" + f.__name__, "z")])
      for f in (nrm2, asum)),
    (iamax, names("sdcz", "i{}{}")("amax")), (axpy, SDCZ("axpy")), (copy, SDCZ("copy")),
    (swap, SDCZ("swap")), (scal, SDCZ("scal")), (rscal, [("csscal", "c"), ("zdscal", "z")]),
    (rot, [*SD("rot"), ("csrot", "c"), ("zdrot", "z")]), (rotm, SD("rotm")),
    (gemv, SDCZ("gemv")), (gbmv, SDCZ("gbmv")), (symv, SDCZ("symv")),
    (lambda d: symv(d, True), CZ("hemv")), (sbmv, SD("sbmv")),
    (lambda d: sbmv(d, True), CZ("hbmv")), (spmv, SDCZ("spmv")),
    (lambda d: spmv(d, True), CZ("hpmv")),
    (ger, SD("ger")), (ger, CZ("geru")), (lambda d: ger(d, True), CZ("gerc")),
    (syr, SDCZ("syr")), (her, CZ("her")), (syr2, SD("syr2")), (her2, CZ("her2")),
    (spr, SDCZ("spr")), (hpr, CZ("hpr")), (spr2, SD("spr2")), (hpr2, CZ("hpr2")),
    *((f, SDCZ(f.__name__)) for f in (trmv, tbmv, tpmv)),
    (lambda d: trmv(d, solved), SDCZ("trsv")), (lambda d: tbmv(d, solved), SDCZ("tbsv")),
    (lambda d: tpmv(d, solved), SDCZ("tpsv")),
    (gemm, SDCZ("gemm")), (symm, SDCZ("symm")), (lambda d: symm(d, True), CZ("hemm")),
    (syrk, SDCZ("syrk")), (lambda d: syrk(d, True), CZ("herk")),
    (lambda d: syrk(d, terms=2), SDCZ("syr2k")), (lambda d: syrk(d, True, 2), CZ("her2k")),
    (trmm, SDCZ("trmm")), (trsm, SDCZ("trsm")),
]
ROUTINES = [pytest.param(case, name, letter, id=name)
            for case, typed in CASES for name, letter in typed]


# -- the properties


@contextmanager
def arrays_of(place):
    """The module that makes the arrays: NumPy, CuPy, or a CuPy whose cuBLAS the CPU answers."""
    if place == "cpu":
        yield np
    elif place == "gpu":
        yield pytest.importorskip("cupy")
    else:
        with cublas_on_cpu.device(leaf=int(place == "by halves")):
            yield cublas_on_cpu.cupy


def laid(xp, x, layout):
    """`x` in column order (F), row order (C) or as a view with gaps (f c x); the array that it is
    a view of, and the index of the view.

    A vector lies together (F C c), or as every second element of another, forwards or backwards.
    """
    if x.ndim == 1:
        n = x.size
        shape, order = 2 * n + 1 if layout in "fx" else n, "C"
        index = {"f": np.s_[:2 * n:2], "x": np.s_[2 * n - 1::-2] if n else np.s_[:0]}.get(
            layout, np.s_[:])
    else:
        m, n = x.shape
        order = "F" if layout in "Ff" else "C"
        shape = x.shape if layout in "FC" else (2 * m + 1, 2 * n + 2)
        index = {"F": np.s_[:, :], "C": np.s_[:, :], "x": np.s_[:2 * m:2, :2 * n:2]}.get(
            layout, np.s_[1:m + 1, 2:n + 2])
    base = xp.full(shape, 7, dtype=x.dtype, order=order)
    base[index] = xp.asarray(x)
    return base[index], base, index


def host(x):
    return x.get() if hasattr(x, "get") else np.asarray(x)


def check(p, d, got, name):
    got = tuple(host(x) for x in got) if isinstance(got, tuple) else (host(got),)
    if getattr(p, "residual", None):
        return p.residual(*got)
    values, bounds = (p.value, p.bound) if isinstance(p.value, tuple) else ((p.value,), (p.bound,))
    for have, value, bound in zip(got, values, bounds, strict=True):
        assert have.shape == np.shape(value)
        error, allowed = abs(wide(have) - value), SLACK * EPS(d) * np.asarray(bound)
        untouched = np.isnan(wide(value)) & np.isnan(wide(have))
        assert (untouched | (error <= allowed)).all(), (name, p.arguments, have, value)


WITH_A_TRIANGLE = re.compile(".(sy|he|tr)mm|.trsm")


@pytest.mark.filterwarnings("ignore::blasx.TransferWarning")
@pytest.mark.parametrize(("case", "name", "letter", "place"), [
    pytest.param(*routine.values, place, id=f"{routine.id}-{place}",
                 marks=pytest.mark.gpu if place == "gpu" else ())
    for routine in ROUTINES for place in ("cpu", "cublas_on_cpu", "by halves", "gpu")
    if place != "by halves" or WITH_A_TRIANGLE.fullmatch(routine.values[1])])
@settings(max_examples=12, deadline=None)
@given(values=draws)
def test_definition(case, name, letter, place, values):
    """Results by definition, nothing else touched; and the same in place of what may be
    overwritten."""
    d = Draw(letter, values | {"name": name})
    p = case(d)
    outs = p.out if isinstance(p.out, tuple) else (p.out,)
    implicit = outs if getattr(p, "implicit", False) else ()
    routine, bases, indices = getattr(blas, name), {}, {}
    with arrays_of(place) as xp:
        for (key, x), layout in zip([(k, v) for k, v in p.arguments.items()
                                     if isinstance(v, np.ndarray) and k != "param"], d.layouts):
            p.arguments[key], bases[key], indices[key] = laid(xp, x, layout)
        before = {key: host(base).copy() for key, base in bases.items()}
        check(p, d, routine(**p.arguments), name)
        for key, base in bases.items():
            if key not in implicit or not p.arguments[key].flags.c_contiguous:
                np.testing.assert_array_equal(host(base), before[key], key)
        if p.out is None or implicit or getattr(p, "absent", False):
            return
        result = routine(**p.arguments, **{f"overwrite_{key}": 1 for key in outs})
        check(p, d, result, name)
    for key, have in zip(outs, result if isinstance(result, tuple) else (result,)):
        view, base = p.arguments[key], bases[key]
        assert not view.size or inside(have, base) or not in_place(key, view)
        outside = np.ones(base.shape, bool)
        outside[indices[key]] = False
        np.testing.assert_array_equal(host(base)[outside], before[key][outside])


def in_place(key, view):
    """True if an output is to be overwritten where it lies: vectors, and matrices by columns."""
    if view.ndim == 1:
        return key != "ap" or view.flags.c_contiguous
    m, n = view.shape
    return (m == 1 or view.strides[0] == view.itemsize) and (
        n == 1 or view.strides[1] >= m * view.itemsize)


def inside(x, base):
    """True if `x` begins within the memory of `base`."""
    x, base_at = (y.data.ptr if hasattr(y.data, "ptr") else y.ctypes.data for y in (x, base))
    return base_at <= x < base_at + base.nbytes


DRAW = dict(m=4, n=4, k=2, kl=1, ku=1, trans=0, trans_b=0, offx=1, offy=0, lower=0, side=0, diag=0,
            given=1, incx=-2, incy=1, alpha=0.7, beta=-0.4, seed=1)
of_vectors = pytest.mark.parametrize(("case", "name", "letter", "place"), [
    pytest.param(*routine.values, place, id=f"{routine.id}-{place}") for routine in ROUTINES
    for place in ("cpu", "cublas_on_cpu") if not re.fullmatch(".*(mm|r2?k|trsm)", routine.id)])


@pytest.mark.filterwarnings("ignore::blasx.TransferWarning")
@of_vectors
def test_vectors_that_no_increment_describes(case, name, letter, place):
    """Numbers that are broadcast are read as if they were many; fields of packed records are read,
    and overwritten without what lies between them."""
    d = Draw(letter, DRAW | {"name": name})
    p, routine = case(d), getattr(blas, name)
    outs = p.out if isinstance(p.out, tuple) else (p.out,) if p.out else ()
    flags = {} if getattr(p, "implicit", False) else {f"overwrite_{k}": 1 for k in outs}
    arrays = {k: x for k, x in p.arguments.items() if np.ndim(x) and k != "param"}
    records = {k: np.full(x.shape, 7, [("", "u1"), ("it", d.dtype), ("", "i2")])
               for k, x in arrays.items() if x.ndim == 1}
    with arrays_of(place) as xp:
        def run(vectors, how):
            rest = {k: laid(xp, x, "f")[0] for k, x in arrays.items()}
            return as_tuple(routine(**{**p.arguments, **rest, **vectors}, **how))

        many = {k: xp.asarray(np.broadcast_to(d.dtype.type(0.5), x.shape))
                for k, x in records.items() if k not in outs}
        for k, x in records.items():
            x["it"] = arrays[k]
        fields = {k: xp.asarray(x["it"]) for k, x in records.items()}
        for how in ({}, flags):
            for x, y in zip(run(many, how), run({k: x.copy() for k, x in many.items()}, how)):
                np.testing.assert_allclose(host(x), host(y), rtol=8 * EPS(d))
            result = run(fields, how)
            check(p, d, result, name)
    for k, x in zip(outs, result):
        assert x is fields.get(k, x) or k == "ap" or not flags
    for x in records.values():
        assert (x["f0"] == 7).all() and (x["f2"] == 7).all()


@pytest.mark.filterwarnings("ignore::blasx.TransferWarning")
@of_vectors
def test_vectors_keep_the_shape_they_came_in(case, name, letter, place):
    d = Draw(letter, DRAW | {"name": name})
    p, theirs = case(d), getattr(scipy.linalg.blas, name, None)
    shapes, outs = [(-1, 1), (1, -1), (1, -1, 1)], p.out if isinstance(p.out, tuple) else (p.out,)
    odd = {k: x.reshape(shapes[i % 3]) for i, (k, x) in enumerate(p.arguments.items())
           if np.ndim(x) == 1 and k != "param"}
    flags = {} if getattr(p, "implicit", False) else {f"overwrite_{k}": 1 for k in outs if k in odd}
    with arrays_of(place) as xp:
        def run(arguments, **how):
            arguments = {k: xp.asarray(x.copy()) if np.ndim(x) and k != "param" else x
                         for k, x in arguments.items()}
            return arguments, as_tuple(getattr(blas, name)(**arguments, **how))

        _, want = run(p.arguments)
        for how in ({}, flags):
            given, got = run(p.arguments | odd, **how)
            for k, x, y in zip(outs, got, want):
                np.testing.assert_array_equal(np.ravel(host(x)), np.ravel(host(y)))
                assert np.shape(host(x)) == np.shape(odd.get(k, y))
                assert k not in odd or not how or np.shares_memory(host(x), host(given[k]))
    if theirs:
        like = as_tuple(theirs(**p.arguments | odd))
        assert [np.shape(host(x)) for x in got] == list(map(np.shape, like))


# SciPy's tests that expect SciPy's own exception class, by name.
DEVIATIONS = ["test_dnrm2_neg_incx"]


def test_scipys_own_tests(tmp_path):
    source = pytest.importorskip("scipy.linalg.tests.test_blas")
    text = inspect.getsource(source)
    text, count = re.subn(r"^from scipy.linalg import _fblas as fblas, get_blas_funcs",
                          "from blasx import blas as fblas\n"
                          "from blasx.blas import get_blas_funcs\n"
                          "from scipy.linalg import toeplitz, solve\nimport scipy.linalg #",
                          text, flags=re.M)
    assert count == 1
    path = tmp_path / "test_scipys_blas.py"
    path.write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest",
         "-c", "/dev/null", "-k", " and ".join(f"not {t}" for t in DEVIATIONS), str(path)],
        capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_best_type():
    for arrays in ([], [np.ones(2, "f4")], [np.ones(2), np.ones(2, "c8")], [np.ones(2, "i2")],
                   [np.ones((2, 2), "c8", "F")], [np.ones((2, 2)), np.ones((2, 2), "c16", "F")]):
        assert blas.find_best_blas_type(arrays) == scipy.linalg.blas.find_best_blas_type(arrays)
        for name in ("gemm", "nrm2", "dot", "ger", "dotu", "rotg"):
            try:
                theirs = scipy.linalg.blas.get_blas_funcs(name, arrays)
            except ValueError:
                with pytest.raises(ValueError, match=name):
                    blas.get_blas_funcs(name, arrays)
                continue
            ours = blas.get_blas_funcs(name, arrays)
            for attribute in ("typecode", "prefix", "dtype", "int_dtype"):
                assert getattr(ours, attribute) == getattr(theirs, attribute)
            assert ours.__name__ == theirs.__doc__.partition("(")[0].split()[-1]
    with pytest.raises(ValueError):
        blas.get_blas_funcs("gemm", ilp64="maybe")


I3, O3 = np.eye(3, order="F"), np.ones(3)
READ_ONLY = np.ones(3)
READ_ONLY.flags.writeable = False
BAD = [
    ("dgemm", (1, I3, "a")), ("dgemm", (1, I3, object())), ("dgemm", (1, I3 * 1j, I3)),
    ("dgemm", (1j, I3, I3)), ("dgemm", ("1", I3, I3)), ("dgemm", (1, I3, np.ones((2, 3)))),
    ("dgemm", (1, I3, I3, 1, np.ones((2, 3)))), ("dgemm", (1, I3, I3, 0, None, 3)),
    ("dgemm", (1, I3, I3, 0, None, "T")), ("dgemm", (1, np.ones((2, 2, 2)), I3)),
    ("dgemm", (1, I3, I3, 0, I3, 0, 0, 1)), ("dsymm", (1, I3, I3, 0, None, 2)),
    ("dsymm", (1, I3, O3, 0, None, 1)), ("dsyrk", (1, I3, 0, None, 3)),
    ("zherk", (1, I3, 0, None, 1)), ("csyrk", (1, I3, 0, None, 2)), ("zherk", (1j, I3)),
    ("zher2k", (1, I3, I3, 1j)), ("dsyr2k", (1, I3, np.ones((3, 2)))),
    ("dtrsm", (1, np.ones((2, 3)), I3)), ("dtrsm", (1, I3, I3, 0, 0, 0, 2)),
    ("dtrmm", (1, np.ones((2, 2)), I3)), ("dtrsm", (1, I3, I3, 0, 0, 0, 0, 1)),
    ("dgemv", (1, I3, np.ones(2))), ("dgemv", (1, I3, O3, 0, np.ones(2))),
    ("dgemv", (1, I3, O3, 0, None, 0, 0)), ("dgemv", (1, I3, O3, 0, None, -1)),
    ("dgemv", (1, I3, O3, 0, None, 0, 2)), ("dgemv", (1, I3, O3, 1, O3, 0, 1, 0, 1, 0, 1)),
    ("dgemv", (1, I3, O3, 1, READ_ONLY, 0, 1, 0, 1, 0, 1)), ("dsymv", (1, np.ones((3, 2)), O3)),
    ("dgbmv", (3, 3, 1, 1, 1, I3[:2], O3)), ("dgbmv", (3, 3, -1, 1, 1, I3, O3)),
    ("dgbmv", (3, 4, 0, 0, 1, I3, O3)), ("dsbmv", (3, 1, I3, O3)), ("dspmv", (3, 1, O3, O3)),
    ("dspmv", (-1, 1, O3, O3)), ("dger", (1, O3, O3, 2)), ("dger", (1, O3, O3, 1, 1, O3)),
    ("dsyr", (1, O3, 2)), ("dsyr", (1, O3, 0, 1, 0, 4)), ("dsyr", (1, O3, 0, 1, 3)),
    ("dspr", (3, 1, O3, O3)), ("dtrmv", (I3, O3, 0, 0)), ("dtrsv", (I3, O3, 1, 0, 0, 3)),
    ("dtbsv", (3, I3, O3)), ("dtpsv", (3, O3, O3)), ("dtrmv", (I3, I3[0], 0, 1, 0, 0, 0, 1)),
    ("ddot", (O3, O3, 4)), ("ddot", (O3, O3, 3, 0, 0)), ("ddot", (O3, np.ones(2))),
    ("ddot", (O3, O3, 1, 3)), ("ddot", (O3, O3, 1.5)), ("ddot", (O3, "x")),
    ("dnrm2", (O3, 3, 0, -1)), ("dasum", (O3 * 1j,)), ("dscal", (2, READ_ONLY)),
    ("daxpy", (O3, READ_ONLY)), ("dcopy", (I3.ravel()[:5], I3.T.ravel()[1:6], "n")),
    ("dswap", (O3, READ_ONLY)), ("drot", (O3, O3, 1j, 0)), ("drotm", (O3, O3, np.ones(4))),
    ("drot", (O3, O3, 1, 0, 3, 0, 1, 0, 1, 1, 1)), ("drotg", ("a", 1)), ("drotmg", (1, 1, 1j, 1)),
    ("dgemm", (1, [[1, 2], [3]], I3)), ("dgemm", (None, I3, I3)), ("zher2", (1, O3, None)),
    ("dspr2", (2, 1, O3, None, O3)), ("ddot", (O3, O3, np.nan)), ("ddot", (O3, O3, 1, 0, 2**40)),
]


@pytest.mark.parametrize(("name", "arguments"), BAD)
def test_bad_calls_name_the_routine(name, arguments):
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    before = [x.copy() for x in arrays]
    with pytest.raises((TypeError, ValueError), match=name):
        getattr(blas, name)(*arguments)
    for x, was in zip(arrays, before):
        np.testing.assert_array_equal(x, was)


def test_overlap_is_decided_exactly():
    a = np.asfortranarray(np.random.default_rng(1).normal(size=(6, 6)))
    want = a[3:, 3:] - a[3:, :3] @ a[:3, 3:]
    blas.dgemm(-1, a[3:, :3], a[:3, 3:], 1, a[3:, 3:], overwrite_c=1)
    np.testing.assert_allclose(a[3:, 3:], want)
    x = np.arange(8.0)
    blas.daxpy(x, x, n=4, incx=2, offy=1, incy=2)
    np.testing.assert_array_equal(x, [0, 1, 2, 5, 4, 9, 6, 13])
    with pytest.raises(ValueError, match="daxpy: y"):
        blas.daxpy(x, x, n=4, offy=2)
    with pytest.raises(ValueError, match="dgemm: c"):
        blas.dgemm(-1, a[3:, :3], a[:3, 3:], 1, a[1:4, 1:4], overwrite_c=1)


def test_arguments_are_cast_as_scipy_casts_them():
    """Lists, integers, other precisions, byte order, vectors for columns, numbers in lists."""
    a = np.arange(9).reshape(3, 3)
    for args in ((1, a, a), (2, a.tolist(), a.astype(">f4")), (1, [1, 2, 3], [4]),
                 (3, [3], [-4], 3, [5]), ([2], a, a)):
        ours, theirs = blas.dgemm(*args), scipy.linalg.blas.dgemm(*args)
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert blas.dnrm2([3, 4]) == 5.0 and isinstance(blas.ddot([1], [2]), float)
    assert blas.idamax(np.array([1, -5, 2], "i2")) == 1
    np.testing.assert_array_equal(blas.dtrsm(1, np.eye(3), O3), O3)
    for y in (np.ones(3), np.ones(6)[::2]):
        blas.dgemv(1.0, I3, np.arange(6.0), 0.0, y, 1.0, 2.0, 0.0, np.float32(1), overwrite_y=1)
        np.testing.assert_array_equal(y, [1, 3, 5])
    assert blas.zrotg(3, 4j) == (0.6, -0.8j)
    np.testing.assert_array_equal(blas.drotmg(1, 1, 1, 2), scipy.linalg.blas.drotmg(1, 1, 1, 2))
    assert blas.drotg(3, 4) == scipy.linalg.blas.drotg(3, 4)


def test_level_one_overwrites_as_scipy_does():
    """swap, scal, copy and axpy write into contiguous vectors of their type, and copy others."""
    x = np.arange(6.0)
    assert np.shares_memory(blas.dscal(2, x), x) and x[5] == 10
    y = blas.dscal(2, x[::2])
    assert not np.shares_memory(y, x) and x[4] == 8 and y[2] == 16
    x = np.arange(3)
    np.testing.assert_array_equal(blas.dscal(2, x), 2 * x)
    assert x[2] == 2
    x, y = np.ones(3), np.zeros(3)
    assert np.shares_memory(blas.daxpy(x, y, a=2), y) and y[0] == 2
    blas.dswap(x, y)
    assert x[0] == 2 and y[0] == 1
    assert blas.dasum(x, incx=-1) == 0 and blas.idamax(x, incx=-1) == -1


# -- what only the GPU branches promise


@pytest.fixture
def gpu():
    with cublas_on_cpu.device():
        yield cublas_on_cpu.cupy


def test_gpu_operands_by_rows_are_not_copied(gpu):
    a, c = (gpu.asarray(np.random.default_rng(k).normal(size=(3, 3)) + 1j) for k in (1, 2))
    want = host(a) @ host(a) + host(c)
    with blasx.trace() as t:
        assert blasx.zgemm(1, a, a, 1, c, overwrite_c=1) is not None
        np.testing.assert_allclose(host(c), want)
        for trans in (0, 1):
            blasx.zgemm(1, a, a, trans_a=trans)
            blasx.zsyrk(1, a, trans=trans)
            blasx.ztrmm(1, a, c, trans_a=trans, overwrite_b=1)
            blasx.ztrsm(1, a, c, trans_a=trans, side=1, overwrite_b=1)
            blasx.zgemv(1, a, a[0], trans=trans)
        blasx.zgeru(1, c[0], c[1], a=a, overwrite_a=1)
        blasx.zherk(1, c, 0, a, overwrite_c=1)
    assert not any(call.copies for call in t.calls), str(t)
    with blasx.trace() as t:
        blasx.zgemm(1, a, a, trans_a=2)
        blasx.zhemv(1, a, a[0])
        blasx.zherk(1, a)
    assert [call.copies for call in t.calls] == [1, 1, 1], str(t)


def test_a_symmetric_matrix_for_which_there_is_no_room_twice():
    a, b = (np.random.default_rng(k).normal(size=(5, 5)) for k in (1, 2))

    class Full(MemoryError):
        pass

    def empty(*args, **kw):
        raise Full

    with cublas_on_cpu.device(leaf=1):
        gpu = cublas_on_cpu.cupy
        at, bt, c = (gpu.asarray(np.asfortranarray(x)) for x in (a, b, a))
        full = SimpleNamespace(**vars(gpu) | dict(empty=empty, cuda=SimpleNamespace(
            memory=SimpleNamespace(OutOfMemoryError=Full))))
        with mock.patch.object(_cuda, "cupy", full):
            assert blasx.dsymm(2.0, at, bt, -1.0, c, lower=1, overwrite_c=1) is c
    whole = np.tril(a) + np.tril(a, -1).T
    np.testing.assert_allclose(host(c), 2 * whole @ b - a)


def test_gpu_refuses_mixed_devices_and_scalars_on_the_device(gpu):
    a = gpu.asarray(np.eye(3))
    for name, arguments in (("dgemm", (1, a, np.eye(3))), ("ddot", (a[0], np.ones(3))),
                            ("dgemv", (1, np.eye(3), a[0])), ("dgemm", (a[0, :1], a, a)),
                            ("drotm", (a[0], a[1], a[2])), ("dscal", (gpu.zeros(()), a[0]))):
        with pytest.raises(TypeError, match=name):
            getattr(blas, name)(*arguments)


def test_gpu_results_stay_there(gpu):
    x = gpu.asarray(np.array([3.0, -4.0]))
    for name, arguments, want in (("ddot", (x, x), 25), ("dnrm2", (x,), 5), ("dasum", (x,), 7),
                                  ("idamax", (x,), 1), ("idamax", (x[:0],), -1)):
        got = getattr(blas, name)(*arguments)
        assert isinstance(got, gpu.ndarray) and got.shape == () and got == want


def test_gpu_says_what_runs_on_the_cpu(gpu):
    x, ap = gpu.asarray(np.ones(2) + 1j), gpu.asarray(np.arange(3) + 1j)
    for name, arguments in (("zspmv", (2, 1, ap, x)), ("zspr", (2, 1, x, ap))):
        with pytest.warns(blasx.TransferWarning, match=name):
            got = getattr(blas, name)(*arguments)
        want = getattr(scipy.linalg.blas, name)(*(host(v) for v in arguments))
        np.testing.assert_allclose(host(got), want)


def gelu_tanh(x):
    return x * scipy.special.expit((8 / np.pi) ** 0.5 * (x + 0.044715 * x**3))


@pytest.mark.parametrize("letter", "sdh")
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh"])
def test_what_follows_a_product(letter, activation):
    """C := f(alpha A B + bias) + beta C, in place where asked for, rounded once."""
    dtype, rng = np.dtype({"s": "f4", "d": "f8", "h": "f2"}[letter]), np.random.default_rng(3)
    gemm = getattr(blasx, letter + "gemm")
    a, b, c, row, column = (rng.standard_normal(s).astype(dtype) for s in (
        (5, 7), (9, 5), (7, 9), 9, (7, 1)))
    c = np.asfortranarray(c)
    for bias in (row, column, row[None], None):
        x = 0.5 * a.T.astype("f8") @ b.T.astype("f8")
        x = x + (bias.astype("f8") if bias is not None else 0)
        x = {None: x, "relu": np.maximum(x, 0), "gelu": x * scipy.special.ndtr(x),
             "gelu_tanh": gelu_tanh(x)}[activation]
        mine = c.copy(order="F")
        out = gemm(0.5, a, b, 2.0, mine, 1, 1, overwrite_c=1, bias=bias, activation=activation)
        assert out is mine and out.dtype == dtype
        right = x + 2 * c.astype("f8")
        eps = float(np.finfo(dtype).eps)
        assert (abs(out - right) <= eps * (0.51 * abs(right) if letter == "h" else 20)).all()
        again = gemm(0.5, a, b, 2.0, c, 1, 1, bias=bias, activation=activation)
        assert (again == out).all() and (c != out).any()
    square, ones = np.eye(2, dtype=dtype), np.ones((2, 2), dtype)
    for bias in ([1.0, 2], [[1.0], [2]], ([1.0, 2],)):
        out = gemm(1.0, square, ones, bias=bias, activation=activation)
        right = gemm(1.0, square, ones + np.array(bias, dtype), activation=activation)
        np.testing.assert_allclose(out, right, rtol=4 * np.finfo(dtype).eps)
    nothing = gemm(1.0, a[:0], b[:, :0], trans_a=1, trans_b=1, bias=row, activation=activation)
    assert nothing.shape == (7, 9) and (nothing == nothing[0]).all()


@pytest.mark.parametrize("letter", "sdh")
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh"])
def test_what_comes_back_through_a_function(letter, activation):
    """C := (alpha A B + bias) f'(Z) + beta C; f' by differences of the f above."""
    dtype, rng = np.dtype({"s": "f4", "d": "f8", "h": "f2"}[letter]), np.random.default_rng(4)
    gemm = getattr(blasx, letter + "gemm")
    a, b, c, z, bias = (rng.standard_normal(s).astype(dtype) for s in (
        (7, 5), (5, 9), (7, 9), (7, 9), 9))
    one, step = np.eye(9), 1e-6
    f = [blasx.dgemm(1.0, z.astype("f8") + h, one, activation=activation) for h in (step, -step)]
    right = (a.astype("f8") @ b.astype("f8") + bias) * (f[0] - f[1]) / (2 * step) + c.astype("f8")
    out = gemm(1.0, a, b, 1.0, c, bias=bias, activation=activation, slope_at=z)
    assert out.dtype == dtype
    eps = float(np.finfo(dtype).eps)
    assert (abs(out - right) <= eps * (0.51 * abs(right) if letter == "h" else 20) + 1e-8).all()


@pytest.mark.parametrize("xp", [np, pytest.param("gpu", marks=pytest.mark.gpu)])
def test_products_of_bytes(xp):
    """Exact, modulo 2^32; scaled, with a bias and f, in single precision."""
    xp = pytest.importorskip("cupy") if xp == "gpu" else xp
    rng = np.random.default_rng(5)
    for (m, n, k), ta, tb in itertools.product(
            ((5, 9, 7), (300, 130, 1000), (3, 2, 140000)), (0, 1), (0, 2)):
        a, b = (rng.integers(-128, 128, s, "i1") for s in ((m, k), (k, n)))
        if k > 10**5:
            a[:], b[:] = -128, -128
        exact = a.astype("i8") @ b.astype("i8")
        at = [xp.asarray(x.T if t else x, order=o) for x, t, o in ((a, ta, "F"), (b, tb, "C"))]
        c = blasx.igemm(*at, ta, tb)
        assert c.dtype == np.int32 and (host(c) == exact.astype("i4")).all()
        if k > 10**5:
            continue
        scale, bias = rng.uniform(1e-4, 1e-3, (m, 1)).astype("f4"), rng.normal(size=n).astype("f4")
        for s, more, f in ((scale, bias, "gelu"), (bias, scale, "relu"), (2.0, 3.0, None),
                           (np.float64(0.1), None, "gelu_tanh")):
            x = s * exact + (0 if more is None else more)
            bound = 2e-6 * (1 + abs(s * exact) + (0 if more is None else abs(more)))
            x = {None: x, "relu": np.maximum(x, 0), "gelu": x * scipy.special.ndtr(x),
                 "gelu_tanh": gelu_tanh(x)}[f]
            s, more = (xp.asarray(y) if isinstance(y, np.ndarray) else y for y in (s, more))
            c = host(blasx.igemm(*at, ta, tb, scale=s, bias=more, activation=f))
            assert c.dtype == np.float32 and (abs(c - x) <= bound).all()
    one = xp.asarray(np.eye(2, dtype="i1"))
    for s in ([1.0, 2], [[1.0], [2]]):
        c = blasx.igemm(one, one + one, scale=s if xp is np else xp.asarray(s))
        np.testing.assert_array_equal(host(c), 2 * np.eye(2) * np.array(s))
    empty = xp.zeros((3, 0), "i1")
    assert not host(blasx.igemm(empty, empty.T)).any()
    assert blasx.igemm(empty.T, empty, scale=1.0).shape == (0, 0)


@pytest.mark.parametrize(("words", "error", "match"), [
    (dict(a=np.eye(3)), TypeError, "igemm: a must be an array of int8, got float64"),
    (dict(b=np.ones((2, 3), "i1")), ValueError, "igemm: b must be a matrix with 3 rows"),
    (dict(bias=1.0), ValueError, "igemm: scale must be given where bias"),
    (dict(scale=np.ones(2)), ValueError, r"igemm: scale must be of shape \(3,\)"),
    (dict(scale=1.0, activation="tanh"), ValueError, "igemm: activation must be one of")])
def test_what_is_no_product_of_bytes(words, error, match):
    one = np.eye(3, dtype="i1")
    with pytest.raises(error, match=match):
        blasx.igemm(**dict(a=one, b=one) | words)


def test_what_slopes_are_taken_at_is_not_overwritten():
    z = np.eye(3, order="F")
    with pytest.raises(ValueError, match="dgemm: c must"):
        blasx.dgemm(1.0, I3, I3, 0.0, z, overwrite_c=1, activation="relu", slope_at=z)
    assert (z == np.eye(3)).all()


def test_a_generic_product_keeps_half_precision():
    a = np.eye(3, dtype="f2")
    assert blasx.gemm(1.0, a, a).dtype == np.float16 and blasx.gemm(1.0, a, I3).dtype == np.float64


@pytest.mark.parametrize(("name", "words", "match"), [
    ("dgemm", {"bias": [1.0, 2]}, r"dgemm: bias must be of shape \(3,\) or \(3, 1\), got \(2,\)$"),
    ("dgemm", {"bias": np.ones((2, 1))}, r"dgemm: bias must be of shape \(3,\) or \(3, 1\)"),
    ("dgemm", {"activation": "tanh"}, "dgemm: activation must be one of 'relu', 'gelu'"),
    ("zgemm", {"activation": "relu"}, "zgemm: activation must be None for complex"),
    ("dgemm", {"slope_at": np.eye(3)}, "dgemm: slope_at must be None without an activation"),
    ("dgemm", {"slope_at": [[1.0]], "activation": "gelu"}, "dgemm: slope_at must be of shape"),
    ("dgemm", {"slope_at": np.eye(2), "activation": "relu"}, r"dgemm: slope_at must be of shape"),
    ("sgemm", {"precision": "fp8"}, "sgemm: precision must be one of 'fp32', 'strict'"),
    ("dgemm", {"variant": "int8"}, "dgemm: variant must be one of 'auto', 'native', 'crt'")])
def test_what_cannot_follow_a_product(name, words, match):
    with pytest.raises(ValueError, match=match):
        getattr(blasx, name)(1.0, np.eye(3), np.eye(3), **words)
