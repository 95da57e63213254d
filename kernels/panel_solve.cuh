// panel_solve.cuh: L X = B in shared memory, L the triangle of a panel in global memory, B of COLUMNS
// columns, by a block.
//
// 32 rows at a time: products with the rows solved before, on the tensor cores, and then with the
// inverse of the block on L's diagonal. A warp has 16 x 8 of the 32 x COLUMNS.
#pragma once
#include "memory.cuh"
#include "tensor.cuh"

static_assert(COLUMNS % 8 == 0 && WARPS == COLUMNS / 4);

// 16 rows from `row` on and 8 columns from k on of a matrix of m rows, as the tensor cores want them
__device__ inline void fragment(scalar_t (&x)[4], Strided<const scalar_t> l, int row, int k, int m)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int i = row + g + e % 2 * 8;
        x[e] = i < m ? l(i, k + t + e / 2 * 4) : scalar_t{};
    }
}

// c += x times rows k to k + 7 of the columns in shared memory
__device__ inline void add_product(scalar_t (&c)[4], const scalar_t (&x)[4], const scalar_t* columns,
                                   int ld, int k)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const scalar_t y[2] = {columns[g * ld + k + t], columns[g * ld + k + t + 4]};
    tensor_product(c, x, y);
}

// X := inv(L) X, of `width` rows, LD apart the columns; `inverse`: 32 x 32 by columns for each block
__device__ inline void solve_by_tiles(scalar_t* X, int ld, int width, Strided<const scalar_t> L,
                                      const scalar_t* inverse)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, half = threadIdx.x / 32 % 2 * 16;
    scalar_t* const eight = X + threadIdx.x / 64 * 8 * ld;
    for (int top = 0; top < width; top += 32) {
        const int row = top + half;
        scalar_t x[4][4], sums[4] = {};
        #pragma unroll
        for (int s = 0; s < 4; ++s)
            fragment(x[s], {inverse + top * 32, 1, 32}, half, 8 * s, 32);
        #pragma unroll 4
        for (int k = 0; k < top; k += 8) {
            scalar_t l[4];
            fragment(l, L, row, k, width);
            add_product(sums, l, eight, ld, k);
        }
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            scalar_t& y = eight[(2 * t + e % 2) * ld + row + g + e / 2 * 8];
            y = minus_product(y, scalar_t(real_t(1)), sums[e]);
            sums[e] = scalar_t{};
        }
        __syncthreads();
        #pragma unroll
        for (int s = 0; s < 4; ++s) add_product(sums, x[s], eight, ld, top + 8 * s);
        __syncthreads();
        #pragma unroll
        for (int e = 0; e < 4; ++e)
            eight[(2 * t + e % 2) * ld + row + g + e / 2 * 8] = sums[e];
        __syncthreads();
    }
}
