"""geqrf of one large matrix on a simulated GPU, as run_getrf.py does it:

    python -m tests.sim.run_geqrf FOLDER LETTER
"""

import os
import random
import sys

import numpy as np

from . import gpu
from .run_getrf import Kept, finish, install, matrices
from .run_qr import check_factors

LEAF = dict(CLUSTER=2, WARPS=3, ROWS=2, COLUMNS=2)
SHAPES = ((40, 40), (45, 20), (21, 40), (1, 9))
PLANS = (dict(block=16, panel=8, ahead=1), dict(block=16, panel=16, ahead=1),
         dict(block=24, panel=16, ahead=0))



def main(folder, letter):
    streams = install(folder)
    import cupy

    import blasx
    from blasx import _tuned
    geqrf, rng = getattr(blasx, letter + "geqrf"), np.random.default_rng(3)
    chance = random.Random(5)
    for plan in PLANS:
        applied = LEAF | dict(BATCH=8) if plan["panel"] != 16 else None  # else by products
        with _tuned.using(letter, geqrf_leaf=LEAF, geqrf_apply=applied,
                          geqrf_t=dict(WARPS=2) | plan):
            for m, n in SHAPES:
                for a in matrices(rng, np.dtype(geqrf.dtype), m, n):
                    found = []
                    for order in (lambda x: x[0], lambda x: x[-1], chance.choice):
                        room = cupy.array(np.full((m + 3, n + 2), 7, a.dtype, "F"))
                        view = room[2:-1, 1:-1]
                        view[...] = a
                        with blasx.trace() as trace:
                            qr, tau, _, info = geqrf(view, overwrite_a=1, mode="native")
                        finish(streams, order)
                        Kept.all.clear()
                        assert qr is view and int(info) == 0 and "cusolver" not in str(trace)
                        frame = np.array(room)
                        frame[2:-1, 1:-1] = 7
                        assert (frame == 7).all()
                        found.append((np.array(qr), np.array(tau)))
                    for other in found[1:]:
                        assert all(np.array_equal(x, y) for x, y in zip(found[0], other))
                    check_factors(letter, a, *found[0], signs=a.all())
    print("ok", letter)


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_geqrf", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
