"""How a row is timed: every side checked first, then all sides in turn, cold, median and spread.

GPU: blasx/_clock.py; host overhead is measured by `bench overhead`. jax runs in streams of its own:
its samples are wall clock, from the first call to the last result.

CPU: a sample is a loop of calls long enough for the clock.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import ceil
from multiprocessing import get_context
from statistics import median
from time import perf_counter, sleep
from typing import Any

from blasx._clock import NoGpu, gpu, gpu_clock, spin  # noqa: F401 (used by the families)

_BEGAN = perf_counter()


@dataclass
class Side:
    """One library's way to do a row's work.

    `operands()` makes a fresh set in the library's favourite layout, `run(*operands)` works on it
    and overwrites those at the positions `overwrites`, `answer(result)` is what the row's check
    takes. `wall`: it cannot be timed by events.
    """

    operands: Callable[[], tuple]
    run: Callable[..., Any]
    answer: Callable[[Any], Any] = lambda result: result
    overwrites: tuple = ()
    wall: Callable[[Any], Any] = None


@dataclass
class Row:
    """One line of a family: a routine at one type and shape, our variants beside our peers.

    `ours` and `peers` name functions that make a Side; `check` gives the error of an answer (see
    errors.py), `clock` a Side's sampler; `floor_bytes` is what must cross the GPU's memory.
    """

    routine: str
    letter: str
    shape: str
    ours: dict
    peers: dict
    check: Callable[[Any], float]
    clock: Callable[[Side], Callable[[], float]]
    floor_bytes: int = None


def elapsed():
    """Seconds since the run began."""
    return perf_counter() - _BEGAN


def times(sides, check, clock, samples):
    """{name: (ms, spread, error)} of {name: function that makes a Side}; (None, None, message) for
    a side that fails. `spread` is (slowest - fastest) / median."""
    result, samplers, taken = {}, {}, {}

    def attempt(name, work):
        try:
            work(name)
        except Exception as failure:
            samplers.pop(name, None)
            text = str(failure).strip().partition("\n")[0]
            result[name] = None, None, f"{type(failure).__name__}: {text:.150}"

    def prepare(name):
        side = sides[name]()
        result[name] = float(check(side.answer(side.run(*side.operands()))))
        samplers[name], taken[name] = clock(side), []
        samplers[name]()  # warms up

    def sample(name):
        taken[name].append(samplers[name]())

    for name in sides:
        attempt(name, prepare)
    for i in range(samples):
        for name in list(samplers)[::-1 if i % 2 else 1]:  # each after each
            attempt(name, sample)
    for name in samplers:
        middle = median(taken[name])
        result[name] = middle, (max(taken[name]) - min(taken[name])) / middle, result[name]
    return result


# -- CPU


def cpu_clock(side, least_ms=2.0, pause=0.0):
    """The function that takes one sample of `side`, in ms a call. `pause`: seconds before it, in
    which the threads of another library's BLAS stop to wait for work at the cost of ours."""
    operands = side.operands()
    sleep(pause)
    side.run(*operands)  # wakes the threads
    start = perf_counter()
    side.run(*operands)
    calls = max(1, ceil(least_ms / 1e3 / max(perf_counter() - start, 1e-7)))

    def sample():
        run = side.run
        sleep(pause)
        start = perf_counter()
        for _ in range(calls):
            run(*operands)
        return (perf_counter() - start) / calls * 1e3

    return sample


# -- GPU

def release():
    """Give back what CuPy and torch keep of the memory of rows that are done."""
    gpu().get_default_memory_pool().free_all_blocks()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


def compile_ahead(letters, orders, routines):
    """Fill blasx's cache of compiled kernels with what tuned rows name for members of these orders
    in these batched routines, on all cores."""
    cupy = gpu()
    from blasx import _kernel
    from blasx.tune import compile_one
    device = cupy.cuda.Device().id
    arch = _kernel.architecture(device)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        programs = sorted(of_rows(letters, orders, routines, _kernel.gpu(device)))
        list(pool.map(compile_one, [(kernel, letter, dict(values), arch)
                                    for kernel, letter, values in programs]))


def of_rows(letters, orders, routines, model):
    """(kernel, letter, constants) of the programs that tuned rows name for that on a GPU of this
    model."""
    from blasx import _spaces, _tuned
    found = set()
    for kernel, space in _spaces.SPACES.items():
        if not space.compiled or space.routine.partition("_")[0] not in routines:
            continue
        for letter in letters:
            rows, before = [row for row, _ in _tuned.rows(kernel, letter, model)], 0
            for to in sorted({row["to"] for row in rows}):
                if any(before < n <= to for n in orders):
                    found |= {(kernel, letter, tuple(_tuned.capitals(row).items()))
                              for row in rows if row["to"] == to and _tuned.capitals(row)}
                before = to
    if "getrf_nopiv" in routines:
        found |= {(kernel, letter, (*values, ("UNPIVOTED", 1))) for kernel, letter, values in found
                  if kernel in ("getrf_small", "getrf_shared")}
    return found


@cache
def copy_bandwidth():
    """Bytes a second that a device copy moves, read and written together."""
    cupy = gpu()
    source = cupy.zeros(2**30, cupy.uint8)
    target = cupy.empty_like(source)
    copy = Side(lambda: (target, source), lambda t, s: t.data.copy_from_device_async(
        s.data, s.nbytes, cupy.cuda.get_current_stream()))
    sample = gpu_clock(source.nbytes)(copy)
    return 2 * source.nbytes / (median(sample() for _ in range(5)) * 1e-3)
