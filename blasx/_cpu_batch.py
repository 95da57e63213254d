"""LAPACK over a batch on the CPU: a loop in C, split over the cores.

Members up to 64 x 64 are so small that LAPACK starts no threads for them; there each core takes
a share of the batch. Larger members go one after the other, and LAPACK's own threads work inside
each. A member's arithmetic is the same either way, whatever the batch.

LAPACK wants columns. A stack that lies by rows is transposed on the way in and out for LU; a
Cholesky factor is not, for the lower triangle by rows is the upper one by columns.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import repeat

import numpy as np

from . import _lapack, _trace

try:
    from . import _loop
except ImportError:  # no compiler at installation: loop in Python
    _loop = None

SMALL = 64  # OpenBLAS starts threads in potrf from here on, in getrf from 200
SHARE = 1000.0  # microseconds of work that are worth waking a thread for


@cache
def _pool():
    return ThreadPoolExecutor(_cores(), "blasx-batch")


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


os.register_at_fork(after_in_child=_pool.cache_clear)


def each(routine, batch, n, *arguments):
    """Call LAPACK's `routine` for every member and return the (batch,) infos.

    An int or str argument is the same in every call; of an array, call k gets member k. `n`, the
    order of the members, decides whether they share the cores.
    """
    info = np.zeros(batch, _lapack.INT)
    cells = [_cell(x) for x in (*arguments, info)]
    starts = [c.ctypes.data for c in cells]
    steps = [c.strides[0] if isinstance(x, np.ndarray) else 0
             for c, x in zip(cells, (*arguments, info))]
    parts = _parts(batch, n)
    edges = [batch * i // parts for i in range(parts + 1)]

    def run(lo, hi):
        _run(routine, [p + lo * s for p, s in zip(starts, steps)], steps, hi - lo)

    jobs = [_pool().submit(run, lo, hi) for lo, hi in zip(edges[1:], edges[2:])]
    run(0, edges[1])
    for job in jobs:
        job.result()
    _trace.note("lapack")
    return info.astype(np.int32, copy=False)


def _parts(batch, n):
    """How many threads share a batch. A member takes about 0.2 + n^2 / 80 microseconds."""
    if n > SMALL:
        return 1
    return max(1, min(_cores(), int(batch * (0.2 + n * n / 80) / SHARE)))


def _cell(x):
    """Where a constant argument lives for the length of the loop; a stack as it is."""
    if isinstance(x, str):
        return np.frombuffer(x.encode() + b"\0", np.uint8)
    return x if isinstance(x, np.ndarray) else np.array([x], _lapack.INT)


def _run(routine, pointers, steps, count):
    """`count` calls, each with the pointers moved on by `steps`."""
    if _loop:
        _loop.lib.each(_lapack.address(routine), len(pointers), pointers, steps, count)
        return
    f = _lapack.by_address(routine)
    moving = [range(p, p + count * s, s) if s else repeat(p, count)
              for p, s in zip(pointers, steps)]
    for _ in map(f, *moving):
        pass


# -- stacks


def _columns(a, overwrite):
    """A (batch, n, m) C-ordered stack whose members, read by columns, are those of `a`: the
    memory of `a` itself if it may be overwritten and lies so."""
    flipped = a.transpose(0, 2, 1)
    if overwrite and flipped.flags.c_contiguous:
        return flipped
    return np.array(flipped, order="C")


def _finish(a, work, overwrite):
    """The result `work` (a stack by columns) in the memory order of `a`, or in `a` itself."""
    result = work.transpose(0, 2, 1)
    if overwrite:
        if not np.may_share_memory(a, work):
            a[...] = result
        return a
    by_rows = a.strides[2] <= a.strides[1]
    return np.ascontiguousarray(result) if by_rows else result


def _right_hand_sides(b, overwrite):
    """`b` as a stack by columns, (batch, nrhs, n)."""
    return _columns(b, overwrite) if b.ndim == 3 else _vectors(b, overwrite)


def _vectors(b, overwrite):
    stack = b if overwrite and b.flags.c_contiguous else np.array(b, order="C")
    return stack[:, None, :]


def _solution(b, work, overwrite):
    if b.ndim == 3:
        return _finish(b, work, overwrite)
    x = work[:, 0, :]
    if overwrite and not np.may_share_memory(b, x):
        b[...] = x
    return b if overwrite else x


def _pivots(piv):
    return np.ascontiguousarray(piv, _lapack.INT) + _lapack.INT.type(1)


def getrf(me, a, overwrite_a):
    """LU of every (m, n) member: lu, piv (0-based), info."""
    batch, m, n = a.shape
    work = _columns(a, overwrite_a)
    piv = np.empty((batch, min(m, n)), _lapack.INT)
    if not a.size:
        return _finish(a, work, overwrite_a), piv.astype(np.int32), np.zeros(batch, np.int32)
    info = each(me.letter + "getrf", batch, max(m, n), m, n, work, m, piv)
    piv -= 1
    return _finish(a, work, overwrite_a), piv.astype(np.int32, copy=False), info


def getrs(me, lu, piv, b, trans, overwrite_b):
    """Solve op(A) X = B with the factors of every member: x, info."""
    batch, n, _ = lu.shape
    work = _right_hand_sides(b, overwrite_b)
    info = np.zeros(batch, np.int32)
    if work.size:
        info = each(me.letter + "getrs", batch, n, "NTC"[trans], n, work.shape[1],
                    _columns(lu, True), n, _pivots(piv), work, n)
    return _solution(b, work, overwrite_b), info


def gesv(me, a, b, overwrite_a, overwrite_b):
    """Factor and solve every member: lu, piv, x, info."""
    batch, n, _ = a.shape
    x = _right_hand_sides(b, overwrite_b)
    if not x.size:
        lu, piv, info = getrf(me, a, overwrite_a)
        return lu, piv, _solution(b, x, overwrite_b), info
    work = _columns(a, overwrite_a)
    piv = np.empty((batch, n), _lapack.INT)
    info = each(me.letter + "gesv", batch, n, n, x.shape[1], work, n, piv, x, n)
    piv -= 1
    return (_finish(a, work, overwrite_a), piv.astype(np.int32, copy=False),
            _solution(b, x, overwrite_b), info)


def _triangle(a, lower, overwrite):
    """A stack whose members LAPACK may factor as Hermitian ones, and the uplo to say: by columns
    as it stands, by rows the transpose, whose triangles have changed sides."""
    if a.transpose(0, 2, 1).flags.c_contiguous and not a.flags.c_contiguous:
        return _columns(a, overwrite).transpose(0, 2, 1), "UL"[bool(lower)], False
    work = a if overwrite and a.flags.c_contiguous else np.array(a, order="C")
    return work, "LU"[bool(lower)], True


def potrf(me, a, lower, overwrite_a):
    """Cholesky of every member's `lower` triangle: c, info; the other triangle is left as it is."""
    batch, n, _ = a.shape
    work, uplo, _ = _triangle(a, lower, overwrite_a)
    info = np.zeros(batch, np.int32)
    if a.size:
        info = each(me.letter + "potrf", batch, n, uplo, n, work, n)
    if overwrite_a and not np.may_share_memory(a, work):
        a[...] = work
    return (a if overwrite_a else work), info


