"""Memory of the host that the GPU reaches by itself, and copies through it.

What the caller has is not such memory: a piece of it is gathered into some that is (scattered from
it), while other pieces are on their way. Each thread that does so has one piece, and a stream,
which it keeps from call to call; threads that send and threads that receive are different ones, as
the two directions do not wait for each other.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import cupy
import numpy as np

from .. import _trace
from .._kernel import gpu
from .._tuned import looked_up, row

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
        self.rooms = [Pinned(self.bytes, np.dtype(np.uint8)) for _ in range(threads)]
        self.own, self.number = threading.local(), count()

    def begin(self, x, address, ld, column, after):
        """Begin to copy between the caller's matrix `x` and the one on the GPU at that address,
        after an event; futures that are done when it has been copied."""
        m, n = x.shape
        _trace.note(transferred=x.nbytes)
        high = min(m, max(self.bytes // x.itemsize, 1))
        wide = max(self.bytes // (x.itemsize * max(high, 1)), 1)
        return [self.pool.submit(
            self.piece, _trace.call_here(), x[i:i + high, j:j + wide],
            address + (i + j * ld) * x.itemsize, ld, column, after)
            for j in range(0, n, wide) for i in range(0, m, max(high, 1))]

    def piece(self, call, x, address, ld, column, after):
        own = self.own.__dict__
        with _trace.part_of(call), cupy.cuda.Device(self.device):
            if not own:
                own.update(stream=cupy.cuda.Stream(non_blocking=True), row=next(self.number))
            stream, row = own["stream"], own["row"]
            here = np.frombuffer(self.rooms[row].memory, x.dtype, x.size)
            here, row = here.reshape(x.shape[::-1]).T, f"{self.name} {row}"
            with stream:
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


@looked_up
def copies(device):
    """What sends to a device and what receives from it."""
    threads, pages = plan(device)["THREADS"], plan(device)["PIECE"]
    return [Copies(device, name, threads, pages) for name in ("send", "receive")]


@looked_up
def plan(device):
    """The row of the table: THREADS, and pages to a PIECE; BLOCK, columns of a block where nothing
    else says so; `pace`, how many blocks join with each that is factored."""
    return row("host_copies", "d", 1, gpu(device))
