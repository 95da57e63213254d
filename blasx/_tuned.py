"""What was measured to be best: (kernel, letter, n) -> constants, from kernels/tuned/<arch>/.

<kernel>.json holds {letter: [row, ...]}; the first row whose `to` covers n wins, and its capitals
are the kernel's compile-time constants. An architecture without a folder of its own uses the
nearest. `bench tune` writes the rows; batch counts are not among the keys, so that results do not
depend on them.
"""

import json
import re
from functools import cache

from ._sources import FOLDER

LARGEST = 32  # the largest order that fits a team's registers (kernels/lanes.cuh)


def row(kernel, letter, n, capability):
    """The row that serves matrices of order `n`, or None past the last."""
    return next((r for r in table(capability)[kernel][letter] if n <= r["to"]), None)


def constants(kernel, letter, n, capability):
    """The constants with which `kernel` runs on matrices of order `n`."""
    return {k: v for k, v in row(kernel, letter, n, capability).items() if k.isupper()}


@cache
def table(capability):
    """{kernel: {letter: rows}} of the architecture nearest to a compute capability (90: Hopper)."""
    folders = {int(re.search(r"\d+", d.name)[0]): d for d in (FOLDER / "tuned").glob("sm*")}
    nearest = min(folders, key=lambda arch: abs(arch - capability))
    return {f.stem: json.loads(f.read_text()) for f in sorted(folders[nearest].glob("*.json"))}


def fits(letter, N, LR, LC, CV, WARPS, BLOCKS):
    """True if a variant may be compiled: what kernels/lanes.cuh asserts, that a lane's part of the
    matrix leaves registers for the work (65536 a multiprocessor, 255 a thread), and that matrices
    in tiles (kernels/tiles.cuh) fit into the shared memory that every GPU gives."""
    words = {"s": 1, "d": 2, "c": 2, "z": 4}[letter]
    part = N // LR * (N // LC) * words
    tiles = (LR, LC, CV) == (8, 4, 1 if letter == "z" else 2)
    shared = WARPS * N * (4 * N * words + 16) if tiles else 0
    return (N % LR == 0 and N % (LC * CV) == 0 and 32 % (LR * LC) == 0 and 4 * words * CV <= 16
            and part <= 160 and 32 * WARPS <= 1024 and part * 32 * WARPS * BLOCKS <= 49152
            and shared <= 49152)
