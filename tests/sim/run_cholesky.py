"""Runs a kernel of Cholesky, built by `build` with run_lu's ENTRY, through its problems; for a
process that has the sanitizers:

    python -m tests.sim.run_cholesky LIBRARY KERNEL LETTER CONSTANTS n ...

As run.py: exact memory and four schedules. A batch has a member that is positive definite, one of
tiny numbers, and two that fail, in every order others: in the first column, in the first or last of
a panel, in the midst, by nan on the diagonal and off it. The triangle that is not read has nan in
every other member.
"""

import json
import sys

import numpy as np
from scipy.linalg import lapack

from blasx.batched._block import (
    above_bytes,
    cholesky_bytes,
    dealt,
    inverse_bytes,
    line_room,
    posv_bytes,
    potrs_bytes,
    small_square_bytes,
    square_bytes,
    upper_bytes,
)

from .run import (
    PASS,
    SCHEDULES,
    Memory,
    check_solved,
    general,
    poisoned,
    positive,
    residual,
    same_under_all_schedules,
)
from .run_lu import Simulated

MEMBERS = 4  # of a batch


class Apart(Memory):
    """An array that begins `skip` numbers past a multiple of 16 bytes, and between its lines there
    are `gap` numbers, which nobody is to change."""

    def __init__(self, like, order, skip, gap, between):
        _, *lines, long = shape = like.shape
        self.whole = Memory(np.full(skip + np.prod(shape[:-1]) * (long + gap) - gap, between,
                                    like.dtype))
        apart = np.array([lines[0] * (long + gap), long + gap, 1]) * like.itemsize
        self.address = self.whole.address + skip * like.itemsize
        a = np.lib.stride_tricks.as_strided(self.whole.array[skip:], shape, apart)
        self.array = a if order == "C" else a.swapaxes(1, 2)
        self.array[...] = like
        rest = np.ones(self.whole.array.shape, bool)
        np.lib.stride_tricks.as_strided(rest[skip:], shape, apart // like.itemsize)[...] = False
        self.rest, self.between = rest, between

    def __del__(self):
        """What is around it is freed by `whole`, and it with that."""

    def check(self):
        found = self.whole.array[self.rest]
        right = np.full_like(found, self.between)
        assert np.array_equal(found, right, equal_nan=True), "between lines"


def members(sim, rng, n, turn):
    """Two members that fail and two positive definite ones, after which nothing is to be written;
    in full, and the info of each."""
    a = positive(rng, sim.dtype, 1, n).repeat(MEMBERS, 0)
    a[1] *= np.finfo(a.dtype).tiny * 2.0**30
    a[2:] += np.array([1, 2]).reshape(-1, 1, 1) * np.eye(n, dtype=a.dtype)
    panel, middle = min(8, n - 1), n // 2
    bad = [(n - 1, np.nan), (panel, 0), (middle, -1), None, (0, 0), (panel - 1, -np.inf)]
    info = [0, 0]
    for i in (2, 3):
        if at := bad[2 * turn % 6 + i - 2]:
            a[i, at[0], at[0]] = at[1]
        else:
            a[i, n - 1, 0] = a[i, 0, n - 1] = np.nan
        info.append(at[0] + 1 if at else n)
    return a[::-1].copy(), info[::-1]


def potrf_block(sim, rng, n, order, in_place, lower, turn):
    def launch(schedule, batch, *numbers):
        sim.run(schedule, batch, cholesky_bytes(sim.dtype, n, sim.constants), *numbers, 0)

    factored(sim, launch, rng, n, order, in_place, lower, turn)


def potrf_columns(sim, rng, n, order, in_place, lower, turn):
    def launch(schedule, batch, *numbers):
        room = 0 if in_place else above_bytes(sim.dtype, sim.constants)
        sim.run(schedule, batch, room, *numbers)

    factored(sim, launch, rng, n, order, in_place, lower, turn)


def potrf_small(sim, rng, n, order, in_place, lower, turn):
    def launch(schedule, batch, *numbers):
        sim.run(schedule, -(-batch // sim.constants["WARPS"]),
                upper_bytes(sim.letter, sim.constants), *numbers, batch)

    factored(sim, launch, rng, n, order, in_place, lower, turn)


def factored(sim, launch, rng, n, order, in_place, lower, turn):
    full, expected = members(sim, rng, n, turn)
    unread = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    a = full.copy()
    a[:, *unread] = rng.standard_normal((len(a), len(unread[0])))
    a[::2, *unread] = np.nan
    if sim.dtype.kind == "c":  # LAPACK takes the diagonal for real
        a.imag[:, range(n), range(n)] = np.abs(full[:, 1, :1])
    outputs = []
    for schedule in SCHEDULES:
        if isinstance(order, str):
            source = Memory(a, order)
            target = source if in_place else poisoned(a.shape, a.dtype, order)
        else:  # of A and of C: what is before them, and between their lines
            source, target = (Apart(x, order[0], *where, between) for x, where, between in
                              ((a, order[1], np.nan), (np.full_like(a, np.nan), order[2], 5)))
            target = source if in_place else target
        info = poisoned((len(a),), np.int32, "C")
        launch(schedule, len(a), *source.matrix(not lower), *target.matrix(not lower),
               info.address, n)
        for x in (source, target):
            if isinstance(x, Apart):
                x.check()
        outputs.append([x.array.copy() for x in (target, info)])
    c, info = same_under_all_schedules(outputs)
    assert list(info) == expected, (info, expected)
    for member in zip(full, a, c, expected):
        check(sim, *member, unread, lower)
    return full, expected


def posv_block(sim, *of):
    systems(sim, *of, MEMBERS, lambda n, in_place: posv_bytes(sim.dtype, n))


def posv_columns(sim, *of):
    systems(sim, *of, MEMBERS,
            lambda n, in_place: 0 if in_place else above_bytes(sim.dtype, sim.constants))


def posv_small(sim, *of):
    systems(sim, *of, -(-MEMBERS // sim.constants["WARPS"]),
            lambda n, in_place: upper_bytes(sim.letter, sim.constants), MEMBERS)


def systems(sim, rng, n, order, in_place, lower, turn, blocks, room, *more):
    """Members as in a factorization; one that fails keeps its right-hand side. `room`: shared
    memory of a block, by n and whether in place."""
    b, outputs = general(rng, sim.dtype, 1, MEMBERS * n, 1)[0].reshape(-1, n, 1), []
    of_b = order if isinstance(order, str) else order[0]

    def launch(schedule, batch, *numbers):
        *of, info, n = numbers
        given = Memory(b, of_b)
        x = given if in_place else poisoned(b.shape, b.dtype, of_b)
        sim.run(schedule, blocks, room(n, in_place), *of, *given.matrix(), *x.matrix(), info,
                not lower, n, 1, *more)
        outputs.append([x.array.copy()])

    full, info = factored(sim, launch, rng, n, order, in_place, lower, turn)
    for a, given, x, failed in zip(full, b, *same_under_all_schedules(outputs), info):
        if failed:
            assert np.array_equal(x, given)
        else:
            assert residual(given, a, x) < PASS


def potrs_block(sim, rng, n, order, in_place, lower, turn):
    """Right-hand sides of two blocks; a member that failed keeps its own."""
    nrhs = (1, 10, 3)[turn % 3]
    a = positive(rng, sim.dtype, 1, n).repeat(2, 0)
    factor = getattr(lapack, sim.letter + "potrf")
    c = np.array([factor(x, lower=lower, clean=0)[0] for x in a])
    c[:, *(np.triu_indices(n, 1) if lower else np.tril_indices(n, -1))] = np.nan
    b = general(rng, sim.dtype, 1, 2 * n, nrhs)[0].reshape(2, n, nrhs)
    outputs, failed, blocks = [], Memory(np.array([0, 5], np.int32)), None
    if "N" in sim.constants:  # potrs_warp: a member has one block
        room, slabs = square_bytes(sim.dtype, n), []
    elif "LINES" in sim.constants:  # potrs_lines: a warp to a right-hand side
        warps, numbers = sim.constants["WARPS"], line_room(n, sim.constants)
        room, slabs = warps * numbers * sim.dtype.itemsize, [nrhs, 2, numbers]
        blocks = -(-2 * nrhs // warps)
    else:
        room, slabs = potrs_bytes(sim.dtype, n), [-(-nrhs // 8)]
    for schedule in SCHEDULES:
        factors, given = Memory(c, order), Memory(b, order)
        x = given if in_place else poisoned(b.shape, a.dtype, order)
        sim.run(schedule, blocks or 2 * (slabs or [1])[0], room, *factors.matrix(not lower),
                *given.matrix(), *x.matrix(), failed.address, not lower, n, nrhs, *slabs)
        outputs.append([x.array.copy()])
    x = same_under_all_schedules(outputs)[0]
    assert np.array_equal(x[1], b[1])
    assert residual(b[0], a[0], x[0]) < PASS


potrs_warp = potrs_lines = potrs_block


def potri_small(sim, rng, n, order, in_place, lower, turn):
    v = sim.constants
    room = small_square_bytes(sim.letter, v)
    lanes = dealt(32 * v["WARPS"], -(-n // v["C"]), 4 if n > 8 else 1, room, 2**17)
    of_block = 32 * v["WARPS"] // lanes
    batch = 2 * of_block + 5
    inverses(sim, rng, n, order, in_place, lower, batch, -(-batch // of_block), of_block * room,
             lanes, batch)


def potri_shared(sim, rng, n, order, in_place, lower, turn):
    inverses(sim, rng, n, order, in_place, lower, 6, 6, inverse_bytes(sim.letter, sim.constants))


def inverses(sim, rng, n, order, in_place, lower, batch, blocks, shared, *more):
    """Factors of which 2 and 3 are the first times powers of two, whose inverses go nearly as far
    as numbers do; two with a zero on the diagonal, and one with nan there."""
    far = sim.dtype.type(2.0**(np.finfo(sim.dtype).minexp * -7 // 16)).real
    full = positive(rng, sim.dtype, 1, n).repeat(batch, 0)
    full += np.arange(batch).reshape(-1, 1, 1) * np.eye(n, dtype=sim.dtype)
    factor = getattr(lapack, sim.letter + "potrf")
    c = np.array([factor(a, lower=lower, clean=0)[0] for a in full])
    c[2], c[3] = c[0] / far, c[0] * far
    c[1, 1, 1] = c[-1, -1, -1] = 0
    c[-2, n // 2, n // 2] = np.nan
    expected = [0, 2] + [0] * (batch - 3) + [n]
    unread = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    c[:, *unread] = rng.standard_normal((batch, len(unread[0])))
    c[::2, *unread] = np.nan
    outputs = []
    for schedule in SCHEDULES:
        source = Memory(c, order)
        x = source if in_place else poisoned(c.shape, c.dtype, order)
        info = poisoned((batch,), np.int32, "C")
        sim.run(schedule, blocks, shared, *source.matrix(not lower), *x.matrix(not lower),
                info.address, n, *more)
        outputs.append([y.array.copy() for y in (x, info)])
    x, info = same_under_all_schedules(outputs)
    assert list(info) == expected, info
    assert np.array_equal(x[:, *unread], c[:, *unread], equal_nan=True), "the other triangle"
    half = np.tril(x) if lower else np.triu(x)
    for i in {*range(batch)} - {2, 3, batch - 2}:
        if expected[i]:
            assert np.array_equal(x[i], c[i], equal_nan=True)
        else:
            assert not half[i].diagonal().imag.any()
            whole = half[i] + half[i].conj().T * ~np.eye(n, dtype=bool)
            check_solved(full[i], np.eye(n, dtype=c.dtype), whole, 0)
    assert np.array_equal(half[2] / far / far, half[0])
    assert np.abs(half[3] - half[0] / far / far).max() <= 4 * np.finfo(c.dtype).smallest_subnormal


def potri_parts(sim, rng, n, order, in_place, lower, turn):
    """Two of four members have no inverse, by two of the parts' zeros or one."""
    width, v = -(-n // 3), sim.constants
    parts = -(-n // width)
    zeros = np.zeros((parts, 4), np.int32)
    zeros[-1, 1], zeros[parts // 2:, 2] = 1, 2
    expected = [0, (parts - 1) * width + 1, parts // 2 * width + 2, 0]
    c, x = (rng.standard_normal((4, n, 2 * n)).view(complex).astype(sim.dtype) if sim.letter in "cz"
            else rng.standard_normal((4, n, n)).astype(sim.dtype) for _ in range(2))
    below, above = np.tril_indices(n), np.triu_indices(n, 1)
    if in_place:
        c[:, *above] = np.nan
    else:
        c[::3, *below] = np.nan
    x[:, *above] = np.nan
    x[1:3] = np.nan
    outputs = []
    for schedule in SCHEDULES:
        source, result, infos = Memory(c, order), Memory(x, order), Memory(zeros, "C")
        info = poisoned((4,), np.int32, "C")
        sim.run(schedule, -(-n // v["LINES"]) * 4, 0, *source.matrix(), *result.matrix(),
                infos.address, parts, width, info.address, in_place, n, 4)
        outputs.append([y.array.copy() for y in (source if in_place else result, info)])
    got, info = same_under_all_schedules(outputs)
    assert list(info) == expected, info
    for i in range(4):
        if expected[i]:
            right = c[i]
        else:
            right = np.tril(x[i])
            np.fill_diagonal(right, x[i].diagonal().real)
            right[above] = c[i][above]
        assert np.array_equal(got[i], right, equal_nan=True)


def check(sim, full, a, c, info, unread, lower):
    n = len(a)
    done = info - 1 if info else n
    assert np.array_equal(c[unread], a[unread], equal_nan=True), "the other triangle"
    left, given = (np.tril(c), np.tril(a)) if lower else (np.triu(c).conj().T, np.triu(a).conj().T)
    assert not np.diag(left)[:done].imag.any() and (np.diag(left)[:done].real > 0).all()
    half = left[:done, :done]
    assert residual(full[:done, :done], half, half.conj().T) < PASS
    if info:  # what comes after the pivot that is none is as it was
        left[done, done] = given[done, done]
        assert np.array_equal(left[done:, done:], given[done:, done:], equal_nan=True)
        return
    right = getattr(lapack, sim.letter + "potrf")(full, lower=lower)[0]
    right = np.tril(right) if lower else np.triu(right).conj().T
    size = np.abs(right).max()
    assert np.abs(half - right).max() <= PASS * n * np.finfo(a.dtype).eps * size


def main(library, name, letter, constants, *orders):
    sim = Simulated(library, name, letter, json.loads(constants))
    rng = np.random.default_rng(7)
    layouts = [("C", False, 1), ("F", True, 1), ("batch last", False, 0), ("C", False, 1),
               ("C", False, 0), ("C", False, 1), ("F", True, 0)]
    # Lines as far past 16 bytes in A as in C, lines that are not, columns that are, and in place
    layouts += [(("C", (1, 1), (1, 5)), False, 1), (("C", (0, 0), (1, 0)), False, 1),
                (("C", (3, 1), (3, 1)), False, 0), (("F", (1, 1), (1, 1)), True, 0)]
    for i, n in enumerate(map(int, orders)):
        with np.errstate(all="ignore"):
            globals()[name](sim, rng, n, *layouts[i], i)
    print("ok", name, letter, *orders)


if __name__ == "__main__":
    main(*sys.argv[1:])
