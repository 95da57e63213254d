"""python -m testing run: all routines in one process, with a summary and an honest status."""

import warnings
from argparse import SUPPRESS
from collections import Counter
from time import perf_counter

import numpy as np

from . import selfcheck, tester
from .cases import CASES
from .options import Options, Parser, checked, letters, target

GROUPS = ("blas", "lu", "chol", "qr", "syev", "svd", "geev", "hesv", "band", "mixed", "aux",
          "batched", "vbatched")

# (m, n, k): around the sizes where blocks, warps and panels end.
SQUARE = {"small": (0, 1, 2, 3, 5, 16, 31, 33, 65), "medium": (100, 200, 333, 512),
          "large": (1000, 2000)}
TALL = {"small": ((2, 1), (33, 7), (70, 32)), "medium": ((600, 31), (600, 300)),
        "large": ((20000, 32), (3000, 1000))}
MNK = {"small": ((3, 1, 2), (1, 2, 3), (4, 3, 0), (10, 30, 20)), "medium": ((100, 300, 200),),
       "large": ((1000, 3000, 2000),)}


def sizes_of(case, size, shapes):
    """The sizes that mean something to a routine: rectangles where it has columns M and N."""
    columns = case.columns.split()
    found = [(n, n, n) for n in SQUARE[size]] if "square" in shapes else []
    if "M" in columns and "N" in columns:
        found += [(m, n, n) for m, n in TALL[size]] if "tall" in shapes else []
        found += [(n, m, n) for m, n in TALL[size]] if "wide" in shapes else []
    if "K" in columns and "square" in shapes:
        found += MNK[size]
    return found


def parser():
    p = Parser(prog="testing run", description=__doc__, allow_abbrev=False)
    for size in SQUARE:
        p.add_argument("--" + size, dest="sizes", action="append_const", const=size,
                       help=f"n = {', '.join(map(str, SQUARE[size]))} and rectangles")
    for shape in ("square", "tall", "wide"):
        p.add_argument("--" + shape, dest="shapes", action="append_const", const=shape)
    for group in GROUPS:
        names = " ".join(case.name for case in CASES if case.group == group)
        p.add_argument("--" + group, dest="groups", action="append_const", const=group, help=names)
        p.add_argument("--no-" + group, dest="without", action="append_const", const=group,
                       help=SUPPRESS)
    p.add_argument("-p", dest="precisions", type=letters, default="sdcz", metavar="sdcz")
    p.add_argument("--device", choices=("cpu", "gpu"))
    p.add_argument("--matrix", default="")
    p.add_argument("--cond", type=checked(float, 1), default=0.0)
    p.add_argument("--tol", type=checked(float, 0, 1000), default=Options.tol)
    p.add_argument("--batch", type=checked(int, 0), default=5)
    p.add_argument("--nrhs", type=checked(int, 0), default=3)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--start", metavar="NAME", help="from this routine on")
    p.add_argument("-v", "--verbose", action="store_true", help="every line, not only failed ones")
    p.add_argument("--json", type=target, metavar="FILE")
    p.add_argument("--inject-fault", action="store_true",
                   help="spoil every routine's first result: the status must not be 0")
    return p


def main(arguments):
    """Run what the command line selects; the exit status is the number of failed tests."""
    asked = parser().parse_args(arguments)
    options = Options(check=1, warmup=False, batch=asked.batch, nrhs=asked.nrhs, kl=2, ku=3,
                      matrix=asked.matrix, cond=asked.cond, tol=asked.tol, seed=asked.seed,
                      device=asked.device or "")
    tester.prepare(options)
    groups = set(asked.groups or GROUPS) - set(asked.without or ())
    cases = [case for case in CASES if case.group in groups
             and (not asked.start or case.name >= asked.start)]
    print("\n".join(tester.environment(options)) + "\n", flush=True)
    start, rows = perf_counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            for letter in asked.precisions:
                if letter in case.typed:
                    rows += one_routine(case, letter, asked, options)
    return summary(rows, asked, options, perf_counter() - start)


def one_routine(case, letter, asked, options):
    """All sizes and flags of one typed name; prints its line and those that failed."""
    rng, rows, start = np.random.default_rng(options.seed), [], perf_counter()
    fault = selfcheck.spoil if asked.inject_fault else None
    shapes = asked.shapes or ("square", "tall", "wide")
    for size in asked.sizes or ("small",):
        for sizes in sizes_of(case, size, shapes):
            for flags in case.variants():
                row = attempt(case, letter, sizes, flags, options, rng, fault)
                rows.append(row)
                fault = None
                if asked.verbose or row["failed"]:
                    print_row(case, row)
    failed = sum(bool(row["failed"]) for row in rows)
    worst = max((v for row in rows for v in row["errors_over_eps"].values() if v is not None),
                default=0.0)
    print(f"{case.typed[letter]:16} {len(rows):5d} tests {failed:4d} failed  "
          f"worst error/eps {worst:9.2f}  {perf_counter() - start:6.2f} s  "
          + ("failed" if failed else "ok"), flush=True)
    return rows


def attempt(case, letter, sizes, flags, options, rng, fault):
    """One row; an exception is a failed row."""
    try:
        return tester.run_one(case, letter, sizes, flags, options, rng, fault)
    except Exception as error:
        m, n, k = sizes
        return {"routine": case.typed[letter], "m": m, "n": n, "k": k, "flags": flags,
                "errors": {}, "errors_over_eps": {}, "status": "failed",
                "failed": [f"{type(error).__name__}: {error}"]}


def print_row(case, row):
    errors = "  ".join(f"{k} {v:.2e}" for k, v in row["errors"].items() if v is not None)
    print(f"  {row['routine']} {row['m']} {row['n']} {row['k']} "
          + " ".join(f"{k}={v}" for k, v in row["flags"].items())
          + f"  {errors}  {'; '.join(row['failed'])}  {row['status']}")


def summary(rows, asked, options, seconds):
    failed = Counter(row["routine"] for row in rows if row["failed"])
    passed = len(rows) - sum(failed.values())
    routines = len({row["routine"] for row in rows})
    print(f"\n% {options.device}, {seconds:.1f} s")
    if failed:
        print(f"{passed} tests of {routines} routines passed\n{sum(failed.values())} tests failed\n"
              "routines with failures: " + " ".join(f"{k} ({v})" for k, v in failed.items()))
    else:
        print(f"all {len(rows)} tests of {routines} routines passed!" if rows else "no tests")
    if asked.json:
        tester.write_json(asked.json, options, rows, tests=len(rows), seconds=seconds,
                          failed=dict(failed))
    return min(sum(failed.values()), 255) if rows else 1
