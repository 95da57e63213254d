"""What the testers of generalized Hermitian eigenproblems share."""

import numpy as np

from . import errors
from .errors import H, wide


def definite(p):
    """B: Hermitian, well conditioned, of norm near 1."""
    B = p.random(p.n, p.n) / p.real.type(max(p.n, 1))
    B = np.tril(B) + H(np.tril(B, -1))
    B[range(p.n), range(p.n)] = B.diagonal().real + 2
    return B


def values(p):
    """The eigenvalues in double precision: those of L^-1 A L^-H or of L^H A L, B = L L^H."""
    if not p.n:
        return np.zeros(0)
    (A, e), L = errors.unit(p.A), np.linalg.cholesky(wide(p.B))
    C = np.linalg.solve(L, H(np.linalg.solve(L, A))) if p.itype == 1 else H(L) @ A @ L
    return errors.shift(np.linalg.eigvalsh(C), e)


def generalized_spectrum(p, w, part=slice(None)):
    reference = values(p)
    if len(w) != len(reference[part]):
        return {"|D-D_ref|": np.nan, "ascending": False}
    (r, e), w = errors.unit(reference), wide(w)
    w = errors.shift(w, -e)
    return {"|D-D_ref|": errors.ratio(np.max(abs(w - r[part]), initial=0.0),
                                      np.max(abs(r), initial=0.0)) / max(p.n, 1),
            "ascending": errors.ordered(w)}


def generalized(p, w, Z):
    """The residual of the problem, and Z^H B Z = I (itype 3: Z^H B^-1 Z = I)."""
    A, B, Z = p.A, wide(p.B), wide(Z)
    if p.itype == 1:
        found = {"|AZ-BZD|": errors.eig(A, w, Z, B)}
    elif p.itype == 2:
        (y, e), D = errors.unit(A), wide(w)
        r = y @ (B @ Z) - Z * errors.shift(D, -e)
        found = {"|ABZ-ZD|": errors.ratio(errors.norm1(r), errors.norm1(y) * errors.norm1(B)
                                          * errors.norm1(Z)) / max(p.n, 1)}
    else:
        (y, e), D = errors.unit(A), wide(w)
        r = B @ (y @ Z) - Z * errors.shift(D, -e)
        found = {"|BAZ-ZD|": errors.ratio(errors.norm1(r), errors.norm1(y) * errors.norm1(B)
                                          * errors.norm1(Z)) / max(p.n, 1)}
    gram = H(Z) @ (np.linalg.solve(B, Z) if p.itype == 3 else B @ Z)
    found["|I-ZZ^H B|"] = errors.ratio(errors.norm1(np.eye(Z.shape[1]) - gram), max(p.n, 1))
    return found
