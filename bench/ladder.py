"""python -m bench ladder [-p sd] [--to 8192] [--json FILE] [--png FILE]

The teaching ladder: C = A B of order n = 128, 256, ... by the CPU's BLAS, a thread to an element
(gemm_naive), tiles in shared memory and registers (gemm_tiled), the tiles of batches (gemm_block;
in single precision on the tensor cores gemm_split), blasx.gemm and cuBLAS, side by side: answers
checked, operands random and cold (see timing.py). A rung ends where a call would take a second.
Without a GPU there is the CPU's rung alone.
"""

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np

from blasx import _errors as errors
from blasx._types import TYPES
from testing import flops

from . import compare, timing
from .timing import Side

SMALLEST, LONGEST = 128, 1000.0  # order; ms of a call


def main(arguments):
    """Climb; 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench ladder", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-p", dest="letters", default="sd", metavar="sdcz")
    parser.add_argument("--to", type=int, default=8192, help="the largest order")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--png", metavar="FILE", help="GFLOP/s against n")
    parser.add_argument("--samples", type=int, default=5, help="samples of each rung")
    parser.add_argument("--commit", help="what to record where git cannot tell")
    options = parser.parse_args(arguments)
    with_gpu = True
    try:
        timing.gpu()
    except timing.NoGpu as missing:
        with_gpu = False
        print(f"CPU only: {missing}")
    report = {**compare.machine(with_gpu, options.commit), "rows": []}
    for letter in options.letters:
        for row in climb(letter, options.to, options.samples, with_gpu):
            report["rows"].append(row)
            speed = f"{row['gflops']:9.1f} GFLOP/s" if row["ms"] else ""
            ms = f"{row['ms']:10.4f} ms" if row["ms"] else ""
            print(f"{letter}gemm {row['n']:5} {row['rung']:12}{ms} {speed}   error {row['error']}",
                  flush=True)
            if options.json:  # after every row: a run that is cut short leaves what it has
                Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    if options.png:
        draw(report).savefig(options.png, dpi=110)
    return int(any(not compare.right(row["ms"], row["error"]) for row in report["rows"]))


def climb(letter, largest, samples, with_gpu):
    """The rows of one type: every rung at every order, up to where it takes too long."""
    last, n = {}, SMALLEST
    while n <= largest:
        for rungs, clock in ((cpu_rungs, partial(timing.cpu_clock, least_ms=20.0, pause=0.05)),
                             (gpu_rungs, None))[:1 + with_gpu]:
            sides, check, nbytes = rungs(letter, n)
            sides = {rung: side for rung, side in sides.items() if 8 * last.get(rung, 0) < LONGEST}
            found = timing.times(sides, check, clock or timing.gpu_clock(nbytes), samples)
            for rung, (ms, _, error) in found.items():
                last[rung] = ms or LONGEST
                rate = flops.total(flops.gemm(n, n, n), letter in "cz") / ms / 1e6 if ms else None
                yield {"routine": "gemm", "dtype": letter, "n": n, "rung": rung, "ms": ms,
                       "gflops": rate, "error": error}
        if with_gpu:
            timing.release()
        n *= 2


def operands(letter, n, random):
    """A and B, normal random, and C, by rows: C^T = B^T A^T is what Fortran's routines see."""
    t = TYPES[letter]

    def normal():
        x = random.standard_normal((n, n))
        return (x + 1j * random.standard_normal((n, n)) if t.is_complex else x).astype(t.dtype)

    a, b = normal(), normal()
    return a, b, a - b


def transposed(gemm, a, b, c):
    return gemm(1, b.T, a.T, 0, c.T, overwrite_c=1).T


def cpu_rungs(letter, n):
    """({rung: function that makes its Side}, the check of an answer, bytes of the operands)"""
    from scipy.linalg import blas
    a, b, c = operands(letter, n, np.random.default_rng(n))
    run = partial(transposed, getattr(blas, letter + "gemm"))
    return ({"CPU": lambda: Side(lambda: (a, b, c), run)}, lambda x: errors.product(a, b, x, a),
            3 * a.nbytes)


def gpu_rungs(letter, n):
    import blasx
    from blasx import _ladder
    cupy = timing.gpu()
    a, b, c = operands(letter, n, cupy.random.RandomState(n))
    runs = {rung: partial(by_kernel, _ladder.multiply, rung) for rung in _ladder.RUNGS}
    runs |= {name: of_batches(name, letter) for name in ("gemm_block", "gemm_split")[
        :2 if letter == "s" else 1]}
    runs["blasx.gemm"] = partial(transposed, getattr(blasx, letter + "gemm"))
    runs["cuBLAS"] = lambda a, b, c: cupy.matmul(a, b, out=c)

    def side(run):
        return lambda: Side(lambda: (a.copy(), b.copy(), c.copy()), run)

    return ({name: side(run) for name, run in runs.items()},
            lambda x: errors.product(a, b, x, a), 3 * a.nbytes)


def by_kernel(multiply, rung, a, b, c):
    return multiply(rung, 1, a, b, 0, c)


def of_batches(name, letter):
    """One product by a kernel of batches, with the constants of its row for the largest members."""
    from blasx import _kernel, _tuned
    from blasx.batched._gpu_blas import operand, tiles
    rows = _tuned.rows(name, letter, _kernel.gpu(timing.gpu().cuda.Device().id))
    values = next(v for row, _ in reversed(rows) if (v := _tuned.capitals(row))
                  and not v["RESIDENT"])

    def run(a, b, c):
        n = len(a)
        tiles(name, letter, **values).launch(n, n, n, 0, 0, operand(a), operand(b), operand(c),
                                             operand(c), 1, 0, 1)
        return c

    return run


def draw(report):
    """GFLOP/s against n, a panel to each type."""
    from matplotlib.figure import Figure
    letters = list(dict.fromkeys(row["dtype"] for row in report["rows"]))
    rungs = list(dict.fromkeys(row["rung"] for row in report["rows"]))
    figure = Figure(layout="constrained", figsize=(1 + 4.5 * len(letters), 5))
    panels = figure.subplots(1, len(letters), squeeze=False)[0]
    for letter, axes in zip(letters, panels, strict=True):
        for i, rung in enumerate(rungs):
            points = [(row["n"], row["gflops"]) for row in report["rows"]
                      if (row["dtype"], row["rung"]) == (letter, rung) and row["gflops"]]
            if points:
                axes.loglog(*zip(*points, strict=True), label=rung, color=f"C{i}", marker="o", ms=4,
                            lw=2.5 if rung == "gemm_tiled" else 1.2)
        orders = sorted({row["n"] for row in report["rows"]})
        axes.set_xticks(orders, [str(n) for n in orders], minor=False)
        axes.set_xticks([], minor=True)
        axes.set(title=letter + "gemm", xlabel="n")
        axes.legend(frameon=False)
    panels[0].set_ylabel("GFLOP/s")
    figure.suptitle(f"C = A B, {report['gpu'] or report['versions']['cpu']}")
    return figure
