"""Singular value decompositions of a batch on the GPU: one-sided Jacobi by own kernels
(kernels/svd.cuh), of A or of A times the eigenvectors of A^H A; for larger members the polar factor
and the eigenvectors of the other one; above the largest order of blocks the one-matrix routine in a
loop."""

from functools import cache
from math import sqrt

import cupy
import numpy as np

from .._kernel import current_device
from .._tuned import LARGEST
from . import _gpu_eig, _gpu_qr, blas, cholesky, triangular
from ._gpu import LOST, blocks, infos, matrix, noted, past, scale
from ._gpu_jacobi import jacobi, parts

NEAR = 16  # lengths of columns of which one is at most so much larger than another


def gesvd(me, a, compute_uv, full):
    """u, s, vt, info of every (m, n) member: of A^H = V S U^H where m < n."""
    batch, m, n = a.shape
    k = min(m, n)
    name = "gesvd_vectors" if compute_uv else "gesvd_values"
    # A tall member has a QR first, and any that is not square where there is no kernel for it
    tall = max(m, n) > LARGEST and max(m, n) >= 2 * k or (
        m != n and jacobi(name, me, max(m, n)) is None)
    if past(me, max(m, n)):
        return _each(me, a, compute_uv, full)
    s, info = cupy.ndarray((batch, k), me.real), infos(batch)
    u, vt = (cupy.zeros((batch, 1, 1), me.dtype) for _ in "uv")
    if compute_uv:
        u = cupy.ndarray((batch, m, m if full else k), me.dtype)
        vt = cupy.ndarray((batch, n if full else k, n), me.dtype)
    work = _by_qr if tall else _core
    # The tall factor T and the square one W: U and (V^H)^H, or V and U of the adjoint
    if m >= n:
        work(me, name, a, 0, u, 0, vt.transpose(0, 2, 1), 1, s, info)
    else:
        work(me, name, a.transpose(0, 2, 1), 1, vt.transpose(0, 2, 1), 1, u, 0, s, info)
    return u, s, vt, info


