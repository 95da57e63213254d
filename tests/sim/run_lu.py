"""Runs one of the block LU's kernels, built by `build` with ENTRY, through its problems; for a
process that has the sanitizers:  python -m tests.sim.run_lu LIBRARY KERNEL LETTER CONSTANTS n ...

As run.py, whose problems and checks these are: exact memory, four schedules, LAPACK's pivots.
"""

import json
import sys

import numpy as np
from cffi import FFI
from scipy.linalg import lapack

from blasx._types import TYPES
from blasx.batched._block import (
    dealt,
    inverse_bytes,
    line_room,
    lu_bytes,
    shared_bytes,
    small_square_bytes,
    solve_bytes,
    square_bytes,
)

from .build import PREFIX
from .run import (
    SCHEDULES,
    Memory,
    check_lu,
    check_solved,
    check_without_pivots,
    exact_for,
    general,
    poisoned,
    same_under_all_schedules,
    without_pivots,
)

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, unsigned shared, int schedule,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared); }}
"""
ffi = FFI()


class Simulated:
    def __init__(self, library, name, letter, constants):
        ffi.cdef(f"void {PREFIX}{name}(unsigned, unsigned, unsigned, int, const uint64_t *);")
        self.launch = getattr(ffi.dlopen(library), PREFIX + name)
        self.letter, self.dtype, self.constants = letter, TYPES[letter].dtype, constants

    def run(self, schedule, blocks, shared, *numbers):
        cells = ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers])
        self.launch(blocks, 32 * self.constants["WARPS"], shared, schedule, cells)


def getrf_block(sim, rng, n, order, in_place):
    for m, cols in {(n, n), (n, max(n - 9, 1)), (max(n - 9, 1), n)}:
        a = general(rng, sim.dtype, 4 if m == cols else 2, m, cols)
        lu, piv, info = factored(sim, a, order, in_place, with_pivots=True)
        for member in zip(a, lu, piv, info):
            check_lu(*member)
        for i in range(2):
            if i == 0 or exact_for(a[i]):
                right = getattr(lapack, sim.letter + "getrf")(a[i])[1]
                assert np.array_equal(piv[i], right), (piv[i], right)


def getrf_shared(sim, rng, n, order, in_place):
    problem = getrf_nopiv if sim.constants.get("UNPIVOTED") else getrf_block
    problem(sim, rng, n, order, in_place)


def factored(sim, a, order, in_place, with_pivots):
    _, m, cols = a.shape
    outputs, none = [], [0] * sim.constants.get("UNPIVOTED", 0)
    room = (lu_bytes(sim.dtype, m, cols, sim.constants) if "NB" in sim.constants
            else shared_bytes(sim.dtype, m, sim.constants))
    for schedule in SCHEDULES:
        source = Memory(a, order)
        target = source if in_place else poisoned(a.shape, a.dtype, order)
        piv = poisoned((len(a), min(m, cols)), np.int32, "C")
        info = poisoned((len(a),), np.int32, "C")
        sim.run(schedule, len(a), room, *source.matrix(), *target.matrix(),
                *([piv.address] if with_pivots else none), info.address, m, cols, len(a))
        outputs.append([x.array.copy() for x in (target, piv, info)])
    return same_under_all_schedules(outputs)


def getrf_nopiv(sim, rng, n, order, in_place):
    for m, cols in ((n, n), (n, n - 3), (n - 3, n)):
        a, *right = without_pivots(rng, sim.dtype, 6, m, cols)
        lu, _, info = factored(sim, a, order, in_place, with_pivots=False)
        check_without_pivots(a, lu, info, *right)


def gesv_shared(sim, rng, n, order, in_place):
    windows = sim.constants["WINDOW"] < sim.constants["N"]
    for nrhs, asked in ((1, 1), (8, 0)):
        a = general(rng, sim.dtype, 5, n, n)
        b = general(rng, sim.dtype, 1, len(a) * n, nrhs)[0].reshape(len(a), n, nrhs)
        outputs = []
        for schedule in SCHEDULES:
            source, given = Memory(a, order), Memory(b, order)
            lu = source if in_place else poisoned(a.shape, a.dtype, order)
            x = given if in_place else poisoned(b.shape, a.dtype, order)
            piv, info = (poisoned(shape, np.int32, "C") for shape in ((len(a), n), (len(a),)))
            room = shared_bytes(sim.dtype, n, sim.constants, 8)
            sim.run(schedule, len(a), room, *source.matrix(),
                    *(lu.matrix() if asked or windows else [0] * 4),
                    piv.address * asked,
                    *given.matrix(), *x.matrix(), info.address, n, nrhs, len(a))
            outputs.append([y.array.copy() for y in (lu, piv, x, info)])
        lu, piv, x, info = same_under_all_schedules(outputs)
        for i in range(len(a)):
            check_solved(a[i], b[i], x[i], info[i])
            if asked:
                check_lu(a[i], lu[i], piv[i], info[i])


def getrs_block(sim, rng, n, order, in_place):
    width, lines = sim.constants.get("WIDTH"), "LINES" in sim.constants
    few = width or 4  # of getrs_warp a member has one block, of getrs_lines a side has a warp
    for nrhs, trans, kept in ((1, 0, 0), (few + 1, 0, bool(width or lines)), (3, 1, 0),
                              (few, 2, 0)):
        a = general(rng, sim.dtype, 1, n, n).repeat(2, 0)
        a[1] = rng.standard_normal((n, n))
        lus = [getattr(lapack, sim.letter + "getrf")(x) for x in a]
        lu, piv = np.array([x[0] for x in lus]), np.array([x[1] for x in lus], np.int32)
        b = general(rng, sim.dtype, 1, 2 * n, nrhs)[0].reshape(2, n, nrhs)
        parts, outputs = -(-nrhs // width) if width else 1, []
        room = (solve_bytes(sim.dtype, n, sim.constants) if width
                else square_bytes(sim.dtype, n))
        blocks, more = 2 * parts, [parts] if width else []
        if lines:
            warps, numbers = sim.constants["WARPS"], line_room(n, sim.constants)
            blocks, more = -(-2 * nrhs // warps), [nrhs, 2, numbers]
            room = warps * numbers * sim.dtype.itemsize
        for schedule in SCHEDULES:
            factors, pivots, given = Memory(lu, order), Memory(piv), Memory(b, order)
            x = given if in_place else poisoned(b.shape, a.dtype, order)
            info = Memory(np.array([0, 7 * kept], np.int32))
            sim.run(schedule, blocks, room, *factors.matrix(trans != 0), pivots.address,
                    *given.matrix(), *x.matrix(), info.address,
                    *([info.address * kept] if more else []), trans, n, nrhs, *more)
            outputs.append([y.array.copy() for y in (x, info)])
        x, info = same_under_all_schedules(outputs)
        op = (lambda y: y, lambda y: y.T, lambda y: y.conj().T)[trans]
        for i in range(2):
            check_solved(op(a[i]), b[i], x[i], info[i])


getrs_warp = getrs_lines = getrs_block


def far(a):
    """A power of two by which numbers can be multiplied or divided."""
    return a.real.dtype.type(2.0**(np.finfo(a.dtype).minexp * -7 // 8))


def inverted(sim, rng, n, batch):
    """LU factors of regular members, of which 2 and 3 are the first times a power of two, but for
    two with a zero on U's diagonal."""
    a = rng.standard_normal((batch, n, n)).astype(sim.dtype)
    if a.dtype.kind == "c":
        a += 1j * rng.standard_normal(a.shape)
    a[2], a[3] = a[0] / far(a), a[0] * far(a)
    lus = [getattr(lapack, sim.letter + "getrf")(x) for x in a]
    lu, piv = (np.array([x[i] for x in lus]) for i in range(2))
    lu[2], lu[3], piv[2:4] = np.triu(lu[0]) / far(a), np.triu(lu[0]) * far(a), piv[0]
    lu[2:4] += np.tril(lu[0], -1)
    lu[1, 1:, 1] = lu[-1, -1, -1] = 0
    return a, lu, piv.astype(np.int32), [0, 2] + [0] * (batch - 3) + [n]


