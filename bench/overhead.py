"""python -m bench overhead [--json FILE] [--calls N]

What a call costs the host, from call to return: median and 90th percentile of 10,000 calls.
The GPU's queue is emptied every 100 calls, outside of the clock, so that no call waits for room.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns

import numpy as np

import blasx

from . import timing
from .compare import machine

BETWEEN = 100  # calls between two synchronisations


def main(arguments):
    """Print and write the table; always 0: the targets are judged by who reads it."""
    parser = argparse.ArgumentParser(prog="python -m bench overhead", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--commit", help="what to record where git cannot tell")
    options = parser.parse_args(arguments)
    cases, with_gpu = {**cpu_cases()}, True
    try:
        cases |= gpu_cases()
    except timing.NoGpu as missing:
        with_gpu = False
        print(f"CPU only: {missing}")
    rows = []
    for name, (call, wait, target) in cases.items():
        us = [t / 1e3 for t in host_times(call, wait, options.calls)]
        rows.append({"call": name, "us": median(us), "p90": quantiles(us, n=10)[-1],
                     "target_us": target})
        judged = "" if target is None else f"   target {target} us"
        print(f"{name:52} {rows[-1]['us']:7.2f} us   90 % within {rows[-1]['p90']:7.2f}{judged}")
    if options.json:
        report = {**machine(with_gpu, options.commit), "rows": rows}
        Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0


def host_times(call, wait, calls):
    """The nanoseconds of each of `calls` calls, after a warm-up."""
    for _ in range(BETWEEN):
        call()
    wait()
    taken = []
    for i in range(calls):
        start = perf_counter_ns()
        call()
        taken.append(perf_counter_ns() - start)
        if i % BETWEEN == BETWEEN - 1:
            wait()
    return taken


def cpu_cases():
    """{name: (call, wait, target in us)} on NumPy arrays."""
    from scipy.linalg.lapack import dgetrf
    a = np.asfortranarray(np.random.default_rng(0).standard_normal((8, 8)))
    stack = np.random.default_rng(0).standard_normal((10, 4, 4))
    return {"CPU dgetrf n = 8": (partial(blasx.dgetrf, a), int, 4),
            "CPU dgetrf n = 8, SciPy's own": (partial(dgetrf, a), int, None),
            "CPU dgetrf_batched, 10 of n = 4": (partial(blasx.dgetrf_batched, stack), int, None)}


def gpu_cases():
    """{name: (call, wait, target in us)} on CuPy arrays."""
    cupy = timing.gpu()
    random = cupy.random.RandomState(0)
    a, b = (cupy.asfortranarray(random.standard_normal((64, 64))) for _ in range(2))
    c = cupy.zeros_like(a)
    stack = random.standard_normal((16, 32, 32))
    wait = cupy.cuda.Device().synchronize
    nothing = cupy.RawKernel('extern "C" __global__ void nothing(double* x) {}', "nothing")
    return {
        "GPU launch of a kernel that does nothing, CuPy's": (
            partial(nothing, (1,), (64,), (a,)), wait, None),
        "GPU dgemm 64 x 64": (partial(blasx.dgemm, 1.0, a, b), wait, 10),
        "GPU dgemm 64 x 64 into C": (
            partial(blasx.dgemm, 1.0, a, b, 0.0, c, overwrite_c=1), wait, 10),
        "GPU dgemm 64 x 64, CuPy's matmul": (partial(cupy.matmul, a, b), wait, None),
        "GPU dgetrf_batched, 16 of n = 32": (partial(blasx.dgetrf_batched, stack), wait, 10),
        "GPU dgetrf_batched, 16 of n = 32, in place": (
            partial(blasx.dgetrf_batched, stack.copy(), 1), wait, 10)}
