"""Level 3 BLAS with a triangular, symmetric or Hermitian matrix on the GPU, by products.

A triangle is halved. What lies between its halves is a product, which kernels of ours are ahead
with (_gpu_gemm.py, _gpu_crt.py); the halves are worked on in the same way, until their order is at
most `leaf`, and cuBLAS's routine takes them. A symmetric matrix is made whole first.

Elmroth, Gustavson, Jonsson, Kagstrom: Recursive blocked algorithms and hybrid data structures for
dense matrix library software, SIAM Review 46, 2004.
"""

from .. import _cuda
from .._lapack import by_columns, by_rows, ld
from ..blas3 import _called, _gemm_gpu, _triangular_cublas


def _gemm(letter):
    return _called(letter + "gemm", letter)


def _middle(n, leaf):
    """Where a triangle is halved: a multiple of `leaf`."""
    return -(-n // (2 * leaf)) * leaf


def triangular(me, alpha, t, x, side, lower, trans, diag, leaf):
    """X := alpha op(T) X, or X op(T) (trmm), or the X of op(T) X = alpha X, X op(T) = alpha X
    (trsm), in place of a column-major x."""
    n = len(t)
    if n <= leaf:
        _triangular_cublas(me, alpha, t, x, x, side, lower, trans, diag)
        return
    h = _middle(n, leaf)
    between = t[h:, :h] if lower else t[:h, h:]
    parts = (x[:, :h], x[:, h:]) if side else (x[:h], x[h:])
    first, second = zip((t[:h, :h], t[h:, h:]), parts)
    if (bool(lower) == bool(trans)) != bool(side):  # equations of the last part have no other
        first, second = second, first

    def half(of, alpha):
        triangular(me, alpha, *of, side, lower, trans, diag, leaf)

    def product(alpha, beta):
        """What the first part of X adds to the second."""
        operands = (first[1], between, 0, trans) if side else (between, first[1], trans, 0)
        _gemm_gpu(_gemm(me.letter), alpha, *operands[:2], beta, second[1], *operands[2:])

    if me.name[1:] == "trsm":
        half(first, alpha)
        product(-1, alpha)
        half(second, 1)
    else:
        half(second, alpha)
        product(alpha, 1)
        half(first, alpha)


def symmetric_product(me, alpha, a, b, beta, c, side, lower):
    """C := alpha A B + beta C, or B A, A symmetric or, of hemm, Hermitian; False, and C is as it
    was, where there is no memory for all of A."""
    hermitian, n = me.name[1:] == "hemm", len(a)
    try:
        whole = _cuda.cupy.empty((n, n), a.dtype, order="F")
    except _cuda.cupy.cuda.memory.OutOfMemoryError:
        return False
    if not hermitian and by_rows(a):
        a, lower = a.T, not lower
    a, alone = by_columns(a), _cuda.scalar(me, 0)
    _cuda.blas(me.L + "geam", 2 if hermitian else 1, 0, n, n, _cuda.scalar(me, 1), a.data.ptr,
               ld(a), alone, a.data.ptr, ld(a), whole.data.ptr, n)
    # the rows of the transposes lie in one piece
    stored = ~_cuda.cupy.tri(n, k=-1, dtype=bool) if lower else _cuda.cupy.tri(n, dtype=bool)
    _cuda.cupy.copyto(whole.T, a.T, where=stored)
    if hermitian:
        whole.T.reshape(-1)[::n + 1].imag = 0
    _gemm_gpu(_gemm(me.letter), alpha, *((b, whole) if side else (whole, b)), beta, c, 0, 0)
    return True
