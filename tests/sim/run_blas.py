"""Runs gemm_thread, gemm_warp, gemm_block or gemv_batched, built by `build` with ENTRY, through its
problems; for a process that has the sanitizers:

    python -m tests.sim.run_blas LIBRARY KERNEL LETTER CONSTANTS(json)

All layouts, edges, halves and symmetric operands, a shared operand, beta = 0 over what must not be
read; four schedules agree to the bit, and what is not C's stays as it was.
"""

import json
import sys

import numpy as np
from cffi import FFI

from blasx._types import TYPES

from .build import PREFIX
from .run import SCHEDULES, Memory
from .run_gemm import random

ENTRY = """extern "C" void {0}(unsigned blocks, unsigned threads, int schedule, unsigned shared,
    const uint64_t* numbers)
{{ sim::launch({1}, blocks, threads, schedule, numbers, shared); }}
"""
PROBLEMS = [  # m n k, layouts of A B C, conjugates, half, symmetric, beta, shared A
    ((9, 5, 3), "FCC", (0, 0), 0, 0, 0.5, 0),
    ((16, 16, 16), "CCC", (0, 0), 0, 0, 0, 1),
    ((7, 20, 12), "CFC", (1, 0), 0, 0, 0, 0),
    ((33, 17, 21), "FFF", (0, 1), 0, 0, -1, 0),
    ((4, 4, 4), "CCC", (0, 0), 0, 0, 2, 0),
    ((18, 18, 5), "CFC", (0, 0), 1, 0, 1, 0),
    ((20, 20, 8), "FCF", (0, 1), 2, 0, 0, 0),
    ((19, 6, 19), "CCC", (0, 0), 0, 1, 0.5, 0),
    ((36, 9, 36), "FCC", (1, 0), 0, 2, 0, 0),
]

BY_ROWS = [((m, n, k), "CCC", (0, 0), 0, 0, beta, shared) for m, n, k, beta, shared in (
    (4, 4, 4, 0, 0), (4, 4, 4, 0.5, 1), (13, 16, 8, -1, 0), (16, 8, 12, 0, 0))]
VECTORS = ((4, 4), (5, 3), (32, 32), (33, 70), (64, 17))


def bits(x):
    return [int(np.float64(part).view(np.int64)) for part in (complex(x).real, complex(x).imag)]


