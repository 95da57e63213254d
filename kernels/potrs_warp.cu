// potrs_warp.cu: solve with the Cholesky factors of a batch of n x n matrices, n <= N, a warp to
// each.
//
// The factor comes to shared memory, and the right-hand sides pass by, four at a time
// (warp_solve.cuh). The floor is n^2 / 2 + 2 n nrhs scalars over the memory's bandwidth. A factor by
// its upper triangle comes with swapped strides and is that of conj(A): the right-hand sides are
// conjugated. A member whose `failed` is not zero gets X := B.
#include "launch.cuh"
#include "warp_solve.cuh"

// X := (L L^H)^-1 B for the right-hand sides from `first` on, or B itself
template <int R>
__device__ void solve(const Square& l, const Diagonal& d, const Strided<const scalar_t>& b,
                      const Strided<scalar_t>& x, bool upper, bool positive, int n, int nrhs,
                      int first)
{
    scalar_t given[R][ROWS], y[R][ROWS];
    #pragma unroll
    for (int r = 0; r < R; ++r)
        #pragma unroll
        for (int e = 0; e < ROWS; ++e) {
            given[r][e] = row(e) < n && first + r < nrhs ? b(row(e), first + r) : scalar_t{};
            y[r][e] = upper ? conj(given[r][e]) : given[r][e];
        }
    if (positive) {
        substitute<true, false, false>(l, d, n, y);
        substitute<false, false, true>(l, d, n, y);
    }
    __syncwarp();  // x may be b
    #pragma unroll
    for (int r = 0; r < R; ++r)
        #pragma unroll
        for (int e = 0; e < ROWS; ++e)
            if (row(e) < n && first + r < nrhs)
                x(row(e), first + r) = !positive ? given[r][e] : upper ? conj(y[r][e]) : y[r][e];
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrs_warp(const scalar_t* C, size c_row, size c_col, size c_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           const int* failed, size upper, size ns, size columns)
{
    wait_for_stream();
    const size m = blockIdx.x;
    const int n = size_of(ns, m), nrhs = size_of(columns, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    const bool positive = !failed || !*array_of(failed, size(1), m);
    const Square l = fetched<true>(matrix_of(C, c_row, c_col, c_next, m), n, false);
    const Diagonal d(l, n);
    if (nrhs == 1) solve<1>(l, d, b, x, upper, positive, n, nrhs, 0);
    else
        #pragma unroll 1
        for (int j = 0; j < nrhs; j += 4) solve<4>(l, d, b, x, upper, positive, n, nrhs, j);
}
