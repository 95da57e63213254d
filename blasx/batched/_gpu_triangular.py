"""Triangular solves and products of a batch on the GPU: own kernels up to order 1024, the
one-matrix routines in a loop above."""

from functools import cache
from struct import pack as packed
from struct import unpack

from .._spaces import MOST
from ._block import small_triangle_bytes, triangle_bytes
from ._gpu import Blocks, blocks, for_columns, like, matrix, noted, solve_by_lines, solving


def triangular(me, routine, alpha, a, b, side, lower, trans, diag, overwrite_b):
    """trsm or trmm of every member: x."""
    x = like(b, overwrite_b)
    if alpha == 0:
        x.fill(0)
    elif b.shape[1 + side] > MOST:
        from .. import blas3
        one = getattr(blas3, me.letter + routine)
        for i in range(len(b)):
            x[i] = one(alpha, a if a.ndim == 2 else a[i % len(a)], b[i], side, lower, trans, diag)
    elif x.size:
        launch(me, routine, alpha, a, b, x, side, lower, trans, diag)
    return x


def launch(me, routine, alpha, a, b, x, side, lower, trans, diag, info=None, split=False):
    """x := the solution or product; where trsm's `info` is not zero, b. `split`: single precision
    by the tensor cores, where a row says so (kernels/trsm_split.cu)."""
    size, order, shared = a.itemsize, a.shape[-1], a.ndim == 2 or len(a) == 1
    # X op(A) = B is op(A)^T X^T = B^T; what strides cannot do is the conjugate
    p, row, col, next_ = matrix(a[None] if a.ndim == 2 else a, (trans != 0) != side)
    if lower == ((trans != 0) != side):  # upper: lower with rows and columns reversed
        p, row, col = p + (order - 1) * (row + col) * size, -row, -col
    of, by_columns = [p, row, col, 0 if shared else next_], False
    for c in (b, x):
        p, row, col, next_ = matrix(c, side)
        by_columns |= abs(col) >= abs(row)
        if lower == ((trans != 0) != side):
            p, row = p + (order - 1) * row * size, -row
        of += p, row, col, next_
    alpha = complex(alpha)
    of += unpack("2q", packed("2d", alpha.real, alpha.imag))
    if routine == "trsm":
        of.append(0 if info is None else info.data.ptr)
    batch, count = len(b), b.shape[2 - side]
    of += order, count, trans == 2, diag
    block = serving(me, routine, order, count, split)
    name, v = block.kernel.name, block.values
    if name == "trsm_lines":
        solve_by_lines(block, a.dtype, batch, order, count, *of)
    elif name.endswith("_small"):
        warps = -(-count // (32 * v["C"]))
        if warps < v["LANES"] // 32:
            block = narrower(block, warps)
            v = block.values
        slabs = -(-count // (v["LANES"] * v["C"]))
        block(-(-batch * slabs * v["LANES"] // block.threads),
              small_triangle_bytes(me.letter, v, by_columns), *of, slabs, by_columns, batch * slabs)
    else:
        slabs = -(-count // (v["R"] * v["WARPS"]))
        block(batch * slabs, triangle_bytes(name, me.letter, order, v), *of, slabs)


def serving(me, routine, order, count, split=False):
    """The kernel of trsm or trmm for triangles of this order and so many columns."""
    if routine == "trsm" and not split and (lines := solving("trsm_lines", me, order, count)):
        return lines
    name = "trsm_split" if split and blocks("trsm_split", me, order) else routine + "_block"
    return for_columns(routine + "_small", me, order, count) or by_strips(me, name, order, count)


def by_strips(me, name, order, count):
    """That kernel for triangles of this order and so many columns: `narrow` of a row says for how
    many strips of these a block is faster with no more warps than share them evenly."""
    block, few = for_columns(name, me, order, count), noted(name, me, order, "narrow")
    v = block.values
    strips = -(-count // v["R"])
    warps = -(-strips // -(-strips // v["WARPS"]))
    if few is None:  # not measured
        few = range(1, v["WARPS"] // 2 + 1) if v["RESIDENT"] else ()
    return narrower(block, warps) if warps < v["WARPS"] and strips in few else block


@cache
def narrower(block, warps):
    """The same for few columns: with so many warps to a block, as many to a multiprocessor, and the
    same bits, for warps have nothing of each other's."""
    v, kernel = block.values, block.kernel
    fewer = {"WARPS": warps, "BLOCKS": min(32, v["BLOCKS"] * v["WARPS"] // warps)}
    if "LANES" in v:
        fewer["LANES"] = 32 * warps
    return Blocks(kernel.name, kernel.letter, v | fewer)
