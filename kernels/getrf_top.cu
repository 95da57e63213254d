// getrf_top.cu: what the columns beside a factored panel of a large matrix need of it: its
// interchanges as two lists, and the inverses of L's diagonal blocks; and what rows below its window
// do, those of U^T's.
//
// Block b has rows 32 b to 32 b + 31 of the panel's top; as many blocks again have those of U^T. A
// lane follows a row through the interchanges one after the other; a warp solves for a column of the
// inverse, a lane having a row. The floor is that chain, `width` steps of two comparisons.
#include "block.cuh"
#include "launch.cuh"
#include "pivot.cuh"
#include "shuffle.cuh"

static_assert(WARPS > 2);

// The column of the inverse of a triangle of 32 rows, by columns, that begins in row j
template <bool UNIT>
__device__ inline scalar_t column_of_inverse(const scalar_t (&block)[32][33], scalar_t diagonal, int j)
{
    scalar_t y = scalar_t(real_t(lane_id() == j));
    #pragma unroll 2
    for (int k = j; k < 32; ++k) {
        if (!UNIT && lane_id() == k) y = mul(y, diagonal);
        const scalar_t x = of_lane(y, k);
        if (lane_id() > k) y = minus_product(y, block[k][lane_id()], x);
    }
    return y;
}

// inverse: 32 x 32 by columns for each block; of_u: likewise, where there are so many blocks
extern "C" __global__ void __launch_bounds__(THREADS)
getrf_top(const scalar_t* A, size lda, size ns, const int* piv, size first, int* from, int* to,
          scalar_t* inverse, scalar_t* of_u)
{
    wait_for_stream();
    int* const pivots = reinterpret_cast<int*>(dynamic_shared);
    __shared__ scalar_t block[32][33];  // by columns
    const int width = int(ns), tiles = (width + 31) / 32, tile = int(blockIdx.x) % tiles;
    const int top = 32 * tile, rows = min(32, width - top);
    const bool upper = int(blockIdx.x) >= tiles;
    A += top * (lda + 1);
    if (!upper) for (int k = thread(); k < width; k += THREADS) pivots[k] = piv[k] - int(first);
    for (int e = thread(); e < 32 * 32; e += THREADS) {
        const int i = upper ? e / 32 : e % 32, j = upper ? e % 32 : e / 32;
        const bool there = i < rows && (upper ? j <= i : j < i);
        block[j][i] = there ? upper ? A[j + i * lda] : A[i + j * lda]
                            : scalar_t(real_t(i == j));
    }
    __syncthreads();
    if (upper) {
        const scalar_t diagonal = reciprocal(block[lane_id()][lane_id()]);
        for (int j = warp(); j < 32; j += WARPS)
            of_u[(size(tile) * 32 + j) * 32 + lane_id()]
                = column_of_inverse<false>(block, diagonal, j);
        return;
    }
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
        for (int j = warp() - 2; j < 32; j += WARPS - 2)
            inverse[(size(tile) * 32 + j) * 32 + lane_id()]
                = column_of_inverse<true>(block, {}, j);
    }
}
