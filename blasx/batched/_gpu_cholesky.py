"""Cholesky of a batch on the GPU: own kernels as far as the tuned rows go, of large members by
panels, with solves and products between them; the one-matrix routine in a loop above."""

import cupy

from .. import cholesky
from .._kernel import current_device, gpu
from .._spaces import MOST
from .._tuned import LARGEST, looked_up, row
from ._block import (
    above_bytes,
    cholesky_bytes,
    inverse_bytes,
    posv_bytes,
    potrs_bytes,
    square_bytes,
)
from ._gpu import (
    INT,
    Teams,
    blocks,
    columns,
    infos,
    kernel,
    launch_dealt,
    like,
    matrix,
    noted,
    nrhs,
    solve_by_lines,
    solving,
    stacked,
    unsolved,
)
from ._gpu_blas import HERMITIAN, operand, product, symm
from ._gpu_triangular import launch

SIDES = 8  # right-hand sides of a block of kernels/potrs_block.cu


def potrf(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is that of `a`."""
    batch, n, _ = a.shape
    if width := width_of(me.letter, n, current_device()):
        return _potrf_by_panels(me, a, lower, overwrite_a, width)
    # In place a line brings, and takes back, twice as much as is to be read and written
    block = factoring(me, n, plain=overwrite_a and n > LARGEST)
    if block is None:
        return _each(lambda x: cholesky.potrf(x, lower, 0, 1), a, overwrite_a)
    c, upper = like(a, overwrite_a), not lower
    info = infos(batch, zero=not a.size)
    if a.size:
        of = *matrix(a, upper), *matrix(c, upper), info.data.ptr, n
        if block.__class__ is Teams:
            block(batch, *of)
        else:
            launch_factoring(block, me, batch, n, c is a, *of)
    return c, info


def factoring(me, n, plain=False, anywhere=False):
    """The kernel that factors members of order n in one launch, or None; `plain`: not one that
    takes members as lines; `anywhere`: as _by_columns has it."""
    return (_by_columns("potrf_columns", me, n, anywhere)
            or kernel("potrf_small", me, n, plain=plain) or blocks("potrf_block", me, n))


def _by_columns(name, me, n, anywhere):
    """The Blocks of Cholesky by columns, or None. Where members begin `anywhere`, as in one buffer,
    those of even orders go by the row of the odd ones, if there is one, and so in fewer launches:
    the bits are the same, and their rows are rarely in pairs."""
    found = blocks(name, me, n)
    return anywhere and found and blocks(name, me, n - 1 + n % 2) or found


def launch_factoring(block, me, members, n, in_place, *of):
    """Launch a kernel that gives a block to each member, of order n at most."""
    if block.kernel.name == "potrf_columns":
        block(members, 0 if in_place else above_bytes(me.dtype, block.values), *of)
    else:
        block(members, cholesky_bytes(me.dtype, n, block.values), *of, 0)


def launch_solving(block, me, members, n, in_place, *of):
    """The same of one that solves, too."""
    if block.kernel.name == "posv_columns":
        block(members, 0 if in_place else above_bytes(me.dtype, block.values), *of)
    else:
        block(members, posv_bytes(me.dtype, n), *of)


@looked_up
def width_of(letter, n, device):
    """The columns of a panel of members of order n, all about as wide; None: no panels."""
    found = row("potrf_panels", letter, n, gpu(device))
    return found and -(-n // (-(-n // found["NB"]) * 8)) * 8


def _potrf_by_panels(me, a, lower, overwrite_a, width):
    """The block on the diagonal, the rows below by triangular solves, and what these take off the
    columns to their right. Members that failed keep their info; what is left of them means
    nothing."""
    batch, n, _ = a.shape
    c, info = like(a, overwrite_a), infos(batch, zero=not a.size)
    if not a.size:
        return c, info
    if c is not a:
        c[...] = a
    left = c if lower else c.swapaxes(1, 2)
    for k in range(0, n, width):
        end = min(k + width, n)
        top, below, right = left[:, k:end, k:end], left[:, end:, k:end], left[:, end:, end:]
        block, of = blocks("potrf_block", me, end - k), matrix(top)
        block(batch, cholesky_bytes(me.dtype, end - k, block.values), *of, *of, info.data.ptr,
              end - k, k)
        if end < n:
            launch(me, "trsm", 1, top, below, below, 1, 1, 2, 0, info, split=True)
            x, o = operand(below), operand(right)
            product(me, n - end, n - end, end - k, x, x.T.conj, o, o, -1, 1, batch, HERMITIAN)
    return c, info


def posv(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    batch, n, _ = a.shape
    block = at_once(me, n, nrhs(b), plain=overwrite_a and n > LARGEST)
    if block is None:
        c, info = potrf(me, a, lower, overwrite_a)
        x, _ = potrs(me, c, b, lower, overwrite_b, info)
        return c, x, info
    c, x, upper = like(a, overwrite_a), like(b, overwrite_b), not lower
    info = infos(batch, zero=not a.size)
    if a.size:
        of = (*matrix(a, upper), *matrix(c, upper), *columns(b), *columns(x), info.data.ptr, upper,
              n, nrhs(b))
        if block.__class__ is Teams:
            block(batch, *of)
        else:
            launch_solving(block, me, batch, n, c is a, *of)
    return c, x, info


def at_once(me, n, sides, plain=False, singly=False, anywhere=False):
    """The kernel that factors members of order n and solves for so many right-hand sides, or None:
    past LARGEST it is for one. `plain`, `singly`: as `kernel` has them; `anywhere`: as
    _by_columns."""
    one, small = sides == 1, n <= LARGEST or sides == 1
    return ((_by_columns("posv_columns", me, n, anywhere) if one else None)
            or (kernel("posv_small", me, n, plain=plain, singly=singly) if small else None)
            or (blocks("posv_block", me, n) if one else None))


def _each(one, a, overwrite_a):
    """Past the tuned rows: the one-matrix routine `one`, in place, in a loop."""
    c, info = like(a, overwrite_a), infos(len(a), zero=True)
    if c is not a:
        c[...] = a
    for i in range(len(a) if a.size else 0):
        c[i], info[i] = one(c[i])
    return c, info


def potrs(me, c, b, lower, overwrite_b, failed=None):
    """Solve with the Cholesky factors of every member: x, info. One launch as far as the tuned rows
    go, else two triangular solves; where `failed` is not zero, b."""
    n, sides = c.shape[1], nrhs(b)
    lines, warp = (solving(name, me, n, sides) for name in ("potrs_lines", "potrs_warp"))
    small = n <= LARGEST and failed is None and not lines and not warp and b.size
    x, info = like(b, overwrite_b), infos(len(b), zero=not small)
    if not b.size:
        return x, info
    operands = *matrix(c, not lower), *columns(b), *columns(x)
    of = *operands, 0 if failed is None else failed.data.ptr, not lower, n, sides
    if lines:
        solve_by_lines(lines, me.dtype, len(b), n, sides, *of)
        return x, info
    if warp:
        warp(len(b), square_bytes(me.dtype, n), *of)
        return x, info
    if small:
        kernel("potrs_small", me, n)(len(b), *operands, info.data.ptr, not lower, n, sides)
        return x, info
    if block := solving("potrs_block", me, n, sides):
        slabs = -(-sides // SIDES)
        block(len(b) * slabs, potrs_bytes(me.dtype, n), *of, slabs)
        return x, info
    y, out = stacked(b), stacked(x)
    if n > MOST:
        for i in range(len(b)):
            out[i] = _one_potrs(c[i], y[i], lower)
        return (x if failed is None else unsolved(b, x, failed, overwrite_b)), info
    for trans in (0, 2) if lower else (2, 0):
        launch(me, "trsm", 1, c, y, out, 0, lower, trans, 0, failed)
        y = out
    return x, info


def _one_potrs(c, b, lower):
    from ..cholesky import potrs as one
    return one(c, b, lower)[0]


def potri(me, c, lower, overwrite_c):
    """The inverse of every member from its factor, the `lower` triangle: inv_a, info."""
    batch, n, _ = c.shape
    if n > MOST:
        return _each(lambda x: cholesky.potri(x, lower, 1), c, overwrite_c)
    if not _inverting(me, n):
        return _potri_by_parts(me, c, lower, overwrite_c)
    x, info = like(c, overwrite_c), infos(batch, zero=not c.size)
    if c.size:
        _invert(me, c, x, not lower, info)
    return x, info


def _inverting(me, n):
    """The kernel that inverts members of order n in one launch, or None."""
    return blocks("potri_small", me, n) or blocks("potri_shared", me, n)


def _invert(me, c, x, upper, info):
    batch, n, _ = c.shape
    block, of = _inverting(me, n), (*matrix(c, upper), *matrix(x, upper), info.data.ptr, n)
    if block.kernel.name == "potri_small":
        launch_dealt(me, block, batch, n, *of)
    else:
        block(batch, inverse_bytes(me.letter, block.values), *of)


def _potri_by_parts(me, c, lower, overwrite_c):
    """The diagonal blocks inverted, and from these the inverse by products."""
    batch, n, _ = c.shape
    x, info = like(c, 0), infos(batch, zero=not c.size)
    if not c.size:
        return x, info
    width = _part(me, n)
    parts = cupy.ndarray((-(-n // width), batch), INT)
    # The transpose of an upper factor is conj(L), and its inverse that of the transpose.
    factor, inverse = (y if lower else y.swapaxes(1, 2) for y in (c, x))
    _invert_by_parts(me, factor, inverse, parts, width)
    block = blocks("potri_parts", me, n)
    block(-(-n // block.values["LINES"]) * batch, 0, *matrix(factor), *matrix(inverse),
          parts.data.ptr, len(parts), width, info.data.ptr, overwrite_c, n, batch)
    return (c if overwrite_c else x), info


def _part(me, n):
    """The order of the diagonal blocks, a multiple of 8: the fewest that are no larger than a tuned
    row says, and served by one launch."""
    fewest = -(-n // noted("potri_parts", me, n, "part"))
    return next(width for width in (-(-n // (8 * parts)) * 8 for parts in range(fewest, n))
                if _inverting(me, width))


def _invert_by_parts(me, c, x, infos, width):
    """x := the inverse from the lower triangle of c, above the diagonal anything; infos of the
    diagonal blocks.

    Of a factor with the blocks L, M; 0, N the inverse has N^-H N^-1 =: P below on the right, -P W
    beside it, W = M L^-1, and L^-H L^-1 + W^H P W above.
    """
    if len(infos) == 1:
        return _invert(me, c, x, 0, infos[0])
    batch, n, _ = c.shape
    half = len(infos) // 2
    k = half * width
    _invert_by_parts(me, c[:, :k, :k], x[:, :k, :k], infos[:half], width)
    _invert_by_parts(me, c[:, k:, k:], x[:, k:, k:], infos[half:], width)
    w, left = cupy.ndarray((batch, n - k, k), me.dtype), x[:, k:, :k]
    launch(me, "trsm", 1, c[:, :k, :k], c[:, k:, :k], w, 1, 1, 0, 0)
    symm(me, -1, x[:, k:, k:], w, 0, left, batch, 0, 1, me.is_complex, 1)
    top = operand(x[:, :k, :k])
    product(me, k, k, n - k, operand(w.swapaxes(1, 2), me.is_complex), operand(left), top, top, -1,
            1, batch)