def _core(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """T S W^H of every (m, n) member of A or its conjugate, m >= n."""
    order = a.shape[1]
    kernel = jacobi(name, me, order)
    work = (_by_polar if kernel is None else
            _by_gram if noted(name, me, order, "gram") else _by_jacobi)
    work(me, kernel or name, a, conj_a, t, conj_t, w, conj_w, s, info)


def _by_jacobi(me, kernel, a, conj_a, t, conj_t, w, conj_w, s, info):
    _, m, n = a.shape

    def parameters(part, work):
        vectors = (*matrix(t[part]), conj_t, *matrix(w[part]), conj_w) if kernel.vectors else ()
        return (*matrix(a[part]), conj_a, *vectors, s[part].data.ptr, info[part].data.ptr, work,
                m, n, *((t.shape[2],) if kernel.vectors else ()))

    kernel(len(s), n, a.itemsize, parameters)


def _by_gram(me, kernel, a, conj_a, t, conj_t, w, conj_w, s, info):
    """As `_by_jacobi`, of A V, V being the eigenvectors of A^H A: its columns are orthogonal but
    for eps (s_1 / s_j)^2, so that two or three sweeps do. Where lengths of A's columns lie further
    apart than NEAR, V would mix what makes small singular values with the rounding of large ones:
    there it is that of 0."""
    _, m, n = a.shape
    gemm = getattr(blas, me.letter + "gemm_batched")
    for part in parts(len(a), 6 * m * n * a.itemsize):
        x, exponents = cupy.ndarray(a[part].shape, me.dtype), infos(len(a[part]))
        scale(a[part], x, exponents, conjugated=conj_a)
        h = gemm(1, x, x, trans_a=2)
        level = blocks("gram_level", me, n)
        level(-(-len(x) // level.values["WARPS"]), 0, *matrix(h), x.data.ptr, m * n,
              exponents.data.ptr, NEAR**2, n, len(x))
        v, failed = _gpu_eig.syevd(me, h, True, 1, 1)[1:]
        turned = cupy.ndarray(v.shape, me.dtype) if kernel.vectors else None
        _by_jacobi(me, kernel, gemm(1, x, v), 0, t[part], conj_t, turned, conj_w, s[part],
                   info[part])
        info[part] += failed
        scale(s[part, None], s[part, None], exponents, find=False)
        if kernel.vectors:
            adjoint = conj_w and me.is_complex  # conj(V) is that of V^T
            gemm(1, v.transpose(0, 2, 1) if adjoint else v, turned, 0, w[part],
                 trans_a=2 * adjoint, overwrite_c=1)


def _by_qr(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """As `_core`: A = Q R, R = T' S W^H, T = Q T'."""
    batch, m, n = a.shape
    qr, tau, _ = _gpu_qr.geqrf(me, a.conj() if conj_a else a, 0)
    r = cupy.triu(qr[:, :n])
    if name == "gesvd_values":
        return _core(me, name, r, 0, t, 0, w, 0, s, info)
    c = cupy.zeros(t.shape, me.dtype)
    j = cupy.arange(n, t.shape[2])
    c[:, j, j] = 1
    _core(me, name, r, 0, c[:, :n, :n], 0, w, conj_w, s, info)
    q, _ = _gpu_qr.ormqr(me, "L", "N", qr, tau, c, 1)
    t[...] = q.conj() if conj_t else q


# -- A = P H, P unitary and H = V S V^H: A = (P V) S V^H
#
# P by Halley's iteration with weights (QDWH), which takes singular values in [l, 1] to [l', 1];
# after a number of steps that does not depend on A l' is 1. All of it in double precision. A step
# X (p + q X^H X) (1 + r X^H X)^-1 by Cholesky's factor of 1 + r X^H X is off by r eps. Where that
# is too much, it goes by W = (sqrt(r) X; I) = Q R with that factor for R: W^H W = I + E of the Q
# which that gives, E up to r eps, and Q (I - E + E^2) Q^H has the digits of a QR by reflectors.
# Weights for less than LEAST are not used, for they make E too large: of a Hilbert matrix of order
# 200 P^H A is Hermitian to 30 eps |A|, with weights for a hundredth of it to 6000. An A of less
# than full rank has no P that is found so: a random part of some eps of A gives it one.
# (Nakatsukasa, Higham, SIAM J. Sci. Comput. 35, 2013.)

EPS = 2.0**-52
UNIT = 8
LEAST = {"f": 2e-6, "d": 1.5e-7}  # by the real type


def _by_polar(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """As `_core`, of square members."""
    _, n, _ = a.shape
    for part in parts(len(a), 16 * n * n * (8 + 8 * me.is_complex)):
        x, exponents = cupy.ndarray(a[part].shape, me.dtype), infos(len(a[part]))
        scale(a[part], x, exponents, conjugated=conj_a)
        finite = exponents != LOST
        p, h, found = polar_factors(me, x, *(
            getattr(module, ("z" if me.is_complex else "d") + routine) for module, routine in (
                (blas, "gemm_batched"), (triangular, "trsm_batched"),
                (cholesky, "potrf_batched"))))
        values, v, failed = _gpu_eig.syevd(me, h, name == "gesvd_vectors", 1, 1)
        s[part] = cupy.maximum(values[:, ::-1], 0)
        scale(s[part, None], s[part, None], exponents, find=False)
        info[part] = ~(finite & found & (failed == 0))
        if name == "gesvd_values":
            continue
        v, nan = v[:, :, ::-1], cupy.where(finite, me.real.type(0), me.real.type(np.nan))
        gemm = getattr(blas, me.letter + "gemm_batched")
        for out, conjugated, x in ((t, conj_t, gemm(1, p, v)), (w, conj_w, v)):
            out[part] = (x.conj() if conjugated else x) + nan[:, None, None]


def polar_factors(me, a, gemm, trsm, potrf):
    """P and H of a matrix, or of every member, of entries up to about one, and whether P is
    unitary. The routines are those of double precision."""
    n, eps, least = a.shape[-1], float(np.finfo(me.dtype).eps), LEAST[me.real.char]
    size, batch = -(-n // UNIT) * UNIT, a.shape[:-2]   # X is diag(X, I), so that rows begin evenly
    a = a.astype("D" if me.is_complex else "d")
    one, x = (cupy.zeros((*batch, size, size), a.dtype, order="F" if a.ndim == 2 else "C")
              for _ in "1x")
    _diagonal(one)[...] = 1
    _diagonal(x)[:, n:] = 1
    x[..., :n, :n] = (a + _some(n, current_device()) * (eps * (abs(a) + 0.5 / sqrt(n)))) / n
    for p, q, r in _weights(n, eps, least):
        z = gemm(r, x, x, trans_a=2)
        _diagonal(z)[...] += 1
        z = potrf(z, 1)[0]
        if r * EPS > 100 * eps:
            y, below = trsm(sqrt(r), z, x, 1, 1, 2), trsm(1, z, one, 1, 1, 2)
            e = gemm(1, below, below, 1, gemm(1, y, y, trans_a=2), 2, 0, 1)
            _diagonal(e)[...] -= 1
            y = gemm(1, y, gemm(1, e, e, -1, e), 1, y)
            x = gemm((p - q / r) / sqrt(r), y, below, q / r, x, 0, 2, 1)
        else:
            y = trsm(p - q / r, z, trsm(1, z, x, 1, 1, 2), 1, 1, 0, 0, 1)
            x = y + x * (q / r)
    z = gemm(1, x, x, trans_a=2)
    _diagonal(z)[...] -= 1
    # What the tensor cores cut off makes X too small, all of it alike: a last step of Newton's
    found, x = abs(z).max((-2, -1)) < 30 * n * eps, gemm(-0.5, x, z, 1, x)[..., :n, :n]
    h = gemm(0.5, x, a, trans_a=2)
    h = h + h.conj().swapaxes(-2, -1)  # what it lacks to be Hermitian is A's error in P
    return x.astype(me.dtype, copy=False), h.astype(me.dtype, copy=False), found


def _diagonal(x):
    """Of a matrix by columns, or of members by rows, each in a row."""
    flat = x.reshape(len(x), -1) if x.ndim == 3 else x.T.reshape(1, -1)
    return flat[:, ::x.shape[-1] + 1]


@cache
def _some(n, device):
    """A random matrix of full rank, the same for all members."""
    return cupy.asarray(np.random.default_rng(n).standard_normal((n, n)))


@cache
def _weights(n, eps, used):
    """p, q, r of each step X (p + q X^H X) (1 + r X^H X)^-1, made for no less than `used`. The
    random part's least singular value is about eps / 2 n^2 of X's largest."""
    least, found = eps / (2048 * n * n), []
    while abs(1 - least) > eps:
        square = max(least, used) ** 2
        root = sqrt(1 + (4 * (1 - square) / square**2) ** (1 / 3))
        p = root + sqrt(8 - 4 * (root**2 - 1) + 8 * (2 - square) / (square * root)) / 2
        q = (p - 1) ** 2 / 4
        r = p + q - 1
        found.append((p, q, r))
        least *= (p + q * least**2) / (1 + r * least**2)
    return found


def _each(me, a, compute_uv, full):
    from ..svd import gesvd as one
    results = [one(x, compute_uv, full) for x in a]
    u, s, vt, info = (cupy.stack(x) for x in zip(*results))
    return u, s, vt, info
