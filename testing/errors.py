"""The error formulas of the testers, each said once.

Computed on the CPU in double precision (so for s and c in more than the routine had). Arrays are
scaled by powers of two first, so that no norm overflows. Arrays may be stacks of matrices; the
result is the worst of the stack, and a NaN anywhere is the result.
"""

import numpy as np
import scipy.linalg

EPS = {"s": 2.0**-24, "d": 2.0**-53, "c": 2.0**-24, "z": 2.0**-53,  # LAPACK's lamch("E")
       "h": 2.0**-11, "b": 2.0**-8, "i": 2.0**-24}  # i: where it is scaled, in single precision


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64, copy=False)


def shift(x, exponent):
    """x * 2^exponent, in two steps where 2^exponent itself would overflow."""
    half = int(exponent) // 2
    return x * 2.0**half * 2.0 ** (int(exponent) - half)


def unit(x):
    """x = y 2^e with the largest |y_ij| in [1/2, 1): returns y and e."""
    x = wide(x)
    largest = float(np.max(abs(x), initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return x, 0
    e = int(np.frexp(largest)[1])
    return shift(x, -e), e


def H(x):
    return np.swapaxes(x, -1, -2).conj()


def op(x, trans):
    return {"N": lambda: x, "T": lambda: np.swapaxes(x, -1, -2), "C": lambda: H(x)}[trans]()


def fro(x):
    """Frobenius norm of the last two axes (of a vector: its 2-norm)."""
    return np.linalg.norm(x, axis=(-2, -1)) if np.ndim(x) > 1 else np.linalg.norm(x)


def norm1(x):
    return np.max(np.sum(abs(x), axis=-2), axis=-1, initial=0.0)


def norm_inf(x):
    return np.max(np.sum(abs(x), axis=-1), axis=-1, initial=0.0)


def ratio(numerator, denominator):
    """The worst numerator / denominator; 0/0 is 0, and what cannot be judged is NaN."""
    numerator, denominator = np.broadcast_arrays(*map(np.atleast_1d, (numerator, denominator)))
    with np.errstate(all="ignore"):
        quotient = np.where(numerator == 0, 0.0, numerator / denominator)
    quotient[~np.isfinite(denominator)] = np.nan
    return float(np.max(quotient, initial=0.0))


def difference(x, reference):
    """|x - reference|_F / |reference|_F."""
    (r, e), x = unit(reference), wide(x)
    return ratio(fro(shift(x, -e) - r), fro(r))


def higham(result, reference, k, *terms):
    """|C - Cref|_F / (sqrt(k + 2) |alpha| |A|_F |B|_F + 2 |beta| |C0|_F), 3 eps being the limit.

    `terms` are (scalar, array, ...) products, the first with sqrt(k + 2), the second with 2.
    """
    bound = 0.0
    for weight, (scalar, *arrays) in zip((np.sqrt(k + 2), 2.0), terms):
        scaled = [unit(a) for a in arrays]
        size = float(abs(scalar)) * np.prod([fro(a) for a, _ in scaled], axis=0)
        bound = bound + weight * shift(size, sum(e for _, e in scaled))
    return ratio(fro(wide(result) - wide(reference)), bound)


def residual(A, x, b, norm=norm_inf):
    """|b - A x| / (|A| |x|), not divided by N."""
    (A, ea), (x, ex) = unit(A), unit(x)
    if x.ndim < A.ndim:
        x, b = x[..., None], np.asarray(b)[..., None]
    r = shift(wide(b), -ea - ex) - A @ x
    return ratio(norm(r), norm(A) * norm(x))


def solve(A, x, b):
    """|b - A x|_I / (N |A|_I |x|_I)."""
    return residual(A, x, b) / max(A.shape[-1], 1)


def backward(A, x, b):
    """The worst |b - A x|_I / (|A|_I |x|_I + |b|_I) of a column."""
    (A, ea), (x, ex) = unit(A), unit(x)
    b = shift(wide(b), -ea - ex)
    sizes = [abs(y).max(axis=0, initial=0) for y in (b - A @ x, x, b)]
    return ratio(sizes[0], norm_inf(A) * sizes[1] + sizes[2])


def permuted(A, piv):
    """P A by LAPACK's row swaps, counted from 0."""
    A, rows = A.copy(), np.arange(len(A)) if A.ndim == 3 else ...
    for j in range(piv.shape[-1]):
        p = piv[..., j]
        upper, lower = (rows, j), (rows, p)
        if A.ndim == 2:
            upper, lower = j, p
        A[upper], A[lower] = A[lower].copy(), A[upper].copy()
    return A


def gaps(result, before, n, inc):
    """What lies between the elements of a BLAS vector stays."""
    between = np.ones(len(before), bool)
    between[: 1 + (n - 1) * abs(inc) if n else 0 : abs(inc)] = False
    return len(result) == len(before) and bool(np.array_equal(result[between], before[between]))


def lu(A, factor, piv):
    """|P A - L U|_F / (N |A|_F)."""
    m, n = A.shape[-2:]
    k = min(m, n)
    A, e = unit(A)
    factor = wide(factor)
    L = np.tril(factor[..., :k], -1) + np.eye(m, k)
    U = shift(np.triu(factor[..., :k, :]), -e)
    return ratio(fro(permuted(A, piv) - L @ U), fro(A)) / max(n, 1)


def lu_info(A, factor):
    """The info that belongs to a factor: its first exactly zero pivot, counted from 1, or 0."""
    d = np.diagonal(factor, axis1=-2, axis2=-1) == 0
    return np.where(d.any(axis=-1), d.argmax(axis=-1) + 1 if d.shape[-1] else 0, 0)


def pivots(piv, m):
    """Row j may only be swapped with rows j ... m-1."""
    return bool(np.all((np.arange(piv.shape[-1]) <= piv) & (piv < m)))


def multipliers(factor, eps):
    """Partial pivoting on |re| + |im|: no multiplier is larger than 1 (by modulus sqrt(2))."""
    L = np.tril(factor[..., :min(factor.shape[-2:])], -1)
    limit = 1.0 if L.dtype.kind == "f" else 2**0.5
    return bool(np.all(abs(L) <= limit * (1 + 8 * eps)))


def first_zero(d):
    """Where LAPACK's info points: at the first exact zero, counted from 1; 0 if there is none."""
    zeros = np.flatnonzero(np.asarray(d) == 0)
    return int(zeros[0]) + 1 if len(zeros) else 0


def unpivoted(A):
    """L and U of A without pivoting, by halves."""
    n = len(A)
    if n <= 1:
        return A
    h = n // 2
    F = A.copy()
    F[:h, :h] = unpivoted(A[:h, :h])
    F[:h, h:] = scipy.linalg.solve_triangular(F[:h, :h], A[:h, h:], lower=True,
                                              unit_diagonal=True, check_finite=False)
    F[h:, :h] = scipy.linalg.solve_triangular(F[:h, :h], A[h:, :h].T, trans="T",
                                              check_finite=False).T
    F[h:, h:] = unpivoted(A[h:, h:] - F[h:, :h] @ F[:h, h:])
    return F


def cholesky(A, factor, uplo):
    """|A - L L^H|_F / (N |A|_F), or with U^H U."""
    (A, e), f = unit(A), wide(factor)
    f = shift(np.tril(f) if uplo == "L" else np.triu(f), -(e // 2))
    product = f @ H(f) if uplo == "L" else H(f) @ f
    return ratio(fro(A - shift(product, 2 * (e // 2) - e)), fro(A)) / max(A.shape[-1], 1)


def cholesky_info(A, factor, uplo, info, eps):
    """info = k > 0 must mean it: the first k-1 columns factor A, with a positive diagonal, and
    the leading minor of order k is not clearly positive definite. Returns the error of what was
    factored, and the verdict."""
    worst, right = 0.0, True
    stack = (lambda x: x) if A.ndim == 3 else (lambda x: x[None])
    for a, f, k in zip(stack(A), stack(factor), np.ravel(info)):
        if not 0 <= k <= len(a):
            return np.nan, False
        done = k - 1 if k else len(a)
        right = right and bool(np.all(f.diagonal()[:done].real > 0))
        worst = max(worst, cholesky(a[:done, :done], f[:done, :done], uplo), key=nan_last)
        if k:
            leading, _ = unit(a[:k, :k])
            smallest = np.linalg.eigvalsh(leading)[0]
            right = right and smallest <= 30 * k * eps * norm1(leading)
    return worst, bool(right)


def nan_last(x):
    return np.inf if np.isnan(x) else x


def untouched(result, before, uplo):
    """The triangle that a routine must leave alone, bit for bit."""
    other = np.triu if uplo == "L" else np.tril
    result, before = np.asarray(result), np.asarray(before)
    mask = other(np.ones(result.shape[-2:], bool), 1 if uplo == "L" else -1)
    return bool(np.array_equal(result[..., mask], before[..., mask], equal_nan=True))


def zeroed(result, uplo):
    """SciPy's clean=1: the other triangle is zero."""
    return untouched(result, np.zeros_like(result), uplo)


def orthogonal(Q):
    """|I - Q^H Q|_1 / N for the columns of Q."""
    Q = wide(Q)
    return float(ratio(norm1(np.eye(Q.shape[-1]) - H(Q) @ Q), max(Q.shape[-1], 1)))


def qr(A, Q, R, permutation=None):
    """|R - Q^H A|_1 / (N |A|_1), with the columns of A permuted."""
    A, e = unit(A)
    Q, R = wide(Q), shift(wide(R), -e)
    A = A if permutation is None else A[:, permutation]
    return ratio(norm1(R - H(Q) @ A), norm1(A)) / max(A.shape[1], 1)


def product(A, *factors):
    """|A - Q R|_1 / (N |A|_1), the first factor being of norm 1."""
    (A, e), (Q, R) = unit(A), map(wide, factors)
    return ratio(norm1(A - Q @ shift(R, -e)), norm1(A)) / max(*A.shape, 1)


def eig(A, w, Z, B=None):
    """|A Z - B Z W|_1 / (N |A|_1 |Z|_1)."""
    (A, e), (Z, _) = unit(A), unit(Z)
    right = (Z if B is None else wide(B) @ Z) * shift(wide(w), -e)
    return ratio(norm1(A @ Z - right), norm1(A) * norm1(Z)) / max(A.shape[-1], 1)


def svd(A, u, s, vh):
    """|A - U S V^H|_1 / (max(M, N) |A|_1)."""
    (A, e), u, vh = unit(A), wide(u), wide(vh)
    k = len(s)
    product = (u[:, :k] * shift(wide(s), -e)) @ vh[:k]
    return ratio(norm1(A - product), norm1(A)) / max(*A.shape, 1)


def inverse(A, Ainv):
    """|I - A A^-1|_1 / (N |A|_1 |A^-1|_1)."""
    (A, ea), (X, ex) = unit(A), unit(Ainv)
    n = A.shape[-1]
    r = shift(np.eye(n), -ea - ex) - A @ X
    return ratio(norm1(r), norm1(A) * norm1(X)) / max(n, 1)


def largest(members):
    """The largest error among the members', nan if one is."""
    return float(np.max([0.0, *members]))


def ordered(w, descending=False):
    w = np.asarray(w)[::-1] if descending else np.asarray(w)
    return bool(np.all(w[1:] >= w[:-1]))
