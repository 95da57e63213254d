"""LU between random butterflies, with pivots from windows, on the simulated GPU of run_getrf.py,
products by the CPU:

    python -m tests.sim.run_windows FOLDER

In any order that the streams allow the same factors to the bit; their pivots stay in their windows;
L U is what the butterflies made of A, which is U^T A V; and what solves with them solves with A.
"""

import os
import sys

import numpy as np

from . import gpu, run_getrf
from .run_getrf import Kept, finish

PLANS = (dict(block=32, WINDOW=64, ahead=1), dict(block=32, WINDOW=64, ahead=0),
         dict(joined=96, block=32, WINDOW=48, ahead=1, whole=96),
         dict(joined=64, block=32, WINDOW=64, ahead=1, lead=1, between=1,
              whole=64),
         dict(joined=128, block=64, WINDOW=64, ahead=1, whole=64))
COLUMNS = dict(COLUMNS=8, WARPS=2, BLOCKS=1)
VALUES = dict(getrf_panel=dict(CLUSTER=2, WARPS=1, ROWS=1, W=8), getrf_top=dict(WARPS=4),
              getrf_moved=dict(WARPS=1, STAGES=2, COLUMNS=5), getrf_rows=COLUMNS,
              getrf_columns=dict(BYTES=4, WARPS=1), getrf_below=COLUMNS,
              getrf_wide=dict(COLUMNS=16, WARPS=4, BLOCKS=1),
              getrf_window=dict(N=72, WINDOW=64, WARPS=2, PANEL=1, TN=8, BLOCKS=1))


def weights(n, side):
    """The butterfly of order n, as gerbt.cuh has it."""
    place = np.arange(n, dtype=np.uint32)

    def scale(which):
        x = 4 * place + np.uint32(2 * side + which)
        x = x * np.uint32(0x9e3779b9) + np.uint32(0x7f4a7c15)
        x = (x ^ x >> np.uint32(16)) * np.uint32(0x85ebca6b)
        x = (x ^ x >> np.uint32(13)) * np.uint32(0xc2b2ae35)
        return np.exp((x ^ x >> np.uint32(16)).astype("i4") * 0.05 / 2**31)

    def level(order, r):
        h = order // 2
        one = np.eye(h)
        return np.block([[one, one], [one, -one]]) * r / 2**0.5

    inner, outer = scale(0), scale(1)
    both = np.zeros((n, n))
    for half in (slice(0, n // 2), slice(n // 2, n)):
        both[half, half] = level(n // 2, inner[half])
    return both @ level(n, outer)


def pivots(S, panel, window):
    """Those of each panel, the largest number of its column in the window."""
    S, n, piv = S.copy(), len(S), []
    for j in range(n):
        last = min(j // panel * panel + window, n)
        piv.append(j + int(abs(S[j:last, j]).argmax()))
        S[[j, piv[-1]]] = S[[piv[-1], j]]
        S[j + 1:, j] /= S[j, j]
        S[j + 1:, j + 1:] -= np.outer(S[j + 1:, j], S[j, j + 1:])
    return piv


def check(S, lu, piv, plan):
    n, rows = len(S), np.arange(len(S))
    assert np.array_equal(piv, pivots(S, plan["block"], plan["WINDOW"]))
    for k, p in enumerate(piv):
        rows[[k, p]] = rows[[p, k]]
    L, U = np.tril(lu.astype("f8"), -1) + np.eye(n), np.triu(lu.astype("f8"))
    assert abs(S[rows] - L @ U).max() <= 4 * n * 2.0**-24 * (abs(L) @ abs(U)).max()


def solves(cupy, butterflies, low, streams, a, S):
    """A X = B by what solves with S."""
    n, rng = len(a), np.random.default_rng(4)
    b = rng.standard_normal((n, 3)).astype("f4")
    room = cupy.array(np.full((n + 2, 3), 7, "f4", "F"))
    room[1:-1] = b

    def with_s(y, state):
        later(lambda: y.__setitem__(..., np.linalg.solve(S.astype("f8"), y)))

    butterflies.solver(low, n, 3, with_s)(room[1:-1], None)
    finish(streams, run_getrf.ORDERS[0])
    assert (np.asarray(room)[[0, -1]] == 7).all()
    x = np.asarray(room)[1:-1]
    assert abs(a @ x - b).max() <= 2.0**-18 * (abs(a) @ abs(x)).max()


def later(do):
    run_getrf.Stream.current.todo.append((None, do))


def main(folder):
    streams = run_getrf.install(folder)
    import blasx  # noqa: F401
    from blasx import _tuned
    from blasx._routine import Typed
    from blasx.large import butterflies
    me, low, rng = Typed("dsgesv", "d"), Typed("sgesv", "s"), np.random.default_rng(3)
    cupy = sys.modules["cupy"]
    for plan in PLANS:
        with _tuned.using("s", getrf_windows=plan | dict(pays=1), **VALUES):
            for n in (1, 2, 33, 150, 203):
                assert butterflies.serves(low, n)
                a = cupy.array(np.asfortranarray(rng.standard_normal((n, n))))
                found, order = [], -(-n // 4) * 4
                for choose in run_getrf.ORDERS:
                    S, piv, info, sums = butterflies.factored(me, low, a)
                    before = np.empty_like(np.asarray(S))
                    streams[0].todo.insert(1, (None, lambda: before.__setitem__(..., S)))
                    finish(streams, choose)
                    Kept.all.clear()
                    found.append((np.array(S), np.array(piv), int(info)))
                for other in found[1:]:
                    assert all(np.array_equal(x, y) for x, y in zip(found[0], other))
                whole = np.eye(order)
                whole[:n, :n] = a
                wanted = weights(order, 0).T @ whole @ weights(order, 1)
                assert abs(before - wanted).max() <= 2.0**-20 * abs(wanted).max()
                assert found[0][2] == 0
                check(before.astype("f8"), found[0][0], found[0][1], plan)
                solves(cupy, butterflies, low, streams, np.asarray(a), before)
    print("ok")


if __name__ == "__main__":
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, "-m", "tests.sim.run_windows", *sys.argv[1:]],
                  gpu.sanitized())
    main(*sys.argv[1:])
