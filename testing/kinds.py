"""python -m testing kinds: the worst error of every batched routine over every kind of matrix, in
units of n eps, eps = 2^-53 or 2^-24.

LAPACK's error on the same matrices stands beside it. An error that is too large is no failure where
LAPACK's is, too: where scaling leaves no room for intermediate results, or no error can be told.
With OPENBLAS_NUM_THREADS=1 the threads of NumPy's and SciPy's OpenBLAS do not wait for each other.
"""

import warnings
from dataclasses import replace
from time import perf_counter

import numpy as np

from . import tester
from .cases import find
from .options import Options, Parser, checked, letters, sizes, target

ROUTINES = ("gemm", "gemv", "symm", "hemm", "syrk", "herk", "trmm", "trsm", "trsv", "getrf",
            "getrf_nopiv", "getrs", "gesv", "getri", "potrf", "potrs", "posv", "potri", "geqrf",
            "orgqr", "ormqr", "gels", "syevd", "sygvd", "gesvd")
KINDS = {  # what of --matrix, --cond, --condD each is
    "uniform": {"matrix": "rands"},
    "normal": {"matrix": "randn"},
    "dominant": {"matrix": "rand_dominant"},
    "graded": {"matrix": "svd_geo"},
    "graded, cond 1e12": {"matrix": "svd_geo", "cond": 1e12},
    "random, cond 1e12": {"matrix": "svd_logrand", "cond": 1e12},
    "one small value": {"matrix": "svd_cluster1", "cond": 1e12},
    "one large value": {"matrix": "svd_cluster0", "cond": 1e12},
    "badly scaled columns": {"matrix": "svd_arith", "cond": 10.0, "condD": 1e6},
    "near underflow": {"matrix": "svd_arith_ufl"},
    "near overflow": {"matrix": "svd_arith_ofl"},
    "small": {"matrix": "svd_arith_small"},
    "large": {"matrix": "svd_arith_large"},
    "ties": {"matrix": "ties"},
    "rank one": {"matrix": "ones"},
    "zero": {"matrix": "zero"},
    "identity": {"matrix": "identity"},
    "Jordan": {"matrix": "jordan"},
    "Kronecker": {"matrix": "kronecker"},
    "Hilbert": {"matrix": "hilbert"},
    "Kahan": {"matrix": "kahan"},
    "Wilkinson": {"matrix": "wilkinson"},
}
VECTORS = {"jobz": "V", "jobu": "S"}  # a decomposition is judged with them


def parser():
    p = Parser(prog="testing kinds", description=__doc__, allow_abbrev=False)
    p.add_argument("routines", nargs="*", metavar="routine", help=" ".join(ROUTINES))
    p.add_argument("-n", "-N", dest="sizes", type=sizes, action="extend", metavar="n",
                   help="default 8, 32, 64, 128, 200")
    p.add_argument("-p", dest="precisions", type=letters, default="sdcz", metavar="sdcz")
    p.add_argument("--device", choices=("cpu", "gpu"), default="")
    p.add_argument("--batch", type=checked(int, 1), default=3)
    p.add_argument("--nrhs", type=checked(int, 1), default=2)
    p.add_argument("--seed", type=checked(int, 0), default=0)
    p.add_argument("--json", type=target, metavar="FILE")
    return p


def main(arguments):
    """A line and a row for each routine, type and kind; the status is how many failed."""
    asked = parser().parse_args(arguments)
    options = Options(check=1, warmup=False, batch=asked.batch, nrhs=asked.nrhs, seed=asked.seed,
                      device=asked.device, sizes=asked.sizes or [(n,) * 3 for n in
                                                                 (8, 32, 64, 128, 200)])
    tester.prepare(options)
    print("\n".join(tester.environment(options)) + "\n", flush=True)
    start, rows = perf_counter(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for routine in asked.routines or ROUTINES:
            case, _ = find(routine + "_batched")
            for letter in (x for x in asked.precisions if x in case.typed):
                rows += [worst(case, letter, kind, options) for kind in KINDS]
    failed = sum(bool(row["failed"]) for row in rows)
    print(f"\n% {options.device}, {len(rows)} rows, {failed} failed, "
          f"{perf_counter() - start:.1f} s")
    if asked.json:
        tester.write_json(asked.json, options, rows, sizes=[n for n, *_ in options.sizes])
    return min(failed, 255)


def worst(case, letter, kind, options):
    """The row of one routine and kind: its largest error, of which name and at which n, LAPACK's
    largest, and what failed."""
    options = replace(options, **KINDS[kind])
    rng = np.random.default_rng(options.seed)
    flags = {f: VECTORS.get(f, value) for f, value in case.variants()[0].items()}
    row = {"routine": case.typed[letter], "kind": kind, **KINDS[kind], "error": None, "what": None,
           "n": None, "lapack": None, "failed": [], "as_lapack": []}
    for size in options.sizes:
        try:
            ours, theirs = judged(case, case.problem(letter, size, flags, rng, options), options)
        except Exception as error:
            row["failed"].append(f"n = {size[1]}: {type(error).__name__}: {error}")
            continue
        for what in ours["failed"]:
            excused = what in ours["errors"] and what in theirs["failed"]
            row["as_lapack" if excused else "failed"].append(f"n = {size[1]}: {what}")
        found = [(row["error"], row["what"], row["n"]),
                 *((value, what, size[1]) for what, value in ours["errors_over_eps"].items())]
        row["error"], row["what"], row["n"] = max(found, key=lambda x: order(x[0]))
        row["lapack"] = max([row["lapack"], *theirs["errors_over_eps"].values()], key=order)
    print(f"{row['routine']:16} {kind:22} {show(row['error'])} {show(row['lapack'])}  "
          f"{row['what'] or ''}" + "".join(f"\n    {x}  failed" for x in row["failed"])
          + "".join(f"\n    {x}  as LAPACK's" for x in row["as_lapack"]), flush=True)
    return row


def judged(case, p, options):
    """What the tester says of our results, and of LAPACK's: nothing where it has no such name."""
    outputs, _, same = tester.measure(case, p, options)
    theirs = case.reference(p)
    return (tester.judged(case, p, outputs, same),
            {"errors": {}, "errors_over_eps": {}, "failed": []} if theirs is None
            else tester.judged(case, p, theirs, True))


def order(error):
    """By size: what was not judged, numbers, nan."""
    return -1 if error is None else float("inf") if np.isnan(error) else error


def show(error):
    return "        -" if error is None else f"{error:9.3g}"
