"""Runs gemm_small, built by `build` with ENTRY, through its problems; for a process that has the
sanitizers:  python -m tests.sim.run_gemm LIBRARY LETTER TILE

Four schedules must agree to the bit; the results are judged against NumPy's in higher precision.
"""

import sys
from itertools import product

import numpy as np
from cffi import FFI

from blasx._types import TYPES

from .run import SCHEDULES, Memory

# alpha and beta come by address: the shim passes numbers of 64 bits only
ENTRY = """
void by_address(size m, size n, size k, const scalar_t* scalars, const scalar_t* A, size ars,
                size acs, int conj_a, const scalar_t* B, size brs, size bcs, int conj_b,
                int with_c, scalar_t* C, size crs, size ccs)
{{
    {1}(m, n, k, scalars[0], A, ars, acs, conj_a, B, brs, bcs, conj_b, scalars[1], with_c, C, crs,
        ccs);
}}
extern "C" void {0}(unsigned gx, unsigned gy, int schedule, const uint64_t* numbers)
{{ sim::launch(by_address, {{gx, gy}}, {{16, 16}}, schedule, numbers); }}
"""
SHAPES = ((1, 1, 1), (5, 17, 3), (16, 16, 16), (33, 18, 40))


def random(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def placed(x, order):
    """`x` in memory of exactly its size, and the strides of its rows and columns."""
    memory = Memory(x[None], order)
    return memory, [s // x.itemsize for s in memory.array.strides[1:]]


def run(launch, dtype, tile, rng, m, n, k, order, conj, beta):
    a, b, c = (random(rng, dtype, *shape) for shape in ((m, k), (k, n), (m, n)))
    if not beta:
        c[...] = np.nan  # must not be read
    scalars = np.array([0.7 + (0.3j if dtype.kind == "c" else 0), beta], dtype)
    wide = np.result_type(dtype, np.float64)
    right = scalars[0].astype(wide) * (a.conj() if conj else a).astype(wide) @ b.astype(wide)
    right += beta * c if beta else 0
    results = []
    for schedule in SCHEDULES:
        (A, a_at), (B, b_at), (C, c_at) = (placed(x, order) for x in (a, b, c))
        numbers = ffi.new("uint64_t[]", [
            m, n, k, scalars.ctypes.data, A.address, *a_at, conj, B.address, *b_at, 0, beta != 0,
            C.address, *c_at])
        launch(-(-m // tile), -(-n // tile), schedule, numbers)
        results.append(C.array.copy())
    assert len({x.tobytes() for x in results}) == 1, "the result depends on the schedule"
    error = np.abs(results[0][0] - right).max() / (np.abs(right).max() * np.finfo(dtype).eps)
    assert error < 4 * (k + 2), error


if __name__ == "__main__":
    library, letter, tile = sys.argv[1:]
    ffi = FFI()
    ffi.cdef("void sim_gemm_small(unsigned, unsigned, int, const uint64_t *);")
    launch = ffi.dlopen(library).sim_gemm_small
    rng = np.random.default_rng(0)
    for shape, order, conj, beta in product(SHAPES, "CF", (0, 1), (0, -0.5)):
        run(launch, TYPES[letter].dtype, int(tile), rng, *shape, order, conj, beta)
    print("ok")
