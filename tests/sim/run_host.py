"""Matrices of the host's memory, factored and multiplied on the simulated GPU of run_hybrid.py:

    python -m tests.sim.run_host FOLDER LETTER [all]

Pieces are copied as soon as they may be, or when somebody waits for them, and streams go on as soon
or as late; with room for the whole matrix and for windows of it. The results are the same to the
bit with the same room, and memory is asked for within the limit, before anything is touched.
"""

import ctypes
import gc
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import SimpleNamespace
from unittest import mock

import numpy as np
from scipy.linalg import lapack

from . import gpu, run_getrf, run_hybrid

SHAPES = ((50, 50), (53, 34), (35, 60), (1, 13))
KERNELS = {k: run_hybrid.KERNELS[k] for k in ("getrf_panel", "getrf_top")} | dict(
    getrf_rows=dict(COLUMNS=8, WARPS=2, BLOCKS=1, block=12, panel=8, ahead=1),
    potrf_panel=dict(TILES=2, WARPS=2, WR=1, GROUPS=1, DEPTH=1, STAGES=3, BLOCKS=1, TWOFOLD=0),
    gemm_small=None, gemm_tiled=None)  # products are cuBLAS's
COPIES = dict(THREADS=1, PIECE=1, BLOCK=16, pace=1, apart=1)
PARTS = dict(getrf_rows=KERNELS["getrf_rows"] | dict(part=8, panel=6, strip=4),
             getrf_moved=dict(WARPS=1, STAGES=2, COLUMNS=5))


class Piece(Future):
    """What is done when it is asked for, or when somebody waits."""

    def __init__(self, work):
        super().__init__()
        self.work = work

    def result(self):
        if not self.done():
            try:
                self.set_result(self.work())
            except Exception as error:
                self.set_exception(error)
        return super().result()

    def cancel(self):
        return super().cancel() and not self.set_running_or_notify_cancel()


class Pool:
    late = False

    def __init__(self, *of):
        pass

    def submit(self, function, *of):
        piece = Piece(lambda: function(*of))
        if not Pool.late:
            piece.result()
        return piece


def install(folder):
    """Streams and pieces that wait, an account of memory; what sets their order."""
    streams = run_hybrid.install(folder)
    import cupy

    from blasx.large import _blocks, _pinned, host
    cuda, inner, asked = cupy.cuda, cupy.empty, []
    beside = {_blocks.FIRST: streams[1], _blocks.SECOND: streams[2],
              _blocks.THIRD: run_getrf.Stream()}
    streams.append(beside[_blocks.THIRD])
    _blocks.stream = host.stream = lambda device, priority=_blocks.FIRST: beside[priority]

    def stream(**_):
        streams.append(run_getrf.Stream())
        return streams[-1]

    def empty(shape, *of, **kw):
        if empty.left is not None:
            empty.left -= 1
            if empty.left < 0:
                raise MemoryError("out of memory")
        made = inner(shape, *of, **kw)
        asked.append(made.nbytes)
        return made

    empty.left, empty.asked, empty.free = None, asked, 2**40
    cupy.empty, cuda.Stream, _pinned.ThreadPoolExecutor = empty, stream, Pool
    _pinned._batch = None
    known = vars(cuda.Device())
    cuda.Device = lambda i=0: type("Device", (), {
        **known, "__enter__": lambda self: self, "__exit__": lambda self, *error: None})()
    cuda.runtime.memGetInfo = lambda: (empty.free, empty.free)
    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 0)
    return streams, empty


def ran(empty, call, operands, memory):
    """What `call` gives of copies of operands, views within frames that stay as they are; the same
    to the bit in whichever order things are done."""
    import cupy
    found = []
    for Pool.late, run_hybrid.install.eager in ran.orders:
        rooms, views = [], []
        for x in operands:
            rooms.append(np.full((x.shape[0] + 3, x.shape[1] + 2), 7, x.dtype, "F"))
            views.append(rooms[-1][2:-1, 1:-1])
            views[-1][...] = x
        empty.asked.clear()
        outputs = call(*views)
        assert memory is None or sum(empty.asked) <= memory, (sum(empty.asked), memory)
        assert not run_getrf.Stream.current.todo
        run_getrf.Kept.all.clear()
        found.append([np.array(x) for x in outputs])
        for room in rooms:
            room[2:-1, 1:-1] = 7
            assert (room == 7).all()
        assert not any(isinstance(x, cupy.ndarray) for x in outputs)
    for other in found[1:]:
        for x, y in zip(found[0], other):
            np.testing.assert_array_equal(x, y)
    return found[0]


