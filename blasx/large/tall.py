"""Least squares and minimum norms with a tall matrix on the GPU, by Cholesky's QR twice.

    G = A^H A = R1^H R1,   Q1 = A R1^-1,   Q1^H Q1 = R2^H R2,   Q = Q1 R2^-1,   R = R2 R1:

products and triangular solves over the length of A, where reflectors take its columns one at a
time. R1 has lost cond(A)^2 eps of itself, and Q1 that much of its orthogonality; R2 brings it back,
if |Q1^H Q1 - I| is below NEAR. The host looks whether it is, and if not A is left as it was.

What gels returns are reflectors all the same (kernels/orhr_top.cu): Q - (S; 0) = Y U. Below the top
Y = Q1 (U R2)^-1, so that Q1 is passed over once for both. With c = Q^H b and w = Y1^-1 (b1 - S c)

    x = R^-1 c,   H^H b = (S c; b2 - Y2 w),

whose rows below the top have the norm of the residual; and R of the reflectors is S R.

A is read or written ten times, m n numbers each: 200000 x 64 of double precision 1.0 GB, 0.21 ms.

Yamamoto, Nakatsukasa, Yanagisawa, Fukaya, ETNA 44 (2015) 306; Ballard, Demmel, Grigori, Jacquelin,
Knight, Nguyen, Solomonik: Reconstructing Householder vectors from TSQR, JPDC 85 (2015) 3.
"""

import cupy

from .. import _cuda, _trace
from .._kernel import current_device, gpu, kernel_of, pack
from .._tuned import capitals, looked_up, row
from ..batched._gpu_cholesky import potrf

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
        not cupy.cuda.get_current_stream().is_capturing())


def gels(me, a, x, fits):
    """Overwrite column-major A by its reflectors and R, and X by the least squares solutions of
    A X = B if it `fits` X, else by the minimum norm solutions of A^H X = B. False, and both are as
    they were, where A is too ill-conditioned."""
    solver = _Tall(me, a)
    R1, failed = solver.cholesky(solver.inner(a, a))
    q = a.copy(order="F")
    solver.solve(R1, q, right=True)
    G = solver.inner(q, q)
    far = cupy.linalg.norm(G - cupy.eye(len(G), dtype=me.dtype))
    R2, failed_too = solver.cholesky(G)
    good = (failed == 0) & (failed_too == 0) & (far <= NEAR)
    _trace.note(synced=1)
    if not bool(good):
        return False
    solver.finish(a, q, R1, R2, x, fits)
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

    def solve(self, t, x, right=False, trans=0, lower=False, unit=0):
        """X := op(T)^-1 X, or X T^-1, in place."""
        t = t if t.flags.f_contiguous else cupy.asfortranarray(t)
        _cuda.blas(self.me.L + "trsm", _cuda.RIGHT if right else _cuda.LEFT, _cuda.fill(lower),
                   trans, unit, *x.shape, self.one, t.data.ptr, _cuda.ld(t), x.data.ptr,
                   _cuda.ld(x))

    def finish(self, a, q, R1, R2, x, fits):
        """From Q1 = `q`, R1 and R2: reflectors and R to `a`, solutions to `x`."""
        n = self.n
        top = q[:n].copy(order="F")
        self.solve(R2, top, right=True)
        signs = cupy.empty(n, self.me.dtype)
        values = self.kernel.constants
        self.kernel.launch(1, 1, 32 * values["WARPS"], 1, pack(
            top.data.ptr, n, n, signs.data.ptr), top.itemsize * n * (n + 1))
        R = R2 @ R1
        if fits and x.size:
            c = self.inner(q, x)
            self.solve(R2, c, trans=ADJOINT)
            w = x[:n] - signs[:, None] * c
            self.solve(top, w, lower=True, unit=1)
            x[:n] = c
            self.solve(R, x[:n])
        elif x.size:
            self.solve(R1, x[:n], trans=ADJOINT)
            y = x[:n].copy(order="F")
            self.solve(R2, y, trans=ADJOINT)
            self.solve(R2, y)
            self.gemm(0, q, y, self.zero, x)
        self.solve(cupy.triu(top) @ R2, q[n:], right=True)
        if fits and x.size and self.m > n:
            self.gemm(0, q[n:], w, self.one, x[n:], self.minus)
        a[n:] = q[n:]
        a[:n] = cupy.tril(top, -1) + signs[:, None] * R
