"""Solve A X = B in double precision by LU in less, and say how well that went.

A is first squeezed into the range of half precision, R and C diagonal, powers of two:

    S = R A C,    rows, then columns, at most SIZE and the largest of each not half of it,

and factored by blocks of columns in single precision. What a block takes off the rest is a product
of operands rounded to `factor` with sums in single, as tensor cores make it. Half precision ends at
65504 = 2^12 SIZE: so much growth the elements of U have before one is infinite, and numbers below
2^-28 of the largest, which lose bits there, are far below its eps of 2^-11.

Refinement: x := x + d, where d solves A d = b - A x, residual in double precision, by the factors
alone (classical; wants cond(S) below about 1 / eps of `factor`), or by GMRES on

    M^-1 S e = M^-1 R (b - A x),    d = C e,    M = L U, applied in double precision,

which the factors only have to make easy for it. It ends where every column has, in infinity norms,

    |b - A x| <= eps sqrt(n) (|A| |x| + |b|) / 2,
    |R (b - A x)| <= eps sqrt(n) (|S| |C^-1 x| + |R b|) / 2,

without which rows of small numbers might be anything; or where a step has not halved the worst of
these quotients, the backward error (of GMRES a step that was asked for INNER^2 in place of INNER):
A itself is factored in double precision then.

Higham, Pranesh, Zounon: Squeezing a matrix into half precision, SIAM J. Sci. Comput. 41 (2019);
Carson, Higham: Accelerating the solution of linear systems by iterative refinement in three
precisions, SIAM J. Sci. Comput. 40 (2018); Haidar, Tomov, Dongarra, Higham, SC 2018.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np

from . import _trace
from ._routine import RefinementWarning, cupy
from .blas2 import gemv
from .blas3 import gemm, trsm
from .lu import getrf, getrs, laswp
from .mixed import LOWER, RUNNING, STEPS, _by_lu

FACTORS = ("fp32", "tf32", "fp16", "bf16")
REFINES = ("ir", "gmres")
SIZE = 16        # of the largest elements of S
BLOCK = 32       # columns that are factored before they are taken off the rest
INNER = 1e-4     # by how much GMRES is to make a residual smaller; the square of it where that was
                 # less than the condition of (L U)^-1 A takes away
MOST = 60        # steps of GMRES for it
BITS = {"tf32": 10, "bf16": 7}  # of the fraction, of formats with the range of single precision


class Refined(NamedTuple):
    """What gesv returns where it was told a precision to factor in.

    lu, piv : factors of diag(r) A diag(c), in single precision; where iter < 0 of A, in double
    x : the solution, of the shape of b
    info : as of gesv, k > 0: U[k-1, k-1] is zero in double precision too, and x is b
    iter : steps of refinement; negative where double precision was needed: -2 elements, or those of
        the factors, did not fit; -3 a pivot was zero; -31 no convergence
    backward_error : the largest |b - A x| / (|A| |x| + |b|) of a column, infinity norms, or that of
        the scaled system, whichever is larger
    r, c : the scales, ones where iter < 0
    """

    lu: Any
    piv: Any
    x: Any
    info: Any
    iter: Any
    backward_error: Any
    r: Any
    c: Any


def gesv(me, a, b, factor, refine):
    """Of matrices `a` and `b`, checked; a Refined."""
    xp = np if me.on_cpu(a, b) else cupy()
    low = LOWER[me.letter]
    with np.errstate(all="ignore"):  # what overflows, or is nan, does not converge
        r, c = _scales(xp, a)
        scaled = (a * r[:, None]) * c
        lu = scaled.astype(low.dtype, order="F")
        fits = xp.isfinite(lu).all()
        lu, piv, info = _factored(low, lu, factor)
        fits = fits & xp.isfinite(lu).all()
        fits, regular = xp.stack((fits, xp.asarray(info == 0))).tolist()
        _trace.note(synced=int(xp is not np))
        steps = RUNNING if fits and regular else -3 if fits else -2
        judge = _Judge(xp, a, b, r, c, scaled)
        if steps == RUNNING:
            x, steps, error = _refined(xp, low, judge, a, b, lu, piv, r, c, refine)
        if steps < 0:
            warnings.warn(f"{me.name}: factors of {factor} precision "
                          f"{REASONS[steps]} (iter = {steps}): solved in double precision",
                          RefinementWarning, stacklevel=5)
            lu, piv, info = getrf(a)
            x = xp.where(xp.asarray(info) == 0, getrs(lu, piv, b)[0], b)
            r, c = xp.ones((2, len(a)))
            error = _Judge(xp, a, b, r, c, a)(x)[0]
    if xp is np:
        error = float(error)
    else:
        steps = xp.full((), steps, np.int32)
    return Refined(lu, piv, x, info, steps, error, r, c)


REASONS = {-2: "do not fit its range", -3: "are singular",
           RUNNING: "did not lead to convergence"}


def _scales(xp, a):
    """r and c."""
    def exponents(sizes):  # of powers of two that are above; those of zeros and of nan do not count
        return xp.clip(xp.frexp(sizes)[1], -1000, 1000)

    if not a.size:
        return xp.ones((2, 0))
    sizes = abs(a)
    ones = xp.ones(len(a))
    r = xp.ldexp(ones, -exponents(sizes.max(axis=1)))
    c = xp.ldexp(SIZE * ones, -exponents((sizes * r[:, None]).max(axis=0)))
    return r, c


def _factored(me, a, factor):
    """LU of a column-major matrix of single precision in place, by products of `factor`."""
    if factor == "fp32":
        return getrf(a, 1)
    if not me.on_cpu(a) and a.size:
        from .large import lu as large
        found = large.plan(me, *a.shape)
        if found and not found.get("cusolver"):
            return a, *large.getrf(me, a, factor)
    xp, n = np if me.on_cpu(a) else cupy(), len(a)
    piv, info = xp.zeros(n, np.int32), xp.zeros((), np.int32)
    for j in range(0, n, BLOCK):
        end = min(j + BLOCK, n)
        _, its, bad = getrf(a[j:, j:end], 1)
        piv[j:end] = its + j
        info = xp.where((info == 0) & (xp.asarray(bad) > 0), bad + j, info)
        for beside in (a[j:, :j], a[j:, end:]):
            if beside.size:
                laswp(beside, its, overwrite_a=1)
        if end < n:
            U, L = a[j:end, end:], a[end:, j:end]
            trsm(1, a[j:end, j:end], U, lower=1, diag=1, overwrite_b=1)
            if xp is np:
                L, U = rounded(L, factor), rounded(U, factor)
            gemm(-1, L, U, 1, a[end:, end:], overwrite_c=1, precision=factor)
    return a, piv, int(info) if xp is np else info


def rounded(x, factor):
    """NumPy numbers of single precision as `factor` has them: to nearest, ties to even."""
    flat = np.asfortranarray(x).T.view(np.float32)
    if factor == "fp16":
        flat = flat.astype(np.float16).astype(np.float32)
    else:
        lost = 23 - BITS[factor]
        bits = flat.view(np.uint32)
        half = np.uint32((1 << lost - 1) - 1) + (bits >> np.uint32(lost) & np.uint32(1))
        flat = np.where(np.isfinite(flat), (bits + half >> np.uint32(lost) << np.uint32(lost)).view(
            np.float32), flat)
    return flat.view(x.dtype).T


class _Judge:
    """Residuals and backward errors of solutions, in double precision."""

    def __init__(self, xp, a, b, r, c, scaled):
        self.xp, self.a, self.b, self.r, self.c = xp, a, b, r[:, None], c[:, None]
        if b.size:
            self.sizes = [abs(x).sum(axis=1).max() for x in (a, scaled)]
            self.of_b = [abs(x).max(axis=0) for x in (b, b * self.r)]

    def __call__(self, x):
        """(the largest backward error of a column, the residual)"""
        xp, residual = self.xp, self.b.copy(order="F")
        if not x.size:
            return xp.zeros(()), residual
        gemm(-1.0, self.a, x, 1.0, residual, overwrite_c=1)
        errors = []
        for size, of_b, y, rest in zip(self.sizes, self.of_b, (x, x / self.c),
                                       (residual, residual * self.r)):
            bound = size * abs(y).max(axis=0) + of_b
            errors.append((abs(rest).max(axis=0) / xp.where(bound == 0, 1, bound)).max())
        return xp.maximum(*errors), residual


def _refined(xp, low, judge, a, b, lu, piv, r, c, refine):
    """(X, the steps it took or RUNNING, its backward error)"""
    limit = np.finfo(a.dtype).eps / 2 * len(a) ** 0.5
    if not b.size:
        return b.copy(order="F"), 0, xp.zeros(())
    solve = _by_lu(low, lu, piv, b.shape[1])[0] if xp is not np else (
        lambda y, _: getrs(lu, piv, y, overwrite_b=1))

    def by_factors(y, _):  # columns scaled, as powers of ten cost single precision its range
        y = y * r[:, None]
        size = abs(y).max(axis=0)
        size = xp.where(size > 0, size, 1)
        d = (y / size).astype(lu.dtype, order="F")
        solve(d, None)
        return d.astype(a.dtype) * size * c[:, None]

    correct = by_factors
    if refine == "gmres":
        wide = lu.astype(a.dtype, order="F")

        def operator(e):
            return getrs(wide, piv, r * gemv(1.0, a, c * e), overwrite_b=1)[0]

        def correct(y, inner):
            start = getrs(wide, piv, y * r[:, None])[0]
            d = [gmres(xp, operator, start[:, j], inner) for j in range(y.shape[1])]
            return xp.stack(d, axis=1) * c[:, None]

    inner, finer = INNER, [INNER**2] * (refine == "gmres")
    x, before = by_factors(b, inner), np.inf
    for steps in range(STEPS + 1):
        error, residual = judge(x)
        _trace.note(synced=int(xp is not np))
        now = float(error)
        if now <= limit:
            return x, steps, error
        if not now <= before / 2:
            if not finer:
                break
            inner = finer.pop()
        x, before = x + correct(residual, inner), now
    return x, RUNNING, error


def gmres(xp, operator, b, inner):
    """D with operator(D) = b, to `inner` of |b| or as far as MOST steps go. The host waits once for
    each step, whose Hessenberg column it turns triangular.

    Saad, Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856; Gram-Schmidt's method twice.
    """
    size = float(xp.linalg.norm(b))
    if not 0 < size < np.inf:
        return xp.zeros_like(b)
    most = min(MOST, len(b))
    V = xp.empty((len(b), most + 1), b.dtype, order="F")
    V[:, 0] = b / size
    R, right, turns = np.zeros((most, most), b.dtype), np.zeros(most + 1, b.dtype), []
    right[0] = size
    for k in range(most):
        w, basis = operator(V[:, k]), V[:, :k + 1]
        h = gemv(1.0, basis, w, trans=2)
        w = w - gemv(1.0, basis, h)
        again = gemv(1.0, basis, w, trans=2)
        w = w - gemv(1.0, basis, again)
        left = xp.linalg.norm(w)
        column = xp.concatenate((h + again, left.reshape(1).astype(b.dtype)))
        column = column if xp is np else column.get()
        _trace.note(synced=int(xp is not np))
        for i, (cosine, sine) in enumerate(turns):
            column[i:i + 2] = (np.conj(cosine) * column[i] + np.conj(sine) * column[i + 1],
                               cosine * column[i + 1] - sine * column[i])
        whole = np.hypot(abs(column[k]), abs(column[k + 1]))
        if not 0 < whole < np.inf:
            k -= 1
            break
        cosine, sine = column[k] / whole, column[k + 1] / whole
        turns.append((cosine, sine))
        R[:k, k], R[k, k] = column[:k], whole
        right[k:k + 2] = np.conj(cosine) * right[k], -sine * right[k]
        if abs(right[k + 1]) <= inner * size or column[k + 1] == 0:
            break
        V[:, k + 1] = w / left
    if k < 0:
        return xp.zeros_like(b)
    y = np.linalg.solve(R[:k + 1, :k + 1], right[:k + 1])
    return gemv(1.0, V[:, :k + 1], xp.asarray(y))
