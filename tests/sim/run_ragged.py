"""Runs a kernel of lanes.cuh RAGGED beside itself: every member as in a batch of its own.

    python -m tests.sim.run_ragged LIBRARY RAGGED_LIBRARY KERNEL LETTER CONSTANTS(json)

For a process that has the sanitizers (see run.py). Members of orders 1 to N, in any order, some
with several right-hand sides, must come out to the bit as they do alone.
"""

import json
import sys

import numpy as np
from scipy.linalg import lapack

from .run import SCHEDULES, Memory, Simulated, general, positive

FACTORS = {"getrs_small": "getrf", "potrs_small": "potrf"}


class Ragged(Simulated):
    """The kernel compiled RAGGED."""

    def run(self, schedule, batch, *parameters):
        keep = [np.ascontiguousarray(p, np.int64) if isinstance(p, (list, np.ndarray)) else p
                for p in parameters]
        numbers = []
        for p in keep:
            if isinstance(p, np.ndarray):
                numbers += [p.ctypes.data] + [0, 0, 0] * (p.ndim == 2)
            else:
                numbers.append(p)
        super().run(schedule, batch, *numbers)


def members(sim, rng, kernel, sizes):
    """(m, n, nrhs, A, B, pivots) of members of these orders."""
    for i, n in enumerate(sizes):
        m, nrhs = n, 1 + i % 3
        if kernel == "getrf_small" and i % 3:
            m, n = (n, max(n - 2, 1)) if i % 3 == 1 else (max(n - 3, 1), n)
        a = (general(rng, sim.dtype, 8, m, n)[i % 8] if kernel[:2] == "ge"
             else positive(rng, sim.dtype, 4, n)[i % 4])
        piv = np.zeros(min(m, n), np.int32)
        if kernel in FACTORS:
            regular = general(rng, sim.dtype, 1, m, n)[0] if kernel[:2] == "ge" else positive(
                rng, sim.dtype, 1, n)[0]
            a, *rest = getattr(lapack, sim.letter + FACTORS[kernel])(
                regular, **({"lower": 1} if kernel[:2] == "po" else {}))
            piv = rest[0].astype(np.int32) if kernel[:2] == "ge" else piv
        b = general(rng, sim.dtype, 1, n, nrhs)[0]
        yield m, n, nrhs, np.ascontiguousarray(a), np.ascontiguousarray(b), piv


def order_of_parameters(kernel, A, LU, piv, B, X, info, m, n, nrhs):
    """The parameters of a kernel, from those that one may have."""
    return {"getrf_small": (A, LU, piv, info, m, n), "potrf_small": (A, LU, info, n),
            "gesv_small": (A, LU, piv, B, X, info, n, nrhs),
            "getrs_small": (A, piv, B, X, info, 0, n, nrhs),
            "posv_small": (A, LU, B, X, info, 0, n, nrhs),
            "potrs_small": (A, B, X, info, 0, n, nrhs)}[kernel]


def alone(sim, kernel, m, n, nrhs, a, b, piv):
    """What a batch of one gives."""
    out = [Memory(x[None]) for x in (a, a, b, b)]
    pivots, info = Memory(piv[None]), Memory(np.zeros((1,), np.int32))
    given = order_of_parameters(kernel, out[0].matrix(), out[1].matrix(), pivots.address,
                                out[2].matrix(), out[3].matrix(), info.address, m, n, nrhs)
    flat = [y for x in given for y in (x if isinstance(x, list) else [x])]
    sim.run(0, 1, *flat)
    return [x.array.copy() for x in (out[1], out[3], pivots, info)]


def bits(x):
    """What x holds to the bit; which nan it is does not count."""
    x = np.ascontiguousarray(x)
    x = x.view(x.real.dtype)
    return np.where(x == x, x, np.array(np.nan, x.dtype) if x.dtype.kind == "f" else x).tobytes()


def main(library, ragged_library, kernel, letter, constants):
    constants = json.loads(constants)
    sim, ragged = (c(x, kernel, letter, constants) for c, x in (
        (Simulated, library), (Ragged, ragged_library)))
    rng = np.random.default_rng(5)
    sizes = [int(x) for x in rng.integers(1, sim.order + 1, 2 * sim.members + 3)]
    with np.errstate(all="ignore"):
        problems = list(members(sim, rng, kernel, sizes))
        expected = [alone(sim, kernel, *p) for p in problems]
        for schedule in SCHEDULES:
            mine = [[Memory(x[None]) for x in (a, a, b, b, piv, np.zeros((1,), np.int32))]
                    for *_, a, b, piv in problems]

            def lines(k):
                return np.array([x[k].matrix()[:3] for x in mine])

            def addresses(k):
                return [x[k].address for x in mine]

            ragged.run(schedule, len(mine), *order_of_parameters(
                kernel, lines(0), lines(1), addresses(4), lines(2), lines(3), addresses(5),
                *([p[i] for p in problems] for i in range(3))))
            for i, (x, right) in enumerate(zip(mine, expected)):
                for k, want in zip((1, 3, 4, 5), right, strict=True):
                    assert bits(x[k].array) == bits(want), (
                        f"member {i} of order {sizes[i]} differs from itself alone", k)
    print("ok", kernel, letter, sizes)


if __name__ == "__main__":
    main(*sys.argv[1:])
