"""Runs a kernel of the LU of one large matrix, built by `build` with ENTRY, through its problems;
for a process that has the sanitizers:

    python -m tests.sim.run_large LIBRARY KERNEL LETTER CONSTANTS

As run.py: exact memory, four schedules, LAPACK's pivots, nan and ties among the problems.
"""

import json
import sys

import numpy as np
from cffi import FFI
from scipy.linalg import lapack

from blasx._types import TYPES
from blasx.batched._block import shared_bytes
from blasx.large._bytes import (
    apply_bytes,
    columns_bytes,
    moved_bytes,
    panel_bytes,
    reflectors_bytes,
    rows_bytes,
    wide_bytes,
)

from .build import PREFIX
from .run import (
    PASS,
    SCHEDULES,
    Memory,
    check_lu,
    exact_for,
    general,
    poisoned,
    residual,
    same_under_all_schedules,
)
from .run_qr import check_factors, members, wide

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
    for m, n in ((most - 9, 2 * w + 3), (w + 1, w - 1), (5, 3), (1, 1)):
        for k, a in enumerate(problems(rng, sim.dtype, m, n)):
            outputs = []
            for schedule in SCHEDULES:
                x = Memory(np.concatenate((a, np.full((2, n), 7, a.dtype))), "batch last")
                piv, info = poisoned((n,), np.int32, "C"), Memory(np.array([-1], np.int32))
                sim.run(schedule, v["CLUSTER"], panel_bytes(sim.dtype, n, v), x.address, m + 2, m,
                        n, piv.address, 0, info.address, more=1)
                assert (x.array[m:] == 7).all()
                outputs.append([y.array.copy() for y in (x, piv, info)])
            lu, piv, info = same_under_all_schedules(outputs)
            check_lu(a, lu[:m], piv, info[0])
            if np.isnan(a).any():
                assert np.isnan(lu[range(n), range(n)]).all()
            if k == 0 or (k == 1 and m < 50 and exact_for(a)):
                assert np.array_equal(piv, getattr(lapack, sim.letter + "getrf")(a)[1])


def inverses(T):
    """Of the blocks of 32 on a lower triangle's diagonal, by columns."""
    blocks = [np.eye(32, dtype=T.dtype) for _ in range(0, len(T), 32)]
    for b, x in enumerate(blocks):
        part = T[32 * b:32 * b + 32, 32 * b:32 * b + 32]
        x[:len(part), :len(part)] = np.linalg.inv(part)
    return np.array([x.T for x in blocks])


def factored(sim, rng, m, width):
    """A panel with its factors, as LAPACK leaves them, and what getrf_top makes of it."""
    a = general(rng, sim.dtype, 1, m, width)[0]
    lu, piv, _ = getattr(lapack, sim.letter + "getrf")(a)
    from_, to = np.arange(m), np.arange(m)
    for j, p in enumerate(piv):
        from_[[j, p]] = from_[[p, j]]
    to[from_] = np.arange(m)
    L = np.tril(lu[:width], -1) + np.eye(width, dtype=sim.dtype)
    return lu, piv, from_[:width], to[:width], inverses(L)


def getrf_top(sim, rng):
    """With the inverses of U^T's blocks, and without."""
    for m, width, of_u in ((90, 70, 1), (90, 70, 0), (33, 32, 1), (5, 5, 1), (1, 1, 0)):
        lu, piv, from_, to, inverse = factored(sim, rng, m, width)
        outputs, upper = [], inverses(np.triu(lu[:width]).T)
        for schedule in SCHEDULES:
            L, pivots = Memory(lu, "batch last"), Memory((piv + 11).astype(np.int32))
            made = [poisoned((width,), np.int32, "C"), poisoned((width,), np.int32, "C"),
                    poisoned(inverse.shape, sim.dtype, "C"), poisoned(upper.shape, sim.dtype, "C")]
            sim.run(schedule, len(inverse) * (1 + of_u), 4 * width, L.address, m, width,
                    pivots.address, 11, *(x.address for x in made[:3]), made[3].address * of_u)
            outputs.append([x.array.copy() for x in made])
        made = same_under_all_schedules(outputs)
        assert np.array_equal(made[0], from_) and np.array_equal(made[1], to)
        eps = np.finfo(sim.dtype).eps
        assert np.allclose(made[2], inverse, rtol=0, atol=200 * eps * abs(inverse).max())
        assert not of_u or abs(made[3] - upper).max() < 1e3 * eps * abs(upper).max() ** 2


