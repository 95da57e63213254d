"""Runs the kernels of QR, built by `build` with ENTRY, through their problems; for a process that
has the sanitizers:  python -m tests.sim.run_qr LIBRARY KERNEL LETTER CONSTANTS(json) [m,n ...]

Four schedules must agree to the bit. Factors are judged by LAPACK's Q out of the reflectors in
double precision, and against LAPACK's factors: the convention of signs and tau is to be the same.
"""

import json
import sys
from itertools import product

import numpy as np
from cffi import FFI
from scipy.linalg import lapack

from blasx._types import TYPES
from blasx.batched._block import (
    dealt,
    gels_bytes,
    gels_room,
    left_bytes,
    passing_bytes,
    passing_numbers,
    qr_bytes,
    small_q_bytes,
    small_q_numbers,
    strip_bytes,
    teams_of,
)

from .run import PASS, SCHEDULES, Memory, poisoned, same_under_all_schedules

ENTRY = """
extern "C" void {0}(unsigned blocks, unsigned threads, int schedule, unsigned shared,
                    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared); }}
"""
ffi = FFI()


class Simulated:
    def __init__(self, library, name, letter, constants):
        ffi.cdef(f"void sim_{name}(unsigned, unsigned, int, unsigned, const uint64_t *);")
        self.launch = getattr(ffi.dlopen(library), "sim_" + name)
        self.letter, self.dtype, self.constants = letter, TYPES[letter].dtype, constants
        self.threads = 32 * constants["WARPS"]

    def panel(self, rows):
        """Bytes of dynamic shared memory (kernels/qr_panels.cuh)."""
        size, past, strip = {"s": (4, 4, 0), "d": (8, 4, 20), "c": (8, 4, 0),
                             "z": (16, 2, 12)}[self.letter]
        values = self.constants
        return size * (rows * (values["NB"] + past) + values["WARPS"] * values["NB"] * strip)

    def run(self, schedule, blocks, shared, *numbers):
        cells = ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers])
        self.launch(blocks, self.threads, schedule, shared, cells)


def wide(x):
    return x.astype(np.result_type(x.dtype, np.float64))


def double(letter, name):
    """LAPACK's routine in double precision."""
    complex_ = letter in "cz"
    return getattr(lapack, ("z" if complex_ else "d") + (name.replace("or", "un", 1)
                                                         if complex_ else name))


