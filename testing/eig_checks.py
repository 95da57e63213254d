"""What eigenvalues and eigenvectors of Hermitian matrices must satisfy."""

import numpy as np

from . import errors
from .errors import H, wide


def selected(p, w):
    """Arguments that ask for a part of the spectrum w (ascending), and the part as a slice."""
    n = len(w)
    low, high = n // 4, max(n // 2, n // 4 + 1)
    if p.range == "A" or not np.isfinite(w).all() or not n:
        return {"range": "A"}, slice(0, n)
    if p.range == "I":
        return {"range": "I", "il": low + 1, "iu": high}, slice(low, high)
    pad = 0.1 * np.max(abs(w)) or 1.0  # limits half way in a gap, where no rounding decides
    ends = np.concatenate([[w[0] - pad], w, [w[-1] + pad]])
    gaps = np.flatnonzero(np.diff(ends) > 1e-3 * pad)
    low = gaps[gaps <= low][-1]
    high = gaps[gaps >= max(high, low + 1)][0]
    vl, vu = (ends[i] / 2 + ends[i + 1] / 2 for i in (low, high))
    return {"range": "V", "vl": float(vl), "vu": float(vu)}, slice(int(low), int(high))


def spectrum(p, A, w, part=slice(None)):
    """|S - Sref| against LAPACK in double precision, and the order."""
    y, e = errors.unit(A)
    reference = np.linalg.eigvalsh(y) if len(y) else np.zeros(0)
    w = errors.shift(wide(w), -e)
    if len(w) != len(reference[part]):
        return {"|S-S_ref|": np.nan, "ascending": False}
    largest = np.max(abs(reference), initial=0.0)
    return {"|S-S_ref|": errors.ratio(np.max(abs(w - reference[part]), initial=0.0), largest)
            / max(p.n, 1), "ascending": errors.ordered(w)}


def decomposed(p, A, w, Z):
    """|A Z - Z W| / (N |A|) (|A - U S U^H| where all are asked for), |I - Z^H Z| / N."""
    (A, e), Z = errors.unit(A), wide(Z)
    W = errors.shift(wide(w), -e)
    r = A - (Z * W) @ H(Z) if Z.shape[1] == len(A) else A @ Z - Z * W
    return {"|A-USU^H|": errors.ratio(errors.norm1(r), errors.norm1(A)) / max(p.n, 1),
            "|I-U^H U|": errors.orthogonal(Z) * Z.shape[1] / max(p.n, 1)}
