"""Runs potrf_panel, built by `build` with run_lu's ENTRY, through its problems; for a process that
has the sanitizers:

    python -m tests.sim.run_panels LIBRARY KERNEL LETTER CONSTANTS n ...

As run.py: exact memory and four schedules. One block of threads makes all blocks of the matrix in
turn, and several that wait for each other make the same to the bit. Every order is factored as one
panel and as several, of both triangles, the other of which is full of nan; then with a pivot in the
midst that is not positive, and with nan.
"""

import json
import sys

import numpy as np

from blasx._spaces import potrf_panel_bytes

from .run import PASS, SCHEDULES, Memory, poisoned, positive, residual, same_under_all_schedules
from .run_lu import Simulated

SLOT = 160  # numbers (kernels/potrf_panel.cu)


def factored(sim, schedule, threads, a, lower, width, clean):
    """The factor, in place of a's `lower` triangle, and info; by so many blocks of threads. The
    last panel clears the other triangle if `clean`."""
    v = sim.constants
    n, side, item = len(a), 8 * v["TILES"], a.itemsize
    c, info = Memory(a[None], "F"), Memory(np.zeros(1, np.int32))
    view = c.array[0] if lower else c.array[0].T
    at, rs, cs, _ = c.matrix(not lower)
    for first in range(0, n, width * side):
        rows = -(-(n - first) // side)
        across = min(width, rows)
        count = rows * across - across * (across - 1) // 2
        blocks, diagonals = (poisoned((size,), a.dtype, "C") for size in (
            count * side * side, across * SLOT * v["TILES"]))
        flags = Memory(np.zeros(4 + rows + 3 * across, np.int32))
        sim.run(schedule, threads, potrf_panel_bytes(sim.letter, v),
                at + first * (rs + cs) * item, rs, cs, n - first, across, first,
                clean and across == rows, blocks.address, diagonals.address,
                flags.address, info.address)
        end = first + across * side
        if end < n:
            rest = view[end:, first:end]
            view[end:, end:] -= np.where(np.tri(n - end, dtype=bool), rest @ rest.conj().T, 0)
    return c.array[0].copy(), info.array.copy()


def problem(sim, rng, n, lower, width):
    full = positive(rng, sim.dtype, 1, n)[0]
    unread = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    for bad in (None, n // 2, 0, n - 1):
        a = full.copy()
        if bad is not None:
            a[bad, bad] = np.nan if bad == 0 else -1
        a[unread] = np.nan
        schedules = zip(SCHEDULES if bad is None else SCHEDULES[:1], (1, 2, 4, 3))
        outputs = [factored(sim, schedule, threads, a, lower, width, width != 2)
                   for schedule, threads in schedules]
        c, info = same_under_all_schedules(outputs)
        assert info[0] == (0 if bad is None else bad + 1), (n, lower, width, bad, info)
        assert ((c[unread] == 0) if width != 2 else np.isnan(c[unread])).all()
        if bad is None:
            half = np.tril(c) if lower else np.triu(c).conj().T
            error = residual(full, half, half.conj().T)
            assert error < PASS, (n, lower, width, error)


def main(library, kernel, letter, constants, *orders):
    sim = Simulated(library, kernel, letter, json.loads(constants))
    rng = np.random.default_rng(7)
    for turn, n in enumerate(map(int, orders)):
        for width in (1, 2, 100):
            problem(sim, rng, n, (turn + width) % 2, width)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