def random(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def members(rng, dtype, m, n):
    """Random, and the awkward ones: zero, ones, triangular, tiny and huge, by columns too, nan."""
    a = random(rng, dtype, 8, m, n)
    limits = np.finfo(dtype)
    a[1] = 0
    a[2] = 1
    a[3] = np.triu(a[3]) + np.tril(a[3], -1) * limits.tiny
    a[4] *= limits.tiny * 8
    a[5] *= limits.max / 64
    a[6, :, ::2] *= limits.max / 64
    a[6, :, 1::2] *= limits.tiny * 64
    a[7, m // 2, n // 2] = np.nan
    return a


def all_of_q(letter, qr, tau):
    m, k = qr.shape[0], len(tau)
    a = np.zeros((m, m), wide(qr).dtype, order="F")
    a[:, :k] = qr[:, :k]
    return double(letter, "orgqr")(a, wide(tau))[0]


def check_factors(letter, a, qr, tau, signs=True):
    if np.isnan(a).any():
        assert np.isnan(qr).any()
        return
    m, n = a.shape
    eps = np.finfo(a.dtype).eps
    assert np.isfinite(qr).all() and np.isfinite(tau).all()
    Q = all_of_q(letter, qr, tau)
    assert np.abs(Q.conj().T @ Q - np.eye(m)).max() < PASS * m * eps
    size = np.abs(a).astype(float).max(0)
    scale = np.where(size > 0, 1 / np.where(size > 0, size, 1), 1)
    size_of_tiny = np.finfo(a.dtype).smallest_subnormal / eps
    error = np.abs(Q @ (np.triu(wide(qr)) * scale) - wide(a) * scale).max(0)
    assert (error[size > size_of_tiny] < PASS * max(m, n) * eps).all(), error / eps
    if letter in "cz":
        assert (np.diag(qr).imag == 0).all()
    if signs:
        right = double(letter, "geqrf")(wide(a))
        bound = 1e4 * max(m, n) * eps
        assert np.abs(tau - right[1]).max() < bound, (tau, right[1])
        k = len(tau)
        assert np.abs(np.tril(qr[:, :k] - right[0][:, :k], -1)).max() < bound


def geqrf(sim, rng, m, n, order, in_place, launch):
    a = members(rng, sim.dtype, m, n)
    k = min(m, n)
    outputs = []
    for schedule in SCHEDULES:
        source = Memory(a, order)
        target = source if in_place else poisoned(a.shape, a.dtype, order)
        tau = poisoned((len(a), k), a.dtype, "C")
        launch(schedule, source, target, tau)
        outputs.append([x.array.copy() for x in (target, tau)])
    qr, tau = same_under_all_schedules(outputs)
    for i in range(len(a)):  # where columns are dependent, rounding decides on signs
        check_factors(sim.letter, a[i], qr[i], tau[i], signs=i in (0, 1, 3, 4, 5, 6))


def geqrf_small(sim, rng, m, n, order, in_place):
    def launch(schedule, source, target, tau):
        batch = len(source.array)
        sim.run(schedule, -(-batch // teams_of(sim.constants)), 0, *source.matrix(),
                *target.matrix(), tau.address, m, n, batch)

    geqrf(sim, rng, m, n, order, in_place, launch)


def geqrf_shared(sim, rng, m, n, order, in_place):
    def launch(schedule, source, target, tau):
        sim.run(schedule, len(source.array), qr_bytes(sim.dtype, n, sim.constants),
                *source.matrix(), *target.matrix(), tau.address, m, n)

    geqrf(sim, rng, m, n, order, in_place, launch)


def geqrf_left(sim, rng, m, n, order, in_place):
    panel = sim.constants["NB"]

    def launch(schedule, source, target, tau):
        batch, panels = len(source.array), -(-min(m, n) // panel)
        room = panels * panel**2 + copied * min(panels, (n - 1) // panel) * panel * -(-m // 8) * 8
        ts = poisoned((batch, room), source.array.dtype, "C")
        sim.run(schedule, batch, left_bytes(sim.letter, sim.constants, m), *source.matrix(),
                *target.matrix(), tau.address, ts.address, room, m, n, copied)

    for copied in (0, 1):
        geqrf(sim, rng, m, n, order, in_place, launch)


def geqrf_block(sim, rng, m, n, order, in_place):
    def launch(schedule, source, target, tau):
        sim.run(schedule, len(source.array), sim.panel(m) + n * TYPES[sim.letter].real.itemsize,
                *source.matrix(), *target.matrix(), tau.address, m, n)

    geqrf(sim, rng, m, n, order, in_place, launch)


def factors(sim, rng, m, k):
    results = [getattr(lapack, sim.letter + "geqrf")(random(rng, sim.dtype, m, k))[:2]
               for _ in range(2)]
    return np.array([x[0] for x in results]), np.array([x[1] for x in results])


def ormqr(sim, rng, m, n, k, order, launch):
    """op(Q) C of two members, a column of which is tiny, by launch(schedule, QR and tau, as arrays
    and in memory, C's memory, conjugated, adjoint)."""
    qr, tau = factors(sim, rng, m, k)
    sizes = np.ones(n)
    sizes[n // 2] = 2.0 ** (-124 if sim.letter in "sc" else -900)
    c = (random(rng, sim.dtype, 2, m, n) * sizes).astype(sim.dtype)
    for conjugated, adjoint in ((0, 0), (0, 1), (1, 0), (1, 1)):
        outputs = []
        for schedule in SCHEDULES:
            source, taus, target = Memory(qr, order), Memory(tau), Memory(c, order)
            launch(schedule, (qr, tau, source, taus), target, conjugated, adjoint)
            outputs.append([target.array.copy()])
        (cq,) = same_under_all_schedules(outputs)
        for i in range(2):
            Q = all_of_q(sim.letter, qr[i], tau[i])
            Q = Q.conj() if conjugated else Q
            right = (Q.conj().T if adjoint else Q) @ c[i]
            assert (np.abs(cq[i] - right) / sizes).max() < PASS * m * np.finfo(c.dtype).eps


def ormqr_block(sim, rng, m, n, order, in_place):
    k = min(m, max(n - 1, 1))

    def launch(schedule, of, target, *flags):
        *_, source, taus = of
        sim.run(schedule, 2, sim.panel(m), *source.matrix(), taus.address, k, *target.matrix(), m,
                n, k, *flags)

    ormqr(sim, rng, m, n, k, order, launch)


def triangles(qr, tau, panel, adjoint):
    """T of every panel of (m, k) reflectors, as kernels/qr_left.cuh reads it."""
    m, k = qr.shape
    each, ts = panel // 8, []
    row, column = np.indices((panel, panel))
    if not adjoint:
        row, column = column, row
    place = (row % each * each + column % each) * 32 + column // each * 4 + row // each // 2
    place = 2 * place + row // each % 2
    for first in range(0, k, panel):
        count = min(panel, k - first)
        V = np.tril(qr[first:, first:first + count], -1) + np.eye(m - first, count)
        T = np.zeros((panel, panel), wide(qr).dtype)
        for j, t in enumerate(tau[first:first + count]):
            T[:j, j] = -t * T[:j, :j] @ (V[:, :j].conj().T @ V[:, j])
            T[j, j] = t
        placed = np.empty(panel**2, T.dtype)
        placed[place] = T.conj() if adjoint else T
        ts.append(placed)
    return np.concatenate(ts)


def larft_panels(sim, rng, m, n, order, in_place):
    k, panel = min(m, n), sim.constants["NB"]
    qr, tau = factors(sim, rng, m, k)
    panels = -(-k // panel)
    for adjoint in 0, 1:
        outputs = []
        for schedule in SCHEDULES:
            source, taus = Memory(qr, order), Memory(tau)
            ts = poisoned((2, panels * panel**2), qr.dtype, "C")
            sim.run(schedule, 2 * panels, 0, *source.matrix(), taus.address, k, ts.address,
                    ts.array.shape[1], m, k, adjoint, panels)
            outputs.append([ts.array.copy()])
        (ts,) = same_under_all_schedules(outputs)
        for i in range(2):
            right = triangles(qr[i], tau[i], panel, adjoint)
            assert np.abs(ts[i] - right).max() < PASS * m * np.finfo(qr.dtype).eps


def ormqr_strips(sim, rng, m, n, order, in_place):
    k, panel = min(m, max(n - 1, 1)), sim.constants["NB"]
    strips = -(-n // sim.constants["COLUMNS"])

    def launch(schedule, of, target, conjugated, adjoint):
        qr, tau, source, _ = of
        ts = Memory(np.array([triangles(*x, panel, adjoint) for x in zip(qr, tau)])
                    .astype(qr.dtype))
        sim.run(schedule, 2 * strips, strip_bytes(sim.letter, sim.constants, m), *source.matrix(),
                ts.address, ts.array.shape[1], *target.matrix(), m, n, k, conjugated, adjoint,
                strips)

    ormqr(sim, rng, m, n, k, order, launch)


def ormqr_warp(sim, rng, m, n, order, in_place):
    """op(Q) times n columns: of a block's room for members one is free."""
    k, team = max(m - 2, 1), sim.constants["LANES"]
    room = passing_numbers(sim.constants, m)

    def launch(schedule, of, target, *flags):
        *_, source, taus = of
        sim.run(schedule, -(-2 // (sim.threads // team)),
                passing_bytes(sim.dtype, sim.constants, m), *source.matrix(), taus.address, k,
                *target.matrix(), m, n, k, *flags, room, 2)

    ormqr(sim, rng, m, n, k, order, launch)


def ormqr_small(sim, rng, m, n, order, in_place):
    """op(Q) times n columns; of a block's room for members some is free."""
    k, teams = max(min(m, n) - 1, 1), sim.threads // sim.constants["LANES"]

    def launch(schedule, of, target, *flags):
        *_, source, taus = of
        sim.run(schedule, -(-2 // teams), small_q_bytes(sim.dtype, sim.constants, k),
                *source.matrix(), taus.address, k, *target.matrix(), m, n, k, *flags,
                small_q_numbers(sim.dtype, sim.constants, k), 2)

    ormqr(sim, rng, m, n, k, order, launch)


def orgqr_small(sim, rng, m, n, order, in_place):
    """With as many lanes to a member as its columns ask for, and with others; blocks are full but
    the last."""
    numbers = small_q_numbers(sim.dtype, sim.constants, min(m, n))
    parts = sim.constants["PARTS"]
    least = dealt(sim.threads, parts * n, 1 if parts == 1 else 32,
                  numbers * sim.dtype.itemsize, 2**17)
    others = (min(least + 5, sim.threads), max(least - 1, 1)) if parts == 1 else (32, sim.threads)
    for lanes, k in zip((least, *others), (min(m, n), max(min(m, n) - 3, 1), min(m, n))):
        teams = sim.threads // lanes
        batch = teams + 1
        qr, tau = (np.concatenate([x] * batch)[:batch] for x in factors(sim, rng, m, k))
        outputs = []
        for schedule in SCHEDULES:
            source, taus = Memory(qr, order), Memory(tau)
            target = poisoned((batch, m, n), qr.dtype, order)
            sim.run(schedule, 2, teams * numbers * sim.dtype.itemsize, *source.matrix(),
                    taus.address, k, *target.matrix(), m, n, k, lanes, numbers, batch)
            outputs.append([target.array.copy()])
        (q,) = same_under_all_schedules(outputs)
        for i in range(batch):
            Q = all_of_q(sim.letter, qr[i], tau[i])
            assert np.abs(q[i] - Q[:, :n]).max() < PASS * m * np.finfo(qr.dtype).eps


def orgqr_block(sim, rng, m, n, order, in_place):
    for k in {min(m, n), max(min(m, n) - 3, 1)}:
        qr, tau = factors(sim, rng, m, k)
        outputs = []
        for schedule in SCHEDULES:
            source, taus = Memory(qr, order), Memory(tau)
            target = poisoned((2, m, n), qr.dtype, order)
            sim.run(schedule, 2, sim.panel(m), *source.matrix(), taus.address, k,
                    *target.matrix(), m, n, k)
            outputs.append([target.array.copy()])
        (q,) = same_under_all_schedules(outputs)
        for i in range(2):
            right = all_of_q(sim.letter, qr[i], tau[i])[:, :n]
            assert np.abs(q[i] - right).max() < PASS * m * np.finfo(q.dtype).eps


def orgqr_strips(sim, rng, m, n, order, in_place):
    panel, strips = sim.constants["NB"], -(-n // sim.constants["COLUMNS"])
    for k in {min(m, n), max(min(m, n) - 3, 1)}:
        qr, tau = factors(sim, rng, m, k)
        outputs = []
        for schedule in SCHEDULES:
            source, target = Memory(qr, order), poisoned((2, m, n), qr.dtype, order)
            ts = Memory(np.array([triangles(*x, panel, 0) for x in zip(qr, tau)]).astype(qr.dtype))
            sim.run(schedule, 2 * strips, strip_bytes(sim.letter, sim.constants, m),
                    *source.matrix(), ts.address, ts.array.shape[1], *target.matrix(), m, n, k,
                    strips)
            outputs.append([target.array.copy()])
        (q,) = same_under_all_schedules(outputs)
        for i in range(2):
            right = all_of_q(sim.letter, qr[i], tau[i])[:, :n]
            assert np.abs(q[i] - right).max() < PASS * m * np.finfo(q.dtype).eps


def gels_solve(sim, rng, n, nrhs, order, in_place):
    """Members: usual, a zero in the middle, all zero, tiny, a zero at the end, a zero first beside
    others on the diagonal only; X has two rows more than R."""
    a = random(rng, sim.dtype, 6, n, n) / n + 3 * np.eye(n, dtype=sim.dtype)
    a[1, n // 2, n // 2] = a[4, -1, -1] = 0
    a[2] = np.tril(a[2], -1)
    a[3] *= np.finfo(sim.dtype).tiny * 4
    a[5] = np.diag(np.arange(n))
    y = random(rng, sim.dtype, 6, n + 2, nrhs)
    y[3] *= np.finfo(sim.dtype).tiny * 64
    infos = [0, n // 2 + 1, 0, 0, n, 1] if n > 1 else [0] * 6
    for turned, conjugated in product((0, 1), (0, 1)):
        outputs = []
        for schedule in SCHEDULES:
            source, target = Memory(a, order), Memory(y, order)
            info = poisoned((6,), np.int32, "C")
            sim.run(schedule, 6, n * sim.constants["COLUMNS"] * a.itemsize, *source.matrix(),
                    *target.matrix(), info.address, turned, conjugated, n + 2, n, nrhs)
            outputs.append([target.array.copy(), info.array.copy()])
        x, info = same_under_all_schedules(outputs)
        x, below = np.split(x, [n], 1)
        assert list(info) == infos, info
        assert not x[2].any() and (below == (0 if turned else y[:, n:])).all()
        for i in np.flatnonzero(infos):
            assert (x[i] == y[i, :n]).all()
        for i in (0, 3):
            R = np.triu(wide(a[i]))
            R = R.T if turned else R
            R = R.conj() if conjugated else R
            error = np.abs(R @ x[i] - y[i, :n]).max()
            assert error <= PASS * n * np.finfo(a.dtype).eps * np.abs(R).max() * np.abs(x[i]).max()


def gels_small(sim, rng, m, n, order, in_place):
    def launch(schedule, *operands):
        room = gels_room(sim.constants, n, 2)
        sim.run(schedule, -(-8 // teams_of(sim.constants)),
                gels_bytes(sim.dtype, sim.constants, room), *operands, m, n, 2, room, 8)

    least_squares(sim, rng, m, n, order, in_place, 2, launch)


def gels_shared(sim, rng, m, n, order, in_place):
    def launch(schedule, *operands):
        sim.run(schedule, 8, qr_bytes(sim.dtype, n, sim.constants), *operands, m, n)

    least_squares(sim, rng, m, n, order, in_place, 1, launch)


def least_squares(sim, rng, m, n, order, in_place, nrhs, launch):
    """The members of geqrf, one with a column of zeros, one tiny and close to singular, and
    right-hand sides as far from one as these; what is checked is A^H (B - A X) = 0, with columns of
    A and B scaled to one."""
    limits = np.finfo(sim.dtype)
    a, b = members(rng, sim.dtype, m, n), random(rng, sim.dtype, 8, m, nrhs)
    if n > 1:
        a[4, :, -1] = a[4, :, 0] + a[4, :, -1] / 2**10
    a[3] = random(rng, sim.dtype, m, n)
    a[3, :, n // 2] = 0
    b[4] *= limits.tiny * 64
    b[5] *= limits.max / 64
    outputs = []
    for schedule in SCHEDULES:
        source, given = Memory(a, order), Memory(b, order)
        target = source if in_place else poisoned(a.shape, a.dtype, order)
        x = given if in_place else poisoned(b.shape, b.dtype, order)
        info = poisoned((8,), np.int32, "C")
        launch(schedule, *source.matrix(), *target.matrix(), *given.matrix(), *x.matrix(),
               info.address)
        outputs.append([y.array.copy() for y in (target, x, info)])
    qr, x, info = same_under_all_schedules(outputs)
    bound = PASS * m * limits.eps
    assert list(info) == [0, 0, info[2], n // 2 + 1 if n > 1 else 0, 0, 0, 0, 0], info
    assert np.isnan(x[7]).any() and not x[1, :n].any() and (x[1, n:] == b[1, n:]).all()
    if n > 1:  # Q^H B
        assert np.abs(np.linalg.norm(x[3], axis=0) - np.linalg.norm(b[3], axis=0)).max() < bound
    for i in (0, 4, 5, 6):
        size, of_b = np.abs(wide(a[i])).max(0), np.abs(wide(b[i])).max()
        scaled, given = wide(a[i]) / size, wide(b[i]) / of_b
        z = x[i, :n] * (size / of_b)[:, None]
        left = given - scaled @ z
        assert np.isfinite(z).all()
        assert np.abs(scaled.conj().T @ left).max() < bound * n * (1 + np.abs(z).max())
        rest = np.linalg.norm(x[i, n:] / of_b, axis=0) - np.linalg.norm(left, axis=0)
        assert np.abs(rest).max() < bound * (1 + np.abs(z).max())
        right, tau, _, _ = double(sim.letter, "geqrf")(scaled)
        back = np.triu(wide(qr[i])[:n] / size)
        assert np.abs(np.abs(back) - np.abs(np.triu(right[:n]))).max() < bound * n
        assert np.abs(np.tril(qr[i] - right, -1)).max() < 1e4 * m * limits.eps


def gels_warp(sim, rng, m, n, order, in_place):
    """Factors: usual, a zero in the middle of R, a zero first, R zero, R small and near singular, B
    small, B large, nan in A; the reflectors of a zero member are none."""
    nrhs, limits, team = 5 if n % 2 else 1, np.finfo(sim.dtype), sim.constants["LANES"]
    geqrf = getattr(lapack, sim.letter + "geqrf")
    found = [geqrf(random(rng, sim.dtype, m, n) + 4 * np.eye(m, n, dtype=sim.dtype))[:2]
             for _ in range(8)]
    qr, tau = (np.array([x[i] for x in found]) for i in (0, 1))
    b = random(rng, sim.dtype, 8, m, nrhs)
    qr[1, n // 2, n // 2] = qr[2, 0, 0] = 0
    qr[3] = tau[3] = 0
    qr[4, n - 1, n - 1] /= 2**10
    qr[4] = np.tril(qr[4], -1) + np.triu(qr[4]) * limits.tiny * 4
    b[4] *= limits.tiny * 64
    b[5] *= limits.tiny * 4
    b[6] *= limits.max / 64
    qr[7, 0, 0] = np.nan
    outputs = []
    for schedule in SCHEDULES:
        source, taus, given = Memory(qr, order), Memory(tau), Memory(b, order)
        x = given if in_place else poisoned(b.shape, b.dtype, order)
        info = poisoned((8,), np.int32, "C")
        sim.run(schedule, -(-8 // (sim.threads // team)),
                passing_bytes(sim.dtype, sim.constants, m), *source.matrix(), taus.address, n,
                *given.matrix(), *x.matrix(), info.address, m, n, nrhs,
                passing_numbers(sim.constants, m), 8)
        outputs.append([y.array.copy() for y in (x, info)])
    x, info = same_under_all_schedules(outputs)
    assert list(info) == [0, n // 2 + 1 if n > 1 else 0, int(n > 1), 0, 0, 0, 0, 0], info
    assert np.isnan(x[7]).any() and not x[3, :n].any() and (x[3, n:] == b[3, n:]).all()
    for i in range(7) if n > 1 else (0, 4, 5, 6):
        of_b = np.abs(wide(b[i])).max()
        y = all_of_q(sim.letter, qr[i], tau[i]).conj().T @ (wide(b[i]) / of_b)
        lift = limits.eps / limits.tiny if i == 4 else 1
        R, z = np.triu(wide(qr[i])[:n]) * lift, wide(x[i, :n]) / (of_b * lift)
        bound = PASS * m * limits.eps
        assert np.isfinite(z).all()
        if i == 3:
            continue
        assert np.abs(wide(x[i, n:]) / of_b - y[n:]).max(initial=0) < bound
        if info[i]:
            assert np.abs(z - y[:n]).max() < bound
        else:
            size = np.abs(R).max() * np.abs(z).max() + 1
            assert np.abs(R @ z - y[:n]).max() < bound * size


def lascl_batched(sim, rng, m, n, order, in_place):
    """Members: usual, huge, subnormal, zero, with inf, with nan. X is A times the power of two that
    makes its largest number what it is to be, and A again by what was kept."""
    bits = np.finfo(sim.dtype)
    a = random(rng, sim.dtype, 6, m, n)
    a[1] *= bits.max / 8
    a[2] = (a[2] * bits.tiny * 0.01).astype(sim.dtype)
    a[3] = 0
    a[4, -1, -1], a[5, 0, -1] = np.inf, np.nan
    parts = np.maximum(np.abs(a.real), np.abs(a.imag)).max((1, 2))
    for target, always, conjugated in ((0, 1, 0), (bits.maxexp // 2, 0, 1)):
        e = np.frexp(np.where(np.isfinite(parts), parts, 0))[1] - target
        e[3] = 0
        e[4:] = 2**20 if always else 0
        if not always:
            e[[0, 2]] = 0
        lost = e == 2**20
        right = np.ldexp(a.view(bits.dtype), np.where(lost, 0, -e)[:, None, None]).view(sim.dtype)
        right[lost] = 0
        right = (right.conj() if conjugated else right).astype(sim.dtype)
        outputs = []
        for schedule in SCHEDULES:
            source, kept = Memory(a, order), poisoned((6,), np.int32, "C")
            target_ = source if in_place else poisoned(a.shape, a.dtype, order)
            sim.run(schedule, 6, 0, *source.matrix(), conjugated, 0, *target_.matrix(),
                    kept.address, 1, target, always, m, n, 1)
            x = target_.array.copy()
            sim.run(schedule, 6 * 3, 0, *target_.matrix(), 0, 0, *target_.matrix(), kept.address, 0,
                    0, 0, m, n, 3)
            outputs.append([x, kept.array.copy(), target_.array.copy()])
        x, kept, back = same_under_all_schedules(outputs)
        assert list(kept) == list(e), (kept, e)
        if not (conjugated and in_place):  # what is not scaled is not touched
            assert np.array_equal(x, right, equal_nan=True)
            wanted = a.conj() if conjugated else a.copy()
            wanted[lost] = np.nan
            assert np.array_equal(back, wanted, equal_nan=True)
    if m == n and not in_place:
        for part, triangle in ((1, np.tril), (2, np.triu)):
            half = triangle(a[:3])
            right = half + triangle(half, -1 if part == 1 else 1).conj().swapaxes(1, 2)
            right[:, range(n), range(n)] = right[:, range(n), range(n)].real
            source, x = Memory(a[:3], order), poisoned((3, n, n), a.dtype, order)
            kept = Memory(np.zeros(3, np.int32), "C")
            sim.run(0, 3 * 2, 0, *source.matrix(), 0, part, *x.matrix(), kept.address, 0, 0, 0, n,
                    n, 2)
            assert np.array_equal(x.array, right)


def gram_level(sim, rng, m, n, order, in_place):
    """H of members whose columns are level, and are not in the last one, in the first, or for a
    nan; X of one that is LOST."""
    h = random(rng, sim.dtype, 5, n, n)
    lengths = rng.uniform(1, 50, (5, n))
    lengths[:, [0, -1]] = 1, 200
    lengths[1, -1], lengths[2, 0], lengths[3, n // 2] = 0.1, 0.5, np.nan
    h[:, range(n), range(n)] = lengths
    x, kept = random(rng, sim.dtype, 5, m, n), np.array([0, 3, 2**20, -1, 2**20], np.int32)
    right, of_x = h.copy(), x.copy()
    right[1:4] = 0
    of_x[kept == 2**20, 0, 0] = np.nan
    outputs = []
    for schedule in SCHEDULES:
        grams, given, lost = Memory(h, order), Memory(x, "C"), Memory(kept)
        sim.run(schedule, -(-5 // sim.constants["WARPS"]), 0, *grams.matrix(), given.address, m * n,
                lost.address, 256, n, 5)
        outputs.append([grams.array.copy(), given.array.copy()])
    got, got_x = same_under_all_schedules(outputs)
    assert np.array_equal(got, right) and np.array_equal(got_x.real, of_x.real, equal_nan=True)


def main(library, name, letter, constants, *sizes):
    sim = Simulated(library, name, letter, json.loads(constants))
    rng = np.random.default_rng(7)
    layouts = [("C", False), ("F", True), ("batch last", False)]
    for i, size in enumerate(sizes):
        with np.errstate(all="ignore"):
            globals()[name](sim, rng, *map(int, size.split(",")), *layouts[i % len(layouts)])
    print("ok", name, letter, *sizes)


if __name__ == "__main__":
    main(*sys.argv[1:])
