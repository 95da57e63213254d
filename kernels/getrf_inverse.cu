// getrf_inverse.cu: the inverses of L and of U^T of a factored block of a large matrix, two lower
// triangles, so that what is beside and below the block is solved for by products.
//
// A block has COLUMNS columns of one of them in shared memory, at first of the identity, and solves for
// them from their diagonal down (panel_solve.cuh), with the inverses of small blocks on the diagonal
// (getrf_top.cu). The first columns are the longest way: n / 32 steps, which wait for each other, with
// n^2 / 2 numbers of the triangle read from the L2 cache.
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 16, BLOCKS = 2;
#endif
#include "panel_solve.cuh"

// X: both, n x n by rows, zeros included
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_inverse(const scalar_t* A, size lda, size ns, const scalar_t* of_l, const scalar_t* of_u,
              scalar_t* X)
{
    wait_for_stream();
    const int n = int(ns), rounded = (n + 31) / 32 * 32, ld = rounded + 4;
    const int each = (n + COLUMNS - 1) / COLUMNS, of = int(blockIdx.x);
    const bool upper = of >= each;
    const int first = (upper ? of - each : of) * COLUMNS;
    scalar_t* const x = reinterpret_cast<scalar_t*>(dynamic_shared);
    for (int e = thread(); e < COLUMNS * ld; e += THREADS)
        x[e] = scalar_t(real_t(e % ld == first + e / ld));
    __syncthreads();
    if (upper) solve_by_tiles(x, ld, n, {A, lda, 1}, of_u, first / 32 * 32);
    else solve_by_tiles(x, ld, n, {A, 1, lda}, of_l, first / 32 * 32);
    if (upper) X += ns * ns;
    for (int e = thread(); e < COLUMNS * n; e += THREADS) {
        const int i = e / COLUMNS, c = e % COLUMNS;
        if (first + c < n) X[i * ns + first + c] = x[c * ld + i];
    }
}
