// getrf_rows.cu: columns beside a factored panel of a large matrix, some to the left of it and some to
// the right: their rows are interchanged and, to the right, those of U are solved with the panel's L.
//
// A block has COLUMNS columns and takes their rows of U to shared memory, from wherever the
// interchanges say; the rows that they drive out go there. U is solved with inverses that getrf_top.cu
// has made (panel_solve.cuh).
//
// The floor: a row of a column that moves is a sector of 32 bytes read and one written, each way; L
// comes from the L2 cache. width^2 operations a column.
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 16, BLOCKS = 2;
#endif
#include "panel_solve.cuh"

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
    if (solved) solve_by_tiles(u, ld, width, {L, 1, lda}, inverse);
    for (int i = thread(); i < width; i += THREADS) move_row(A + i, lda, u + i, ld, mine, mine);
}
