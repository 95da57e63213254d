"""Least squares and minimum norms with a tall matrix on the GPU, by Cholesky's QR twice.

    G = A^H A = R1^H R1,   Q1 = A R1^-1,   Q1^H Q1 = R2^H R2,   Q = Q1 R2^-1,   R = R2 R1:

products and triangular solves over the length of A, where reflectors take its columns one at a
time. R1 has lost cond(A)^2 eps of itself, and Q1 that much of its orthogonality; R2 brings it back,
if |Q1^H Q1 - I| is below NEAR. The host looks whether it is, when it has queued all that leaves A
and B as they were, and goes no further if not.

What gels returns are reflectors all the same (kernels/orhr_top.cu): Q - (S; 0) = Y U. Below the top
Y = Q1 (U R2)^-1, so that Q1 is passed over once for both. With c = Q^H b and w = Y1^-1 (b1 - S c)

    x = R^-1 c,   H^H b = (S c; b2 - Y2 w),

whose rows below the top have the norm of the residual; and R of the reflectors is S R.

A and Q1 are read or written eight times, m n numbers each: 200000 x 64 of double precision 0.8 GB,
0.17 ms.

Yamamoto, Nakatsukasa, Yanagisawa, Fukaya, ETNA 44 (2015) 306; Ballard, Demmel, Grigori, Jacquelin,
Knight, Nguyen, Solomonik: Reconstructing Householder vectors from TSQR, JPDC 85 (2015) 3.
"""

import cupy
import numpy as np

from .. import _cuda, _trace
from .._kernel import current_device, gpu, kernel_of, pack
from .._tuned import capitals, looked_up, row
from ..batched._gpu_cholesky import potrf
from ..batched._gpu_triangular import launch

ADJOINT = 2  # cuBLAS's
NEAR = 0.1   # in Frobenius' norm


@looked_up
def _top_on(letter, n, device):
    found = row("orhr_top", letter, n, gpu(device))
    return found and (kernel_of("orhr_top", letter, **capitals(found)), found)


def serves(me, m, n, native):
    """True if `gels` is for so many rows and columns: where it is faster, or wherever it can."""
    _, found = _top_on(me.letter, n, current_device()) or (None, None)
    return bool(found) and m >= found["tall"] * n and (native or not found.get("cusolver")) and (
        not _cuda.graph_forgets())


def gels(me, a, x, fits):
    """Overwrite column-major A by its reflectors and R, and X by the least squares solutions of
    A X = B if it `fits` X, else by the minimum norm solutions of A^H X = B. False, and both are as
    they were, where A is too ill-conditioned."""
    t = _Tall(me, a)
    n = t.n
    R1, failed = t.cholesky(t.inner(a, a))
    q = t.solve(R1, a, cupy.empty(a.shape, me.dtype, order="F"), right=True)
    G = t.inner(q, q)
    R2, _ = t.cholesky(G)
    top = t.solve(R2, q[:n], cupy.empty((n, n), me.dtype, order="F"), right=True)
    signs = cupy.empty(n, me.dtype)
    t.kernel.launch(1, 1, 32 * t.kernel.constants["WARPS"], 1, pack(
        top.data.ptr, n, n, signs.data.ptr), top.itemsize * n * (n + 1))
    R, last = R2 @ R1, cupy.triu(top) @ R2
    if fits and x.size:
        c = t.inner(q, x)
        t.solve(R2, c, c, trans=ADJOINT)
        w = x[:n].copy(order="F")  # what operators make is by rows
        w -= signs[:, None] * c
        t.solve(top, w, w, lower=True, unit=1)
        t.solve(R, c, c)
    elif x.size:
        y = x[:n].copy(order="F")
        for r, trans in ((R1, ADJOINT), (R2, ADJOINT), (R2, 0)):
            t.solve(r, y, y, trans=trans)
    _trace.note(synced=1)
    if int(failed) or not np.linalg.norm(G.get() - np.eye(n)) <= NEAR:
        return False
    if t.m > n:
        t.solve(last, q[n:], a[n:], right=True)
    a[:n] = cupy.tril(top, -1) + signs[:, None] * R
    if fits and x.size:
        x[:n] = c
        if t.m > n:
            t.gemm(0, a[n:], w, t.one, x[n:], t.minus)
    elif x.size:
        t.gemm(0, q, y, t.zero, x)
    return True


class _Tall:
    """Products and solves with columns as long as those of A."""

    def __init__(self, me, a):
        self.me, (self.m, self.n) = me, a.shape
        self.kernel, found = _top_on(me.letter, self.n, current_device())
        self.chunk = found["chunk"]
        self.zero, self.one, self.minus = (_cuda.scalar(me, z) for z in (0.0, 1.0, -1.0))

    def inner(self, x, y):
        """X^H Y, of pieces of `chunk` rows side by side, then added up: the same bits always."""
        (m, p), q = x.shape, y.shape[1]
        whole, rest = divmod(m, self.chunk)
        parts = cupy.empty((whole + (rest > 0), q, p), self.me.dtype)  # each by columns
        steps = _cuda.ld(x), self.chunk, y.data.ptr, _cuda.ld(y), self.chunk
        if whole:
            _cuda.blas(self.me.L + "gemmStridedBatched", ADJOINT, 0, p, q, self.chunk, self.one,
                       x.data.ptr, *steps, self.zero, parts.data.ptr, p, p * q, whole)
        if rest:
            below = whole * self.chunk
            self.gemm(ADJOINT, x[below:], y[below:], self.zero, parts[whole].T)
        return parts.sum(axis=0).T

    def gemm(self, trans, a, b, beta, c, alpha=None):
        """C := alpha op(A) B + beta C, all by columns; alpha 1 unless said."""
        k = a.shape[0] if trans else a.shape[1]
        _cuda.blas(self.me.L + "gemm", trans, 0, *c.shape, k, alpha or self.one, a.data.ptr,
                   _cuda.ld(a), b.data.ptr, _cuda.ld(b), beta, c.data.ptr, _cuda.ld(c))

    def cholesky(self, G):
        """(upper R, info)"""
        c, info = potrf(self.me, G[None], 0, 0)
        return cupy.triu(c[0]), info[0]

    def solve(self, t, b, x, right=False, trans=0, lower=False, unit=0):
        """X := op(T)^-1 B, or B T^-1; X may be B."""
        launch(self.me, "trsm", 1.0, t, b[None], x[None], int(right), int(lower), trans, unit)
        return x
