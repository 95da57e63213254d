"""QR of a batch on the GPU: own kernels for members up to 1024 x 1024, or what a GPU's blocks have
room for, the one-matrix routines in a loop above."""

import cupy
import numpy as np

from .._kernel import current_device, gpu
from ._block import (
    SIDES_OF_GELS,
    STRIP,
    dealt,
    gels_bytes,
    gels_room,
    left_bytes,
    panel_bytes,
    passing_bytes,
    passing_numbers,
    qr_bytes,
    small_q_bytes,
    small_q_numbers,
    strip_bytes,
    teams_of,
)
from ._gpu import (
    INT,
    blocks,
    by_columns,
    columns,
    finish,
    for_columns,
    in_lines,
    infos,
    keeping,
    like,
    matrix,
    noted,
    nrhs,
    past,
    scale,
    solving,
    stacked,
)
from ._gpu_jacobi import MEMORY
from ._gpu_triangular import narrower


def geqrf(me, a, overwrite_a):
    """QR of every (m, n) member: qr, tau, info."""
    batch, m, n = a.shape
    tau, info = cupy.ndarray((batch, min(m, n)), a.dtype), infos(batch, zero=True)
    if past(me, max(m, n)):
        return _each_geqrf(a, overwrite_a, tau), tau, info
    qr = like(a, overwrite_a)
    if a.size:
        info = keeping(info, _factor(me, a, qr, tau))
    return qr, tau, info


