// getrf_block.cu: LU with partial pivoting of a batch of m x n matrices, a block to each.
//
// The floor is 2 m n scalars over the memory's bandwidth, and m n^2 - n^3 / 3 products; what is
// above it are the n choices of a pivot, one after the other (lu_block.cuh).
#include "launch.cuh"
#include "lu_block.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_block(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* LU, size lu_row, size lu_col, size lu_next,
            int* piv, int* info, size ms, size ns, size batch)
{
    wait_for_stream();
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const int found = lu_of_block<true>(
        matrix_of(A, a_row, a_col, a_next, b), matrix_of(LU, lu_row, lu_col, lu_next, b),
        array_of(piv, m < n ? m : n, b), m, n);
    if (thread() == 0) *array_of(info, 1, b) = found;
}
