"""Singular value decompositions of a batch on the GPU: one-sided Jacobi by own kernels
(kernels/svd.cuh); for larger members the polar factor and the eigenvectors of the other one; above
the largest order of these the one-matrix routine in a loop."""

from functools import cache
from math import sqrt

import cupy
import numpy as np

from .._kernel import current_device
from .._spaces import MOST
from .._tuned import LARGEST
from . import _gpu_eig, _gpu_qr, blas, cholesky, triangular
from ._gpu import LOST, infos, matrix, past, scale
from ._gpu_jacobi import jacobi, parts

LARGEST_POLAR = MOST // 2  # twice as many rows have a QR


def gesvd(me, a, compute_uv, full):
    """u, s, vt, info of every (m, n) member: of A^H = V S U^H where m < n."""
    batch, m, n = a.shape
    k = min(m, n)
    name = "gesvd_vectors" if compute_uv else "gesvd_values"
    # A tall member has a QR first, and any that is not square where there is no kernel for it
    tall = max(m, n) > LARGEST and max(m, n) >= 2 * k or (
        m != n and jacobi(name, me, max(m, n)) is None)
    core = k if tall else max(m, n)
    if past(me, max(m, n)) or core > LARGEST_POLAR and jacobi(name, me, core) is None:
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
    kernel = jacobi(name, me, a.shape[1])
    work = _by_polar if kernel is None else _by_jacobi
    work(me, kernel or name, a, conj_a, t, conj_t, w, conj_w, s, info)


def _by_jacobi(me, kernel, a, conj_a, t, conj_t, w, conj_w, s, info):
    _, m, n = a.shape

    def parameters(part, work):
        vectors = (*matrix(t[part]), conj_t, *matrix(w[part]), conj_w) if kernel.vectors else ()
        return (*matrix(a[part]), conj_a, *vectors, s[part].data.ptr, info[part].data.ptr, work,
                m, n, *((t.shape[2],) if kernel.vectors else ()))

    kernel(len(s), n, a.itemsize, parameters)


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
# after a number of steps that does not depend on A l' is 1. Weights for less than LEAST make its QR
# unstable, and are not used: of a Hilbert matrix of order 200 P^H A is Hermitian to 700 eps |A|,
# with weights for a hundredth of it to 6000. An A of less than full rank has no P that is found so:
# a random part of some eps of A gives it one. (Nakatsukasa, Higham, SIAM J. Sci. Comput. 35, 2013.)

LEAST = {"f": 3.5e-5, "d": 1.5e-7}  # by the real type


def _by_polar(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """As `_core`, of square members."""
    _, n, _ = a.shape
    for part in parts(len(a), 16 * n * n * a.itemsize):
        x, exponents = cupy.ndarray(a[part].shape, me.dtype), infos(len(a[part]))
        scale(a[part], x, exponents, conjugated=conj_a)
        finite = exponents != LOST
        p, found = _polar(me, x)
        gemm = getattr(blas, me.letter + "gemm_batched")
        h = gemm(0.5, p, x, trans_a=2)
        h = h + h.conj().transpose(0, 2, 1)  # what it lacks to be Hermitian is A's error in P
        values, v, failed = _gpu_eig.syevd(me, h, name == "gesvd_vectors", 1, 1)
        s[part] = cupy.maximum(values[:, ::-1], 0)
        scale(s[part, None], s[part, None], exponents, find=False)
        info[part] = ~(finite & found & (failed == 0))
        if name == "gesvd_values":
            continue
        v, nan = v[:, :, ::-1], cupy.where(finite, me.real.type(0), me.real.type(np.nan))
        for out, conjugated, x in ((t, conj_t, gemm(1, p, v)), (w, conj_w, v)):
            out[part] = (x.conj() if conjugated else x) + nan[:, None, None]


def _polar(me, a):
    """`polar` of every member, by routines of batches."""
    gemm, potrf, trsm = (getattr(module, me.letter + name) for module, name in (
        (blas, "gemm_batched"), (cholesky, "potrf_batched"), (triangular, "trsm_batched")))
    return polar(me, a, gemm, lambda z: potrf(z, 1, 1)[0], trsm, lambda w: _gpu_qr.orgqr(
        me, *_gpu_qr.geqrf(me, w, 1)[:2], 1)[0])


def polar(me, a, gemm, potrf, trsm, orthonormal):
    """The unitary factor of a matrix, or of every member, of entries up to about one, and whether
    it is unitary. `potrf` gives a lower triangle, `orthonormal` the Q of twice as many rows."""
    n = a.shape[-1]
    eps, j = float(np.finfo(me.dtype).eps), cupy.arange(n)
    x = (a + _some(me.letter, n, current_device()) * (eps * (abs(a) + 0.5 / sqrt(n)))) / n
    x = x.astype(me.dtype, copy=False)
    for p, q, r in _weights(eps, LEAST[me.real.char]):
        if r > 100:
            w = cupy.zeros((*a.shape[:-2], 2 * n, n), me.dtype, order="CF"[a.ndim == 2])
            w[..., :n, :] = x * sqrt(r)
            w[..., n + j, j] = 1
            y = orthonormal(w)
            x = gemm((p - q / r) / sqrt(r), y[..., :n, :], y[..., n:, :], q / r, x, 0, 2, 1)
        else:
            z = gemm(r, x, x, trans_a=2)
            z[..., j, j] += 1
            z = potrf(z)
            y = trsm(p - q / r, z, trsm(1, z, x, 1, 1, 2), 1, 1, 0, 0, 1)
            x = y + x * (q / r)
    z = gemm(1, x, x, trans_a=2)
    z[..., j, j] -= 1
    # What the tensor cores cut off makes X too small, all of it alike: a last step of Newton's
    return gemm(-0.5, x, z, 1, x), abs(z).max((-2, -1)) < 30 * n * eps


@cache
def _some(letter, n, device):
    """A random matrix of full rank, the same for all members."""
    real = np.random.default_rng(n).standard_normal((n, n))
    return cupy.asarray(real.astype("f" if letter in "sc" else "d"))


@cache
def _weights(eps, used):
    """p, q, r of each step X (p + q X^H X) (1 + r X^H X)^-1, made for no less than `used`."""
    least, found = eps / 2**29, []
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