def _factor(me, a, qr, tau):
    """QR of every (m, n) member, not empty, to `qr` and `tau`; returns the workspace, if any."""
    batch, m, n = a.shape
    small, shared = small_qr(me, m, n), blocks("geqrf_shared", me, max(m, n))
    left = blocks("geqrf_left", me, m)
    where = *matrix(a), *matrix(qr), tau.data.ptr
    if small:
        small(-(-batch // teams_of(small.values)), 0, *where, m, n, batch)
    elif shared:
        shared(batch, qr_bytes(a.dtype, n, shared.values), *where, m, n)
    elif left:
        return _from_the_left(left, me, a, qr, tau)
    else:
        kernel = blocks("geqrf_block", me, m)
        kernel(batch, panel_bytes(me.letter, kernel.values, m) + n * me.real.itemsize, *where, m, n)


def small_qr(me, m, n):
    """geqrf_small, where rows are twice as many as columns with as few lanes as these ask for, and
    where geqrf_shared has no row else; or None."""
    small = blocks("geqrf_small", me, max(m, n))
    if not small or 2 * n > m and blocks("geqrf_shared", me, max(m, n)):
        return None
    if 2 * n <= m:
        few = lanes_for(n, small.values["LANES"])
        kept = (("KEPT", 1),) if few < 32 else ()
        return blocks("geqrf_small", me, m, ("LANES", few), ("SLIM", 1), ("WARPS", 1),
                      ("BLOCKS", 1), *kept)
    return small


def lanes_for(columns, most):
    """The lanes of a team with one to a column: a power of two, or the row's own `most`."""
    lanes = 1 << (columns - 1).bit_length()
    return min(lanes, most) if columns <= most else lanes


def of_t(steps, panel):
    """Numbers of T of all panels."""
    return (steps + panel - 1) // panel * panel**2


def _from_the_left(left, me, a, qr, tau):
    """geqrf_left. Where rows of QR do not begin with a line of 128 bytes, reflectors are read from
    copies, if there is room for them. The workspace is returned."""
    batch, m, n = a.shape
    panel, steps = left.values["NB"], min(m, n)
    panels = min((steps + panel - 1) // panel, (n - 1) // panel)  # with columns right of them
    copies = panels * panel * ((m + 7) // 8 * 8)
    copied = 0 < a.itemsize * batch * copies <= MEMORY and not in_lines(qr)
    ts = cupy.ndarray((batch, of_t(steps, panel) + copied * copies), a.dtype)
    left(batch, left_bytes(me.letter, left.values, m), *matrix(a), *matrix(qr), tau.data.ptr,
         ts.data.ptr, ts.shape[1], m, n, copied)
    return ts


def _each_geqrf(a, overwrite_a, tau):
    from ..qr import geqrf as one
    work = by_columns(a, overwrite_a)
    for i in range(len(a)):
        work[i], tau[i] = one(work[i])[:2]
    return finish(a, work, overwrite_a)


def orgqr(me, a, tau, overwrite_a):
    """The first n columns of Q of every (m, n) member: q, info."""
    batch, m, n = a.shape
    info = infos(batch, zero=True)
    if past(me, max(m, n)):
        from ..qr import orgqr, ungqr
        one, work = (ungqr if me.is_complex else orgqr), by_columns(a, overwrite_a)
        for i in range(batch):
            work[i] = one(work[i], tau[i])[0]
        return finish(a, work, overwrite_a), info
    factors = a.copy() if overwrite_a else a
    q = like(a, overwrite_a)
    if a.size:
        tau = cupy.ascontiguousarray(tau)
        info = keeping(info, factors, tau,
                       form_q_at(me, matrix(factors), tau.data.ptr, tau.shape[1], q))
    return q, info


def form_q_at(me, factors, tau, count, q):
    """The first columns of Q of every member, to `q`: of `count` reflectors at `factors`, address
    and strides, and as many numbers tau to a member; returns the workspace, if any."""
    batch, m, n = q.shape
    if q.size:
        if small := blocks("orgqr_small", me, m):
            teams, shared, dealing = dealt_q(small, me, m, n, min(count, n))
            small(-(-batch // teams), shared, *factors, tau, count, *matrix(q), m, n,
                  min(count, n), *dealing, batch)
            return
        if strips := by_strips_of("orgqr_strips", me, m, n):
            return _by_strips(*strips, me, factors, tau, count, matrix(q), batch, m, n,
                              min(count, n))
        kernel = blocks("orgqr_block", me, m)
        kernel(batch, panel_bytes(me.letter, kernel.values, m), *factors, tau, count,
               *matrix(q), m, n, min(count, n))


def forming_q(me, rows):
    """The kernels that form a square Q, one after the other."""
    small = blocks("orgqr_small", me, rows)
    return ((small,) if small else by_strips_of("orgqr_strips", me, rows, rows)
            or (blocks("orgqr_block", me, rows),))


def by_strips_of(name, me, rows, columns):
    """larft_panels, and orgqr_strips or ormqr_strips after it, for so many columns, or None."""
    strips = for_columns(name, me, rows, columns)
    return strips and (blocks("larft_panels", me, rows, ("NB", strips.values["NB"])), strips)


def _by_strips(forming, strips, me, factors, tau, apart, c, batch, rows, columns, count, *flags):
    """T of all panels, then orgqr_strips, or ormqr_strips with the `flags` conjugated and
    adjoint. The workspace is returned."""
    v, panel = strips.values, forming.values["NB"]
    ts = cupy.ndarray((batch, of_t(count, panel)), me.dtype)
    panels, each = -(-count // panel), -(-columns // v["COLUMNS"])
    of_t_ = ts.data.ptr, ts.shape[1]
    if panels:
        forming(batch * panels, 0, *factors, tau, apart, *of_t_, rows, count,
                *flags[1:] or (False,), panels)
    strips(batch * each, strip_bytes(me.letter, v, rows), *factors, *of_t_, *c, rows, columns,
           count, *flags, each)
    return ts


def dealt_q(small, me, rows, columns, count):
    """Of orgqr_small for so many rows, columns and reflectors: teams of a block, its shared memory,
    and each one's lanes and numbers there."""
    numbers = small_q_numbers(me.dtype, small.values, count)
    room = numbers * me.dtype.itemsize
    parts = small.values["PARTS"]
    multiple = 32 if parts > 1 else noted("orgqr_small", me, rows, "multiple") or 1
    lanes = dealt(small.threads, columns * parts, multiple, room, gpu(current_device()).shared)
    teams = small.threads // lanes
    return teams, teams * room, (lanes, numbers)


def by_columns_of(me, rows, width):
    """ormqr_small for so many columns of C, or None; where its row says `fewer`, with no more lanes
    than they ask for, down to the part that it says."""
    small = blocks("ormqr_small", me, rows)
    if small and (fewer := noted("ormqr_small", me, rows, "fewer")):
        lanes = max(1 << (width - 1).bit_length(), small.values["LANES"] // fewer)
        if lanes < small.values["LANES"]:
            return blocks("ormqr_small", me, rows, ("LANES", lanes))
    return small


def _by_columns(small, factors, tau, apart, c, count, conjugated, adjoint):
    """ormqr_small, over C."""
    batch, m, n = c.shape
    small(-(-batch // (small.threads // small.values["LANES"])),
          small_q_bytes(c.dtype, small.values, count), *factors, tau, apart, *matrix(c), m, n,
          count, conjugated, adjoint, small_q_numbers(c.dtype, small.values, count), batch)


def ormqr(me, side, trans, a, tau, c, overwrite_c):
    """op(Q) C or C op(Q) for every member: cq, info."""
    batch, m, n = c.shape
    info = infos(batch, zero=True)
    if past(me, max(m, n)):
        from ..qr import ormqr, unmqr
        one, work = (unmqr if me.is_complex else ormqr), by_columns(c, overwrite_c)
        flag = trans if trans == "N" else "C" if me.is_complex else "T"
        for i in range(batch):
            work[i] = one(side, flag, a[i], tau[i], work[i])[0]
        return finish(c, work, overwrite_c), info
    cq = like(c, overwrite_c)
    if not overwrite_c:
        cq[...] = c
    return cq, keeping(info, _multiply(me, side, trans, a, tau, cq))


def _multiply(me, side, trans, a, tau, c, conjugated=False):
    """op(Q) C or C op(Q) in place, `a` and `tau` being what geqrf left; `conjugated`: of the
    conjugate of that Q."""
    batch, m, n = c.shape
    if not (c.size and tau.size):
        return
    # C Q = (Q^T C^T)^T, and Q^T is the adjoint of Q's conjugate
    right = side == "R"
    tau = cupy.ascontiguousarray(tau)
    return tau, multiply_at(
        me, matrix(a), tau.data.ptr, tau.shape[1], tau.shape[1],
        c.swapaxes(1, 2) if right else c, (trans != "N") != right, right != conjugated)


def by_panels_of(me, rows, width):
    """ormqr_block for so many columns of C. Where its row says `least`, a block has the next power
    of two of C's strips of columns as warps, if those are fewer than the row's, and at least so
    many: all of them load a panel. It does not change a bit."""
    kernel = blocks("ormqr_block", me, rows)
    if least := noted("ormqr_block", me, rows, "least"):
        warps = max(least, 2 ** (-(-width // STRIP[me.letter]) - 1).bit_length())
        if warps < kernel.values["WARPS"]:
            return narrower(kernel, warps)
    return kernel


def multiply_at(me, factors, tau, apart, count, c, adjoint=False, conjugated=False):
    """C := Q C or Q^H C of every member, by `count` reflectors at `factors`, address and strides;
    the numbers tau of members are `apart`; returns the workspace, if any."""
    batch, rows, width = c.shape
    conjugated = me.is_complex and conjugated
    of_c = *matrix(c), rows, width, count, conjugated, adjoint
    if few := solving("ormqr_warp", me, rows, width):
        few(-(-batch // (few.threads // few.values["LANES"])),
            passing_bytes(c.dtype, few.values, rows), *factors, tau, apart, *of_c,
            passing_numbers(few.values, rows), batch)
        return
    if small := by_columns_of(me, rows, width):
        _by_columns(small, factors, tau, apart, c, count, conjugated, adjoint)
        return
    if strips := by_strips_of("ormqr_strips", me, rows, width):
        return _by_strips(*strips, me, factors, tau, apart, matrix(c), batch, rows, width, count,
                          conjugated, adjoint)
    kernel = by_panels_of(me, rows, width)
    kernel(batch, panel_bytes(me.letter, kernel.values, rows), *factors, tau, apart, *of_c)


def gels(me, a, b, trans, overwrite_a, overwrite_b):
    """Least squares or minimum norm solutions of every member: lqr, x, info."""
    batch, m, n = a.shape
    if past(me, max(m, n)):
        return _each_gels(me, a, b, trans, overwrite_a, overwrite_b)
    x, info = like(b, overwrite_b), infos(batch, zero=True)
    lqr = like(a, overwrite_a)
    if not a.size:
        x.fill(0)
        return a if overwrite_a else lqr, x, info
    wide, f, out = m < n, a, lqr
    if wide:  # A^T = Q R is A = R^T Q^T, the LQ factors of LAPACK as they are
        f, out, m, n = a.transpose(0, 2, 1), lqr.transpose(0, 2, 1), n, m
    fits, conjugated = least_squares(me, wide, trans)
    at_once = fits and not conjugated
    small = by_lanes(me, m, n, nrhs(x)) if at_once else None
    if small:
        v, room = small.values, gels_room(small.values, n, nrhs(x))
        small(-(-batch // teams_of(v)), gels_bytes(a.dtype, v, room), *matrix(f),
              *matrix(out), *columns(b), *columns(x), info.data.ptr, m, n, nrhs(x), room, batch)
        return lqr, x, info
    if one := at_once and beside(me, m, n, nrhs(x)):
        one(batch, qr_bytes(a.dtype, n, one.values), *matrix(f), *matrix(out), *columns(b),
            *columns(x), info.data.ptr, m, n)
        return lqr, x, info
    tau, y = cupy.ndarray((batch, n), a.dtype), stacked(x)
    few = solving("gels_warp", me, m, nrhs(x)) if at_once and x.size else None
    if few:
        held = _factor(me, f, out, tau)
        few(-(-batch // few.values["WARPS"]), passing_bytes(a.dtype, few.values, m), *matrix(out),
            tau.data.ptr, n, *columns(b), *columns(x), info.data.ptr, m, n, nrhs(x),
            passing_numbers(few.values, m), batch)
        return lqr, x, keeping(info, tau, held)
    exponents = infos(batch)  # of B, where products with it may overflow
    scale(stacked(b), y, exponents, target=np.finfo(a.dtype).maxexp // 2, always=False)
    held = [tau, exponents, _factor(me, f, out, tau)]
    if not x.size:
        return lqr, x, keeping(info, *held)
    if fits:
        held.append(_multiply(me, "L", "C", out, tau, y, conjugated))
    kernel = blocks("gels_solve", me, n)
    kernel(batch, n * kernel.values["COLUMNS"] * a.itemsize, *matrix(out), *matrix(y),
           info.data.ptr, not fits, conjugated != (not fits), m, n, nrhs(x))
    if not fits:
        held.append(_multiply(me, "L", "N", out, tau, y, conjugated))
    scale(y, y, exponents, find=False)
    return lqr, x, keeping(info, *held)


def by_lanes(me, m, n, sides):
    """gels_small for n columns of m >= n rows and so many right-hand sides, with as few lanes as
    the columns ask for, or None."""
    kernel = blocks("gels_small", me, m) if 0 < sides <= SIDES_OF_GELS else None
    if not kernel:
        return None
    lanes, each = kernel.values["LANES"], kernel.values["C"]
    if n > lanes * each:
        return None
    few = lanes_for(n, lanes)
    if each > 1 and 32 // few * each > 32 // lanes or few < lanes:  # more members in a step's time
        return blocks("gels_small", me, m, ("LANES", few), ("C", 1), ("KEPT", 1))
    return kernel


def beside(me, m, n, sides):
    """gels_shared, which takes a right-hand side along, for n columns of m >= n rows, or None: its
    rows were timed with as few as half as many columns as rows."""
    return blocks("gels_shared", me, m) if sides == 1 and 2 * n >= m else None


def least_squares(me, wide, trans):
    """Of op(A) X = B with the factors of A, or of A^T where A is wide: whether op(A) is tall, so
    that X = op(R)^-1 op(Q)^H B, and not op(Q) op(R)^-H B; and whether op conjugates. Kernels that
    do all of it do tall ones that are not conjugated."""
    return wide == (trans != "N"), wide and me.is_complex


def _each_gels(me, a, b, trans, overwrite_a, overwrite_b):
    from ..qr import gels as one
    work, x = by_columns(a, overwrite_a), b if overwrite_b else b.copy()
    info = cupy.ndarray((len(a),), INT)
    for i in range(len(a)):
        work[i], x[i], info[i] = one(work[i], x[i], trans)
    return finish(a, work, overwrite_a), x, info