def _solved_by(me, name, c, lower, b, overwrite_c, overwrite_b):
    """posv and potrs: c and x and info. By rows it is conj(A) that LAPACK sees, so the right-hand
    sides are conjugated before and after."""
    batch, n, _ = c.shape
    factor, uplo, transposed = _triangle(c, lower, overwrite_c)
    x = _right_hand_sides(b, overwrite_b)
    info = np.zeros(batch, np.int32)
    if x.size:
        conjugate = me.is_complex and transposed
        if conjugate:
            np.conjugate(x, out=x)
        info = each(me.letter + name, batch, n, uplo, n, x.shape[1], factor, n, x, n)
        if conjugate:
            np.conjugate(x, out=x)
    return factor, _solution(b, x, overwrite_b), info


def potrs(me, c, b, lower, overwrite_b):
    """Solve with the Cholesky factors of every member: x, info."""
    return _solved_by(me, "potrs", c, lower, b, True, overwrite_b)[1:]


def posv(me, a, b, lower, overwrite_a, overwrite_b):
    """Factor the `lower` triangle and solve, for every member: c, x, info."""
    if not b.size:
        c, info = potrf(me, a, lower, overwrite_a)
        return c, _solution(b, _right_hand_sides(b, overwrite_b), overwrite_b), info
    factor, x, info = _solved_by(me, "posv", a, lower, b, overwrite_a, overwrite_b)
    if overwrite_a and not np.may_share_memory(a, factor):
        a[...] = factor
    return (a if overwrite_a else factor), x, info
