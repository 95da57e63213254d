"""How work on a GPU is timed: cold, between events.

A sample runs a side once on each of several sets of operands, together more than three times the L2
cache, between two CUDA events; what the side overwrites is restored before. The stream first spins
for as long as the host needs to submit the calls, so that host overhead hides the work of no side.
"""

from functools import cache
from math import ceil
from time import perf_counter, sleep


class NoGpu(RuntimeError):
    """There is no GPU, or no CuPy, to measure on."""


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
        raise NoGpu(f"this is measured on an NVIDIA GPU, and there is none that CuPy can use "
                    f"here ({type(failure).__name__}: {str(failure):.100})") from None
    raise NoGpu("this is measured on an NVIDIA GPU, and there is none here")


@cache
def spin():
    return gpu().RawKernel(_SPIN, "spin")


def cold_sets(nbytes):
    """How many sets of operands of `nbytes` it takes to find the L2 cache cold every time: one
    where the cache holds a thirtieth of it."""
    cache = gpu().cuda.runtime.getDeviceProperties(gpu().cuda.Device().id)["l2CacheSize"]
    least = 2 if nbytes < 30 * cache else 1
    return min(300, max(least, ceil(3 * cache / max(nbytes, 1))))


def gpu_clock(nbytes, pause=0.0):
    """The clock of a row whose operands are of `nbytes`. `pause`: seconds before each sample, in
    which a GPU that the one before has heated up rests."""
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
                for i, before in kept.items():  # CuPy's or the host's
                    these[i][...] = before
            cupy.cuda.Device().synchronize()
            sleep(pause)
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
