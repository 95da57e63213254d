"""Batches on the CPU: the small members' own LU and Cholesky, and LAPACK called over a batch.

`own` factors and solves members up to an order that kernels/tuned/cpu.json names in the compiled
core (core/*.h): several members share the processor's vectors, and any strides are read and
written where they are. `each` calls LAPACK member by member. Without a compiler at installation
there is no core, and `each` loops in Python. The two round differently; either gives a member the
same bits in every batch, at every place, in any number of threads.

LAPACK starts no threads for small members (OpenBLAS: in potrf from 65 on, in getrf from 200);
there, and in the core, the cores take shares of a batch. Larger members go one after the other, and
LAPACK's own threads work inside each.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial
from itertools import repeat
from math import ceil

import numpy as np

from .. import _lapack, _trace
from .._sources import FOLDER
from .._types import TYPES

try:
    from .. import _batch
except ImportError:  # no compiler at installation
    _batch = None

ffi = _lapack.ffi if _batch is None else _batch.ffi
NULL, _start = ffi.NULL, ffi.from_buffer
ndarray, _empty, _int32 = np.ndarray, np.empty, np.dtype(np.int32)
WIDTH = _batch.lib.widest() if _batch else 0  # bytes of a vector
# Those of the core, in its order
ROUTINES = ("getrf", "potrf", "geqrf", "syevd", "gesvd", "getrs", "potrs")
LANES = {letter: WIDTH // t.real.itemsize for letter, t in TYPES.items()}  # members to a vector


# -- threads


@cache
def _pool():
    return ThreadPoolExecutor(max(_cores() - 1, 1), "blasx-batch")


def _cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def tuned():
    """What was measured to be best on a CPU: kernels/tuned/cpu.json."""
    return json.loads((FOLDER / "tuned" / "cpu.json").read_text())


def _threads(batch, microseconds):
    """How many threads share a batch whose members take so long: as many as have enough to do to
    be worth waking."""
    shares = int(batch * microseconds / tuned()["threads"]["SHARE"])
    return min(_cores(), shares) if shares > 1 else 1


def _share(batch, threads):
    """How many members a thread takes at a time: a few shares for each, for cores are not alike."""
    return max(1, ceil(batch / (threads * tuned()["threads"]["TURNS"])))


def _together(threads, work):
    """`work()` in so many threads, this one among them."""
    jobs = [_pool().submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for job in jobs:
            if not job.cancel():  # it has begun
                job.result()


# -- the core


def rows_within(piv, n):
    """True if `piv` is of 32-bit integers in C's order, all from 0 to n - 1, as the core sees."""
    return (_batch is not None and piv.__class__ is ndarray and piv.dtype is _int32
            and piv.flags.c_contiguous and _batch.lib.within(_start(piv), piv.size, n))


def own(me, routine, a, overwrite_a, b=None, overwrite_b=0, lower=0, piv=None):
    """Factor every member of `a` and solve for `b` in the core: (factors, piv, x, info), in the
    memory order of the operands. `routine` is getrf, potrf (where `piv` is None), geqrf (where
    `x` is tau), or with the factors in `a`, which stay, getrs (`lower` says trans) or potrs.
    Returns None where LAPACK is to do it: no core, members too large, too many right-hand sides.
    """
    if b is None:
        plan = _plan(routine, me.letter, a.shape, a.strides, 1 if overwrite_a else 0,
                     None, None, 0, lower)
    else:
        plan = _plan(routine, me.letter, a.shape, a.strides, 1 if overwrite_a else 0,
                     b.shape, b.strides, 1 if overwrite_b else 0, lower)
    if plan is None:
        return None
    work, batch, threads, a_plain, f_shape, f_flipped, b_plain, x_shape, x_flipped, piv_shape = plan
    f, x, at_piv = a, b, NULL if piv is None else _start(piv)
    at_f = at_a = _start(a) if a_plain else _at(a)
    at_x = at_b = NULL if b is None else _start(b) if b_plain else _at(b)
    if f_shape:
        f = _empty(f_shape, me.dtype)
        at_f = _start(f)
        f = f.transpose(0, 2, 1) if f_flipped else f
    if x_shape:
        x = _empty(x_shape, me.dtype)
        at_x = _start(x)
        x = x.transpose(0, 2, 1) if x_flipped else x
    if piv_shape:
        piv = _empty(piv_shape, _int32)
        at_piv = _start(piv)
    info = _empty(batch, _int32)
    if threads > 1:
        _run(me, work, batch, threads, at_a, at_f, at_b, at_x, at_piv, _start(info))
    elif work(at_a, at_f, at_b, at_x, at_piv, _start(info), batch, batch, NULL):
        _short_of_memory(me)
    if _trace._open:
        _trace.note("own")
    return f, piv, x, info


