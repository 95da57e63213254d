"""Eigenvalues and left and right eigenvectors of a general matrix.

Judged by residuals and by the traces of A and A^2: single eigenvalues may be ill-conditioned."""

import numpy as np

from . import errors
from .case import Case


def make(p):
    p.A = p.matrix(p.n, p.n)
    p.call(p.A, compute_vl=int(p.jobvl == "V"), compute_vr=int(p.jobvr == "V"))


def complex_vectors(wi, v):
    """LAPACK's real storage of pairs (re, im) as complex columns."""
    v = v.astype(complex)
    for j in np.flatnonzero(wi > 0):
        re, im = v[:, j].copy(), v[:, j + 1].copy()
        v[:, j], v[:, j + 1] = re + 1j * im, re - 1j * im
    return v


def check(p, *outputs):
    *w, vl, vr, info = map(errors.wide, outputs)
    W, pairs = (w[0], np.zeros(p.n)) if p.is_complex else (w[0] + 1j * w[1], w[1])
    A, e = errors.unit(p.A)
    W, n = errors.shift(W, -e), max(p.n, 1)
    size = errors.fro(A)
    found = {"|tr(A)-sum(W)|": errors.ratio(abs(np.trace(A) - W.sum()), n * size),
             "|tr(A^2)-sum(W^2)|": errors.ratio(abs(np.trace(A @ A) - (W**2).sum()),
                                                n * size**2)}
    for name, asked, matrix, values, v in (("VR", p.jobvr, A, W, vr),
                                           ("VL", p.jobvl, errors.H(A), W.conj(), vl)):
        if asked == "V":
            V = v if p.is_complex else complex_vectors(pairs, v)
            r = matrix @ V - V * values
            found[f"|A*{name}-{name}*W|/(n|A|)"] = errors.ratio(errors.norm1(r),
                                                                 n * errors.norm1(A))
            found[f"||{name}(i)|-1|"] = float(np.max(abs(np.linalg.norm(V, axis=0) - 1),
                                                     initial=0.0)) / n
    return found


CASE = Case("geev", "geev", "wr wi vl vr info", make, check, flags="jobvl jobvr", limit=60)
