"""getrf of one large matrix on a simulated GPU (tests/sim/gpu.py), products by the CPU's BLAS:

    python -m tests.sim.run_getrf FOLDER LETTER

Launches and products wait in their streams until the call has returned. Then they run in any order
that the events allow: the caller's stream as far as it goes and the other when it must, the other
way round, and by chance; whichever it is, the factors are the same to the bit.
"""

import ctypes
import os
import random
import sys
from types import SimpleNamespace

import numpy as np
from scipy.linalg import lapack

from . import gpu

SHAPES = ((50, 50), (53, 34), (35, 60), (1, 40), (40, 1))
PLANS = (dict(block=12, panel=8, ahead=1), dict(block=40, panel=24, ahead=0),
         dict(joined=16, block=8, panel=8, ahead=1),
         dict(joined=16, block=8, panel=8, ahead=1, lead=1),
         dict(joined=20, block=8, panel=6, strip=4, ahead=1, lead=1),
         dict(joined=20, block=8, panel=6, strip=4, ahead=1, lead=1, between=1, begins=8),
         dict(joined=16, block=8, panel=8, ahead=1, between=1))


ORDERS = (lambda x: x[0], lambda x: x[-1], random.Random(5).choice)


class Stream:
    """What is to be done, in order."""

    current = None

    def __init__(self, **_):
        self.todo, self.ptr = [], 0

    def __enter__(self):
        self.before, Stream.current = Stream.current, self

    def __exit__(self, *error):
        Stream.current = self.before

    def is_capturing(self):
        return False

    def record(self, event):
        self.todo.append((None, lambda: setattr(event, "done", True)))
        return event

    def wait_event(self, event):
        self.todo.append((event, lambda: None))


def finish(streams, order):
    """Do what is in the streams, of those that can go on the one that `order` picks."""
    while any(stream.todo for stream in streams):
        free = [s for s in streams if s.todo and (s.todo[0][0] is None or s.todo[0][0].done)]
        assert free, "the streams wait for each other"
        order(free).todo.pop(0)[1]()


class Kept(gpu.Memory):
    """What is given back while its work still waits stays, as in CuPy's pool."""

    all = []

    def __init__(self, *of):
        super().__init__(*of)
        Kept.all.append(self.whole)


def install(folder):
    """The simulated GPU, where nothing runs before `finish`; returns its streams."""
    gpu.Memory = Kept
    kernels = gpu.install(folder)
    import cupy

    from blasx import _cuda, _kernel
    from blasx.large import _blocks, lu
    from tests import cublas_on_cpu
    streams = [Stream(), Stream(), Stream()]
    Stream.current = streams[0]
    cupy.cuda.get_current_stream = _cuda.get_current_stream = lambda: Stream.current
    cupy.cuda.Event = lambda **_: SimpleNamespace(done=False)
    _blocks.stream = lu.stream = lambda device, priority=_blocks.FIRST: streams[
        1 if priority == _blocks.FIRST else 2]
    cells = ctypes.addressof(ctypes.c_char.from_buffer(_kernel._local.cells))

    def launch(kernel, *x):
        parameters = bytes(_kernel._local.cells)

        def run():
            ctypes.memmove(cells, parameters, len(parameters))
            kernels.launch(kernel, *x)

        Stream.current.todo.append((None, run))

    _kernel.Kernel.launch = launch
    _cuda.blas = lambda *x: Stream.current.todo.append((None, lambda: cublas_on_cpu.call(*x)))
    return streams


def matrices(rng, dtype, m, n):
    a = rng.standard_normal((m, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal((m, n))
    yield a.astype(dtype)
    if m == n:
        singular = a.astype(dtype)
        singular[:, 25] = 0
        yield singular


def main(folder, letter):
    streams = install(folder)
    import cupy

    import blasx
    from blasx import _tuned
    getrf, rng = getattr(blasx, letter + "getrf"), np.random.default_rng(3)
    for plan in PLANS:
        values = dict(getrf_panel=dict(CLUSTER=2, WARPS=1, ROWS=1, W=8), getrf_top=dict(WARPS=4),
                      getrf_columns=dict(BYTES=4, WARPS=1),
                      getrf_moved=dict(WARPS=1, STAGES=2, COLUMNS=5),
                      getrf_rows=dict(COLUMNS=8, WARPS=2, BLOCKS=1) | plan)
        with _tuned.using(letter, **values):
            for m, n in SHAPES:
                for a in matrices(rng, np.dtype(getrf.dtype), m, n):
                    found = []
                    for order in ORDERS:
                        room = cupy.array(np.full((m + 3, n + 2), 7, a.dtype, "F"))
                        view = room[2:-1, 1:-1]
                        view[...] = a
                        with blasx.trace() as trace:
                            lu, piv, info = getrf(view, 1, mode="native")
                        finish(streams, order)
                        Kept.all.clear()
                        assert lu is view and "cusolver" not in str(trace), trace
                        frame = np.array(room)
                        frame[2:-1, 1:-1] = 7
                        assert (frame == 7).all()
                        found.append((np.array(lu), np.array(piv), int(info)))
                    for other in found[1:]:
                        assert all(np.array_equal(x, y) for x, y in zip(found[0], other))
                    check(letter, a, *found[0])
    print("ok", letter)


def check(letter, a, lu, piv, info):
    right, pivots, expected = getattr(lapack, letter + "getrf")(a)
    eps = np.finfo(a.dtype).eps
    if expected:
        assert info == expected
        return
    assert info == 0 and np.array_equal(piv, pivots), (a.shape, info, piv, pivots)
    assert abs(lu - right).max() <= 3e4 * eps * abs(right).max()


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_getrf", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
