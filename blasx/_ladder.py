"""The teaching ladder: a product by gemm_naive (a thread to an element) or by gemm_tiled (tiles in
shared memory and in registers).

`python -m bench ladder` times these rungs beside those above them, which `gemm` and `gemm_batched`
use; `gemm` takes gemm_tiled where its rows say so.
"""

import numpy as np

from . import blas3
from ._tuned import constants, looked_up
from ._types import BY_DTYPE
from .batched._block import tiled_bytes

RUNGS = ("gemm_naive", "gemm_tiled")


def multiply(rung, alpha, a, b, beta, c, trans_a=0, trans_b=0):
    """C := alpha op(A) op(B) + beta C by the kernel `rung`, in place, for matrices of one type and
    any strides; NumPy arrays by the CPU's BLAS. Returns C."""
    letter = BY_DTYPE[c.dtype].letter
    if c.__class__ is np.ndarray:
        c[...] = getattr(blas3, letter + "gemm")(alpha, a, b, beta, c, trans_a, trans_b)
        return c
    from ._kernel import current_device
    from .batched._gpu_blas import operand
    (m, n), k = c.shape, a.shape[0 if trans_a else 1]
    A, B = operand(a, trans_a == 2), operand(b, trans_b == 2)
    if m and n:
        launch(plan(rung, letter, max(m, n, k), current_device()), m, n, k, alpha,
               A.T if trans_a else A, B.T if trans_b else B, beta, operand(c))
    return c


def launch(plan, m, n, k, alpha, A, B, beta, C):
    """C := alpha A B + beta C, m x n, k terms, for operands as `batched._gpu_blas` describes."""
    from ._kernel import pack
    from .batched._gpu_blas import bits
    if C.columns != 1 and C.rows == 1:  # C^T = B^T A^T
        A, B, C, m, n = B.T, A.T, C.T, n, m
    kernel, tile, threads, shared = plan
    numbers = (m, n, k if alpha != 0 else 0, A.at, A.rows, A.columns, A.conjugated, B.at, B.rows,
               B.columns, B.conjugated, C.at, C.rows, C.columns, *bits(alpha), *bits(beta))
    kernel.launch(-(-m // tile[0]) * -(-n // tile[1]), 1, *threads, pack(*numbers), shared)


@looked_up
def plan(rung, letter, n, device):
    """(kernel, tile of a block, its threads, its bytes of shared memory) for order n"""
    from ._kernel import Kernel, gpu
    v = constants(rung, letter, n, gpu(device))
    kernel = Kernel(rung, letter, **v)
    if rung == "gemm_naive":
        return kernel, (v["DIM_Y"], v["DIM_X"]), (v["DIM_X"], v["DIM_Y"]), 0
    return kernel, (v["BM"], v["BN"]), (32 * v["WARPS"], 1), tiled_bytes(letter, v)
