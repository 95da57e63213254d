// permutation.cu: the row that the interchanges of getrf bring to each place.
//
// A thread follows one place back through all interchanges, which pass through shared memory a
// piece at a time. n^2 comparisons.
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
permutation(const int* piv, size count, int* source, size n)
{
    wait_for_stream();
    constexpr int PIECE = 4 * THREADS;
    __shared__ int pivots[PIECE];
    int i = int(blockIdx.x) * THREADS + thread();
    for (int end = int(count); end > 0; end -= PIECE) {
        const int first = max(end - PIECE, 0);
        __syncthreads();
        for (int k = first + thread(); k < end; k += THREADS) pivots[k - first] = piv[k];
        __syncthreads();
        #pragma unroll 8
        for (int k = end - 1; k >= first; --k) {
            const int p = pivots[k - first];
            i = i == k ? p : i == p ? k : i;
        }
    }
    const int place = int(blockIdx.x) * THREADS + thread();
    if (place < n) source[place] = i;
}