def eigen(me, a, lower=1, vectors=1, overwrite_a=0):
    """Eigenvalues, ascending, and with `vectors` the eigenvectors (in `a` if `overwrite_a`, else
    by rows) of every Hermitian member in the core, from the triangle that `lower` names: (w, v or
    None, info). Returns None where LAPACK is to do it: no core, members too large.
    """
    plan = _eigen_plan(me.letter, a.shape, a.strides, 1 if vectors else 0,
                       1 if overwrite_a else 0, lower)
    if plan is None:
        return None
    work, batch, threads = plan
    w, info, v, at_v = _empty(a.shape[:2], me.real), _empty(batch, _int32), None, NULL
    if vectors:
        v = a if overwrite_a else _empty(a.shape, me.dtype)
        at_v = _at(v)
    _run(me, work, batch, threads, _at(a), at_v, NULL, _start(w), NULL, _start(info))
    if _trace._open:
        _trace.note("own")
    return w, v, info


@lru_cache(4096)
def _eigen_plan(letter, a, a_strides, vectors, overwrite_a, lower):
    batch, _, n = a
    row = next((r for r in tuned()["syevd"][letter] if n <= r["to"]), None)
    if _batch is None or row is None or not batch * n:
        return None
    real = TYPES[letter].real.itemsize
    _, _, v_strides = _new(a, (0, 0, 0), TYPES[letter].dtype.itemsize, False)
    if overwrite_a:
        v_strides = a_strides
    if lower:
        a_strides = a_strides[0], a_strides[2], a_strides[1]
    return (_worker("syevd", letter, n, n, vectors, row, lower, a_strides, v_strides, (0, 0, 0),
                    (n * real, real, 0)), batch, _threads(batch, row["US"]))


def svd(me, a, compute_uv=1, full_matrices=1):
    """Singular value decomposition of every member in the core: (u, s, vh, info), u and vh by rows
    and full or thin, or None without `compute_uv`. Returns None where LAPACK is to do it: no core,
    members too large.
    """
    plan = _svd_plan(me.letter, a.shape, a.strides, 1 if compute_uv else 0,
                     1 if full_matrices else 0)
    if plan is None:
        return None
    work, batch, threads, k, columns, rows = plan
    _, m, n = a.shape
    s, info = _empty((batch, k), me.real), _empty(batch, _int32)
    u = vh = None
    at_u = at_vh = NULL
    if compute_uv:
        u, vh = _empty((batch, m, columns), me.dtype), _empty((batch, rows, n), me.dtype)
        at_u, at_vh = _start(u), _start(vh)
    first, second = (at_u, at_vh) if m >= n else (at_vh, at_u)
    _run(me, work, batch, threads, _at(a), first, second, _start(s), NULL, _start(info))
    if _trace._open:
        _trace.note("own")
    return u, s, vh, info


@lru_cache(4096)
def _svd_plan(letter, a, a_strides, compute_uv, full_matrices):
    batch, m, n = a
    row = next((r for r in tuned()["gesvd"][letter] if max(m, n) <= r["to"]), None)
    if _batch is None or row is None or not batch * m * n:
        return None
    k = min(m, n)
    columns, rows = (m, n) if full_matrices else (k, k)
    size, real = TYPES[letter].dtype.itemsize, TYPES[letter].real.itemsize
    u = m * columns * size, columns * size, size
    vh = rows * n * size, n * size, size
    s = k * real, real, 0
    if m < n:  # that of A^H: U and V change places
        a_strides, u, vh = ((x[0], x[2], x[1]) for x in (a_strides, vh, u))
        m, n, columns = n, m, rows
    work = _worker("gesvd", letter, m, n, columns if compute_uv else 0, row, a[1] < a[2],
                   a_strides, u, vh, s)
    columns, rows = (a[1], a[2]) if full_matrices else (k, k)
    return work, batch, _threads(batch, row["US"]), k, columns, rows


def _run(me, work, batch, threads, *operands):
    """`work` in so many threads, by shares that fill vectors."""
    if threads == 1:
        short = work(*operands, batch, batch, NULL)
    else:
        share, following, answers = _share(batch, threads), ffi.new("ptrdiff_t *"), []
        share += -share % LANES[me.letter]
        _together(threads, lambda: answers.append(work(*operands, batch, share, following)))
        short = any(answers)
    if short:
        _short_of_memory(me)


def _short_of_memory(me):
    raise MemoryError(f"{me.name}: no memory to work in")


