// getrf_below.cu: X U = B for the rows below a window of a large matrix, U that of its factored panel.
//
// A block has COLUMNS rows of X, as columns of X^T, in shared memory and solves U^T X^T = B^T, a lower
// triangle, with the inverses of U^T's diagonal blocks (getrf_top.cu, panel_solve.cuh).
//
// The floor: B read and X written once; U comes from the L2 cache. width^2 operations a row.
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 16, BLOCKS = 2;
#endif
#include "panel_solve.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_below(scalar_t* B, size ldb, size m, const scalar_t* U, size lda, size ns,
            const scalar_t* inverse)
{
    wait_for_stream();
    const int width = int(ns), ld = (width + 31) / 32 * 32 + 4;
    const size first = size(blockIdx.x) * COLUMNS;
    const int mine = int(min(size(COLUMNS), m - first));
    scalar_t* const x = reinterpret_cast<scalar_t*>(dynamic_shared);
    B += first;
    const int row = thread() % COLUMNS;  // whose numbers this thread moves
    constexpr int APART = THREADS / COLUMNS, TURN = 8;
    for (int k = thread() / COLUMNS; k < ld - 4; k += TURN * APART) {
        scalar_t y[TURN];
        #pragma unroll
        for (int q = 0; q < TURN; ++q) {
            const int c = k + q * APART;
            y[q] = row < mine && c < width ? B[row + c * ldb] : scalar_t{};
        }
        #pragma unroll
        for (int q = 0; q < TURN; ++q)
            if (k + q * APART < ld - 4) x[row * ld + k + q * APART] = y[q];
    }
    __syncthreads();
    solve_by_tiles(x, ld, width, {U, lda, 1}, inverse);
    if (row < mine)
        for (int k = thread() / COLUMNS; k < width; k += APART) B[row + k * ldb] = x[row * ld + k];
}
