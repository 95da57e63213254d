// getrf_wide.cu: L U = B for columns beside a wide block of a large matrix, L the block's top, of all
// its parts; and the interchanges of these columns, where those reach no further than some rows below.
//
// A block has COLUMNS columns in shared memory and goes down them, 16 rows a warp at a time. First the
// products with all rows solved before, on the tensor cores, a warp having its rows of all columns, so
// that a number of L is read once; then, 32 rows after 32, those with the ones solved beside them, and
// with inverses that getrf_top.cu has made of each part's blocks on the diagonal.
//
// The floor: B read and written once; width^2 operations a column, each three on the tensor cores, and
// width^2 / 2 numbers of L from the L2 cache for each block.
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 16, BLOCKS = 1;
#endif
#include "panel_solve.cuh"

constexpr int ROWS = 16 * WARPS, TILES = COLUMNS / 8;  // of a step; of eight columns
constexpr int MOST = 36;  // numbers of a column that a lane moves
static_assert(ROWS % 32 == 0);

// 16 rows of a matrix whose columns lie `step` bytes apart in fours, as `fragment` has them, those that
// are there; a lane's next number is at p
struct Lines {
    const char* p;
    size step;
    bool upper, lower;

    __device__ Lines(const scalar_t* first, size ld, int there)
        : p(reinterpret_cast<const char*>(first + threadIdx.x % 32 / 4 + threadIdx.x % 4 * ld)),
          step(4 * ld * sizeof(scalar_t)), upper(int(threadIdx.x) % 32 / 4 < there),
          lower(int(threadIdx.x) % 32 / 4 + 8 < there)
    {}
    // The next 32 columns
    __device__ void read(scalar_t (&l)[4][4])
    {
        #pragma unroll
        for (int e = 0; e < 8; ++e, p += step) {
            const scalar_t* const from = reinterpret_cast<const scalar_t*>(p);
            l[e / 2][e % 2 * 2] = upper ? from[0] : scalar_t{};
            l[e / 2][e % 2 * 2 + 1] = lower ? from[8] : scalar_t{};
        }
    }
};

// sums += l times 32 rows of all columns, of which `at` are a lane's first
__device__ inline void add_products(scalar_t (&sums)[TILES][4], const scalar_t (&l)[4][4],
                                    const scalar_t* const (&at)[TILES], int k)
{
    #pragma unroll
    for (int s = 0; s < 4; ++s)
        #pragma unroll
        for (int c = 0; c < TILES; ++c) {
            const scalar_t y[2] = {at[c][k + 8 * s], at[c][k + 8 * s + 4]};
            tensor_product(sums[c], l[s], y);
        }
}

// inverse: 32 x 32 by columns for each block on the diagonal of a part, `part` rows of L, and so for
// the next, `apart` numbers further on. Place i of the matrix, from row `top_row` on, where L begins,
// takes what is in row order[i], if there is an order; of rows below L's only `below` move, and these
// and L's are at most 32 MOST. Columns begin at multiples of 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_wide(scalar_t* B, size lda, size ns, const scalar_t* L, size rows, const scalar_t* inverse,
           size part, size apart, const int* order, size top_row, size below)
{
    wait_for_stream();
    const int width = int(rows), all = width + int(below);
    const int ld = (all + 31) / 32 * 32 + 4, room_ld = 36;
    const size first = size(blockIdx.x) * COLUMNS;
    const int mine = int(min(size(COLUMNS), ns - first)), lane = threadIdx.x % 32;
    const int g = lane / 4, t = lane % 4, own = 16 * warp();
    scalar_t* const x = reinterpret_cast<scalar_t*>(dynamic_shared);
    scalar_t* const room = x + COLUMNS * ld;  // 32 rows that are about to be solved
    const scalar_t* at[TILES];
    #pragma unroll
    for (int c = 0; c < TILES; ++c) at[c] = x + (8 * c + g) * ld + t;
    B += first * lda;
    for (int c = warp(); c < COLUMNS; c += WARPS)
        for (int i = 4 * lane; i < ld - 4; i += 128) {
            const int there = c < mine ? min(max(all - i, 0), 4) : 0;
            copy_async<16, true>(x + c * ld + i, there ? B + c * lda + i : B,
                                 there * int(sizeof(scalar_t)));
        }
    end_group();
    int from[MOST];
    #pragma unroll
    for (int q = 0; q < MOST; ++q) {
        const int i = lane + 32 * q;
        from[q] = order && i < all ? order[top_row + i] - int(top_row) : i;
    }
    await_groups<0>();
    __syncthreads();
    for (int c = warp(); order && c < mine; c += WARPS) {
        scalar_t* const column = x + c * ld;
        scalar_t y[MOST];
        #pragma unroll
        for (int q = 0; q < MOST; ++q) if (lane + 32 * q < all) y[q] = column[from[q]];
        __syncwarp();
        #pragma unroll
        for (int q = 0; q < MOST; ++q) {
            const int i = lane + 32 * q;
            if (i < all) column[i] = y[q];
            if (i >= width && i != from[q]) B[c * lda + i] = y[q];
        }
    }
    __syncthreads();
    for (int top = 0; top < width; top += ROWS) {
        const int row = top + own;
        constexpr int BESIDE = ROWS / 32;
        scalar_t beside[BESIDE][4][4], of_block[4][4], sums[TILES][4] = {};
        Lines lines(L + row + top * lda, lda, width - row);
        #pragma unroll
        for (int s = 0; s + 1 < BESIDE; ++s)
            if (s < own / 32) lines.read(beside[s]);
        const auto read_inverse = [&](int from) {
            if (from < width)
                Lines(inverse + from / int(part) * apart + from % int(part) * 32 + own % 32, 32, 32)
                    .read(of_block);
        };
        read_inverse(top);
        lines = Lines(L + row, lda, width - row);
        scalar_t now[4][4], next[4][4];
        if (top) lines.read(now);
        for (int k = 0; k < top; k += 64) {
            if (k + 32 < top) lines.read(next);
            add_products(sums, now, at, k);
            if (k + 64 < top) lines.read(now);
            if (k + 32 < top) add_products(sums, next, at, k + 32);
        }
        #pragma unroll
        for (int s = 0; s < BESIDE; ++s) {
            const int from = top + 32 * s;
            if (from >= width) break;
            if (own / 32 == s)
                #pragma unroll
                for (int c = 0; c < TILES; ++c)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int column = 8 * c + 2 * t + e % 2, i = g + e / 2 * 8;
                        scalar_t& to = room[column * room_ld + own % 32 + i];
                        to = row + i < width ? minus_product(x[column * ld + row + i],
                                                             scalar_t(real_t(1)), sums[c][e])
                                             : scalar_t{};
                    }
            __syncthreads();
            scalar_t solved[4] = {};
            const int column = warp() / 2 * 8;
            #pragma unroll
            for (int q = 0; q < 4; ++q)
                add_product(solved, of_block[q], room + column * room_ld, room_ld, 8 * q);
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                if (const int i = from + own % 32 + g + e / 2 * 8; i < width)
                    x[(column + 2 * t + e % 2) * ld + i] = solved[e];
            if (s + 1 < BESIDE) read_inverse(from + 32);
            __syncthreads();
            if (s < own / 32) add_products(sums, beside[s], at, from);
        }
    }
    for (int c = warp(); c < mine; c += WARPS)
        #pragma unroll 8
        for (int i = lane; i < width; i += 32) B[c * lda + i] = x[c * ld + i];
}
