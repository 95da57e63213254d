"""What was measured to be best: (kernel, letter, n) -> constants, from kernels/tuned/.

A table is {kernel: {letter: [row, ...]}}; the first row whose `to` covers n wins. An architecture
without a table of its own uses the nearest. `bench tune` writes the rows; batch counts are not
among the keys, so that results do not depend on them.
"""

import json
import re
from functools import cache

from ._sources import FOLDER

CONSTANTS = ("N", "LR", "LC", "CV", "WARPS", "BLOCKS")  # of the kernels that lanes.cuh serves
LARGEST = 32  # the largest order that fits a team's registers


def constants(kernel, letter, n, capability):
    """The constants with which `kernel` runs on matrices of order `n`."""
    row = next(r for r in table(capability)[kernel][letter] if n <= r["to"])
    return {k: row[k] for k in CONSTANTS}


@cache
def table(capability):
    """The table of the architecture nearest to a compute capability (90 is Hopper)."""
    files = {int(re.search(r"\d+", f.stem)[0]): f for f in (FOLDER / "tuned").glob("sm*.json")}
    nearest = min(files, key=lambda arch: abs(arch - capability))
    return json.loads(files[nearest].read_text())


def fits(letter, N, LR, LC, CV, WARPS, BLOCKS):
    """True if a variant may be compiled: what kernels/lanes.cuh asserts, and that a lane's part
    of the matrix leaves registers for the work (65536 a multiprocessor, 255 a thread)."""
    words = {"s": 1, "d": 2, "c": 2, "z": 4}[letter]
    part = N // LR * (N // LC) * words
    return (N % LR == 0 and N % (LC * CV) == 0 and 32 % (LR * LC) == 0 and 4 * words * CV <= 16
            and part <= 160 and 32 * WARPS <= 1024 and part * 32 * WARPS * BLOCKS <= 49152)
