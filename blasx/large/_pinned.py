"""Memory of the host that the GPU reaches by itself, and copies through it.

What the caller has is not such memory: a piece of it is gathered into some that is (scattered from
it), while other pieces are on their way. Each thread that does so has a stream, which it keeps from
call to call; threads that send and threads that receive are different ones, as the two directions
do not wait for each other. They are the core's, which never ask for Python's lock (core/copies.h),
or, where there is no compiled core, Python's.
"""

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import cupy
import numpy as np

from .. import _trace
from .._kernel import driver_functions, gpu
from .._tuned import looked_up, row
from ._blocks import FIRST

try:
    from .. import _batch
except ImportError:
    _batch = None

PAGE = 4096
TO_DEVICE, TO_HOST, IN_DEVICE = 1, 2, 3  # cudaMemcpyKind


class Pinned:
    """Memory for so many numbers."""

    def __init__(self, numbers, dtype):
        self.memory = cupy.cuda.alloc_pinned_memory(max(numbers, 1) * dtype.itemsize)
        self.numbers = np.frombuffer(self.memory, dtype, numbers)

    def matrix(self, m, n):
        """An m x n matrix by columns at its beginning."""
        return self.numbers[:m * n].reshape(n, m).T


def fetch(x, address, ld):
    """x := the matrix at that address, columns `ld` numbers apart; waits for it."""
    copy(x.ctypes.data, len(x), address, ld, x, TO_HOST)
    cupy.cuda.get_current_stream().synchronize()
    _trace.note(transferred=x.nbytes, synced=1)


