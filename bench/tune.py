"""python -m bench tune [--kernels K,..] [--letters sdcz] [--orders N,..] [--write] [--json FILE]

Measures every variant of the batched kernels that `fits`, on this GPU: compiled in parallel,
checked, timed cold. First the shapes of a team, then for the best of them the warps in a block and
the registers they are rationed. --write puts the best rows into kernels/tuned/sm<arch>/, beside
those of other types and orders.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor, wait
from itertools import product
from multiprocessing import get_context
from statistics import median

from blasx import _sources, _tuned
from blasx._types import TYPES

from . import errors
from .timing import Side, gpu, gpu_clock

KERNELS = ("getrf_small", "potrf_small", "gesv_small", "posv_small", "getrs_small", "potrs_small")
BATCH = {4: 100000, 8: 100000, 16: 50000, 24: 30000, 32: 20000}
LANES = (1, 2, 4, 8, 16, 32)
RATIONS = ((1, 1), (4, 1), (8, 1), (2, 8), (2, 10), (2, 12), (2, 16), (4, 16))  # WARPS, BLOCKS
SAMPLES = 7
PEAK = 4.29e12  # bytes a second of a device copy on the H200


def shapes(letter, N):
    """The teams that are tried: no wider than high, a few elements a lane, the widest packs."""
    for LR, LC in product(LANES, LANES):
        packs = [dict(N=N, LR=LR, LC=LC, CV=CV, WARPS=2, BLOCKS=1) for CV in (4, 2, 1)]
        if LC <= LR and 2 <= N * N // (LR * LC) <= 32:
            yield from [v for v in packs if _tuned.fits(letter, **v)][:2]


def rations(values):
    """One shape with every number of warps and registers."""
    return [values | dict(WARPS=w, BLOCKS=b) for w, b in RATIONS]


def compile_one(job):
    """In a process of its own: fills the disk cache."""
    from blasx._kernel import compiled
    name, letter, values, arch = job
    try:
        compiled(_sources.program(name, TYPES[letter].cpp, values), arch)
    except RuntimeError as failure:
        return str(failure)


class Problem:
    """The operands of one kernel, type and order, and what a right answer is."""

    def __init__(self, kernel, letter, n):
        cupy = gpu()
        self.kernel, self.letter, self.n, self.batch = kernel, letter, n, BATCH[n]
        t = TYPES[letter]
        rng = cupy.random.default_rng(n)
        a = rng.standard_normal((self.batch, n, n), dtype=t.real)
        b = rng.standard_normal((self.batch, n, 1), dtype=t.real)
        if t.is_complex:
            a = a + 1j * rng.standard_normal(a.shape, dtype=t.real)
            b = b + 1j * rng.standard_normal(b.shape, dtype=t.real)
        if kernel.startswith("po"):
            a = a @ a.conj().transpose(0, 2, 1) / n + cupy.eye(n, dtype=t.dtype)
        self.a, self.b = a.astype(t.dtype), b.astype(t.dtype)
        self.given = self.a
        from blasx import batched
        from blasx.batched import _gpu
        if kernel == "getrs_small":
            self.given, self.piv, _ = batched.getrf_batched(self.a)
        if kernel == "potrs_small":
            self.given, _ = batched.potrf_batched(self.a, lower=1)
        self.matrix = _gpu.matrix
        self.vectors = 0 if kernel.endswith("trf_small") else 2 * self.b.nbytes
        self.floor = ((2 if kernel[-7] == "f" or "sv" in kernel else 1) * self.a.nbytes
                      + self.vectors) / PEAK * 1e3

    def operands(self):
        """given, result, piv, b, x, info"""
        cupy = gpu()
        given = self.given.copy()
        piv = getattr(self, "piv", None)
        piv = cupy.empty((self.batch, self.n), "i4") if piv is None else piv.copy()
        x = cupy.full_like(self.b, cupy.nan)
        return (given, cupy.full_like(given, cupy.nan), piv, self.b.copy(), x,
                cupy.empty(self.batch, "i4"))

    def run(self, teams, given, result, piv, b, x, info):
        g, r, q = self.matrix(given), self.matrix(result), (*self.matrix(b), *self.matrix(x))
        p, i, n = piv.data.ptr, info.data.ptr, self.n
        arguments = {
            "getrf_small": (*g, *r, p, i, n, n),
            "potrf_small": (*g, *r, i, n),
            "getrs_small": (*g, p, *q, i, 0, n, 1),
            "gesv_small": (*g, *r, p, *q, i, n, 1),
            "potrs_small": (*g, *q, i, 0, n, 1),
            "posv_small": (*g, *r, *q, i, 0, n, 1),
        }[self.kernel]
        teams(self.batch, *arguments)
        return result, piv, x, info

    def error(self, answer):
        result, piv, x, info = answer
        some = slice(None, None, max(1, self.batch // 3000))
        if bool(info.any()):
            return float("inf")
        if self.kernel == "getrf_small":
            return errors.lu(self.a[some], result[some], piv[some])
        if self.kernel == "potrf_small":
            return errors.cholesky(self.a[some], result[some])
        return errors.solution(self.a[some], self.b[some], x[some])

    def ms(self, values):
        """Median and spread of one variant; None where it is wrong or cannot run."""
        from blasx.batched import _gpu
        teams = _gpu.teams(self.kernel, self.letter, **values)
        side = Side(self.operands, lambda *operands: self.run(teams, *operands))
        try:
            error = self.error(side.run(*side.operands()))
            if not error < errors.PASS:
                print("WRONG", self.kernel, self.letter, values, error, flush=True)
                return None
            sample = gpu_clock(2 * self.a.nbytes + self.vectors)(side)
            sample()
            return median(sample() for _ in range(SAMPLES))
        except RuntimeError as failure:
            print("FAILED", self.kernel, self.letter, values, failure, flush=True)


def tune(kernel, letter, n, start):
    """The rows of one kernel, type and order, best first; `start` compiles a list of variants."""
    problem = Problem(kernel, letter, n)
    first = list(shapes(letter, n))
    wait(start(kernel, letter, first))
    timed = [(problem.ms(values), values) for values in first]
    timed = sorted((x for x in timed if x[0]), key=lambda x: x[0])
    second = [v for _, best in timed[:2] for v in rations(best) if v != best
              and _tuned.fits(letter, **v)]
    wait(start(kernel, letter, second))
    timed += [(problem.ms(values), values) for values in second]
    timed = sorted((x for x in timed if x[0]), key=lambda x: x[0])
    for ms, values in timed[:4] + timed[-1:]:
        print(f"{kernel:12} {letter} {n:3} {ms:8.4f} ms {100 * problem.floor / ms:5.1f} % of floor",
              *(f"{k}={v}" for k, v in values.items() if k != "N"), flush=True)
    return [dict(to=n, **values, ms=round(ms, 5)) for ms, values in timed], problem.floor


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m bench tune")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--letters", default="sdcz")
    parser.add_argument("--orders", default="4,8,16,32")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    cupy = gpu()
    from blasx._kernel import architecture
    arch = architecture(cupy.cuda.Device().id)
    folder = _sources.FOLDER / "tuned" / f"sm{cupy.cuda.Device().compute_capability}"
    table = {f.stem: json.loads(f.read_text()) for f in folder.glob("*.json")}
    everything = {}
    orders = [int(n) for n in options.orders.split(",")]
    jobs = {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        def start(kernel, letter, variants):
            keys = [(kernel, letter, *v.values()) for v in variants]
            for key, v in zip(keys, variants):
                if key not in jobs:
                    jobs[key] = pool.submit(compile_one, (kernel, letter, v, arch))
            return [jobs[key] for key in keys]

        wanted = list(product(options.kernels.split(","), options.letters))
        for (kernel, letter), n in product(wanted, orders):
            start(kernel, letter, list(shapes(letter, n)))
        for kernel, letter in wanted:
            rows = []
            for n in orders:
                timed, floor = tune(kernel, letter, n, start)
                everything[f"{kernel} {letter} {n}"] = {"floor_ms": floor, "rows": timed}
                rows.append(timed[0] | dict(runner_up_ms=timed[1]["ms"]))
            kept = [r for r in table.get(kernel, {}).get(letter, []) if r["to"] not in orders]
            table.setdefault(kernel, {})[letter] = sorted(rows + kept, key=lambda r: r["to"])
            if options.json:
                with open(options.json, "w") as f:
                    json.dump({"table": table, "all": everything}, f)
    if options.write:
        folder.mkdir(exist_ok=True)
        for kernel in options.kernels.split(","):
            (folder / f"{kernel}.json").write_text(dump(table[kernel]))


def dump(letters):
    """The rows of a kernel, one a line."""
    blocks = [f'  "{letter}": [\n' + ",\n".join("    " + json.dumps(row) for row in rows) + "\n  ]"
              for letter, rows in letters.items()]
    return "{\n" + ",\n".join(blocks) + "\n}\n"
