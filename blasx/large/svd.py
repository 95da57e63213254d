"""Singular values and vectors of one large matrix on the GPU: A = P H = (P V) S V^H, where P is
unitary and H = V S V^H.

As of members of a batch (batched/_gpu_svd.py). A matrix that is not square has a QR first.

Five steps of about 14 n^3 operations, three of 5 n^3, and an eigenproblem.
"""

import cupy
import numpy as np

from .._kernel import current_device, gpu
from .._tuned import looked_up, row
from ..batched._gpu import LOST, infos, scale
from ..batched._gpu_svd import polar_factors
from ..blas3 import gemm, trsm
from ..cholesky import potrf
from ..eig import heevd, syevd
from ..qr import geqrf, ormqr, unmqr


@looked_up
def _row(letter, n, device):
    return row("gesdd_polar", letter, n, gpu(device))


def serves(me, n):
    """The tuned row if this was measured to be faster than cuSOLVER for n columns."""
    return _row(me.letter, n, current_device())


def gesdd(me, a, columns):
    """U with so many columns, S, V^H and info of column-major A, which has at least as many rows as
    columns and is destroyed."""
    (m, n), tall = a.shape, a.shape[0] > a.shape[1]
    if tall:
        qr, tau = geqrf(a, overwrite_a=1)[:2]
        a = cupy.triu(qr[:n])
    x, exponents = cupy.empty((1, n, n), me.dtype).swapaxes(1, 2), infos(1)
    scale(a[None], x, exponents)
    finite = exponents[0] != LOST
    p, h, found = polar_factors(me, x[0], gemm, trsm, potrf)
    s, v, failed = (heevd if me.is_complex else syevd)(h, 1, 1, overwrite_a=1)
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
