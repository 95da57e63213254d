// cross_entropy_mean.cu: how many labels are not `ignored` (losses null), or the mean of the losses of
// cross_entropy_rows over as many, by one block. count: where that number is, m if null.
//
// Floor: one read, by one multiprocessor.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 32;   // of the block
#endif
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

// The sum of what all threads have; in thread 0
template <class T> __device__ T total(T x)
{
    __shared__ T parts[WARPS];
    #pragma unroll
    for (int d = 16; d > 0; d /= 2) x += across(x, d);
    if (thread() % 32 == 0) parts[warp()] = x;
    __syncthreads();
    for (int w = 1; w < WARPS; ++w) x += parts[w];
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS)
cross_entropy_mean(const scalar_t* losses, const size* labels, size* count, scalar_t* mean,
                   size ignored, size m)
{
    wait_for_stream();
    if (losses) {
        scalar_t mine = 0;
        for (size i = thread(); i < m; i += THREADS) mine += losses[i];
        const scalar_t sum = total(mine);
        const size counted = count ? *count : m;
        if (thread() == 0) *mean = sum / scalar_t(counted > 1 ? counted : 1);
    } else {
        size mine = 0;
        for (size i = thread(); i < m; i += THREADS) mine += labels[i] != ignored;
        const size sum = total(mine);
        if (thread() == 0) *count = sum;
    }
}
