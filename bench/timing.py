"""How a row is timed: every side checked first, then all sides in turn, cold, median and spread.

GPU: a sample runs one side once on each of several sets of operands, together more than three times
the L2 cache, between two CUDA events; what the side overwrites is restored before. The stream first
spins for as long as the host needs to submit the calls, so that host overhead, which is measured by
`bench overhead`, hides the work of no side. jax runs in streams of its own: its samples are wall
clock, from the first call to the last result.

CPU: a sample is a loop of calls long enough for the clock.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil
from statistics import median
from time import perf_counter
from typing import Any

_BEGAN = perf_counter()


class NoGpu(RuntimeError):
    """There is no GPU, or no CuPy, to measure on."""


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
    for _ in range(samples):
        for name in list(samplers):
            attempt(name, sample)
    for name in samplers:
        middle = median(taken[name])
        result[name] = middle, (max(taken[name]) - min(taken[name])) / middle, result[name]
    return result


# -- CPU


def cpu_clock(side, least_ms=2.0):
    """The function that takes one sample of `side`, in ms a call."""
    operands = side.operands()
    start = perf_counter()
    side.run(*operands)
    calls = max(1, ceil(least_ms / 1e3 / max(perf_counter() - start, 1e-7)))

    def sample():
        run = side.run
        start = perf_counter()
        for _ in range(calls):
            run(*operands)
        return (perf_counter() - start) / calls * 1e3

    return sample


# -- GPU

_SPIN = r"""
extern "C" __global__ void spin(long long ns)
{
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < ns);
}
"""


def gpu():
    """The cupy module; NoGpu where it cannot be used."""
    try:
        import cupy
        if cupy.cuda.runtime.getDeviceCount():
            return cupy
    except Exception as failure:
        raise NoGpu(f"this family is measured on an NVIDIA GPU, and there is none that CuPy can "
                    f"use here ({type(failure).__name__}: {str(failure):.100})") from None
    raise NoGpu("this family is measured on an NVIDIA GPU, and there is none here")


def release():
    """Give back what CuPy and torch keep of the memory of rows that are done."""
    gpu().get_default_memory_pool().free_all_blocks()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


@cache
def spin():
    return gpu().RawKernel(_SPIN, "spin")


def cold_sets(nbytes):
    """How many sets of operands of `nbytes` it takes to find the L2 cache cold every time."""
    properties = gpu().cuda.runtime.getDeviceProperties(gpu().cuda.Device().id)
    return min(300, max(2, ceil(3 * properties["l2CacheSize"] / max(nbytes, 1))))


def gpu_clock(nbytes):
    """The clock of a row whose operands are of `nbytes`."""
    cupy, sets = gpu(), cold_sets(nbytes)

    def clock(side):
        operands = [side.operands() for _ in range(sets)]
        kept = {i: operands[0][i].copy() for i in side.overwrites}
        results = [None] * sets  # kept, so that no call finds its output's memory warm

        def calls():
            for i, these in enumerate(operands):
                results[i] = side.run(*these)

        def sample(spin_ns=0):
            for these in operands:
                for i, before in kept.items():
                    cupy.copyto(these[i], before)
            cupy.cuda.Device().synchronize()
            if side.wall:
                start = perf_counter()
                calls()
                side.wall(results)
                return (perf_counter() - start) / sets * 1e3
            first, last = cupy.cuda.Event(), cupy.cuda.Event()
            spin()((1,), (1,), (spin_ns,))
            first.record()
            start = perf_counter()
            calls()
            sample.host = perf_counter() - start
            last.record()
            last.synchronize()
            return cupy.cuda.get_elapsed_time(first, last) / sets

        sample()
        sample()
        ahead = int(1.5e9 * getattr(sample, "host", 0)) + 100_000
        return lambda: sample(min(ahead, 200_000_000))

    return clock


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
