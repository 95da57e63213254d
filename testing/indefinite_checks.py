"""What the testers of the Bunch-Kaufman factorization share."""

import numpy as np

from . import errors
from .errors import wide


def blocks(ipiv, uplo):
    """(first, last, row exchanged) of the diagonal blocks in the order they were eliminated;
    None where ipiv is none that sytrf may return. ipiv counts from 1, negative in 2 x 2 blocks."""
    n, found = len(ipiv), []
    k, step = (0, 1) if uplo == "L" else (n - 1, -1)
    while 0 <= k < n:
        two = ipiv[k] < 0
        if two and not (0 <= k + step < n and ipiv[k + step] == ipiv[k]):
            return None
        inner = k + step * bool(two)
        p = abs(int(ipiv[k])) - 1
        if not (inner <= p < n if uplo == "L" else 0 <= p <= inner):
            return None
        found.append((k, inner, p))
        k = inner + step
    return found


def factored(p, ldu, ipiv, info, hermitian):
    """|A - L D L^H| / (N |A|), or with L^T; info names a D(i, i) that is exactly zero."""
    name, turn = "|A-LDL^H|/(N*|A|)", errors.H if hermitian else np.transpose
    steps = blocks(ipiv, p.uplo)
    if steps is None:
        return {name: np.nan, "pivots": False}
    (A, e), F = errors.unit(p.A), wide(ldu)
    D, L = np.zeros_like(F), np.eye(p.n, dtype=F.dtype)
    zeros = []
    for k, inner, row in reversed(steps):
        block = sorted({k, inner})
        rest = slice(block[-1] + 1, None) if p.uplo == "L" else slice(0, block[0])
        D[block, block] = F[block, block]
        if k != inner:
            i, j = block if p.uplo == "U" else block[::-1]
            D[i, j] = F[i, j]
            D[j, i] = np.conj(F[i, j]) if hermitian else F[i, j]
        elif F[k, k] == 0:
            zeros.append(k + 1)
        L[rest] += F[rest, block] @ L[block]
        L[[inner, row]] = L[[row, inner]]
    product = L @ errors.shift(D, -e) @ turn(L)
    return {name: errors.ratio(errors.fro(A - product), errors.fro(A)) / max(p.n, 1),
            "pivots": True, "info": int(info) == (zeros[-1] if zeros else 0),
            "triangle": errors.untouched(ldu, p.stored, p.uplo)}
