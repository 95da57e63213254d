// diagonal.cuh: where a triangular matrix is singular, found by the threads of a block.
#pragma once
#include "block.cuh"
#include "shuffle.cuh"

// The place of the first zero on the diagonal of R, counted from 1, or 0. All threads hold it;
// `found` may be used again after the next barrier.
__device__ inline int first_zero(Strided<const scalar_t> R, int n, unsigned (&found)[WARPS])
{
    unsigned first = n + 1;
    for (int i = n - 1 - thread(); i >= 0; i -= THREADS)
        if (abs1(R(i, i)) == 0) first = i + 1;
    first = __reduce_min_sync(ALL, first);
    if (threadIdx.x % 32 == 0) found[warp()] = first;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) first = found[w] < first ? found[w] : first;
    return first > n ? 0 : first;
}
