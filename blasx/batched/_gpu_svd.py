"""Singular value decompositions of a batch on the GPU: one-sided Jacobi by own kernels
(kernels/svd.cuh), the one-matrix routine in a loop above their largest order."""

import cupy

from .._tuned import LARGEST
from ._gpu import infos, matrix
from ._gpu_jacobi import jacobi


def gesvd(me, a, compute_uv, full):
    """u, s, vt, info of every (m, n) member: of A^H = V S U^H where m < n."""
    batch, m, n = a.shape
    k = min(m, n)
    name = "gesvd_vectors" if compute_uv else "gesvd_values"
    tall = max(m, n) > LARGEST and max(m, n) >= 2 * k  # has a QR first
    if jacobi(name, me, k if tall else max(m, n)) is None:
        return _each(me, a, compute_uv, full)
    s, info = cupy.ndarray((batch, k), me.real), infos(batch)
    u, vt = (cupy.zeros((batch, 1, 1), me.dtype) for _ in "uv")
    if compute_uv:
        u = cupy.ndarray((batch, m, m if full else k), me.dtype)
        vt = cupy.ndarray((batch, n if full else k, n), me.dtype)
    work = _by_qr if tall else _jacobi
    # The tall factor T and the square one W: U and (V^H)^H, or V and U of the adjoint
    if m >= n:
        work(me, name, a, 0, u, 0, vt.transpose(0, 2, 1), 1, s, info)
    else:
        work(me, name, a.transpose(0, 2, 1), 1, vt.transpose(0, 2, 1), 1, u, 0, s, info)
    return u, s, vt, info


def _jacobi(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """T S W^H of every (m, n) member of A or its conjugate, m >= n, by the kernel."""
    _, m, n = a.shape
    kernel = jacobi(name, me, m)

    def parameters(part, work):
        vectors = (*matrix(t[part]), conj_t, *matrix(w[part]), conj_w) if kernel.vectors else ()
        return (*matrix(a[part]), conj_a, *vectors, s[part].data.ptr, info[part].data.ptr, work,
                m, n, *((t.shape[2],) if kernel.vectors else ()))

    kernel(len(s), n, a.itemsize, parameters)


def _by_qr(me, name, a, conj_a, t, conj_t, w, conj_w, s, info):
    """As `_jacobi`: A = Q R, R = T' S W^H, T = Q T'."""
    from . import _gpu_qr
    batch, m, n = a.shape
    qr, tau, _ = _gpu_qr.geqrf(me, a.conj() if conj_a else a, 0)
    r = cupy.triu(qr[:, :n])
    if name == "gesvd_values":
        return _jacobi(me, name, r, 0, t, 0, w, 0, s, info)
    c = cupy.zeros(t.shape, me.dtype)
    j = cupy.arange(n, t.shape[2])
    c[:, j, j] = 1
    _jacobi(me, name, r, 0, c[:, :n, :n], 0, w, conj_w, s, info)
    q, _ = _gpu_qr.ormqr(me, "L", "N", qr, tau, c, 1)
    t[...] = q.conj() if conj_t else q


def _each(me, a, compute_uv, full):
    from ..svd import gesvd as one
    results = [one(x, compute_uv, full) for x in a]
    u, s, vt, info = (cupy.stack(x) for x in zip(*results))
    return u, s, vt, info
