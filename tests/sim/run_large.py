"""Runs a kernel of the LU of one large matrix, built by `build` with ENTRY, through its problems; for
a process that has the sanitizers:  python -m tests.sim.run_large LIBRARY KERNEL LETTER CONSTANTS

As run.py: exact memory, four schedules, LAPACK's pivots, nan and ties among the problems.
"""

import json
import sys

import numpy as np
from cffi import FFI
from scipy.linalg import lapack

from blasx._types import TYPES
from blasx.large._bytes import panel_bytes, rows_bytes

from .build import PREFIX
from .run import SCHEDULES, Memory, check_lu, exact_for, general, poisoned, residual, same_under_all_schedules

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, unsigned shared, unsigned cluster,
    int schedule, const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared, cluster); }}
"""
ffi = FFI()


class Simulated:
    def __init__(self, library, name, letter, constants):
        ffi.cdef(f"void {PREFIX}{name}(unsigned, unsigned, unsigned, unsigned, int, "
                 "const uint64_t *);")
        self.launch = getattr(ffi.dlopen(library), PREFIX + name)
        self.letter, self.dtype, self.constants = letter, TYPES[letter].dtype, constants

    def run(self, schedule, blocks, shared, *numbers, more=0):
        cells = ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers])
        self.launch(blocks, 32 * (self.constants["WARPS"] + more), shared,
                    self.constants.get("CLUSTER", 1), schedule, cells)


def problems(rng, dtype, m, n):
    """Random and awkward matrices (general), each by itself."""
    with np.errstate(all="ignore"):
        return general(rng, dtype, 8, m, n)


def getrf_panel(sim, rng):
    v = sim.constants
    most, w = v["CLUSTER"] * 32 * v["WARPS"] * v["ROWS"], v["W"]
    for m, n in ((most, 2 * w + 3), (most - 37, w), (w + 1, w - 1), (5, 3), (1, 1)):
        for k, a in enumerate(problems(rng, sim.dtype, m, n)):
            outputs = []
            for schedule in SCHEDULES:
                x = Memory(np.concatenate((a, np.full((2, n), 7, a.dtype))), "batch last")
                piv, info = poisoned((n,), np.int32, "C"), Memory(np.array([-1], np.int32))
                sim.run(schedule, v["CLUSTER"], panel_bytes(sim.dtype, n, v), x.address, m + 2, m, n,
                        piv.address, 0, info.address, more=1)
                assert (x.array[m:] == 7).all()
                outputs.append([y.array.copy() for y in (x, piv, info)])
            lu, piv, info = same_under_all_schedules(outputs)
            check_lu(a, lu[:m], piv, info[0])
            if np.isnan(a).any():
                assert np.isnan(lu[range(n), range(n)]).all()
            if k == 0 or (k == 1 and exact_for(a)):
                assert np.array_equal(piv, getattr(lapack, sim.letter + "getrf")(a)[1])


def factored(sim, rng, m, width):
    """A panel with its factors, as LAPACK leaves them, and what getrf_top makes of it."""
    a = general(rng, sim.dtype, 1, m, width)[0]
    lu, piv, _ = getattr(lapack, sim.letter + "getrf")(a)
    from_, to = np.arange(m), np.arange(m)
    for j, p in enumerate(piv):
        from_[[j, p]] = from_[[p, j]]
    to[from_] = np.arange(m)
    L = np.tril(lu[:width], -1) + np.eye(width)
    blocks = [np.eye(32, dtype=sim.dtype) for _ in range(0, width, 32)]
    for b, x in enumerate(blocks):
        part = L[32 * b:32 * b + 32, 32 * b:32 * b + 32]
        x[:len(part), :len(part)] = np.linalg.inv(part)
    return lu, piv, from_[:width], to[:width], np.array([x.T for x in blocks])


def getrf_top(sim, rng):
    for m, width in ((90, 70), (33, 32), (5, 5), (1, 1)):
        lu, piv, from_, to, inverse = factored(sim, rng, m, width)
        outputs = []
        for schedule in SCHEDULES:
            L, pivots = Memory(lu, "batch last"), Memory((piv + 11).astype(np.int32))
            made = [poisoned((width,), np.int32, "C"), poisoned((width,), np.int32, "C"),
                    poisoned(inverse.shape, sim.dtype, "C")]
            sim.run(schedule, len(inverse), 4 * width, L.address, m, width, pivots.address, 11,
                    *(x.address for x in made))
            outputs.append([x.array.copy() for x in made])
        made = same_under_all_schedules(outputs)
        assert np.array_equal(made[0], from_) and np.array_equal(made[1], to)
        eps = np.finfo(sim.dtype).eps
        assert np.allclose(made[2], inverse, rtol=0, atol=200 * eps * abs(inverse).max())


def getrf_rows(sim, rng):
    v = sim.constants
    for m, width, left, right in ((120, 70, 5, 2 * v["COLUMNS"] + 1), (120, 70, 3, 0),
                                  (40, 32, 0, 3), (9, 9, 11, 20), (1, 1, 1, 1)):
        lu, piv, from_, to, inverse = factored(sim, rng, m, width)
        b = general(rng, sim.dtype, 1, m, left + width + 2 + right)[0]
        b[:, left:left + width] = lu
        outputs, before = [], -(-left // v["COLUMNS"])
        for schedule in SCHEDULES:
            x, inv = Memory(b, "batch last"), Memory(inverse)
            lists = [Memory(y.astype(np.int32)) for y in (from_, to)]
            sim.run(schedule, before + -(-right // v["COLUMNS"]), rows_bytes(sim.dtype, width, v),
                    x.address, m, 0, left, left + width + 2, b.shape[1], before, width,
                    *(y.address for y in lists), inv.address)
            outputs.append([x.array.copy()])
        (x,) = same_under_all_schedules(outputs)
        assert np.array_equal(x[:, left:left + width + 2], b[:, left:left + width + 2])
        for j, p in enumerate(piv):
            b[[j, p]] = b[[p, j]]
        assert np.array_equal(x[:, :left], b[:, :left])
        x, b = x[:, left + width + 2:], b[:, left + width + 2:]
        L = np.tril(lu[:width], -1) + np.eye(width, dtype=sim.dtype)
        assert np.array_equal(x[width:], b[width:]) and residual(b[:width], L, x[:width]) < 10


def main(library, name, letter, constants):
    sim = Simulated(library, name, letter, json.loads(constants))
    globals()[name](sim, np.random.default_rng(7))
    print("ok", name, letter)


if __name__ == "__main__":
    main(*sys.argv[1:])
