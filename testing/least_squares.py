"""What a least squares or minimum norm solution must satisfy."""

import numpy as np

from . import errors
from .errors import H


def judged(A, solution, b):
    """Of LAPACK's (max(m, n), nrhs) answer x is the first n rows; the m - n others have the norm
    of b - A x, column by column. Judged are |b - A x| where x can meet all equations (m <= n),
    |A^H (b - A x)| where it cannot, and, where x is one of many (m < n), its distance from the
    range of A^H, in units that a perturbation of A explains."""
    m, n = A.shape
    (A, ea), (solution, ex) = errors.unit(A), errors.unit(solution)
    x, rest, b = solution[:n], solution[n:], b[:m]
    b = errors.shift(errors.wide(b), -ea - ex)
    r, size = b - A @ x, errors.fro(A) * errors.fro(x) + errors.fro(b)
    found = dict.fromkeys(("|b-Ax|/(N*|A|*|x|)", "|A^H(b-Ax)|", "x in range(A^H)", "rest"))
    if m <= n and A.any():
        found["|b-Ax|/(N*|A|*|x|)"] = errors.residual(A, x, b, errors.fro) / max(n, 1)
    else:
        found["|A^H(b-Ax)|"] = errors.ratio(errors.fro(H(A) @ r), errors.fro(A) * size) / max(m, 1)
    if m > n > 0:
        distance = np.linalg.norm(errors.shift(rest, -ea), axis=0) - np.linalg.norm(r, axis=0)
        found["rest"] = errors.ratio(errors.fro(distance), size) / m
    if 0 < m < n:
        y = np.linalg.lstsq(H(A), x)[0]
        found["x in range(A^H)"] = errors.residual(H(A), y, x, errors.fro) / n
    return found
