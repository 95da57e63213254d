"""Backward errors of answers, in units of n eps, the worst of a stack; NumPy and CuPy arrays alike.

A right answer has an error of about 1 or less; `compare` takes none above PASS.
"""

import numpy as np

from ._types import finfo

PASS = 30.0


def xp(a):
    """The module of an array: numpy or cupy."""
    from importlib import import_module
    return import_module(type(a).__module__.partition(".")[0])


def wide(a):
    """In double precision, where the error of a single precision answer can be seen."""
    return a.astype("c16" if a.dtype.kind == "c" else "f8", copy=False)


def norm(a):
    return abs(a).sum(-2).max(-1)


def quotient(residual, *scales, like):
    """The worst |residual| / (n eps product of |scales|)."""
    n, eps = like.shape[-2], float(finfo(like.dtype).eps)
    bottom = 1
    for s in scales:
        bottom = bottom * norm(s)
    return float((norm(residual) / bottom).max()) / (n * eps)


def product(a, b, c, like):
    """c = a b."""
    a, b, c = wide(a), wide(b), wide(c)
    return quotient(c - a @ b, a, b, like=like)


def product_by_element(a, b, c, like, alpha=1, c0=None):
    """c = alpha a b + c0: the worst |error| / (|a| |b| + |c0|), in units of sqrt(k) eps."""
    k, eps = a.shape[-1], float(finfo(like.dtype).eps)
    a, b = wide(a), wide(b)
    size, wrong = abs(a) @ abs(b), wide(c) - alpha * (a @ b)
    if c0 is not None:
        size += abs(c0)
        wrong -= c0
    return float((abs(wrong) / size).max()) / (k**0.5 * eps)


def solution(a, b, x):
    """a x = b."""
    like, a, b, x = a, wide(a), wide(b), wide(x)
    return quotient(b - a @ x, a, x, like=like)


def least_squares(a, b, x):
    """a^H (b - a x) = 0, x in the first rows."""
    like, a, b, x = a, wide(a), wide(b), wide(x)[..., :a.shape[-1], :]
    adjoint = a.conj().swapaxes(-1, -2)
    return quotient(adjoint @ (b - a @ x), adjoint, a, x, like=like)


def lu(a, factors, piv):
    """P a = L U, piv from 0."""
    m, like, module = a.shape[-2], a, xp(a)
    factors, permuted = wide(factors), wide(a).copy()
    if a.ndim == 3:
        members = module.arange(len(a))
        for j in range(piv.shape[-1]):
            row, pivot = permuted[members, j].copy(), permuted[members, piv[:, j]]
            permuted[members, piv[:, j]] = row
            permuted[members, j] = pivot
    else:
        order = list(range(m))
        for j, p in enumerate(piv.tolist()):
            order[j], order[p] = order[p], order[j]
        permuted = permuted[module.asarray(order)]
    k = min(a.shape[-2:])
    lower = module.tril(factors, -1)[..., :k] + module.eye(m, k)
    return quotient(permuted - lower @ module.triu(factors)[..., :k, :], wide(a), like=like)


def cholesky(a, factor):
    """a = L L^H, L in the lower triangle."""
    lower = xp(a).tril(wide(factor))
    return quotient(wide(a) - lower @ lower.conj().swapaxes(-1, -2), wide(a), like=a)


def triangular_of_qr(a, r):
    """R^H R = a^H a, R in the upper triangle of the leading rows: no Q is formed."""
    r, like, a = xp(a).triu(wide(r)[..., :a.shape[-1], :]), a, wide(a)
    gram = a.conj().swapaxes(-1, -2) @ a
    return quotient(gram - r.conj().swapaxes(-1, -2) @ r, gram, like=like)


def eigen(a, w, v):
    """a v = v diag(w)."""
    like, a, v = a, wide(a), wide(v)
    return quotient(a @ v - v * w, a, v, like=like)


def singular(a, u, s, vh):
    """a = u diag(s) vh."""
    return quotient(wide(a) - wide(u) * s @ wide(vh), wide(a), like=a)


def near(result, expected, dtype, terms=1):
    """`result` of that dtype against `expected`, a sum of `terms` terms or a vector of such."""
    scale = abs(expected).max()
    return float(abs(wide(result) - expected).max() / scale) / (
        terms * float(finfo(np.dtype(dtype)).eps))
