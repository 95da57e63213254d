"""Runs trsm_block or trmm_block, built by `build` with run_lu's ENTRY, through their problems; for
a process that has the sanitizers:

    python -m tests.sim.run_triangular LIBRARY KERNEL LETTER CONSTANTS(json) ROWSxCOLUMNS ...

As run.py: exact memory, four schedules. The first shape goes through all sides, triangles, trans
and diag, the others through a few. What BLAS does not read of A is nan. The last word printed
stands for the bits of all results.
"""

import hashlib
import json
import sys
from itertools import product

import numpy as np
from scipy.linalg import blas

from blasx.batched._block import line_room, small_triangle_bytes, triangle_bytes

from .run import PASS, SCHEDULES, Memory, general, poisoned, same_under_all_schedules
from .run_lu import Simulated

CASES = list(product((0, 1), (0, 1), (0, 1, 2), (0, 1)))  # side, lower, trans, diag


def numbers(view):
    """Address and strides of a batch."""
    return [view.ctypes.data, *(s // view.itemsize for s in view.strides[1:]),
            view.strides[0] // view.itemsize]


def triangle(rng, dtype, batch, n, lower, diag):
    """Triangles of small condition; nan elsewhere."""
    a = np.array([general(rng, dtype, 1, n, n)[0] / n for _ in range(batch)], dtype)
    a[:, range(n), range(n)] += 2
    a[:, *(np.triu_indices(n, 1) if lower else np.tril_indices(n, -1))] = np.nan
    if diag:
        a[:, range(n), range(n)] = np.nan
    return a


def launched(sim, name, schedule, a, b, x, side, lower, trans, diag, alpha, info):
    """As _gpu_triangular.launch, in NumPy's views: always L X = alpha B with L lower."""
    turned = (trans != 0) != side
    if turned:
        a = a.swapaxes(1, 2)
    if side:
        b, x = b.swapaxes(1, 2), x.swapaxes(1, 2)
    if lower == turned:
        a, b, x = a[:, ::-1, ::-1], b[:, ::-1], x[:, ::-1]
    if len(a) == 1:
        a = np.broadcast_to(a, (len(b), *a.shape[1:]))
    _, n, count = b.shape
    bits = np.array([alpha.real, alpha.imag]).view(np.int64)
    of = (*numbers(a), *numbers(b), *numbers(x), *bits, *info, n, count, trans == 2, diag)
    v = sim.constants
    if name.endswith("small"):
        by_columns = any(abs(y.strides[2]) >= abs(y.strides[1]) for y in (b, x))
        teams = len(b) * -(-count // (v["LANES"] * v["C"]))
        sim.run(schedule, -(-teams * v["LANES"] // (32 * v["WARPS"])),
                small_triangle_bytes(sim.letter, v, by_columns), *of, teams // len(b), by_columns,
                teams)
    elif name.endswith("lines"):
        room = line_room(n, v)
        sim.run(schedule, -(-len(b) * count // v["WARPS"]), v["WARPS"] * room * b.itemsize, *of,
                count, len(b), room)
    else:
        slabs = -(-count // (v["R"] * v["WARPS"]))
        sim.run(schedule, len(b) * slabs, triangle_bytes(name, sim.letter, n, v), *of, slabs)


def one(sim, rng, name, shape, case, order, in_place, turn):
    side, lower, trans, diag = case
    shared = turn % 4 == 3
    alpha = (1.0, -2.0, 0.5 - 0.25j if sim.dtype.kind == "c" else 0.3)[turn // 2 % 3]
    a = triangle(rng, sim.dtype, 1 if shared else 2, shape[side], lower, diag)
    b = general(rng, sim.dtype, 1, 2 * shape[0], shape[1])[0].reshape(2, *shape)
    kept = [0, 4] if name.startswith("trsm") and turn % 3 == 0 else [0, 0]
    outputs = []
    for schedule in SCHEDULES:
        triangles, given = Memory(a, order), Memory(b, order)
        x, info = given if in_place else poisoned(b.shape, b.dtype, order), Memory(np.int32(kept))
        launched(sim, name, schedule, triangles.array, given.array, x.array, *case, alpha,
                 [info.address * any(kept)] * (name.startswith("trsm")))
        outputs.append([x.array.copy()])
        assert in_place or np.array_equal(given.array, b)
    (x,) = same_under_all_schedules(outputs)
    for i in range(2):
        if kept[i]:
            assert np.array_equal(x[i], b[i])
        else:
            check(sim, name, a[i % len(a)], b[i], x[i], case, alpha)
    return x.tobytes()


def check(sim, name, a, b, x, case, alpha):
    """Backward error, element by element, in more digits; and what SciPy's BLAS gives."""
    side, lower, trans, diag = case
    wide = np.clongdouble if sim.dtype.kind == "c" else np.longdouble
    full = (np.tril(a) if lower else np.triu(a)).astype(wide)
    if diag:
        np.fill_diagonal(full, 1)
    op = (full, full.T, full.conj().T)[trans]
    n, eps = len(a), np.finfo(sim.dtype).eps
    alpha = sim.dtype.type(alpha).astype(wide)
    times = (lambda t, y: y @ t) if side else (lambda t, y: t @ y)
    start, end = (x, alpha * b) if name.startswith("trsm") else (alpha * b, x)
    error = np.abs(times(op, start.astype(wide)) - end)
    size = times(np.abs(op), np.abs(start.astype(wide))) + np.abs(end)
    assert (error <= PASS * n * eps * size).all(), (case, (error / size).max() / (n * eps))
    routine = getattr(blas, sim.letter + name[:4])
    right = routine(alpha.astype(sim.dtype), full.astype(sim.dtype), b, side, lower, trans, diag)
    assert np.abs(x - right).max() <= PASS * n * eps * np.abs(right).max()


def tiny(sim, name, order):
    """A pivot whose reciprocal overflows: 3 t / t is 3."""
    smallest = np.full((1, 1, 1), 64 * np.finfo(sim.dtype).smallest_subnormal, sim.dtype)
    a, b, x = Memory(smallest), Memory(3 * smallest), poisoned((1, 1, 1), sim.dtype, order)
    launched(sim, name, 0, a.array, b.array, x.array, 0, 1, 0, 0, 1.0, [0])
    assert x.array == 3, x.array


def graded(sim, rng, name):
    """Rows of sizes so far apart that quotients of numbers of two rows over- and underflow."""
    n, most = 33, 70 if sim.letter in "sc" else 600
    rows = np.ldexp(1.0, rng.integers(-most, most + 1, n))[:, None].astype(sim.dtype)
    b = rows * general(rng, sim.dtype, 1, n, 2)
    for lower in 0, 1:
        a = rows * triangle(rng, sim.dtype, 1, n, lower, 0)
        A, B, x = Memory(a), Memory(b), poisoned(b.shape, b.dtype, "C")
        launched(sim, name, 0, A.array, B.array, x.array, 0, lower, 0, 0, 1.0, [0])
        check(sim, name, a[0], b[0], x.array[0], (0, lower, 0, 0), 1.0)


def main(library, name, letter, constants, *shapes):
    sim = Simulated(library, name, letter, json.loads(constants))
    rng = np.random.default_rng(7)
    layouts = [("C", False), ("F", True), ("batch last", False), ("C", True), ("F", False)]
    turn, bits = 0, hashlib.sha256()
    for i, text in enumerate(shapes):
        shape = tuple(map(int, text.split("x")))
        for case in CASES if i == 0 else [CASES[(10 + 9 * i + 13 * k) % 24] for k in (0, 1)]:
            with np.errstate(all="ignore"):
                bits.update(one(sim, rng, name, shape, case, *layouts[turn % 5], turn))
            turn += 1
    if name.startswith("trsm"):
        tiny(sim, name, "C")
    if name == "trsm_lines":
        with np.errstate(all="ignore"):
            graded(sim, rng, name)
    print("ok", name, letter, *shapes, bits.hexdigest())


if __name__ == "__main__":
    main(*sys.argv[1:])
