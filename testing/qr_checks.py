"""What the testers of orthogonal factorizations share. Q is formed by LAPACK on the CPU, in double
precision out of the reflectors as they are."""

import numpy as np
import scipy.linalg.lapack

from . import errors
from .errors import H, wide


def reference(letter, routine):
    """SciPy's double precision routine, real or complex: dgeqrf, zungqr ..."""
    double = "z" if letter in "cz" else "d"
    return getattr(scipy.linalg.lapack, double + (routine if double == "d" else
                                                  routine.replace("or", "un", 1)))


def form_q(p, qr, tau, columns=None):
    """The first columns (all min(m, n) of them unless said) of the Q that geqrf left."""
    qr, tau = wide(qr), wide(tau)
    m, k = qr.shape[0], len(tau)
    columns = k if columns is None else columns
    if not columns or not m:
        return np.eye(m, columns, dtype=qr.dtype)
    if not k:
        return np.eye(m, columns, dtype=qr.dtype)
    a = np.zeros((m, columns), qr.dtype, order="F")
    a[:, :k] = qr[:, :k]
    return reference(p.letter, "orgqr")(a, tau)[0]


def factor(p, A):
    """The QR of A by LAPACK, in the problem's own precision: what orgqr and ormqr start from."""
    if not A.size:
        return A, np.zeros(0, A.dtype)
    qr, tau, _, _ = getattr(scipy.linalg.lapack, p.letter + "geqrf")(A)
    return qr, tau


def factored(p, A, qr, tau, permutation=None):
    """|R - Q^H A| and |I - Q^H Q|; the tau must be what makes Q orthogonal."""
    Q = form_q(p, qr, tau)
    return {"|R - Q^H*A|": errors.qr(A, Q, np.triu(qr[:len(tau)]), permutation),
            "|I - Q^H*Q|": errors.orthogonal(Q)}


def lq_factors(p, A):
    """The LQ of A by the QR of A^H: what orglq and ormlq start from."""
    qr, tau = factor(p, H(A))
    return H(qr), tau


def worst(members):
    """Of the {what: error or verdict} of many members, the worst of each."""
    found = {}
    for one in members:
        for what, value in one.items():
            before = found.get(what)
            if value is None or before is None:
                found[what] = value if before is None else before
            elif isinstance(value, bool):
                found[what] = before and value
            else:
                found[what] = max(before, value) if value == value else value
    return found


def batch_factors(p, rows, k):
    """The QR of p.batch random matrices by LAPACK: what orgqr_batched and ormqr_batched take."""
    p.A = p.stack(lambda: p.matrix(rows, k))
    found = [factor(p, a) for a in p.A] or [factor(p, np.eye(rows, k, dtype=p.dtype))]
    return [np.stack(x)[:p.batch] for x in zip(*found)]