def lu(empty, letter, rng, dtype, room, parts=1):
    import blasx
    getrf, gesv = (getattr(blasx, letter + x) for x in ("getrf", "gesv"))
    size = dtype.itemsize
    for m, n in SHAPES:
        order, count = min(m, n), -(-min(m, n) // 12)
        fixed = (count * parts + parts) * 32 * (32 * size + 8) + 4 * (order + 1)
        fixed += 4 * (count * m + 8) * (parts > 1)
        if letter == "s":
            fixed += (3 * m + 2 * (n + 21) + 12) * 84
        memory = room and fixed + room * -(-m // 32) * 32 * size
        for a in run_getrf.matrices(rng, dtype, m, n):
            found = ran(empty, lambda x: getrf(x, 1, device="gpu", memory=memory), [a], memory)
            run_getrf.check(letter, a, *found)
        empty.asked.clear()
        x, *_ = getrf(a, device="gpu", memory=memory)
        assert np.array_equal(x, found[0], equal_nan=True) and x is not a
        if m == n:
            for a in run_getrf.matrices(rng, dtype, m, n):
                b = a[:, :21] + 1
                more = memory and memory + (21 * -(-m // 32) * 32) * size * (room > 40)
                f, piv, x, info = ran(empty, lambda a, b: gesv(a, b, 1, 1, device="gpu",
                                                               memory=more), [a, b], more)
                right = getattr(lapack, letter + "gesv")(a, b)
                assert info == right[3]
                if info:
                    assert np.array_equal(x, b)
                else:
                    assert np.array_equal(piv, right[1])
                    run_hybrid.near(a @ x, b)


def cholesky(empty, letter, rng, dtype, room):
    import blasx
    potrf, posv = (getattr(blasx, letter + x) for x in ("potrf", "posv"))
    for n, lower in ((1, 0), (16, 1), (50, 0), (53, 1)):
        memory = room and dtype.itemsize * (3 * 16 * 16 + (room + 5) * -(-n // 32) * 32)
        a = next(run_getrf.matrices(rng, dtype, n, n))
        h = (a @ a.conj().T + n * np.eye(n)).astype(dtype)
        for bad in (None, -1, np.nan):
            x, b = h.copy(), a[:, :5] + 1
            other = np.tri(n, k=-1, dtype=bool)
            x[other.T if lower else other] = 3  # which nobody reads
            if bad is not None:
                x[n // 2, n // 2] = bad
            c, info = ran(empty, lambda x: potrf(x, lower, 0, 1, device="gpu", memory=memory), [x],
                          None)
            c2, y, info2 = ran(empty, lambda x, b: posv(x, b, lower, 1, 1, device="gpu",
                                                        memory=memory), [x, b], None)
            c3, info3 = ran(empty, lambda x: potrf(x, lower, 1, 1, device="gpu", memory=memory),
                            [x], None)
            assert np.array_equal(c3, np.where(other.T if lower else other, 0, c), equal_nan=True)
            assert info == info2 == info3 == (0 if bad is None else n // 2 + 1), (n, lower, bad)
            assert np.array_equal(c, c2, equal_nan=True)
            if info:
                assert np.array_equal(y, b)
                continue
            right = getattr(lapack, letter + "potrf")(x, lower, 0)[0]
            run_hybrid.near(c, right)
            assert (c[other.T if lower else other] == 3).all()
            run_hybrid.near(h @ y, b)


def products(empty, letter, rng, dtype, room):
    import blasx
    gemm = getattr(blasx, letter + "gemm")
    for m, n, k in ((50, 40, 30), (7, 61, 33), (33, 1, 65), (1, 1, 1)):
        a, b, c = (next(run_getrf.matrices(rng, dtype, *shape))
                   for shape in ((m, k), (k, n), (m, n)))
        memory = room and 40 * room * dtype.itemsize
        for trans_a, trans_b, beta in ((0, 0, 0), (1, 2, 2), (2, 0, -1)):
            x, y = a.T if trans_a else a, b.T if trans_b else b
            right = -2 * ((x.conj() if trans_a == 2 else x).T if trans_a else x) @ (
                (y.conj() if trans_b == 2 else y).T if trans_b else y) + beta * c
            z = np.full_like(c, np.nan) if beta == 0 else c
            found, = ran(empty, lambda x, y, z: (gemm(
                -2, x, y, beta, z, trans_a, trans_b, 1, device="gpu", memory=memory),), [x, y, z],
                memory)
            run_hybrid.near(found, right)


def refusals(empty, letter, rng, dtype):
    """An allocation that fails, wherever it does, leaves the matrix alone."""
    import blasx
    a = next(run_getrf.matrices(rng, dtype, 50, 50))
    h = (a @ a.conj().T + 50 * np.eye(50)).astype(dtype)
    getrf, gesv, potrf, posv, gemm = (getattr(blasx, letter + x)
                                      for x in ("getrf", "gesv", "potrf", "posv", "gemm"))
    calls = (lambda x, **kw: getrf(x, 1, **kw), lambda x, **kw: gesv(x, a[:, :3], 1, **kw),
             lambda x, **kw: potrf(x, 0, 0, 1, **kw), lambda x, **kw: posv(x, a[:, :3], 0, 1, **kw),
             lambda x, **kw: gemm(1, a, a, 1, x, overwrite_c=1, **kw))
    for call in calls:
        for left, memory in ((None, 20), (0, None), (1, None)):
            x, empty.left = h.copy(order="F"), left
            before = x.copy()
            try:
                call(x, device="gpu", memory=memory)
            except MemoryError as error:
                assert "bytes are missing" in str(error), error
                assert np.array_equal(x, before)
            else:
                raise AssertionError("no room, and no error")
            finally:
                empty.left = None
    empty.free = 2000
    try:
        getrf(a, device="gpu")
    except MemoryError as error:
        assert "1875 are there" in str(error), error
    else:
        raise AssertionError("no room, and no error")
    empty.free = 2**40


def timeline(letter, rng, dtype, folder):
    """Columns come, are gathered and sent; rows are received and scattered, before the end."""
    import blasx
    a = np.asfortranarray(next(run_getrf.matrices(rng, dtype, 50, 50)))
    with blasx.trace() as t:
        getattr(blasx, letter + "getrf")(a, 1, device="gpu")
    steps = run_hybrid.drawn(t, f"{folder}/host.json")
    called = {row.split(" ")[0] + name.split(" ")[0] for row, name, *_ in steps}
    assert called == {"CPU,gather", "CPU,scatter", "GPU,send", "GPU,receive", "GPU,panel",
                      "GPU,solve", "GPU,swap", "GPU,update"}, called
    assert {row for row, *_ in steps} >= {"GPU, ahead", "GPU, second", "GPU, third"}
    assert [name for _, name, *_ in steps if "send" in name][-1] == "send 48"
    call, = t.calls
    assert (call.device, call.transfers, call.syncs) == ("gpu:0", 2 * a.nbytes, 1)


def whole(letter, rng, dtype):
    """Where there are no kernels of ours the matrix goes to the GPU and comes back."""
    import cupy

    import blasx
    from blasx.large import lu

    def getrf(me, a, mode="auto"):
        a[...], piv, info = getattr(lapack, letter + "getrf")(a)
        return cupy.array(piv), cupy.array(info)

    def getrs(me, a, piv, b):
        b[...], _ = getattr(lapack, letter + "getrs")(a, piv, b)

    def potrf(me, a, lower, mode, clean):
        a[...], info = getattr(lapack, letter + "potrf")(a, lower, clean)
        return cupy.array(info)

    a = np.asfortranarray(next(run_getrf.matrices(rng, dtype, 20, 20)))
    h = (a @ a.conj().T + 20 * np.eye(20)).astype(dtype, order="F")
    with (mock.patch.multiple("blasx.lu", _getrf_gpu=getrf, _getrs_gpu=getrs),
          mock.patch("blasx.cholesky._potrf_gpu", potrf), mock.patch.object(
              lu, "plan", lambda *of: None)):
        x = a.copy(order="F")
        found = getattr(blasx, letter + "getrf")(x, 1, device="gpu")
        assert found[0] is x
        run_getrf.check(letter, a, *found)
        _, _, y, info = getattr(blasx, letter + "gesv")(a, a[:, :2], device="gpu")
        run_hybrid.near(y, np.eye(20, 2, dtype=dtype))
        c, info = getattr(blasx, letter + "potrf")(h, 1, device="gpu", mode="vendor")
        run_hybrid.near(c @ c.conj().T, h)
        try:
            getattr(blasx, letter + "gesv")(x, a, 1, device="gpu", memory=2 * a.nbytes - 1)
        except MemoryError as error:
            assert ": 1 bytes are missing" in str(error)
        else:
            raise AssertionError("no room, and no error")


def by_threads(rng):
    """Pieces by threads that are ones, of a matrix of any strides; what fails says so."""
    import cupy

    from blasx.large import _pinned

    def now(to, to_pitch, from_, from_pitch, width, height, kind, stream):
        for i in range(height):
            ctypes.memmove(to + i * to_pitch, from_ + i * from_pitch, width)

    cupy.cuda.runtime.memcpy2DAsync, cupy.cuda.Stream = now, lambda **_: gpu.Stream()
    _pinned.ThreadPoolExecutor = ThreadPoolExecutor
    for n in (8192, 16384):  # of each order its own row's
        pages = _pinned.plan(n, 0)["PIECE"]
        assert [x.bytes for x in _pinned.copies(n, 0)] == [_pinned.PAGE * pages] * 2
    send, receive = (_pinned.Copies(0, name, 4, 1) for name in ("send", "receive"))
    there = gpu.Array((331, 90), float, order="F")
    for x in (rng.standard_normal((700, 90))[::-2][:331], rng.standard_normal((90, 331)).T):
        there[...] = 0
        wait(send.begin(x, there.data.ptr, 331, 0, None))
        assert np.array_equal(x, there)
        back = np.zeros((340, 90))
        wait(receive.begin(back[5:336], there.data.ptr, 331, 0, None))
        assert np.array_equal(back[5:336], x) and not back[:5].any() and not back[336:].any()
    back.flags.writeable = False
    broken = receive.begin(back[:331], there.data.ptr, 331, 0, None)
    wait(broken)
    assert all("read-only" in str(x.exception()) for x in broken)


def by_the_core(rng):
    """The same by threads of the compiled core, with a driver of ours; what it returns is said, and
    what nobody has begun with is left out."""
    import cupy

    from blasx import _batch, _trace
    from blasx.large import _pinned
    from blasx.large.host import at_rest, done
    ffi, failing, steps, awaited, held = _batch.ffi, [], [], [], None

    @ffi.callback("int(void *, void *, unsigned)")
    def wait_event(stream, event, flags):
        steps.append("wait")
        return 0

    @ffi.callback("int(void *, void *)")
    def copy(what, stream):
        words = ffi.cast("size_t *", what)
        (kind, host, device, step), (to_kind, to_host, to, to_step) = (
            [words[i + k] for k in (2, 3, 4, 6)] for i in (0, 7))
        kind, to_kind = kind % 2**32, to_kind % 2**32  # padding follows
        assert (kind, to_kind) in ((1, 2), (2, 1)), (kind, to_kind)
        assert not any(words[i] for i in (0, 1, 7, 8))
        for i in range(words[15]):
            ctypes.memmove((to_host if to_kind == 1 else to) + i * to_step,
                           (host if kind == 1 else device) + i * step, words[14])
        return failing[0] if failing else 0

    @ffi.callback("int(void *, unsigned, void *, unsigned)")
    def operate(stream, count, operations, flags):
        """Each waits for a word of at least 1, or writes it, which may be later."""
        words = ffi.cast("uint64_t *", operations)
        for what, word, value in (words[6 * i:6 * i + 3] for i in range(count)):
            assert what % 2**32 in (1, 2) and value == 1
            word = ffi.cast("uint32_t *", word)
            if what % 2**32 == 1:
                awaited.append(word)
            elif held is not None:
                held.append(word)
            else:
                word[0] = value
        return 0

    @ffi.callback("int(void *)")
    def query(stream):
        return 600

    def sent(send, x):
        begun = send.begin(x, there.data.ptr, 331, 5, here)
        send.join(begun)
        done(begun)
        assert len(awaited) <= (90 if x.strides[0] == 8 else 0)
        awaited.clear()

    address = [int(ffi.cast("uintptr_t", f)) for f in (wait_event, copy, operate, query)]
    here = SimpleNamespace(ptr=0)
    cupy.cuda.Stream, cupy.cuda.Event = (lambda **_: gpu.Stream()), (lambda **_: here)
    cupy.cuda.Device = lambda i=0: type("Device", (), {
        "use": lambda self: None, "__enter__": lambda self: self,
        "__exit__": lambda self, *error: None})()
    with mock.patch.multiple(_pinned, _batch=_batch, driver_functions=lambda *names: address):
        send, receive = (_pinned.CopiesByCore(0, name, 3, 1) for name in ("send", "receive"))
        there = gpu.Array((331, 90), float, order="F")
        frame = rng.standard_normal((340, 92)).T.copy().T
        for x in (frame[4:335, 1:91], rng.standard_normal((331, 90)), frame[4:335, 90:0:-1]):
            there[...] = 0
            with _trace.trace() as t:
                _trace.recorded("sent", lambda x=x, send=send: sent(send, x))
            assert np.array_equal(x, there)
            if x.strides[0] == 8:
                assert {s.name for s in t.calls[0].steps} == {"gather", "send"}
                assert all(s.began <= s.ended for s in t.calls[0].steps)
            for back in (np.zeros((342, 90), order="F"), np.zeros((342, 90))):
                done(receive.begin(back[6:337], there.data.ptr, 331, 0, here))
                assert np.array_equal(back[6:337], x) and not back[:6].any()
                assert not back[337:].any()
        held = []
        begun = send.begin(frame[4:335, 1:7], there.data.ptr, 331, 5, here)
        send.join(begun)  # on their way, two to a thread, and not there
        assert set(awaited) == set(held) and len(awaited) == 6
        for word in held:
            word[0] = 1
        done(begun)
        held = None
        awaited.clear()
        failing.append(999)
        broken = send.begin(frame[:331, :90], there.data.ptr, 331, 0, here)
        for wait_for in send.join, done:
            try:
                wait_for(broken)
            except RuntimeError as error:
                assert "999" in str(error)
            else:
                raise AssertionError("the driver failed, and no error")
        assert not awaited
        failing.clear()
        for _ in range(20):
            begun = [f for _ in range(9) for f in send.begin(
                frame[4:335, 1:91], there.data.ptr, 331, 0, here)]
            at_rest(begun)
        done(send.begin(frame[4:335, 1:91], there.data.ptr, 331, 0, here))
        assert np.array_equal(frame[4:335, 1:91], there)
        serving = [x for x in threading.enumerate() if "_serve" in x.name]
        assert len(serving) == 6
        del send, receive, begun, broken
        gc.collect()
        for thread in serving:
            thread.join(20)
            assert not thread.is_alive()


def main(folder, letter, *every):
    orders, rooms = ((0, 1), (1, 0)), ((2, None), (1, 37))
    if every:
        orders, rooms = (*orders, (0, 0), (1, 1)), (*rooms, (1, None), (1, 61))
    ran.orders = orders
    streams, empty = install(folder)
    import blasx
    from blasx import _tuned
    from testing.__main__ import main as testing
    rng, dtype = np.random.default_rng(3), np.dtype(getattr(blasx, letter + "getrf").dtype)
    with _tuned.using(letter, **KERNELS):
        for pace, room in rooms:
            with _tuned.using("d", host_copies=COPIES | dict(pace=2 * pace, every=pace, apart=pace,
                                                        rows=pace)):
                lu(empty, letter, rng, dtype, room)
                cholesky(empty, letter, rng, dtype, room and room + 16)
                products(empty, letter, rng, dtype, room)
                with _tuned.using(letter, **PARTS):
                    lu(empty, letter, rng, dtype, room, 2)
        with _tuned.using("d", host_copies=COPIES):
            timeline(letter, rng, dtype, folder)
            refusals(empty, letter, rng, dtype)
            for name in ("getrf", "potrf", "gesv", "posv", "gemm"):
                asked = f"{letter}{name} -n 40 --nrhs 3 --check --host --memory 122000"
                status = testing(f"{asked} --device gpu --niter 1 --nowarmup".split())
                assert status == 0, name
    whole(letter, rng, dtype)
    by_threads(rng)
    by_the_core(rng)
    print("ok", letter)


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_host", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