def getri_small(sim, rng, n, order, in_place):
    v = sim.constants
    room = small_square_bytes(sim.letter, v)
    lanes = dealt(32 * v["WARPS"], -(-n // v["C"]), 4 if n > 8 else 1, room, 2**17)
    members = 32 * v["WARPS"] // lanes
    batch = 2 * members + 3
    inverses(sim, rng, n, order, in_place, batch, -(-batch // members), members * room, lanes,
             batch)


def getri_shared(sim, rng, n, order, in_place):
    inverses(sim, rng, n, order, in_place, 5, 5, inverse_bytes(sim.letter, sim.constants))


def inverses(sim, rng, n, order, in_place, batch, blocks, shared, *more):
    a, lu, piv, expected = inverted(sim, rng, n, batch)
    outputs = []
    for schedule in SCHEDULES:
        factors, pivots = Memory(lu, order), Memory(piv)
        x = factors if in_place else poisoned(a.shape, a.dtype, order)
        info = poisoned((len(a),), np.int32, "C")
        sim.run(schedule, blocks, shared, *factors.matrix(), pivots.address, *x.matrix(),
                info.address, n, *more)
        outputs.append([y.array.copy() for y in (x, info)])
    x, info = same_under_all_schedules(outputs)
    assert list(info) == expected, info
    for i in range(len(a)):
        if expected[i]:
            assert np.array_equal(x[i], lu[i])
        else:
            check_solved(a[i], np.eye(n, dtype=a.dtype), x[i], 0)
    assert np.array_equal(x[2] / far(a), x[0])
    assert np.abs(x[3] - x[0] / far(a)).max() <= 4 * np.finfo(a.dtype).smallest_subnormal


def laswp_identity(sim, rng, n, order, in_place):
    a, lu, piv, expected = inverted(sim, rng, n, 4)
    outputs = []
    for schedule in SCHEDULES:
        factors, pivots = Memory(lu, order), Memory(piv)
        x, info = poisoned(a.shape, a.dtype, order), poisoned((4,), np.int32, "C")
        sim.run(schedule, 4, 4 * (2 * n + 3), *factors.matrix(), pivots.address, *x.matrix(),
                info.address, n)
        outputs.append([x.array.copy(), info.array.copy()])
    x, info = same_under_all_schedules(outputs)
    assert list(info) == expected
    for i in range(4):
        right = lu[i] if expected[i] else lapack.dlaswp(np.eye(n), piv[i])
        assert np.array_equal(x[i], right)


def main(library, name, letter, constants, *orders):
    sim = Simulated(library, name, letter, json.loads(constants))
    rng = np.random.default_rng(7)
    layouts = [("C", False), ("F", True), ("batch last", False)]
    for i, n in enumerate(map(int, orders)):
        with np.errstate(all="ignore"):
            globals()[name](sim, rng, n, *layouts[i % len(layouts)])
    print("ok", name, letter, *orders)


if __name__ == "__main__":
    main(*sys.argv[1:])
