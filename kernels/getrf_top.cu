// getrf_top.cu: what the columns beside a factored panel of a large matrix need of it: its
// interchanges as two lists, and the inverses of L's diagonal blocks.
//
// Block b has rows 32 b to 32 b + 31 of the panel's top. A lane follows a row through the
// interchanges one after the other; a warp solves for a column of the inverse, a lane having a row.
// The floor is that chain, `width` steps of two comparisons.
#include "block.cuh"
#include "launch.cuh"
#include "pivot.cuh"
#include "shuffle.cuh"

static_assert(WARPS > 2);

extern "C" __global__ void __launch_bounds__(THREADS)
getrf_top(const scalar_t* L, size lda, size ns, const int* piv, size first, int* from, int* to,
          scalar_t* inverse)
{
    wait_for_stream();
    int* const pivots = reinterpret_cast<int*>(dynamic_shared);
    __shared__ scalar_t block[32][33];  // by columns
    const int width = int(ns), top = 32 * blockIdx.x, rows = min(32, width - top);
    for (int k = thread(); k < width; k += THREADS) pivots[k] = piv[k] - int(first);
    for (int e = thread(); e < 32 * 32; e += THREADS) {
        const int i = e % 32, j = e / 32;
        block[j][i] = i < rows && j < i ? L[top + i + (top + j) * lda] : scalar_t{};
    }
    __syncthreads();
    int i = top + lane_id();
    if (warp() == 0) {
        #pragma unroll 8
        for (int k = 0; k < width; ++k) i = i == k ? pivots[k] : i == pivots[k] ? k : i;
        if (lane_id() < rows) to[top + lane_id()] = i;
    } else if (warp() == 1) {
        #pragma unroll 8
        for (int k = width - 1; k >= 0; --k) i = i == k ? pivots[k] : i == pivots[k] ? k : i;
        if (lane_id() < rows) from[top + lane_id()] = i;
    } else {
        for (int j = warp() - 2; j < 32; j += WARPS - 2) {
            scalar_t y = scalar_t(real_t(lane_id() == j));
            for (int k = j; k < 31; ++k) {
                const scalar_t x = of_lane(y, k);
                if (lane_id() > k) y = minus_product(y, block[k][lane_id()], x);
            }
            inverse[(size(blockIdx.x) * 32 + j) * 32 + lane_id()] = y;
        }
    }
}
