"""python -m bench tune_cpu [routine ...]: writes kernels/tuned/cpu.json, what the CPU's batches go
by (to be run with OPENBLAS_NUM_THREADS=1).

For each routine of the core, type and order: from which part of a vector's members on they share
it (SHARED; above 1 never), and the microseconds a member takes (US), which decide how many threads
are woken. The rows of a routine end where LAPACK is faster by more than MARGIN. SHARE, the
microseconds of work worth waking a thread for, TURNS, the shares a thread takes, and NRHS, the
right-hand sides the core takes along, are kept as they stand in the file.
"""

import argparse
import json
import re
from functools import partial
from time import perf_counter
from types import SimpleNamespace

import numpy as np
from scipy.linalg import lapack

from blasx._sources import FOLDER
from blasx.batched import _cpu

from .cpu import matrices

ORDERS = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
MARGIN = 1.05  # less is noise, and a call of the core costs Python less
FILE = FOLDER / "tuned" / "cpu.json"


def main(arguments):
    """Measure everything; a few minutes on an idle machine."""
    parser = argparse.ArgumentParser(prog="python -m bench tune_cpu", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routines", nargs="*", metavar="routine",
                        help=f"{' '.join(CORE)} lapack; all by default")
    routines = parser.parse_args(arguments).routines or [*CORE, "lapack"]
    if unknown := set(routines) - {*CORE, "lapack"}:
        parser.error(f"no routine {' '.join(sorted(unknown))}")
    table = json.loads(FILE.read_text())
    tuned, _cpu._threads = _cpu.tuned, lambda batch, microseconds: 1
    for routine in routines:
        if routine != "lapack":
            table[routine] = {letter: list(rows(routine, letter)) for letter in "sdcz"}
    _cpu.tuned = tuned
    if "lapack" in routines:
        table["lapack"] = {"other": list(lapack_rows())}
    FILE.write_text(text(table))


def rows(routine, letter):
    for n in ORDERS:
        batch = max(20, min(2000, 200_000 // n**2))
        a = matrices(letter, batch, n, n, definite=routine not in ("getrf", "geqrf", "gesvd"))
        run = CORE[routine]
        shared, alone = fastest(batch, partial(run, a, 0), partial(run, a, 1000))
        peer, = fastest(batch, partial(PEER[routine], a))  # apart: it leaves another cache behind
        if min(shared, alone) > MARGIN * peer:
            break
        part = shared / alone if routine in ("getrf", "potrf", "geqrf") else 0
        row = {"to": n, "SHARED": round(part, 2), "US": round(min(shared, alone), 3)}
        print(routine, letter, row, flush=True)
        yield row


def lapack_rows():
    for n in ORDERS[:ORDERS.index(64) + 1]:
        yield {"to": n, "US": round(fastest(200, partial(solve, *factors(n)))[0], 2)}


def core(a, shared, call):
    """`call` in the core whatever the table says."""
    row = {"to": a.shape[-1], "SHARED": shared, "US": 1}
    table = {x: dict.fromkeys("sdcz", [row]) for x in CORE}
    _cpu.tuned = lambda: {"threads": {"NRHS": 64}, "lapack": {"other": []}} | table
    _cpu.forget()
    letter = next(x for x, t in _cpu.TYPES.items() if t.dtype == a.dtype)
    me = SimpleNamespace(letter=letter, dtype=a.dtype, real=a.real.dtype, name="tune")
    return call(me, a)


def pivots(a):
    return np.tile(np.arange(a.shape[1], dtype=np.int32), (len(a), 1))


def loop(routine, a):
    """LAPACK's solution with the triangles of `a`, which do for factors."""
    batch, n, _ = a.shape
    letter = next(x for x, t in _cpu.TYPES.items() if t.dtype == a.dtype)
    how = (("N", n, 1, _cpu.columns(a, 1), n, pivots(a) + 1) if routine == "getrs" else
           ("U", n, 1, a, n))
    return _cpu.each(letter + routine, batch, n, *how, a[:, 0].copy(), n)


CORE = {
    "getrf": partial(core, call=lambda me, a: _cpu.own(me, "getrf", a, 0, a[:, :, :1])),
    "potrf": partial(core, call=lambda me, a: _cpu.own(me, "potrf", a, 0, lower=1)),
    "geqrf": partial(core, call=lambda me, a: _cpu.own(me, "geqrf", a, 0)),
    "syevd": partial(core, call=_cpu.eigen),
    "gesvd": partial(core, call=_cpu.svd),
    "getrs": partial(core, call=lambda me, a: _cpu.own(me, "getrs", a, 1, a[:, 0],
                                                       piv=pivots(a))),
    "potrs": partial(core, call=lambda me, a: _cpu.own(me, "potrs", a, 1, a[:, 0])),
}
PEER = {
    "getrf": lambda a: np.linalg.solve(a, a[:, :, :1]),
    "potrf": np.linalg.cholesky,
    "geqrf": partial(np.linalg.qr, mode="raw"),
    "syevd": np.linalg.eigh,
    "gesvd": np.linalg.svd,
    "getrs": partial(loop, "getrs"),
    "potrs": partial(loop, "potrs"),
}


def factors(n):
    a = np.asfortranarray(matrices("d", n, n))
    lu, piv, _ = lapack.dgetrf(a)
    return np.stack([lu] * 200), np.stack([piv] * 200), matrices("d", 200, n, n)


def solve(lu, piv, b):
    """LAPACK's getrs over a batch: what `each` takes for a routine it does not know."""
    batch, n, _ = b.shape
    _cpu.each("dgetrs", batch, n, "N", n, n, lu, n, piv + 1, b.copy(), n)


def fastest(members, *runs, samples=15):
    """Microseconds a member of each run, the least of so many samples, taken by turns."""
    def once(run):
        start = perf_counter()
        run()
        return perf_counter() - start

    taken = [[once(run) for run in runs] for _ in range(samples + 1)][1:]
    return [min(times) / members * 1e6 for times in zip(*taken, strict=True)]


def text(table):
    """JSON with a row a line."""
    out = json.dumps(table, indent=1)
    return re.sub(r'\{\s+"to"[^}]*\}', lambda m: re.sub(r"\s+", " ", m[0]), out) + "\n"
