// cross_entropy_mean.cu: in `counts` how many labels are not `ignored`, at least 1, and `scale` over that
// (losses null), or the mean of the losses of cross_entropy_rows over as many, m if counts is null;
// by one block.
//
// Floor: one read, by one multiprocessor.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 32;   // of the block
#endif
#include "launch.cuh"
#include "packs.cuh"
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

// The sum of f(i), i < m, a few at once under way; in thread 0
template <class T, class F> __device__ T sum(size m, F f)
{
    constexpr int AT_ONCE = 8;
    T mine = 0;
    for (size first = thread(); first < m; first += AT_ONCE * THREADS) {
        T of[AT_ONCE];
        #pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            const size i = first + k * THREADS;
            of[k] = i < m ? f(i) : T(0);
        }
        #pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) mine += of[k];
    }
    return total(mine);
}

extern "C" __global__ void __launch_bounds__(THREADS)
cross_entropy_mean(const scalar_t* losses, const size* labels, size ignored, size scale,
                   scalar_t* counts, scalar_t* mean, size m)
{
    wait_for_stream();
    if (losses) {
        const scalar_t count = counts ? counts[0] : scalar_t(m > 1 ? m : 1);
        const scalar_t all = sum<scalar_t>(m, [=](size i) { return losses[i]; });
        if (thread() == 0) *mean = all / count;
    } else {
        const size all = sum<size>(m, [=](size i) { return size(labels[i] != ignored); });
        const scalar_t count = scalar_t(all > 1 ? all : 1);
        if (thread() == 0) counts[0] = count, counts[1] = number(scale) / count;
    }
}
