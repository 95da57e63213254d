// column_sums.cu: the sums of the columns of an m x n matrix that lies by rows: for each strip of rows
// one line of sums, which a second launch adds up.
//
// A block has 32 columns of a strip, a lane one of them, a warp every WARPS-th row, four sums at a
// time; the warps' sums are added in order. Floor: one read.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;   // of a block
constexpr int OF_SUMS = 0;  // 1: the matrix is of the type of sums
constexpr int ROUNDED = 0;  // 1: the answer is not
#endif
#include "half.cuh"  // before the type is chosen
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
column_sums(const void* A, void* sums, size strip, size m, size n)
{
    wait_for_stream();
    const auto at = [=](size i) {
        if constexpr (OF_SUMS) return static_cast<const real_t*>(A)[i];
        else return real_t(static_cast<const scalar_t*>(A)[i]);
    };
    __shared__ real_t parts[WARPS][32];
    const int lane = threadIdx.x % 32;
    const size across = (n + 31) / 32, which = blockIdx.x / across, first = which * strip;
    const size j = blockIdx.x % across * 32 + lane;
    const size last = first + strip < m ? first + strip : m;
    real_t sum[4] = {};
    if (j < n) {
        size i = first + warp();
        for (; i + 3 * WARPS < last; i += 4 * WARPS)
            #pragma unroll
            for (int u = 0; u < 4; ++u) sum[u] += at((i + u * WARPS) * n + j);
        #pragma unroll
        for (int u = 0; u < 3; ++u)
            if (i + u * WARPS < last) sum[u] += at((i + u * WARPS) * n + j);
    }
    parts[warp()][lane] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    __syncthreads();
    if (warp() || j >= n) return;
    real_t total = parts[0][lane];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) total += parts[w][lane];
    if constexpr (ROUNDED) static_cast<scalar_t*>(sums)[which * n + j] = scalar_t(total);
    else static_cast<real_t*>(sums)[which * n + j] = total;
}
