// embedding_sums.cu: dW of an embedding: for every index k the sum of the lines of dY at which x is
// k. For each strip of lines a matrix of sums, which column_sums.cu adds up.
//
// A block has an index, a strip, and EACH columns to a thread. It goes through x a tile at a time,
// lists the lines that are its own, and adds these up in their order, four sums at a time.
// Floor: dY read once; x is read for every index, from the cache.
#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int WARPS = 2;    // of a block
#endif
#include "half.cuh"  // before the type is chosen
#include "block.cuh"
#include "launch.cuh"

constexpr int EACH = 8, TILE = 8 * THREADS;  // columns of a thread; lines that are looked at together

extern "C" __global__ void __launch_bounds__(THREADS)
embedding_sums(const int* x, const scalar_t* dY, real_t* sums, size strip, size lines_of, size n,
               size width)
{
    wait_for_stream();
    __shared__ int mine[TILE], counts[TILE / 32];
    const size across = (width + EACH * THREADS - 1) / (EACH * THREADS);
    const size j = blockIdx.x % across * (EACH * THREADS) + thread();
    const int k = int(blockIdx.x / across % n);
    const size which = blockIdx.x / across / n, first = which * strip;
    const size end = first + strip < lines_of ? first + strip : lines_of;
    const unsigned before = (1u << thread() % 32) - 1;
    real_t sum[4][EACH] = {};
    for (size tile = first; tile < end; tile += TILE) {
        unsigned found[8];
        #pragma unroll
        for (int q = 0; q < 8; ++q) {
            const size i = tile + q * THREADS + thread();
            found[q] = __ballot_sync(0xffffffffu, i < end && x[i] == k);
            if (thread() % 32 == 0) counts[q * WARPS + warp()] = __popc(found[q]);
        }
        __syncthreads();
        int total = 0;
        #pragma unroll
        for (int q = 0; q < 8 * WARPS; ++q) {
            if (q % WARPS == warp() && found[q / WARPS] >> thread() % 32 & 1)
                mine[total + __popc(found[q / WARPS] & before)] = q / WARPS * THREADS + thread();
            total += counts[q];
        }
        __syncthreads();
        for (int i = 0; i < total; i += 4)
            #pragma unroll
            for (int u = 0; u < 4; ++u)
                if (i + u < total)
                    #pragma unroll
                    for (int e = 0; e < EACH; ++e)
                        if (j + e * THREADS < width)
                            sum[u][e] += real_t(dY[(tile + mine[i + u]) * width + j + e * THREADS]);
        __syncthreads();
    }
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        if (j + e * THREADS < width)
            sums[(which * n + k) * width + j + e * THREADS] = (sum[0][e] + sum[1][e])
                                                              + (sum[2][e] + sum[3][e]);
}