def send(x, address, ld):
    """The matrix at that address := x, which must stay what it is until the stream is there."""
    copy(address, ld, x.ctypes.data, x.strides[1] // x.itemsize, x, TO_DEVICE)
    _trace.note(transferred=x.nbytes)


def copy(to, to_ld, from_, from_ld, x, kind):
    """What is like `x`, columns so many numbers apart on either side, in the current stream."""
    size, (m, n) = x.itemsize, x.shape
    cupy.cuda.runtime.memcpy2DAsync(to, to_ld * size, from_, from_ld * size, m * size, n, kind,
                                    cupy.cuda.get_current_stream().ptr)


class Copies:
    """Threads that copy in one direction, to or from one GPU, so many pages at a time."""

    def __init__(self, device, name, threads, pages):
        self.device, self.name, self.bytes = device, name, PAGE * pages
        self.pool = ThreadPoolExecutor(threads, f"blasx-{name}")
        self.own, self.number = threading.local(), count()

    def extents(self, x):
        """Rows and columns of a piece."""
        high = min(len(x), max(self.bytes // x.itemsize, 1))
        return high, max(self.bytes // (x.itemsize * max(high, 1)), 1)

    def begin(self, x, address, ld, column, after):
        """Begin to copy between the caller's matrix `x` and the one on the GPU at that address,
        after an event, if there is one; what has a `result` when it has been copied."""
        m, n = x.shape
        _trace.note(transferred=x.nbytes)
        high, wide = self.extents(x)
        return [self.pool.submit(
            self.piece, _trace.call_here(), x[i:i + high, j:j + wide],
            address + (i + j * ld) * x.itemsize, ld, column, after)
            for j in range(0, n, wide) for i in range(0, m, max(high, 1))]

    def join(self, begun):
        """Have the current stream wait for what has begun, as the host does here."""
        for future in begun:
            future.result()

    def piece(self, call, x, address, ld, column, after):
        own = self.own.__dict__
        with _trace.part_of(call), cupy.cuda.Device(self.device):
            if not own:
                own.update(stream=cupy.cuda.Stream(non_blocking=True), row=next(self.number),
                           room=Pinned(self.bytes, np.dtype(np.uint8)))
            stream, row = own["stream"], own["row"]
            here = np.frombuffer(own["room"].memory, x.dtype, x.size)
            here, row = here.reshape(x.shape[::-1]).T, f"{self.name} {row}"
            with stream:
                if after:
                    stream.wait_event(after)
                if self.name == "send":
                    with _trace.step("gather", column, f"CPU, {row}", False):
                        np.copyto(here, x)
                    with _trace.step("send", column, f"GPU, {row}"):
                        copy(address, ld, here.ctypes.data, len(here), here, TO_DEVICE)
                    stream.synchronize()
                else:
                    with _trace.step("receive", column, f"GPU, {row}"):
                        copy(here.ctypes.data, len(here), address, ld, here, TO_HOST)
                    stream.synchronize()
                    with _trace.step("scatter", column, f"CPU, {row}", False):
                        np.copyto(x, here)


class CopiesByCore(Copies):
    """The same by threads of the core, of matrices whose columns lie in one piece."""

    def __init__(self, device, name, threads, pages):
        super().__init__(device, name, threads, pages)
        self.queue = _batch.ffi.new("queue *")
        _batch.lib.open_queue(self.queue, name == "send", driver_functions(
            "cuStreamWaitEvent", "cuMemcpy2DAsync_v2", "cuStreamBatchMemOp_v2", "cuStreamQuery"))
        weakref.finalize(self, _batch.lib.close_queue, self.queue).atexit = False
        for i in range(threads):
            with cupy.cuda.Device(device):
                room = Pinned(2 * self.bytes, np.dtype(np.uint8))
                # what tells that a piece is there does not wait for room among kernels
                stream = cupy.cuda.Stream(non_blocking=True, priority=FIRST)
            threading.Thread(target=_serve, daemon=True, args=(
                device, self.queue, (room, stream), _pointer(room.numbers.ctypes.data),
                self.bytes, _pointer(stream.ptr), i)).start()

    def begin(self, x, address, ld, column, after):
        (m, n), size = x.shape, x.itemsize
        if x.strides[0] != size or not x.size:
            return super().begin(x, address, ld, column, after)
        _trace.note(transferred=x.nbytes)
        high, wide = self.extents(x)
        begun = Begun(self, x, column, after, -(-m // high) * -(-n // wide))
        _batch.lib.offer(self.queue, begun.pieces, begun.there, _pointer(x.ctypes.data),
                         x.strides[1], _pointer(address), ld * size, m * size, n, high * size,
                         wide, _pointer(after.ptr if after else 0))
        return [begun]

    def join(self, begun):
        """Have the current stream wait for what has begun, and the host until it is on its way."""
        for future in begun:
            if isinstance(future, Begun):
                future.join(cupy.cuda.get_current_stream())
            else:
                future.result()


def _serve(device, queue, held, *how):
    """Until the queue is closed, what is `held` is what threads of the core work with."""
    cupy.cuda.Device(device).use()
    _batch.lib.serve(queue, *how)


def _pointer(address):
    return _batch.ffi.cast("void *", address)


class Begun:
    """A matrix that threads of the core copy, in so many pieces."""

    def __init__(self, copies, x, column, after, count):
        self.copies, self.kept, self.column, self.count = copies, (x, after), column, count
        self.pieces, self.call = _batch.ffi.new("piece[]", count), _trace.call_here()
        self.words = Pinned(count, np.dtype(np.uint32))
        self.there = _batch.ffi.from_buffer("uint32_t[]", self.words.numbers, True)

    def join(self, stream):
        self.check(_batch.lib.joined(self.copies.queue, self.pieces, self.count,
                                     _pointer(stream.ptr)))

    def result(self):
        error = _batch.lib.awaited(self.copies.queue, self.pieces, self.count)
        call, self.call = self.call, None
        with _trace.part_of(call):
            for piece in self.pieces if call else ():
                self.note(f"{self.copies.name} {piece.server}", *piece.times)
        self.check(error)

    def check(self, error):
        if error:
            raise RuntimeError(f"{self.copies.name}: the driver returned status {error}")

    def note(self, row, began, between, ended):
        """The steps of a piece; those on the GPU have an end when a thread has seen it."""
        parts = [(f"CPU, {row}", began, between), (f"GPU, {row}", between, ended)]
        names = "gather", "send"
        if self.copies.name == "receive":
            parts = [(f"GPU, {row}", began, between), (f"CPU, {row}", between, ended)]
            names = "receive", "scatter"
        for name, part in zip(names, parts):
            _trace.past(name, self.column, *part)

    def cancel(self):
        _batch.lib.withdraw(self.copies.queue, self.pieces, self.count)


def copies(n, device):
    """What sends a matrix of that order to a device, and what receives it from there."""
    found = plan(n, device)
    return _copies(device, found["THREADS"], found["PIECE"])


@looked_up
def _copies(device, threads, pages):
    kind = CopiesByCore if _batch else Copies
    return [kind(device, name, threads, pages) for name in ("send", "receive")]


@looked_up
def plan(n, device):
    """The row for matrices of order n: THREADS, and pages to a PIECE; BLOCK, columns of a block
    where nothing else says so; how many blocks join, `pace`, and with which of those that are
    applied, `every` so many; with how many of these they are `apart` (host.py); `rows`, how many
    blocks of rows of an LU go back together, but for the last."""
    return row("host_copies", "d", n, gpu(device))
