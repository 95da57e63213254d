// pair_words.cu: numbers of single precision as words of a high and a low part of half precision
// (pairs.cuh), all scaled by the exponent e that takes the largest to 2^14 or more: of each of X in
// `words`, in one order. A number counts to 2^-22 of itself, or 2^-39 of the largest. One that is not
// finite is nan in what it goes into.
//
// Two launches: FIRST_PASS leaves the largest of each block's numbers in `parts`; the other has the
// largest of these and writes e. Floor: X read twice, and the words, as long, written.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 4;    // of 16 bytes, of a thread
constexpr int FIRST_PASS = 0; // 1: the first launch
#endif
#include "elements.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "shuffle.cuh"

// The larger of the block's, of all its threads
__device__ inline unsigned largest_of(unsigned mine)
{
    __shared__ unsigned all[WARPS];
    mine = __reduce_max_sync(ALL, mine);
    if (thread() % 32 == 0) all[warp()] = mine;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) mine = all[w] > mine ? all[w] : mine;
    return mine;
}

extern "C" __global__ void __launch_bounds__(THREADS)
pair_words(const float* X, unsigned* parts, size parts_of, float* words, int* exponent, size count)
{
    wait_for_stream();
    float x[PACKS][V];
    unsigned most = 0;
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) get(x[c], X, begin_of(c), count);
    if (FIRST_PASS) {
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int e = 0; e < V; ++e) most = larger_finite(most, x[c][e]);
        most = largest_of(most);
        if (thread() == 0) parts[blockIdx.x] = most;
        return;
    }
    for (size i = thread(); i < parts_of; i += THREADS) most = parts[i] > most ? parts[i] : most;
    const int e = scale_of_all(largest_of(most));
    if (blockIdx.x == 0 && thread() == 0) *exponent = e;
    const Scale scale(e);
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        #pragma unroll
        for (int q = 0; q < V; q += 2) {
            const Pair pair = pairs_of(scale.of(x[c][q]), scale.of(x[c][q + 1]));
            x[c][q] = __int_as_float(int((pair.high & 0xffff) | pair.low << 16));
            x[c][q + 1] = __int_as_float(int(pair.high >> 16 | (pair.low & 0xffff0000)));
        }
        put(words, x[c], begin_of(c), count);
    }
}
