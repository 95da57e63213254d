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
    (m, n), k = c.shape, a.shape[0 if trans_a else 1]
    if m and n:
        launch(plan(rung, letter, max(m, n, k), current_device()), m, n, k, alpha,
               *(place(x, *x.strides[::-1 if trans else 1], trans == 2)
                 for x, trans in ((a, trans_a), (b, trans_b))), beta, place(c, *c.strides))
    return c


def place(x, row, column, conjugated=0):
    """(address, strides of rows and columns in elements, conjugated or not) of an array with these
    strides in bytes."""
    size = x.itemsize
    return x.data.ptr, row // size, column // size, int(conjugated)


def launch(plan, m, n, k, alpha, a, b, beta, c, marks=0):
    """C := alpha A B + beta C, m x n, k terms, each where `place` says; of a plan of `marked`
    elements those of which `marks`, an address, has bits, 16 of a row of C in a word."""
    from ._kernel import pack
    from .batched._gpu_blas import bits
    if c[2] != 1 and c[1] == 1:  # C^T = B^T A^T
        a, b, m, n = (b[0], b[2], b[1], b[3]), (a[0], a[2], a[1], a[3]), n, m
        c = c[0], c[2], c[1]
    kernel, tile, threads, shared = plan
    kernel.launch(-(-m // tile[0]) * -(-n // tile[1]), 1, *threads, pack(
        m, n, k if alpha != 0 else 0, *a, *b, *c[:3], *bits(alpha), *bits(beta), marks), shared)


@looked_up
def plan(rung, letter, n, device, marked=False):
    """(kernel, tile of a block, its threads, its bytes of shared memory) for order n"""
    from ._kernel import Kernel, gpu
    v = constants(rung, letter, n, gpu(device))
    kernel = Kernel(rung, letter, **v, **{"MARKED": 1} if marked else {})
    if rung == "gemm_naive":
        return kernel, (v["DIM_Y"], v["DIM_X"]), (v["DIM_X"], v["DIM_Y"]), 0
    return kernel, (v["BM"], v["BN"]), (32 * v["WARPS"], 1), tiled_bytes(letter, v)
