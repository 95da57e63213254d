// getrf_rows.cu: columns beside a factored panel of a large matrix, some to the left of it and some to
// the right: their rows are interchanged and, to the right, those of U are solved with the panel's L.
//
// A block has COLUMNS columns and takes their rows of U to shared memory, from wherever the
// interchanges say; the rows that they drive out go there. U is solved 32 rows at a time: products
// with the rows solved before, on the tensor cores, and then with the inverse of L's diagonal block
// (getrf_top.cu). A warp has 16 x 8 of the 32 x COLUMNS.
//
// The floor: a row of a column that moves is a sector of 32 bytes read and one written, each way; L
// comes from the L2 cache. width^2 operations a column.
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"
#include "tensor.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 16, BLOCKS = 2;
#endif
static_assert(COLUMNS % 8 == 0 && WARPS == COLUMNS / 4);

// 16 rows from `row` on and 8 columns from k on of a matrix by columns, of m rows, as the tensor
// cores want them
__device__ inline void fragment(scalar_t (&x)[4], const scalar_t* p, size ld, int row, int k, int m)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int i = row + g + e % 2 * 8;
        x[e] = i < m ? p[i + (k + t + e / 2 * 4) * ld] : scalar_t{};
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

// A row of the block's columns, `there` of which exist, and of `all` zeros beyond; several loads are
// under way together
__device__ inline void move_row(scalar_t* to, size to_ld, const scalar_t* from, size from_ld,
                                int there, int all = COLUMNS)
{
    constexpr int TURN = 8;
    for (int first = 0; first < all; first += TURN) {
        scalar_t x[TURN];
        #pragma unroll
        for (int j = 0; j < TURN; ++j)
            x[j] = first + j < there ? from[(first + j) * from_ld] : scalar_t{};
        #pragma unroll
        for (int j = 0; j < TURN; ++j)
            if (first + j < all) to[(first + j) * to_ld] = x[j];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_rows(scalar_t* left, scalar_t* right, size lda, size lefts, size rights, const scalar_t* L,
           size ns, const int* from, const int* to, const scalar_t* inverse)
{
    wait_for_stream();
    const int width = int(ns), rounded = (width + 31) / 32 * 32, ld = rounded + 4;
    const size before = (lefts + COLUMNS - 1) / COLUMNS, block = blockIdx.x;
    const bool solved = block >= before;
    const size first = (solved ? block - before : block) * COLUMNS;
    const int mine = int(min(size(COLUMNS), (solved ? rights : lefts) - first));
    scalar_t* const u = reinterpret_cast<scalar_t*>(dynamic_shared);
    scalar_t* const A = (solved ? right : left) + first * lda;
    for (int i = thread(); i < rounded; i += THREADS)
        move_row(u + i, ld, A + (i < width ? from[i] : 0), lda, i < width ? mine : 0);
    __syncthreads();
    for (int i = thread(); i < width; i += THREADS)
        if (to[i] >= width) move_row(A + to[i], lda, A + i, lda, mine, mine);
    if (solved) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, half = warp() % 2 * 16;
        scalar_t* const eight = u + warp() / 2 * 8 * ld;
        for (int top = 0; top < width; top += 32) {
            const int row = top + half;
            scalar_t x[4][4], sums[4] = {};
            #pragma unroll
            for (int s = 0; s < 4; ++s)
                fragment(x[s], inverse + top * 32, 32, half, 8 * s, 32);
            #pragma unroll 4
            for (int k = 0; k < top; k += 8) {
                scalar_t l[4];
                fragment(l, L, lda, row, k, width);
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
    for (int i = thread(); i < width; i += THREADS) move_row(A + i, lda, u + i, ld, mine, mine);
}