class Kernel:
    def __init__(self, library, name, letter, values):
        ffi = self.ffi = FFI()
        ffi.cdef(f"void {PREFIX}{name}(unsigned, unsigned, int, unsigned, const uint64_t *);")
        self.run = getattr(ffi.dlopen(library), PREFIX + name)
        self.values, self.block, self.name = values, name == "gemm_block", name
        self.shared = shared_memory(letter, values) if self.block else 0

    def __call__(self, schedule, m, n, k, half, symmetric, a, b, c, o, alpha, beta, batch):
        v = self.values
        if self.name == "gemm_thread":
            blocks = -(-v["DOWN"] * v["ACROSS"] * batch // (32 * v["WARPS"]))
        else:
            down, across = (v["BM"], v["BN"]) if self.block else (v["TM"], v["TN"])
            blocks = -(-m // down) * -(-n // across) * batch
            if not self.block:
                blocks = -(-blocks // v["WARPS"])
        numbers = [m, n, k, half, symmetric, *a, *b, *c, *o, *bits(alpha), *bits(beta), batch]
        cells = self.ffi.new("uint64_t[]", [int(x) & 2**64 - 1 for x in numbers])
        self.run(blocks, 32 * v["WARPS"], schedule, self.shared, cells)


def shared_memory(letter, v):
    """As blasx/batched/_gpu_blas.py, which needs CuPy, has it."""
    size = TYPES[letter].dtype.itemsize
    line, past = 128 // size, (32 if letter in "dz" else 16) // size

    def slice_of(rows):
        leading = [-(-(x - past) // line) * line + past for x in (v["BK"], rows)]
        return max(leading[0] * rows, leading[1] * v["BK"])

    return v["STAGES"] * (slice_of(v["BM"]) + slice_of(v["BN"])) * size


def run(kernel, dtype, rng, sizes, layouts, conj, half, symmetric, beta, shared):
    m, n, k = sizes
    batch, alpha = 3, 0.75 + (0.25j if dtype.kind == "c" and half != 2 else 0)
    a, b = random(rng, dtype, 1 if shared else batch, m, k), random(rng, dtype, batch, k, n)
    c = random(rng, dtype, batch, m, n)
    if not beta:
        c[...] = np.nan
    full = a
    if symmetric:
        other = a.swapaxes(1, 2).conj() if symmetric == 2 else a.swapaxes(1, 2)
        full = np.where(np.tri(m, dtype=bool), a, other)
        if symmetric == 2:
            full[:, range(m), range(m)] = full[:, range(m), range(m)].real
        a = np.where(np.tri(m, dtype=bool), a, np.nan)
    if half:  # of a product that is symmetric or Hermitian
        b = a.swapaxes(1, 2).conj() if half == 2 else a.swapaxes(1, 2)
        b = b.conj() if conj[1] else b
    wide = np.result_type(dtype, np.float64)
    left, right = (x.astype(wide).conj() if f else x.astype(wide) for x, f in zip((full, b), conj))
    expected = alpha * left @ right + (beta * c if beta else 0)
    if half == 2:
        expected[:, range(m), range(m)] = expected[:, range(m), range(m)].real
    wanted = np.tri(m, n, dtype=bool) if half else np.ones((m, n), bool)
    results = []
    for schedule in SCHEDULES:
        A, B, C = (Memory(x.astype(dtype), layout) for x, layout in zip((a, b, c), layouts))
        out = Memory(np.full(c.shape, -7, dtype), layouts[2])
        at = A.matrix()[:3] + [0 if shared else A.matrix()[3]]
        kernel(schedule, m, n, k, half, symmetric, [*at, conj[0]], [*B.matrix(), conj[1]],
               C.matrix(), out.matrix(), alpha, beta, batch)
        results.append(out.array.copy())
    assert len({x.tobytes() for x in results}) == 1, "the result depends on the schedule"
    assert (results[0][:, ~wanted] == -7).all(), "elements outside"
    error = np.abs(results[0] - expected)[:, wanted].max()
    assert error < 4 * (k + 2) * np.finfo(dtype).eps * np.abs(expected[:, wanted]).max(), (
        error, sizes, layouts)


def run_vectors(kernel, dtype, rng, m, n, order, conjugated, beta):
    """gemv_batched, by rows or by columns."""
    v, batch, alpha = kernel.values, 3, 0.75
    a, x, y = (random(rng, dtype, *shape) for shape in ((batch, m, n), (1, n), (batch, m)))
    if not beta:
        y[...] = np.nan
    wide = np.result_type(dtype, np.float64)
    expected = alpha * ((a.conj() if conjugated else a).astype(wide) @ x[0].astype(wide))
    expected += beta * y if beta else 0
    columns, few = order == "F", 16 // dtype.itemsize
    work = batch * -(-m // (few * v["DOWN"] if columns else v["R"]))
    blocks = -(-work // (v["WARPS"] * (1 if columns else 32 // v["LANES"])))
    results = []
    for schedule in SCHEDULES:
        A, X, Y = Memory(a, order), Memory(x), Memory(y)
        out = Memory(np.full(y.shape, np.nan, dtype))
        numbers = [m, n, columns, *A.matrix(), conjugated, X.address, 1, 0, Y.address, 1, m,
                   out.address, 1, m, *bits(alpha), *bits(beta), batch]
        cells = kernel.ffi.new("uint64_t[]", [int(z) & 2**64 - 1 for z in numbers])
        kernel.run(blocks, 32 * v["WARPS"], schedule, 0, cells)
        results.append(out.array.copy())
    assert len({z.tobytes() for z in results}) == 1, "the result depends on the schedule"
    error = np.abs(results[0] - expected).max() / np.abs(expected).max()
    assert error < 4 * (n + 2) * np.finfo(dtype).eps, (error, m, n, order)


def main(library, name, letter, values):
    kernel, dtype = Kernel(library, name, letter, json.loads(values)), TYPES[letter].dtype
    rng = np.random.default_rng(0)
    if name == "gemv_batched":
        for i, (m, n) in enumerate(VECTORS):
            for order in "CF":
                run_vectors(kernel, dtype, rng, m, n, order, i % 2, (0, -0.5)[i % 2])
        return
    v = kernel.values
    for sizes, layouts, conj, half, symmetric, beta, shared in (
            BY_ROWS if name == "gemm_thread" else PROBLEMS):
        m, n, _ = sizes
        fits = name != "gemm_thread" or m <= v["PM"] * v["DOWN"] and n <= v["PN"] * v["ACROSS"]
        if fits:
            run(kernel, dtype, rng, sizes, layouts, conj, half, symmetric, beta, shared)


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("ok")
