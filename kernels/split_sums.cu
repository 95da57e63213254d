// split_sums.cu: dW (filters and channels, elements of a window) as the sum of what the splits of a
// product have of it, (splits, elements, filters and channels), in order.
//
// A thread has one number. Floor: one read.
#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int WARPS = 8;    // of a block
#endif
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
split_sums(const float* parts, float* sums, size splits, size elements, size inner)
{
    wait_for_stream();
    const size i = size(blockIdx.x) * THREADS + thread(), all = elements * inner;
    if (i >= all) return;
    float sum = parts[i];
    #pragma unroll 8
    for (size s = 1; s < splits; ++s) sum += parts[s * all + i];
    const size element = i / inner;
    sums[(i - element * inner) * elements + element] = sum;
}
