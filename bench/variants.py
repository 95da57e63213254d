"""python -m bench variants KERNEL [KERNEL ...] [-p sd] [--orders N-N,N,...] [--only NAME=N,...]
    [--json FILE]

All variants of a kernel beside what is in use: those of its space (blasx/_spaces.py) that fit, each
checked for a right answer before it is timed, cold, the median of five, the kernels that the
routine asks before this one switched off. Where blasx.tune searches for the best of an order stage
by stage, this leaves nothing out, at the batches of `bench sweep`. The fastest three are printed;
the file has all: [kernel, type, order, constants or "row", us a member or null].
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from blasx import _clock, _spaces, _tuned, tune
from blasx._types import TYPES

from . import compare, sweep, timing

SAMPLES = 5


def variants(kernel, letter, n, gpu, only):
    """The constants of a kernel for order n that fit, those of `only` as it says."""
    found = []
    for changes in product(*_spaces.SPACES[kernel].stages(letter, n)):
        values = {k: v for change in changes for k, v in change.items()}
        values = {k: v for k, v in values.items() if v or k not in _spaces.OPTIONAL}
        if values not in found and all(values.get(k, 0) == v for k, v in only.items()) and (
                _spaces.fits(kernel, letter, n, values, gpu)):
            found.append(values)
    return found


def times(kernel, letter, n, candidates, nbytes, prepare, say):
    """Microseconds a member of the row in use, and of each candidate, None where it is wrong."""
    routine = _spaces.SPACES[kernel].routine
    batch = 1 if routine in tune.ONE else sweep.members(letter, n, nbytes)
    problem = tune.problem(routine, letter, n, batch, timing.gpu())
    sample = _clock.gpu_clock(problem.nbytes)(tune.Side(problem))
    row = [sample() for _ in range(SAMPLES)]
    measure = tune.measured(kernel, letter, problem, sample, prepare, say)
    found = measure(candidates, SAMPLES)
    row = median(row + [sample() for _ in range(SAMPLES)])
    return [ms and 1e3 * ms / batch for ms in (row, *found)]


def pairs(text):
    """NAME=N,... as a dict."""
    try:
        return {name: int(n) for name, n in (pair.split("=") for pair in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: must be NAME=N,...") from None


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m bench variants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    compiled = sorted(k for k, space in _spaces.SPACES.items() if space.compiled)
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument("-p", dest="letters", default="sd", metavar="sdcz")
    parser.add_argument("--orders", type=tune.orders_of, metavar="N-N,N,...",
                        help="those of the kernel's rows by default")
    parser.add_argument("--only", type=pairs, default={}, metavar="NAME=N,...",
                        help="variants with these constants")
    parser.add_argument("--bytes", type=float, default=100e6, help="of a batch")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", help="what to record where git cannot tell")
    options = parser.parse_args(arguments)
    for given, there in (options.kernels, compiled), (options.letters, [*TYPES]):
        if unknown := set(given) - set(there):
            parser.error(f"{' '.join(sorted(unknown))}: not among {' '.join(there)}")
    try:
        device = timing.gpu().cuda.Device().id
    except timing.NoGpu as missing:
        parser.exit(2, f"bench variants: {missing}\n")
    from blasx._kernel import architecture, gpu
    model, arch = gpu(device), architecture(device)
    todo = tune.jobs(options.kernels, options.letters, options.orders, model, False)
    if not todo:
        parser.error("these kernels do not serve such types and orders")
    report = compare.machine(True, options.commit) | {"timings": []}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for kernel, letter, _, n in todo:
            candidates = variants(kernel, letter, n, model, options.only)

            def prepare(values):
                list(pool.map(tune.compile_one, [(kernel, letter, _tuned.capitals(v), arch)
                                                 for v in values]))

            row, *found = times(kernel, letter, n, candidates, options.bytes, prepare, print)
            timing.release()
            lines = [["row", row], *map(list, zip(candidates, found))]
            report["timings"] += [[kernel, letter, n, v, us and round(us, 6)] for v, us in lines]
            best = sorted((us, i) for i, us in enumerate(found) if us)[:3]
            print(f"{kernel} {letter} {n}: row {row:.5f} us a member; " + "; ".join(
                f"{row / us:.3f} times as fast "
                + " ".join(f"{k}={x}" for k, x in candidates[i].items()) for us, i in best),
                flush=True)
            if options.json:  # what there is so far
                Path(options.json).write_text(json.dumps(report) + "\n")
