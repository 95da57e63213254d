"""BLAS's storage of bands and triangles, with NaN wherever a routine must not look."""

import numpy as np


def band(A, kl, ku, above=0):
    """The (above + kl + ku + 1, n) band storage of A: A[i, j] in row above + ku + i - j."""
    m, n = A.shape
    ab = np.full((above + kl + ku + 1, n), np.nan, A.dtype)
    for d in range(-min(kl, m - 1), min(ku, n - 1) + 1) if A.size else ():
        diagonal = np.diagonal(A, d)
        start = max(d, 0)
        ab[above + ku - d, start:start + len(diagonal)] = diagonal
    return ab


def within(A, kl, ku):
    """A with zeros outside the band."""
    return np.triu(np.tril(A, ku), -kl)


def triangle_band(A, k, uplo):
    """Band storage of the lower or upper triangle of A."""
    return band(A, k, 0) if uplo == "L" else band(A, 0, k)


def packed(A, uplo):
    """The columns of a triangle of A, one after the other."""
    n = len(A)
    return A.T[np.triu_indices(n) if uplo == "L" else np.tril_indices(n)]


def unpacked(ap, n, uplo):
    """The triangle that `packed` holds, zeros elsewhere."""
    A = np.zeros((n, n), ap.dtype)
    A.T[np.triu_indices(n) if uplo == "L" else np.tril_indices(n)] = ap[: n * (n + 1) // 2]
    return A


def half(A, uplo):
    return np.tril(A) if uplo == "L" else np.triu(A)
