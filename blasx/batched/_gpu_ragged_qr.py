"""QR of members of different sizes on the GPU (_gpu_ragged.py)."""

from functools import partial

import cupy
import numpy as np

from .._ragged import Ragged
from .._spaces import MOST
from . import _gpu_qr
from ._block import (
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
from ._gpu import INT, blocks, past, solving
from ._gpu_qr import (
    beside,
    by_columns_of,
    by_lanes,
    by_panels_of,
    by_strips_of,
    least_squares,
    of_t,
    small_qr,
)
from ._gpu_ragged import (
    Call,
    columns,
    contiguous,
    extents,
    like,
    lines,
    outputs,
    scaling,
)


def geqrf(me, a, overwrite_a):
    """QR of every member: qr, tau, info."""
    shapes = extents(a)
    qr, tau = outputs(a, overwrite_a), Ragged.empty_like(cupy.empty(0, me.dtype), shapes.min(1))
    factoring = Factoring(me)
    call = Call(me, shapes.all(1), factoring.plan, shapes.max(1), shapes[:, 0], shapes[:, 1])
    factoring.serve(call, call.matrices(a), call.matrices(qr), tau, shapes[:, 0], shapes[:, 1])
    call.run()
    call.larger(lambda a: _gpu_qr.geqrf(me, a, 1), (a,), (qr, tau))
    return like(a, qr), like(a, tau), call.info()


class Factoring:
    """The kernels of a QR factorization, and the T's of geqrf_left, whose panels they say."""

    def __init__(self, me):
        self.me, self.panels = me, np.ones(1 + MOST, np.int64)  # of geqrf_left, by rows

    def plan(self, most, m, n):
        """The kernel for (m, n) members, `most` the longer side."""
        if past(self.me, most):
            return None
        found = small_qr(self.me, m, n) or blocks("geqrf_shared", self.me, most)
        if not found and (found := blocks("geqrf_left", self.me, m)):
            self.panels[m] = found.values["NB"]
        return found or blocks("geqrf_block", self.me, m),

    def serve(self, call, a, qr, tau, rows, columns):
        """Register them, of columns of `call` with A and QR; `tau`, `rows` and `columns` as they
        are."""
        me, m, n = self.me, call.sizes(rows), call.sizes(columns)
        of = a, qr, call.vectors(tau)
        panels = self.panels[np.minimum(rows, MOST)]
        # Whole panels, so that each begins at a multiple of 16 bytes
        self.ts = Ragged.empty_like(
            tau.data, of_t(np.minimum(rows, columns), panels) * (panels > 1))
        of_left = call.vectors(self.ts)
        call.serve("geqrf_small", lambda block, part: block(
            -(-part.members // teams_of(block.values)), 0, *part(*of, m, n),
            part.members))
        call.serve("geqrf_shared", lambda block, part: block(
            part.members, qr_bytes(me.dtype, part.most(n), block.values), *part(*of, m, n)))
        call.serve("geqrf_left", lambda block, part: block(
            part.members, left_bytes(me.letter, block.values, part.most(m)),
            *part(*of, of_left, 0, m, n), False))
        call.serve("geqrf_block", lambda block, part: block(
            part.members, panel_bytes(me.letter, block.values, part.most(m))
            + part.most(n) * me.real.itemsize, *part(*of, m, n)))


def ormqr(me, side, trans, a, tau, c, overwrite_c):
    """op(Q) C or C op(Q) for every member: cq, info."""
    shapes, k, right = extents(c), extents(a)[:, 1], side == "R"
    cq = outputs(c, overwrite_c)
    if not overwrite_c:
        copy(c, cq)
    rows, width = (shapes[:, 1], shapes[:, 0]) if right else (shapes[:, 0], shapes[:, 1])
    call = Call(me, shapes.all(1) & (k > 0), lambda rows, width: None if past(me, rows) else
                multiplying(me, rows, width), rows, width)
    # C Q = (Q^T C^T)^T, and Q^T is the adjoint of Q's conjugate
    launches = multiplications(
        me, (call.matrices(a), call.vectors(contiguous(tau)), 0, call.matrices(cq, right)),
        triangles(call, k[call.order]), *map(call.sizes, (rows, width, k)),
        (trans != "N") != right, right and me.is_complex)
    for name, launch in launches.items():
        call.serve(name, launch)
    call.run()
    call.larger(lambda a, tau, c: _gpu_qr.ormqr(me, side, trans, a, tau, c, 1), (a, tau, c), (cq,))
    return like(c, cq), call.info()


def multiplying(me, rows, width):
    """The kernels that multiply by reflectors of so many rows, one after the other."""
    few = solving("ormqr_warp", me, rows, width) or by_columns_of(me, rows, width)
    return ((few,) if few else by_strips_of("ormqr_strips", me, rows, width)
            or (by_panels_of(me, rows, width),))


def triangles(call, count, way=None):
    """Where larft_panels leaves T of the panels of so many reflectors, of every member in the order
    of the classes; `way`: only that way to be launched."""
    sizes = 0 * count
    for kernels, first, last in call.classes:
        for step in kernels:
            block, *its = step if step.__class__ is tuple else (step,)
            if block.kernel.name == "larft_panels" and way in (None, *its):
                sizes[first:last] = of_t(count[first:last], block.values["NB"])
    ts = Ragged.empty_like(cupy.empty(0, call.me.dtype), sizes)
    call.kept.append(ts)
    return call.place(ts.data.data.ptr + ts.offsets * ts.data.itemsize)


def multiplications(me, of, ts, rows, width, count, adjoint, conjugated):
    """What launches those kernels; `of`: their operands; `ts`: where T of panels is."""
    sizes = rows, width, count, conjugated, adjoint

    def teams(block, part):
        return -(-part.members // (block.threads // block.values["LANES"]))

    def warps(block, part):
        block(teams(block, part), passing_bytes(me.dtype, block.values, part.most(rows)),
              *part(*of, *sizes), passing_numbers(block.values, part.most(rows)), part.members)

    def lanes(block, part):
        numbers = small_q_numbers(me.dtype, block.values, part.most(count))
        block(teams(block, part), small_q_bytes(me.dtype, block.values, part.most(count)),
              *part(*of, *sizes), numbers, part.members)

    def whole(block, part):
        block(part.members, panel_bytes(me.letter, block.values, part.most(rows)),
              *part(*of, *sizes))

    form, apply = strips(me, of, ts, *sizes)
    return dict(ormqr_warp=warps, ormqr_small=lanes, ormqr_block=whole, larft_panels=form,
                ormqr_strips=apply)


def strips(me, of, ts, rows, width, count, *flags):
    """What launches larft_panels, and orgqr_strips, or ormqr_strips with the `flags` conjugated and
    adjoint."""
    factors, tau, apart, c = of

    def form(block, part):
        panels = -(-part.most(count) // block.values["NB"])
        block(part.members * panels, 0, *part(factors, tau, apart, ts, 0, rows, count),
              *flags[1:] or (False,), panels)

    def apply(block, part):
        each = -(-part.most(width) // block.values["COLUMNS"])
        block(part.members * each, strip_bytes(me.letter, block.values, part.most(rows)),
              *part(factors, ts, 0, c, rows, width, count), *flags, each)

    return form, apply


def copy(source, target):
    """Members to where the results go."""
    if target.__class__ is Ragged:
        if len(source):
            cupy.concatenate([x.reshape(-1) for x in source], out=target.data)
    else:
        for x, y in zip(source, target):
            y[...] = x


def gels(me, a, b, trans, overwrite_a, overwrite_b):
    """Least squares or minimum norm solutions of every member: lqr, x, info."""
    shapes, width = extents(a), columns(b)
    m, n, wide = shapes.max(1), shapes.min(1), shapes[:, 0] < shapes[:, 1]
    lqr, x = outputs(a, overwrite_a), outputs(b, overwrite_b)
    for i in np.flatnonzero(n == 0):
        x[i][...] = 0
    tau = Ragged.empty_like(cupy.empty(0, me.dtype), n)
    exponents = Ragged.empty_like(cupy.empty(0, INT), np.ones(len(a), np.int64))

    factoring = Factoring(me)

    def plan(m, n, wide, sides):
        if past(me, m):
            return None
        fits, conjugated = least_squares(me, wide == 1, trans)
        at_once = fits and not conjugated
        if at_once and (small := by_lanes(me, m, n, sides)):
            return small,
        if one := at_once and beside(me, m, n, sides):
            return one,
        factor = factoring.plan(m, m, n)
        if not sides:
            return factor
        if at_once and (few := solving("gels_warp", me, m, sides)):
            return *factor, few
        solve, scale = blocks("gels_solve", me, n), blocks("lascl_batched", me, m)
        multiply = tuple((block, wide) for block in multiplying(me, m, sides))
        return ((scale, "there"), *factor, *(multiply if fits else ()), (solve, wide),
                *(() if fits else multiply), (scale, "back"))

    call = Call(me, n > 0, plan, m, n, wide.astype(np.int64), width)
    of_a, of_qr = (call.add(np.where(wide[:, None], lines(y, True), lines(y))) for y in (a, lqr))
    factoring.serve(call, of_a, of_qr, tau, m, n)
    ts = triangles(call, n[call.order])
    of_b, of_x, of_tau, kept = (call.matrices(b), call.matrices(x), call.vectors(tau),
                                call.vectors(exponents))
    m, n, width = map(call.sizes, (m, n, width))

    def solve(block, part, fits, conjugated):
        block(part.members, part.most(n) * block.values["COLUMNS"] * me.dtype.itemsize,
              *part(of_qr, of_x, call.infos, not fits, conjugated != (not fits), m, n, width))

    def small(block, part):
        room = gels_room(block.values, part.most(n), part.most(width))
        block(-(-part.members // teams_of(block.values)),
              gels_bytes(me.dtype, block.values, room),
              *part(of_a, of_qr, of_b, of_x, call.infos, m, n, width), room, part.members)

    def warp(block, part):
        block(-(-part.members // block.values["WARPS"]),
              passing_bytes(me.dtype, block.values, part.most(m)),
              *part(of_qr, of_tau, 0, of_b, of_x, call.infos, m, n, width),
              passing_numbers(block.values, part.most(m)), part.members)

    call.serve("gels_small", small)
    call.serve("gels_shared", lambda block, part: block(
        part.members, qr_bytes(me.dtype, part.most(n), block.values),
        *part(of_a, of_qr, of_b, of_x, call.infos, m, n)))
    call.serve("gels_warp", warp)
    there = 1, np.finfo(me.dtype).maxexp // 2, 0  # as gels_batched
    call.serve(("lascl_batched", "there"), scaling(of_b, of_x, kept, m, width, *there))
    call.serve(("lascl_batched", "back"), scaling(of_x, of_x, kept, m, width))
    for kind in (0, 1):
        fits, conjugated = least_squares(me, kind == 1, trans)
        for name, launch in multiplications(me, (of_qr, of_tau, 0, of_x), ts, m, width, n,
                                            fits, conjugated).items():
            call.serve((name, kind), launch)
        call.serve(("gels_solve", kind), partial(solve, fits=fits, conjugated=conjugated))
    call.run()
    call.larger(lambda a, b: _gpu_qr.gels(me, a, b, trans, 1, 1), (a, b), (lqr, x))
    return like(a, lqr), like(b, x), call.info()