def getrf_below(sim, rng):
    """X U = B, and what is beside B stays as it is."""
    v = sim.constants
    for rows, width in ((2 * v["COLUMNS"] + 3, 70), (v["COLUMNS"], 32), (1, 5), (3, 1)):
        lu = factored(sim, rng, width + 2, width)[0]
        B, U = general(rng, sim.dtype, 1, rows, width)[0], np.triu(lu[:width])
        outputs = []
        for schedule in SCHEDULES:
            x = Memory(np.concatenate((B, np.full((2, width), 7, B.dtype))), "batch last")
            upper, inverse = Memory(lu, "batch last"), Memory(inverses(U.T))
            sim.run(schedule, -(-rows // v["COLUMNS"]), rows_bytes(sim.dtype, width, v), x.address,
                    rows + 2, rows, upper.address, width + 2, width, inverse.address)
            outputs.append([x.array.copy()])
        (x,) = same_under_all_schedules(outputs)
        assert (x[rows:] == 7).all() and residual(B.T, U.T, x[:rows].T) < 10


def getrf_wide(sim, rng):
    """L U = P B, of parts, with rows in an order or as they are; what is beside and below stays."""
    v = sim.constants
    for columns, width, part, below in ((v["COLUMNS"] + 3, 192, 64, 20), (5, 70, 32, 0),
                                        (1, 33, 32, 9), (v["COLUMNS"], 96, 96, 0)):
        top = 4  # and columns begin at multiples of 16 bytes
        m = -(-(top + width + below + 1) // 4) * 4
        lu = factored(sim, rng, width, width)[0]
        B, order = general(rng, sim.dtype, 1, m, columns)[0], np.arange(m, dtype=np.int32)
        moving = top + rng.permutation(width + below)[:width // 2]
        order[np.sort(moving)] = moving
        each = [inverses(np.tril(lu[k:k + part, k:k + part], -1)
                         + np.eye(min(part, width - k), dtype=sim.dtype))
                for k in range(0, width, part)]
        apart = 1024 * (part // 32 + 1)
        whole = np.full((len(each), apart), np.nan, sim.dtype)
        for to, x in zip(whole, each):
            to[:x.size] = x.ravel()
        for ordered in (below > 0, False):
            outputs = []
            for schedule in SCHEDULES:
                x = Memory(np.concatenate((B, np.full((m, 1), 7, B.dtype)), 1), "batch last")
                L = Memory(np.concatenate((lu, np.full((m - width, width), 7, B.dtype))),
                           "batch last")
                inverse, rows = Memory(whole), Memory(order)
                sim.run(schedule, -(-columns // v["COLUMNS"]),
                        wide_bytes(sim.dtype, width, below * ordered, v),
                        x.address + top * B.itemsize, m, columns, L.address, width,
                        inverse.address, part, apart, rows.address * ordered, top,
                        below * ordered)
                outputs.append([x.array.copy()])
            (x,) = same_under_all_schedules(outputs)
            wanted, end = B[order] if ordered else B, top + width
            assert (x[:, columns:] == 7).all() and np.array_equal(x[:top, :-1], B[:top])
            assert np.array_equal(x[end:, :-1], wanted[end:])
            T = np.tril(lu[:width], -1) + np.eye(width, dtype=sim.dtype)
            assert residual(wanted[top:end], T, x[top:end, :-1]) < 10


def getrf_window(sim, rng):
    """LAPACK's factors of the first rows; those below stay as they are."""
    v = sim.constants
    for m, n in ((v["N"], v["WINDOW"]), (v["N"] - 9, v["WINDOW"] - 3), (9, 9), (5, 3), (1, 1)):
        for a in problems(rng, sim.dtype, m, n):
            for before, known in ((0, 9), (40, 0), (40, 7)):
                outputs = []
                for schedule in SCHEDULES[:4 if not before else 1]:
                    x = Memory(np.concatenate((a, np.full((2, n), 7, a.dtype))), "batch last")
                    piv = poisoned((n,), np.int32, "C")
                    info = Memory(np.array([known], np.int32))
                    sim.run(schedule, 1, shared_bytes(sim.dtype, m, v), x.address, m + 2, m, n,
                            piv.address, before, info.address)
                    assert (x.array[m:] == 7).all()
                    outputs.append([y.array.copy() for y in (x, piv, info)])
                lu, piv, info = same_under_all_schedules(outputs)
                if before and known:
                    assert info[0] == known
                else:
                    check_lu(a, lu[:m], piv - before, max(info[0] - before, 0))


def getrf_rows(sim, rng):
    """Columns to the left, which are interchanged, and to the right, which are solved, too."""
    v = sim.constants
    for m, width, left, right in ((120, 70, 9, 2 * v["COLUMNS"] + 1), (120, 70, 5, 0),
                                  (40, 32, 0, 3), (9, 9, 20, 1), (1, 1, 1, 0)):
        lu, piv, from_, to, inverse = factored(sim, rng, m, width)
        b = general(rng, sim.dtype, 1, m, left + right)[0]
        outputs = []
        for schedule in SCHEDULES:
            L, x, inv = Memory(lu, "batch last"), Memory(b, "batch last"), Memory(inverse)
            lists = [Memory(y.astype(np.int32)) for y in (from_, to)]
            sim.run(schedule, sum(-(-n // v["COLUMNS"]) for n in (left, right)),
                    rows_bytes(sim.dtype, width, v), x.address,
                    x.address + left * m * sim.dtype.itemsize, m, left, right, L.address, width,
                    *(y.address for y in lists), inv.address)
            outputs.append([x.array.copy()])
        (x,) = same_under_all_schedules(outputs)
        for j, p in enumerate(piv):
            b[[j, p]] = b[[p, j]]
        assert np.array_equal(x[width:], b[width:]) and np.array_equal(x[:, :left], b[:, :left])
        L = np.tril(lu[:width], -1) + np.eye(width, dtype=sim.dtype)
        assert not right or residual(b[:width, left:], L, x[:width, left:]) < 10


def getrf_order(sim, rng):
    """Two blocks, the second after the first, and where each row was after each."""
    threads = 32 * sim.constants["WARPS"]
    for m, widths in ((300, (150, 9)), (33, (32, 1)), (7, (3, 4)), (1, (1, 0))):
        ends = np.cumsum(widths)
        piv = np.array([rng.integers(j, m) for j in range(ends[-1])], np.int32)
        outputs = []
        for schedule in SCHEDULES:
            pivots, rows = Memory(piv), [poisoned((m,), np.int32, "C") for _ in widths]
            places = poisoned((2 * m,), np.int32, "C")
            columns, before = poisoned((2 * ends[-1],), np.int32, "C"), 0
            for k, (width, end) in enumerate(zip(widths, ends)):
                sim.run(schedule, -(-m // threads), 0, pivots.address, end - width, width, m,
                        before, rows[k].address, places.address + 4 * m * k, columns.address, k)
                before = rows[k].address
            outputs.append([x.array.copy() for x in (*rows, places, columns)])
        *rows, places, columns = same_under_all_schedules(outputs)
        right, done = np.arange(m), 0
        for k, (width, end) in enumerate(zip(widths, ends)):
            for j in range(done, end):
                right[[j, piv[j]]] = right[[piv[j], j]]
            assert np.array_equal(rows[k], right)
            assert np.array_equal(places[m * k:m * (k + 1)][right], np.arange(m))
            assert (columns.reshape(-1, 2)[done:end] == (k, end)).all()
            done = end


def getrf_columns(sim, rng):
    """All rows of columns by one list; and of each column by its own, from a row on."""
    v = sim.constants
    for m, n, top in ((9 * 32 * v["WARPS"] + 5, 3, 7), (40, 5, 0), (3, 1, 3), (1, 1, 0)):
        a = general(rng, sim.dtype, 1, m, n)[0]
        tops = np.array([(k % 2, min(top + k % 2, m)) for k in range(n)])
        lists = np.array([rng.permutation(m), [*range(min(top + 1, m)),
                                  *(min(top + 1, m) + rng.permutation(m - min(top + 1, m)))]])
        kept = lists.copy()
        kept[0] = np.arange(m)
        kept[0][top:] = top + rng.permutation(m - top)
        for of, each in ((lists, 0), (kept, 1)):
            outputs = []
            for schedule in SCHEDULES:
                x = Memory(np.concatenate((a, np.full((2, n), 7, a.dtype))), "batch last")
                of_all, of_each = (Memory(y.astype(np.int32)) for y in (of, tops))
                sim.run(schedule, n, columns_bytes(m, v), x.address, m + 2, m, of_all.address,
                        of_each.address * each)
                outputs.append([x.array.copy()])
            (x,) = same_under_all_schedules(outputs)
            assert (x[m:] == 7).all()
            for j, (k, first) in enumerate(tops):
                right, k, first = a[:, j].copy(), k * each, first * each
                right[first:] = a[of[k][first:], j]
                assert np.array_equal(x[:m, j], right)


def getrf_moved(sim, rng):
    """As interchanges of a block have it, all rows, none."""
    v = sim.constants
    for m, n, top, width in ((40 * 32 * v["WARPS"] + 5, v["COLUMNS"] + 3, 7, 90),
                             (70, v["COLUMNS"] - 1, 0, 70), (33, 2, 0, 3), (5, 2, 5, 0),
                             (1, 1, 0, 1)):
        a, order = general(rng, sim.dtype, 1, m, n)[0], np.arange(m)
        for j in range(top, top + width if m != 33 else 0):
            p = rng.integers(j, m)
            order[[j, p]] = order[[p, j]]
        most, outputs = min(2 * width, m - top), []
        for schedule in SCHEDULES:
            x = Memory(np.concatenate((a, np.full((2, n), 7, a.dtype))), "batch last")
            rows = Memory(order.astype(np.int32))
            sim.run(schedule, -(-n // v["COLUMNS"]), moved_bytes(sim.dtype, m - top, most, v),
                    x.address, m + 2, m, n, top, rows.address, most)
            outputs.append([x.array.copy()])
        (x,) = same_under_all_schedules(outputs)
        assert (x[m:] == 7).all() and np.array_equal(x[:m], a[order])


def geqrf_leaf(sim, rng):
    """R and V are LAPACK's, and T is that of V."""
    v, size = sim.constants, sim.dtype.itemsize
    most, width = v["CLUSTER"] * 8 * v["WARPS"] * v["ROWS"], 4 * v["COLUMNS"]
    for m, steps, above in ((most, width, 3), (width + 1, width - 1, 0), (5, 3, 1), (1, 1, 0)):
        for i, a in enumerate(members(rng, sim.dtype, m, steps)):
            outputs = []
            for schedule in SCHEDULES[:1 if m == most else 4]:
                x = Memory(np.concatenate((a, np.full((2, steps), 7, a.dtype))), "batch last")
                V = poisoned((above + m, steps), sim.dtype, "batch last")
                TH = poisoned((steps, steps), sim.dtype, "batch last")
                tau = poisoned((steps,), sim.dtype, "C")
                sim.run(schedule, v["CLUSTER"], reflectors_bytes(sim.dtype, v), x.address, m + 2, m,
                        steps, tau.address, V.address + above * size, above + m, above, TH.address,
                        steps)
                assert (x.array[m:] == 7).all()
                outputs.append([y.array.copy() for y in (x, tau, V, TH)])
            x, tau, V, TH = same_under_all_schedules(outputs)
            check_factors(sim.letter, a, x[:m], tau, signs=i in (0, 1, 3, 4, 5, 6))
            if np.isfinite(a).all():
                assert not V[:above].any()
                assert np.array_equal(V[above:], np.tril(x[:m], -1) + np.eye(m, steps))
                check_t(wide(V), wide(TH).conj().T, tau, PASS * m * np.finfo(sim.dtype).eps)


def check_t(V, T, tau, bound):
    """I - V T V^H is unitary, and the columns of T are those of H(1) H(2) ..."""
    assert np.array_equal(np.diagonal(T), tau) and not np.tril(T, -1).any()
    assert abs(T + T.conj().T - T @ (V.conj().T @ V) @ T.conj().T).max() < bound


def geqrf_apply(sim, rng):
    v, size = sim.constants, sim.dtype.itemsize
    most, width = v["CLUSTER"] * 8 * v["WARPS"] * v["ROWS"], 4 * v["COLUMNS"]
    for m, steps, columns in ((most, width, v["BATCH"] + 3), (most - 37, width - 1, 1), (9, 3, 7)):
        V, C = (general(rng, sim.dtype, 1, m, n)[0] for n in (steps, columns))
        TH = np.tril(general(rng, sim.dtype, 1, steps, steps)[0])
        outputs = []
        for schedule in SCHEDULES[:1 if m == most else 4]:
            x = Memory(np.concatenate((C, np.full((2, columns), 7, C.dtype))), "batch last")
            memory = [Memory(y, "batch last") for y in (V, TH)]
            sim.run(schedule, v["CLUSTER"] * -(-columns // v["BATCH"]), apply_bytes(sim.dtype, v),
                    memory[0].address, m, m, steps, memory[1].address, steps, x.address, m + 2,
                    columns)
            assert (x.array[m:] == 7).all()
            outputs.append([x.array[:m].copy()])
        (x,) = same_under_all_schedules(outputs)
        V, C, TH = wide(V), wide(C), wide(TH)
        right = C - V @ (TH @ (V.conj().T @ C))
        size = abs(V) @ (abs(TH) @ (abs(V.T) @ abs(C)))
        assert (abs(x - right) / size).max() < 2 * np.sqrt(m) * np.finfo(sim.dtype).eps


def geqrf_t(sim, rng):
    warps = sim.constants["WARPS"]
    for n, w in ((70, 32), (40, 16), (32, 32), (5, 8)):
        V = np.tril(general(rng, sim.dtype, 1, 90, n)[0], -1)[:, :n] / 10
        V[range(n), range(n)] = 1
        G = V.conj().T @ V
        T = np.linalg.inv(np.triu(G, 1) + np.diag(np.diagonal(G) / 2))
        TH = np.full_like(G, np.nan)
        for k in range(0, n, w):
            TH[k:k + w, k:k + w] = T[k:k + w, k:k + w].conj().T
        outputs = []
        for schedule in SCHEDULES:
            g, x = Memory(G, "batch last"), Memory(TH, "batch last")
            sim.run(schedule, -(-n // warps), sim.dtype.itemsize * n * warps, g.address, x.address,
                    n, n, w)
            outputs.append([x.array.copy()])
        (x,) = same_under_all_schedules(outputs)
        assert abs(x - T.conj().T).max() < 100 * n * np.finfo(sim.dtype).eps


def main(library, name, letter, constants):
    sim = Simulated(library, name, letter, json.loads(constants))
    globals()[name](sim, np.random.default_rng(7))
    print("ok", name, letter)


if __name__ == "__main__":
    main(*sys.argv[1:])