def _worker(routine, letter, m, n, nrhs, row, lower, *strides):
    """The core's function for members and operands of such strides, but for their addresses."""
    sizes = ffi.new("ptrdiff_t[]", [m, n, nrhs, ceil(row["SHARED"] * LANES[letter]), lower,
                                    *(s for x in strides for s in (*x, 0)[:3])])
    return partial(_batch.lib.own, WIDTH, ROUTINES.index(routine), "sdcz".index(letter), sizes)


@lru_cache(4096)
def _plan(routine, letter, a, a_strides, overwrite_a, b, b_strides, overwrite_b, lower):
    """What does not change from call to call for operands of these shapes and strides: the core's
    function with its `sizes`, threads, whether an operand starts where its memory does, and the
    outputs' shapes (None: in place) and whether to transpose them."""
    batch, m, n = a
    row = next((r for r in tuned()[routine][letter] if max(m, n) <= r["to"]), None)
    nrhs = 0 if b is None else 1 if len(b) == 2 else b[2]
    if (_batch is None or row is None or not batch * m * n
            or nrhs > tuned()["threads"]["NRHS"]):
        return None
    size = TYPES[letter].dtype.itemsize
    f, f_flipped, f_strides = _new(a, a_strides, size, overwrite_a)
    a_plain, b_plain = a_strides == (m * n * size, n * size, size), False
    x = x_flipped = None
    if routine == "geqrf":
        x, b_strides, x_strides = (batch, min(m, n)), (0, 0, 0), (min(m, n) * size, size, 0)
    elif b is None:
        b_strides = x_strides = (0, 0, 0)
    else:
        x, x_flipped, x_strides = _new(b, b_strides, size, overwrite_b)
        b_plain = b_strides == (n * nrhs * size, nrhs * size, size)[:len(b)]
    if lower:  # an upper triangle of the transpose; A^T
        a_strides, f_strides = ((s[0], s[2], s[1]) for s in (a_strides, f_strides))
    work = _worker(routine, letter, m, n, nrhs, row, lower, a_strides, f_strides, b_strides,
                   x_strides)
    return (work, batch, _threads(batch, row["US"]), a_plain, f, f_flipped, b_plain, x, x_flipped,
            (batch, min(m, n)) if routine == "getrf" else None)


def forget():
    """The table has changed, or the core: plans are made anew."""
    for plan in (_plan, _eigen_plan, _svd_plan):
        plan.cache_clear()


def _new(shape, strides, size, overwrite):
    """The shape of a result like an array of these strides, by columns if that is, whether to
    transpose it then, and its strides; no shape where it takes the array's place."""
    if overwrite:
        return None, False, strides
    if len(shape) == 2:
        return shape, False, (shape[1] * size, size)
    batch, m, n = shape
    if strides[2] > strides[1]:
        return (batch, n, m), True, (m * n * size, size, m * size)
    return shape, False, (m * n * size, n * size, size)


def _at(x):
    """Where an array starts, for C."""
    if x.flags.c_contiguous:
        return _start(x)
    return ffi.cast("void *", x.ctypes.data)


# -- LAPACK over a batch


class Columns:
    """An argument of `each`: matrices that LAPACK sees by columns whatever their strides. It works
    on a copy of `source`, and the copy is written to `target`; either may be None."""

    def __init__(self, source, target=None):
        self.source, self.target = source, target
        self.like = target if source is None else source

    def in_place(self):
        """The memory LAPACK may work in directly, if there is such."""
        a, size = self.like, self.like.itemsize
        by_columns = a.strides[1:] == (size, size * a.shape[1])
        return a if self.source is self.target and by_columns and a.flags.aligned else None


class Scratch:
    """An argument of `each`: `size` numbers of memory that no two threads share."""

    def __init__(self, size, dtype):
        self.bytes = max(1, size) * np.dtype(dtype).itemsize


def each(routine, batch, n, *arguments):
    """Call `routine` of LAPACK or BLAS for every member; the (batch,) infos, of BLAS zeros.

    An int or str argument is the same in every call; of an array, call k gets member k; see also
    `Columns` and `Scratch`. `n`, the order of the members, decides whether they share the cores.
    """
    info = np.zeros(batch, _lapack.INT)
    arguments = [_direct(x) for x in arguments]
    if _lapack.argument_count(routine) > len(arguments):
        arguments.append(info)
    if _batch:
        threads = _parts(batch, n, routine)
        following = ffi.new("ptrdiff_t *") if threads > 1 else NULL
        share = _share(batch, threads) if threads > 1 else batch
        calls = [_prepared(routine, arguments) for _ in range(threads)]

        def run():
            call, _ = calls.pop()
            _batch.lib.lapack(*call, batch, share, following)

        run() if threads == 1 else _together(threads, run)
    else:
        _in_python(routine, batch, _parts(batch, n, routine), arguments)
    if _trace._open:
        _trace.note("lapack")
    return info if info.dtype == np.int32 else info.astype(np.int32)


