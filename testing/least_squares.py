"""What a least squares or minimum norm solution must satisfy."""

import numpy as np

from . import errors
from .errors import H


def judged(A, x, b):
    """|b - A x| where there are equations for x to meet (m <= n), |A^H (b - A x)| where there are
    too many (m > n), and, where x is one of many (m < n), its part outside the range of A^H."""
    m, n = A.shape
    (A, ea), (x, ex) = errors.unit(A), errors.unit(x)
    b = errors.shift(errors.wide(b), -ea - ex)
    r, size = b - A @ x, errors.fro(A) * errors.fro(x) + errors.fro(b)
    found = {"|b-Ax|/(N*|A|*|x|)": errors.residual(A, x, b, errors.fro) / max(n, 1)
             if m <= n else None,
             "|A^H(b-Ax)|": errors.ratio(errors.fro(H(A) @ r), errors.fro(A) * size) / max(m, 1)
             if m > n else None, "x in range(A^H)": None}
    if 0 < m < n:
        Q = np.linalg.qr(H(A))[0]
        found["x in range(A^H)"] = errors.ratio(errors.fro(x - Q @ (H(Q) @ x)),
                                                errors.fro(x)) / n
    return found
