"""Runs multiply.cuh, built by `build` into `KERNEL`, through its problems; for a process that has
the sanitizers:  python -m tests.sim.run_multiply LIBRARY LETTER WARPS

All orders of the operands, edges, both signs, one warp and a block, against NumPy's products; four
schedules agree to the bit.
"""

import sys
from itertools import product

import numpy as np
from cffi import FFI

from blasx._types import TYPES

from .run import SCHEDULES
from .run_gemm import random

# Operands come from global memory as they lie there, copied into dynamic shared memory.
KERNEL = """
template <class A, class B>
__device__ void judged(A a, B b, size kind, ByRows<scalar_t> c, int m, int n, int k)
{
    constexpr int side = 16;
    if (kind == 0) multiply(c, a, b, m, n, k);
    else if (kind == 1) multiply<-1>(c, a, b, m, n, k);
    else if (kind == 2 && warp() == WARPS - 1) multiply<1, side, side>(c, a, b, m, n, k, 0, 1);
    else if (kind == 3) multiply_half<-1, side, side>(c, a, b, n, k);
    else if (kind == 4)
        multiply<1, side, side>(transposed(c), transposed(b), transposed(a), n, m, k);
}

extern "C" __global__ void product(size m, size n, size k, size kind, size a_columns,
    size b_columns, size adjoints, const scalar_t* A, const scalar_t* B, scalar_t* C)
{
    scalar_t* a = reinterpret_cast<scalar_t*>(dynamic_shared);
    const int lda = leading(a_columns ? m : k), ldb = leading(b_columns ? k : n);
    scalar_t* b = a + lda * (a_columns ? k : m);
    scalar_t* c = b + ldb * (b_columns ? n : k);
    const int ldc = leading(n);
    for_each(m, k, true, [=](int i, int p) {
        a[a_columns ? i + p * lda : i * lda + p] = adjoints ? conj(A[i * k + p]) : A[i * k + p]; });
    for_each(k, n, true, [=](int p, int j) {
        b[b_columns ? p + j * ldb : p * ldb + j] = B[p * n + j]; });
    for_each(m, n, true, [=](int i, int j) { c[i * ldc + j] = C[i * n + j]; });
    __syncthreads();
    const ByRows<scalar_t> to{c, ldc}, ar{a, lda}, br{b, ldb};
    const ByColumns<scalar_t> ac{a, lda}, bc{b, ldb};
    const ByStrides<scalar_t> as{a, lda, 1};
    if (a_columns && b_columns) judged(ac, bc, kind, to, m, n, k);
    else if (a_columns) judged(ac, br, kind, to, m, n, k);
    else if (adjoints) judged(adjoint(transposed(as)), br, kind, to, m, n, k);
    else if (b_columns) judged(ar, bc, kind, to, m, n, k);
    else judged(ar, br, kind, to, m, n, k);
    __syncthreads();
    for_each(m, n, true, [=](int i, int j) { C[i * n + j] = c[i * ldc + j]; });
}
extern "C" void sim_product(unsigned threads, int schedule, unsigned shared,
                            const uint64_t* numbers)
{ sim::launch(product, 1, threads, schedule, numbers, shared); }
"""
SHAPES = ((16, 16, 8), (33, 17, 7), (5, 40, 9))


def leading(n, dtype):
    """multiply.cuh's."""
    line, past = 128 // dtype.itemsize, (32 if dtype.itemsize in (8, 16) and dtype.char in "dD"
                                         else 16) // dtype.itemsize
    return (n - past + line - 1) // line * line + past


def run(launch, dtype, warps, rng, m, n, k, kind, a_columns, b_columns):
    if kind == 3:
        m = n
    a, b, c = (random(rng, dtype, *shape) for shape in ((m, k), (k, n), (m, n)))
    adjoints = kind == 0 and not a_columns and not b_columns
    shared = dtype.itemsize * (
        leading(m if a_columns else k, dtype) * (k if a_columns else m)
        + leading(k if b_columns else n, dtype) * (n if b_columns else k) + leading(n, dtype) * m)
    wide = np.result_type(dtype, np.float64)
    right = c + (-1 if kind in (1, 3) else 1) * (a.astype(wide) @ b.astype(wide))
    if kind == 3:
        right = np.where(np.tri(n, dtype=bool), right, c)
    results = []
    for schedule in SCHEDULES:
        out = c.copy()
        launch(32 * warps, schedule, shared, ffi.new("uint64_t[]", [
            m, n, k, kind, a_columns, b_columns, adjoints, a.ctypes.data, b.ctypes.data,
            out.ctypes.data]))
        results.append(out)
    assert len({x.tobytes() for x in results}) == 1, "the result depends on the schedule"
    error = np.abs(results[0] - right).max() / (np.abs(right).max() * np.finfo(dtype).eps)
    assert error < 4 * (k + 2), (error, m, n, k, kind)
    if kind == 3:
        above = ~np.tri(n, dtype=bool)
        assert np.array_equal(results[0][above], c[above])


if __name__ == "__main__":
    library, letter, warps = sys.argv[1:]
    ffi = FFI()
    ffi.cdef("void sim_product(unsigned, int, unsigned, const uint64_t *);")
    launch = ffi.dlopen(library).sim_product
    rng = np.random.default_rng(0)
    for shape, kind, a_columns, b_columns in product(SHAPES, range(5), (0, 1), (0, 1)):
        run(launch, TYPES[letter].dtype, int(warps), rng, *shape, kind, a_columns, b_columns)
    print("ok")
