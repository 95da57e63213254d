"""Runs gemm_naive or gemm_tiled, built by `build` with ENTRY, through its problems; for a process
that has the sanitizers:  python -m tests.sim.run_ladder LIBRARY KERNEL LETTER CONSTANTS(json)

All layouts, with aligned lines and without, strides of no unit, conjugates, edges, beta = 0 over
what must not be read, nan and infinities; four schedules agree to the bit.
"""

import json
import sys

import numpy as np
from cffi import FFI

from blasx._types import TYPES
from blasx.batched._block import tiled_bytes

from .build import PREFIX
from .run import SCHEDULES, libc
from .run_blas import bits
from .run_gemm import random

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned tx, unsigned ty, int schedule,
    unsigned shared, const uint64_t* numbers)
{{ sim::launch({1}, blocks, {{tx, ty}}, schedule, numbers, shared); }}
"""
PROBLEMS = [  # m n k, layouts of A B C, conjugates, alpha, beta
    ((1, 1, 1), "CCC", (0, 0), 1, 0),
    ((5, 9, 0), "CFC", (0, 0), 1, 0.5),
    ((48, 36, 20), "CCC", (0, 0), 0.75, 0),
    ((32, 64, 32), "FCC", (1, 0), 1, -1),
    ((33, 68, 41), "CFF", (0, 1), -1, 0.5),
    ((64, 32, 16), "FFC", (1, 1), 1, 0),
    ((70, 35, 17), "SCS", (0, 0), 1, 2),
    ((37, 66, 50), "FSC", (0, 0), 2, 0),
]


class Memory:
    """A matrix in memory of exactly its size: by rows, by columns, or every other element of a
    larger one, from the last to the first row (S)."""

    def __init__(self, x, layout):
        dtype, (m, n) = x.dtype, x.shape
        apart = 2 if layout == "S" else 1
        self.raw = libc.malloc(max(apart * apart * x.nbytes, 1))
        whole = np.frombuffer((np.ctypeslib.ctypes.c_char * (apart * apart * x.nbytes))
                              .from_address(self.raw), dtype)
        if layout == "F":
            self.array = whole.reshape(n, m).T
        else:
            whole = whole.reshape(apart * m, apart * n)
            whole[...] = np.nan
            self.array = whole[::-2, 1::2] if layout == "S" else whole
        self.array[...] = x

    def __del__(self):
        libc.free(self.raw)

    def cells(self):
        return [self.array.ctypes.data, *(s // self.array.itemsize for s in self.array.strides)]


def run(launch, values, dtype, rng, sizes, layouts, conj, alpha, beta, special=False):
    m, n, k = sizes
    a, b, c = (random(rng, dtype, *shape) for shape in ((m, k), (k, n), (m, n)))
    if special:
        a[0, 0], a[1, 1], b[3, 2] = np.nan, np.inf, -np.inf
    if not beta:
        c[...] = np.nan  # must not be read
    if dtype.kind == "c":
        alpha *= 1 + 0.5j
    wide = np.result_type(dtype, np.float64)
    left, right = (x.astype(wide).conj() if f else x.astype(wide) for x, f in zip((a, b), conj))
    expected = alpha * (left @ right) + (beta * c if beta else 0)
    tile = (values["BM"], values["BN"]) if "BM" in values else (values["DIM_Y"], values["DIM_X"])
    threads = (32 * values["WARPS"], 1) if "BM" in values else (values["DIM_X"], values["DIM_Y"])
    shared = tiled_bytes(TYPES_LETTER[dtype.char], values) if "BM" in values else 0
    results = []
    for schedule in SCHEDULES:
        A, B, C = (Memory(x, layout) for x, layout in zip((a, b, c), layouts))
        numbers = [m, n, k, *A.cells(), conj[0], *B.cells(), conj[1], *C.cells(), *bits(alpha),
                   *bits(beta), 0]
        launch(-(-m // tile[0]) * -(-n // tile[1]), *threads, schedule, shared,
               ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers]))
        results.append(C.array.copy())
    assert len({x.tobytes() for x in results}) == 1, "the result depends on the schedule"
    usual = np.isfinite(expected)
    assert special or usual.all()
    assert np.array_equal(np.isfinite(results[0]), usual), (sizes, layouts)
    error = np.abs(results[0] - expected)[usual].max(initial=0)
    size = np.abs(expected[usual]).max(initial=0)
    assert error < 4 * (k + 2) * np.finfo(dtype).eps * size, (error, sizes, layouts)


TYPES_LETTER = {t.dtype.char: letter for letter, t in TYPES.items()}

if __name__ == "__main__":
    library, kernel, letter, values = sys.argv[1:]
    ffi = FFI()
    ffi.cdef(f"void {PREFIX}{kernel}(unsigned, unsigned, unsigned, int, unsigned, "
             "const uint64_t *);")
    launch = getattr(ffi.dlopen(library), PREFIX + kernel)
    values, rng = json.loads(values), np.random.default_rng(0)
    for problem in PROBLEMS:
        run(launch, values, TYPES[letter].dtype, rng, *problem)
    with np.errstate(all="ignore"):
        run(launch, values, TYPES[letter].dtype, rng, (9, 10, 8), "CCC", (0, 0), 1, 0, True)
    print("ok")