def _direct(x):
    """The array itself for `Columns` that LAPACK may work on where they are."""
    if x.__class__ is Columns:
        a = x.in_place()
        return x if a is None else a
    return x


def _parts(batch, n, routine="other"):
    """How many threads share a batch of members of order n: one where LAPACK has its own."""
    table = tuned()["lapack"]
    row = next((r for r in table.get(routine[1:], table["other"]) if n <= r["to"]), None)
    return _threads(batch, row["US"]) if row else 1


def _prepared(routine, arguments):
    """The C loop's arguments for one thread, up to its count, and the memory they point to."""
    pointers, steps, turned, turned_steps, keep = [], [], [], [], []
    for place, x in enumerate(arguments):
        if x.__class__ is np.ndarray:
            pointers.append(_at(x))
            steps.append(x.strides[0])
            continue
        steps.append(0)
        if x.__class__ is Columns:
            _, rows, columns = x.like.shape
            keep.append(np.empty(max(1, rows * columns), x.like.dtype))
            pointers.append(ffi.from_buffer(keep[-1]))
            turned += [place, rows, columns, x.like.itemsize]
            for a in (x.source, x.target):
                turned += [0, 0, 0] if a is None else [a.ctypes.data, *a.strides[1:]]
                turned_steps.append(0 if a is None else a.strides[0])
        elif x.__class__ is Scratch:
            keep.append(np.empty(x.bytes, np.uint8))
            pointers.append(ffi.from_buffer(keep[-1]))
        else:
            pointers.append(_constant(x))
    keep.append(pointers)
    count = len(turned_steps) // 2
    return (_lapack.address(routine), len(pointers), ffi.new("void *[]", pointers),
            ffi.new("ptrdiff_t[]", steps), count,
            ffi.new("ptrdiff_t[]", turned) if count else NULL,
            ffi.new("ptrdiff_t[]", turned_steps) if count else NULL), keep


@lru_cache(4096)
def _constant(x):
    """The cell of an argument that LAPACK only reads."""
    if isinstance(x, str):
        return ffi.new("char[]", x.encode())
    return ffi.new(f"int{8 * _lapack.INT.itemsize}_t[1]", [int(x)])


def _in_python(routine, batch, parts, arguments):
    """`each` without the compiled loop."""
    copies = [(x, np.array(x.like.transpose(0, 2, 1), order="C"))
              for x in arguments if x.__class__ is Columns]
    works = iter(copies)
    shared = [next(works)[1] if x.__class__ is Columns else x for x in arguments]
    f = _lapack.by_address(routine)
    edges = [batch * i // parts for i in range(parts + 1)]

    def run(part):
        lo, hi = edges[part], edges[part + 1]
        keep, moving = [], []
        for x in shared:
            if x.__class__ is np.ndarray:
                start, step = x.ctypes.data + lo * x.strides[0], x.strides[0]
            else:
                memory = np.empty(x.bytes, np.uint8) if x.__class__ is Scratch else _cell(x)
                keep.append(memory)
                start, step = memory.ctypes.data, 0
            moving.append(range(start, start + (hi - lo) * step, step) if step and hi > lo
                          else repeat(start, hi - lo))
        for _ in map(f, *moving):
            pass

    jobs = [_pool().submit(run, part) for part in range(1, parts)]
    run(0)
    for job in jobs:
        job.result()
    for x, work in copies:
        if x.target is not None:
            x.target[...] = work.transpose(0, 2, 1)


def _cell(x):
    """The memory of a constant argument."""
    if isinstance(x, str):
        return np.frombuffer(x.encode() + b"\0", np.uint8)
    return np.array([x], _lapack.INT)


# -- stacks


def columns(a, overwrite):
    """A (batch, n, m) C-ordered stack whose members, read by columns, are those of `a`: the
    memory of `a` itself if it may be overwritten and lies so."""
    flipped = a.transpose(0, 2, 1)
    if overwrite and flipped.flags.c_contiguous and a.flags.aligned:
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
    stack = b if overwrite and b.flags.c_contiguous and b.flags.aligned else np.array(b, order="C")
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
    as it stands, by rows the transpose, whose triangles have changed sides. Which of the two a
    member's own strides say, so that it has the same bits alone."""
    if abs(a.strides[1]) < abs(a.strides[2]):
        return columns(a, overwrite).transpose(0, 2, 1), "UL"[bool(lower)], False
    work = a if overwrite and a.flags.c_contiguous and a.flags.aligned else np.array(a, order="C")
    return work, "LU"[bool(lower)], True
