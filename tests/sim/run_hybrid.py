"""getrf, geqrf and potrf by CPU and GPU together, on the simulated GPU of run_getrf.py:

    python -m tests.sim.run_hybrid FOLDER LETTER

What the host waits for is done when it does, as late as the streams allow or as soon.
"""

import ctypes
import itertools
import json
import os
import sys

import numpy as np
from scipy.linalg import lapack

from . import gpu, run_getrf

SHAPES = ((50, 50), (53, 34), (1, 40))
KERNELS = dict(getrf_panel=dict(CLUSTER=2, WARPS=1, ROWS=1, W=8), getrf_top=dict(WARPS=4),
               getrf_rows=dict(COLUMNS=8, WARPS=2, BLOCKS=1),
               geqrf_leaf=dict(CLUSTER=2, WARPS=2, ROWS=1, COLUMNS=2), geqrf_t=dict(WARPS=4),
               **{f"{x}_hybrid": dict(WIDTH=12) for x in ("getrf", "potrf", "geqrf")})


def install(folder):
    """Its streams, and copies between the memories, in them."""
    streams = run_getrf.install(folder)
    import cupy
    cuda = cupy.cuda

    def copy(to, to_pitch, from_, from_pitch, width, height, kind, stream):
        def run():
            for i in range(height):
                ctypes.memmove(to + i * to_pitch, from_ + i * from_pitch, width)
        run_getrf.Stream.current.todo.append((None, run))

    def synchronize(stream):
        while stream.todo:
            free = [s for s in streams if s.todo and (s.todo[0][0] is None or s.todo[0][0].done)]
            assert free, "the streams wait for each other"
            (free[0] if install.eager else stream if stream in free else free[0]).todo.pop(0)[1]()

    ticks = itertools.count()

    class Event:
        """At which step of the streams it came, a millisecond each."""

        def __init__(self, **_):
            self.at = None

        @property
        def done(self):
            return self.at is not None

        @done.setter
        def done(self, _):
            self.at = next(ticks)

        def synchronize(self):
            synchronize(run_getrf.Stream.current)

    cuda.Event, cuda.get_elapsed_time = Event, lambda first, last: last.at - first.at
    cuda.alloc_pinned_memory = lambda nbytes: (ctypes.c_char * nbytes)()
    cuda.runtime.memcpy2DAsync = copy
    run_getrf.Stream.synchronize = synchronize
    return streams


def ran(streams, a, call):
    """What `call` gives of a matrix inside a frame that must stay as it is: the same to the bit
    whichever stream goes first."""
    import cupy
    found = []
    for install.eager in (False, True):
        room = cupy.array(np.full((a.shape[0] + 3, a.shape[1] + 2), 7, a.dtype, "F"))
        view = room[2:-1, 1:-1]
        view[...] = a
        outputs = call(view)
        run_getrf.finish(streams, run_getrf.ORDERS[install.eager])
        run_getrf.Kept.all.clear()
        found.append([np.array(x) for x in outputs])
        frame = np.array(room)
        frame[2:-1, 1:-1] = 7
        assert (frame == 7).all()
    assert all(np.array_equal(x, y) for x, y in zip(*found))
    return found[0]


def drawn(t, file):
    """[(row, name of the step, ...), ...] of a timeline, whose rows have a step at a time."""
    t.timeline(file)
    with open(file) as f:
        events = json.load(f)["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    steps = [(rows[e["tid"]], e["name"], e["ts"], e["ts"] + e["dur"]) for e in events
             if e["ph"] == "X"]
    for row in rows.values():
        own = [(began, ended) for r, _, began, ended in steps if r == row]
        assert own and all(x <= y for x, y in own) and own == sorted(own)
        assert all(x[1] <= y[0] for x, y in itertools.pairwise(own))
    return steps


def timeline(streams, getrf, a, folder):
    """Of a call: the CPU's panels, what is ahead, and what is not."""
    import cupy

    import blasx
    with blasx.trace() as t:
        getrf(cupy.array(np.asfortranarray(a)), 1, mode="hybrid")
    run_getrf.finish(streams, run_getrf.ORDERS[0])
    steps = drawn(t, f"{folder}/timeline.json")
    assert {row for row, *_ in steps} == {"GPU", "GPU, ahead", "CPU"}
    names = [name for row, name, *_ in steps if row == "CPU"]
    assert names == [f"panel {j}" for j in range(0, 50, 12)]
    ahead = [name for row, name, *_ in steps if row == "GPU, ahead"]
    assert ahead[:2] == ["receive 0", "send 0"] and "update 12" in ahead
    assert {"solve 24", "update 24", "swap 0"} <= {name for row, name, *_ in steps if row == "GPU"}
    t.timeline(f"{folder}/timeline.png")
    with open(f"{folder}/timeline.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


def near(x, y):
    assert np.abs(x - y).max() <= 60 * len(y) * np.finfo(y.dtype).eps * max(np.abs(y).max(), 1)


def main(folder, letter):
    streams = install(folder)
    import blasx
    from blasx import _tuned
    getrf, geqrf, potrf = (getattr(blasx, letter + x) for x in ("getrf", "geqrf", "potrf"))
    rng, dtype = np.random.default_rng(3), np.dtype(getrf.dtype)
    with _tuned.using(letter, **KERNELS):
        for m, n in SHAPES:
            for a in run_getrf.matrices(rng, dtype, m, n):
                found = ran(streams, a, lambda x: getrf(x, 1, mode="hybrid"))
                run_getrf.check(letter, a, *found)
                qr, tau = ran(streams, a, lambda x: geqrf(x, overwrite_a=1, mode="hybrid")[:2])
                right = getattr(lapack, letter + "geqrf")(a)
                near(np.triu(qr), np.triu(right[0]))
                if a.all():
                    near(qr, right[0])
                    near(tau, right[1])
        for n, lower in ((1, 0), (12, 1), (50, 0), (53, 1)):
            a = next(run_getrf.matrices(rng, dtype, n, n))
            h = (a @ a.conj().T + n * np.eye(n)).astype(dtype)
            bad = h.copy()
            bad[n // 2, n // 2] = -1
            for x in (h, bad):
                c, info = ran(streams, x, lambda y: potrf(y, lower, 0, 1, mode="hybrid"))
                right, expected = getattr(lapack, letter + "potrf")(x, lower, 0)
                assert info == expected
                if not info:
                    near(c, right)
        timeline(streams, getrf, next(run_getrf.matrices(rng, dtype, 50, 50)), folder)
    print("ok", letter)


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_hybrid", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
