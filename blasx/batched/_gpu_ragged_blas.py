"""Products and triangular solves of members of different sizes on the GPU (_gpu_ragged.py): every
product by tiles, gemm_split or gemm_block, triangles up to order 1024 by trsm_lines, trsm_small
and trsm_block."""

import cupy
import numpy as np

from .._kernel import current_device
from .._ragged import Ragged
from .._spaces import MOST
from . import _gpu_triangular
from ._gpu_blas import tiled
from ._gpu_ragged import (
    Call,
    extents,
    lies_across,
    like,
    lines,
    outputs,
    product,
    serve_triangles,
)


def gemm(me, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c):
    left, right = extents(a), extents(b)
    (m, k), n = left.T[::-1] if trans_a else left.T, right[:, 0 if trans_b else 1]
    x = c if overwrite_c and c is not None else empty(a, np.stack((m, n), 1))
    c, beta = (x, 0) if c is None else (c, beta)
    k = k * (alpha != 0)
    device = current_device()
    of_a, of_b = lines(a, trans_a), lines(b, trans_b)

    def plan(n, *across):
        return tiled(me.letter, n, device, across),

    call = Call(me, m * n > 0, plan, np.maximum(np.maximum(m, n), k),
                *map(lies_across, (of_a, of_b)))
    m, n, k = call.sizes(m), call.sizes(n), call.sizes(k)
    of_a, of_b = call.add(of_a), call.add(of_b)
    of_c, of_x = call.matrices(c), call.matrices(x)

    launch = product(m, n, k, 0, (of_a, trans_a == 2 and me.is_complex, of_b,
                                  trans_b == 2 and me.is_complex, of_c, of_x), alpha, beta)
    call.serve("gemm_split", launch)
    call.serve("gemm_block", launch)
    call.run()
    return like(a, x)


def empty(a, shapes):
    """One new buffer for members of these shapes."""
    return Ragged.empty_like(a.data if a.__class__ is Ragged else a[0] if a else cupy.empty(0),
                             shapes)


def trsm(me, alpha, a, b, side, lower, trans, diag, overwrite_b):
    x, shapes = outputs(b, overwrite_b), extents(b)
    order, count = shapes[:, side], shapes[:, 1 - side]
    if alpha == 0:
        for y in x:
            y.fill(0)
        return like(b, x)

    def plan(n, count):
        return None if n > MOST else (_gpu_triangular.serving(me, "trsm", n, count),)

    call = Call(me, shapes.prod(1) > 0, plan, order, count)
    serve_triangles(call, (a, b, x), order, (call.sizes(order), call.sizes(count)), side, lower,
                    trans, alpha, diag=diag)
    call.run()
    call.larger(lambda a, b: (_gpu_triangular.triangular(
        me, "trsm", alpha, a, b, side, lower, trans, diag, 1), 0), (a, b), (x,))
    return like(b, x)
