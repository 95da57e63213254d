// getrf_inverse.cu: the inverses of L and of U^T of a factored block of a large matrix, two lower
// triangles, or of some triangles on the diagonals of these, so that what is beside and below the block
// is solved for by products.
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

// X: both, by rows `ldx` apart, so many rows and columns of zeros; of triangles of order `most` on their
// diagonals inverses are written, zeros included
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_inverse(const scalar_t* A, size lda, size ns, size most, const scalar_t* of_l,
              const scalar_t* of_u, scalar_t* X, size ldx)
{
    wait_for_stream();
    const int each = int((most + COLUMNS - 1) / COLUMNS), all = each * int((ns + most - 1) / most);
    const bool upper = int(blockIdx.x) >= all;
    const int of = int(blockIdx.x) - all * upper, first = of % each * COLUMNS;
    const size place = of / each * most;
    const int n = int(min(most, ns - place)), ld = (n + 31) / 32 * 32 + 4;
    if (first >= n) return;
    scalar_t* const x = reinterpret_cast<scalar_t*>(dynamic_shared);
    for (int e = thread(); e < COLUMNS * ld; e += THREADS)
        x[e] = scalar_t(real_t(e % ld == first + e / ld));
    __syncthreads();
    A += place * (lda + 1);
    if (upper) solve_by_tiles(x, ld, n, {A, lda, 1}, of_u + place * 32, first / 32 * 32);
    else solve_by_tiles(x, ld, n, {A, 1, lda}, of_l + place * 32, first / 32 * 32);
    X += upper * ldx * ldx + place * (ldx + 1);
    for (int e = thread(); e < COLUMNS * n; e += THREADS) {
        const int i = e / COLUMNS, c = first + e % COLUMNS;
        if (c < n) X[i * ldx + c] = x[(c - first) * ld + i];
    }
}
