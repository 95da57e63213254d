// getrf_order.cu: what the interchanges of a block of an LU do to all rows: which row, of those that
// there were before, comes to each place; and of the rows as they were at first, where each of them
// is now, for the columns of L that are put in order at the end (getrf_columns.cu).
//
// A thread follows one place back through the block's interchanges, which pass through shared memory
// a piece at a time: width steps of two comparisons.
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
getrf_order(const int* piv, size firsts, size widths, size n, const int* before, int* after,
            int* places, int* columns, size number)
{
    wait_for_stream();
    constexpr int PIECE = 4 * THREADS;
    __shared__ int pivots[PIECE];
    const int first = int(firsts), width = int(widths);
    const int place = int(blockIdx.x) * THREADS + thread();
    int i = place;
    for (int end = first + width; end > first; end -= PIECE) {
        const int begin = max(end - PIECE, first);
        __syncthreads();
        for (int k = begin + thread(); k < end; k += THREADS) pivots[k - begin] = piv[k];
        __syncthreads();
        #pragma unroll 8
        for (int k = end - 1; k >= begin; --k) {
            const int p = pivots[k - begin];
            i = i == k ? p : i == p ? k : i;
        }
    }
    if (place < n) {
        const int row = before ? before[i] : i;
        after[place] = row;
        if (places) places[row] = place;
    }
    if (columns && place < width) {  // whose columns these are, and where they go on below it
        columns[2 * (first + place)] = int(number);
        columns[2 * (first + place) + 1] = first + width;
    }
}
