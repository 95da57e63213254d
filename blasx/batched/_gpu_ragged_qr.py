"""QR of members of different sizes on the GPU (_gpu_ragged.py). Least squares and eigenproblems are
of one shape at a time, through the `_batched` routines."""

import cupy
import numpy as np

from .._ragged import Ragged
from .._spaces import MOST
from . import _gpu_eig, _gpu_qr
from ._block import panel_bytes
from ._gpu import blocks
from ._gpu_ragged import Call, contiguous, extents, like, outputs


def geqrf(me, a, overwrite_a):
    """QR of every member: qr, tau, info."""
    shapes = extents(a)
    qr, tau = outputs(a, overwrite_a), Ragged.empty_like(cupy.empty(0, me.dtype), shapes.min(1))

    def plan(most, m):
        if most > MOST:
            return None
        return blocks("geqrf_small", me, most) or blocks("geqrf_block", me, m),

    call = Call(me, shapes.all(1), plan, shapes.max(1), shapes[:, 0])
    m, n = call.sizes(shapes[:, 0]), call.sizes(shapes[:, 1])
    of = call.matrices(a), call.matrices(qr), call.vectors(tau)
    no_b, no_columns = call.add(np.zeros((len(a), 3))), call.sizes(0 * shapes[:, 0])
    call.serve("geqrf_small", lambda block, part: block(
        -(-part.members // (block.threads // block.values["N"])), 0, *part(*of, m, n),
        part.members))
    call.serve("geqrf_block", lambda block, part: block(
        part.members,
        panel_bytes(me.letter, block.values, part.most(m)) + part.most(n) * me.real.itemsize,
        *part(*of, no_b, m, n, no_columns)))
    call.run()
    call.larger(lambda a: _gpu_qr.geqrf(me, a, 1), (a,), (qr, tau))
    return like(a, qr), like(a, tau), call.info()


def ormqr(me, side, trans, a, tau, c, overwrite_c):
    """op(Q) C or C op(Q) for every member: cq, info."""
    shapes, k, right = extents(c), extents(a)[:, 1], side == "R"
    cq = outputs(c, overwrite_c)
    if not overwrite_c:
        copy(c, cq)
    rows, width = (shapes[:, 1], shapes[:, 0]) if right else (shapes[:, 0], shapes[:, 1])
    call = Call(me, shapes.all(1) & (k > 0),
                lambda rows: (blocks("ormqr_block", me, rows),) if rows <= MOST else None, rows)
    of = (call.matrices(a), call.vectors(contiguous(tau)), 0, call.matrices(cq, right))
    rows, sizes = call.sizes(rows), (call.sizes(width), call.sizes(k))
    # C Q = (Q^T C^T)^T, and Q^T is the adjoint of Q's conjugate
    call.serve("ormqr_block", lambda block, part: block(
        part.members, panel_bytes(me.letter, block.values, part.most(rows)),
        *part(*of, rows, *sizes, right and me.is_complex, (trans != "N") != right)))
    call.run()
    call.larger(lambda a, tau, c: _gpu_qr.ormqr(me, side, trans, a, tau, c, 1), (a, tau, c), (cq,))
    return like(c, cq), call.info()


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
    lqr, x = outputs(a, overwrite_a), outputs(b, overwrite_b)
    call = by_shapes(me, a)
    call.larger(lambda a, b: _gpu_qr.gels(me, a, b, trans, 1, 1), (a, b), (lqr, x))
    return like(a, lqr), like(b, x), call.info()


def syevd(me, a, compute_v, lower, overwrite_a):
    """w, v, info of every member."""
    shapes = extents(a)
    w = Ragged.empty_like(cupy.empty(0, me.real), shapes[:, 0])
    v = outputs(a, overwrite_a) if compute_v else Ragged.empty_like(cupy.empty(0, me.dtype),
                                                                    np.ones_like(shapes))
    call = by_shapes(me, a, shapes.all(1))
    call.larger(lambda a: _gpu_eig.syevd(me, a, compute_v, lower, 1), (a,), (w, v))
    return like(a, w), like(a, v), call.info()


def by_shapes(me, a, wanted=None):
    """A Call all of whose members go to a `_batched` routine."""
    shapes = extents(a)
    return Call(me, np.ones(len(a), bool) if wanted is None else wanted, lambda n: None,
                shapes.max(1))
