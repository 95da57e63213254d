// column_sums.cu: the sums of the columns of an m x n matrix that lies by rows: a line of sums for every
// CLUSTER strips of rows, which another launch adds up where there are several.
//
// A block has 32 columns of a strip, a lane one of them, a warp every WARPS-th row, eight sums at a
// time; the warps' sums are added in order, and then those of the blocks of a cluster, by its first.
// Floor: one read.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;   // of a block
constexpr int CLUSTER = 1;  // strips that are added up
constexpr int OF_SUMS = 0;  // 1: the matrix is of the type of sums
constexpr int ROUNDED = 0;  // 1: the answer is not
#endif
#include "half.cuh"  // before the type is chosen
#include "block.cuh"
#include "cluster.cuh"
#include "launch.cuh"

constexpr int EACH = 8;

extern "C" __global__ void BY_CLUSTERS __launch_bounds__(THREADS)
column_sums(const void* A, void* sums, size strip, size m, size n)
{
    wait_for_stream();
    const auto at = [=](size i) {
        if constexpr (OF_SUMS) return static_cast<const real_t*>(A)[i];
        else return real_t(static_cast<const scalar_t*>(A)[i]);
    };
    real_t* const parts = reinterpret_cast<real_t*>(dynamic_shared);  // 32 of each warp, and in all
    const int lane = thread() % 32, rank = blockIdx.x % CLUSTER;
    const size across = (n + 31) / 32, which = blockIdx.x / CLUSTER / across;
    const size first = (which * CLUSTER + rank) * strip;
    const size j = blockIdx.x / CLUSTER % across * 32 + lane;
    const size last = first + strip < m ? first + strip : m;
    real_t sum[EACH] = {};
    if (j < n) {
        size i = first + warp();
        for (; i + (EACH - 1) * WARPS < last; i += EACH * WARPS)
            #pragma unroll
            for (int u = 0; u < EACH; ++u) sum[u] += at((i + u * WARPS) * n + j);
        #pragma unroll
        for (int u = 0; u < EACH - 1; ++u)
            if (i + u * WARPS < last) sum[u] += at((i + u * WARPS) * n + j);
    }
    #pragma unroll
    for (int d = EACH / 2; d > 0; d /= 2)
        #pragma unroll
        for (int u = 0; u < d; ++u) sum[u] += sum[u + d];
    parts[32 * warp() + lane] = sum[0];
    __syncthreads();
    real_t total = 0;
    if (warp() == 0) {
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) total += parts[32 * w + lane];
        if (CLUSTER > 1) parts[32 * WARPS + lane] = total;
    }
    if constexpr (CLUSTER > 1) {
        meet_cluster();
        if (warp() == 0 && rank == 0)
            #pragma unroll
            for (int b = 1; b < CLUSTER; ++b)
                total += in_cluster<CLUSTER>(parts[32 * WARPS + lane], b);
        meet_cluster();
    }
    if (warp() || rank || j >= n) return;
    if constexpr (ROUNDED) static_cast<scalar_t*>(sums)[which * n + j] = scalar_t(total);
    else static_cast<real_t*>(sums)[which * n + j] = total;
}
