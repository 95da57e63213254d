"""Singular values and vectors of one large matrix on the GPU: A = P H = (P V) S V^H, where P is
unitary and H = V S V^H.

As of members of a batch (batched/_gpu_svd.py), but in double precision W = (sqrt(r) X; I) gets its
orthonormal columns by Cholesky's QR twice, of products and triangular solves. The weights keep
cond(W)^2 below 2e9: the first Q is orthonormal to 2e9 eps, and the second to eps. A matrix that is
not square has a QR first.

Five steps of about 20 n^3 operations, four of 5 n^3, and an eigenproblem.
"""

import cupy
import numpy as np

from .._kernel import current_device, gpu
from .._tuned import looked_up, row
from ..batched._gpu import LOST, infos, scale
from ..batched._gpu_svd import polar
from ..blas3 import gemm, trsm
from ..cholesky import potrf
from ..eig import heevd, syevd
from ..qr import geqrf, orgqr, ormqr, ungqr, unmqr


@looked_up
def _row(letter, n, device):
    return row("gesdd_polar", letter, n, gpu(device))


def serves(me, n):
    """The tuned row if this was measured to be faster than cuSOLVER for n columns."""
    return _row(me.letter, n, current_device())


def gesdd(me, a, columns, by_cholesky):
    """U with so many columns, S, V^H and info of column-major A, which has at least as many rows as
    columns and is destroyed."""
    (m, n), tall = a.shape, a.shape[0] > a.shape[1]
    if tall:
        qr, tau = geqrf(a, overwrite_a=1)[:2]
        a = cupy.triu(qr[:n])
    x, exponents = cupy.empty((1, n, n), me.dtype).swapaxes(1, 2), infos(1)
    scale(a[None], x, exponents)
    finite = exponents[0] != LOST
    p, found = polar(me, x[0], gemm, lambda z: potrf(z, 1)[0], trsm,
                     twice_by_cholesky if by_cholesky else by_reflectors)
    h = gemm(0.5, p, x[0], trans_a=2)
    s, v, failed = (heevd if me.is_complex else syevd)(h + h.conj().T, 1, 1, overwrite_a=1)
    s, v = cupy.maximum(s[::-1], 0).reshape(1, 1, n), v[:, ::-1]
    scale(s, s, exponents, find=False)
    v = v + cupy.where(finite, me.real.type(0), me.real.type(np.nan))
    u = gemm(1, p, v)
    if tall:
        c = cupy.zeros((m, columns), me.dtype, order="F")
        j = cupy.arange(n, columns)
        c[:n, :n], c[j, j] = u, 1
        u = (unmqr if me.is_complex else ormqr)("L", "N", qr, tau, c, overwrite_c=1)[0]
    return u, s[0, 0], v.conj().T, (~(finite & found & (failed == 0))).astype(np.int32)


def twice_by_cholesky(w):
    """The Q of a QR of column-major W, which it overwrites."""
    for _ in "12":
        w = trsm(1, potrf(gemm(1, w, w, trans_a=2))[0], w, 1, overwrite_b=1)
    return w


def by_reflectors(w):
    """The same by Householder's."""
    return (ungqr if w.dtype.kind == "c" else orgqr)(*geqrf(w, overwrite_a=1)[:2], overwrite_a=1)[0]
