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

from .. import _lapack, _trace

try:
    from .. import _loop
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


def columns(a, overwrite):
    """A (batch, n, m) C-ordered stack whose members, read by columns, are those of `a`: the
    memory of `a` itself if it may be overwritten and lies so."""
    flipped = a.transpose(0, 2, 1)
    if overwrite and flipped.flags.c_contiguous:
        return flipped
    return np.array(flipped, order="C")


def finish(a, work, overwrite):
    """The result `work` (a stack by columns) in the memory order of `a`, or in `a` itself."""
    result = work.transpose(0, 2, 1)
    if overwrite:
        if not np.may_share_memory(a, work):
            a[...] = result
        return a
    by_rows = a.strides[2] <= a.strides[1]
    return np.ascontiguousarray(result) if by_rows else result


def right_hand_sides(b, overwrite):
    """`b` as a stack by columns, (batch, nrhs, n)."""
    return columns(b, overwrite) if b.ndim == 3 else vectors(b, overwrite)


def vectors(b, overwrite):
    stack = b if overwrite and b.flags.c_contiguous else np.array(b, order="C")
    return stack[:, None, :]


def solution(b, work, overwrite):
    if b.ndim == 3:
        return finish(b, work, overwrite)
    x = work[:, 0, :]
    if overwrite and not np.may_share_memory(b, x):
        b[...] = x
    return b if overwrite else x


def pivots(piv):
    return np.ascontiguousarray(piv, _lapack.INT) + _lapack.INT.type(1)


def triangle(a, lower, overwrite):
    """A stack whose members LAPACK may factor as Hermitian ones, and the uplo to say: by columns
    as it stands, by rows the transpose, whose triangles have changed sides."""
    if a.transpose(0, 2, 1).flags.c_contiguous and not a.flags.c_contiguous:
        return columns(a, overwrite).transpose(0, 2, 1), "UL"[bool(lower)], False
    work = a if overwrite and a.flags.c_contiguous else np.array(a, order="C")
    return work, "LU"[bool(lower)], True
