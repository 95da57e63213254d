// getrs_warp.cu: solve with the LU factors of a batch of n x n matrices, n <= N, a warp to each.
//
// The factors come to shared memory, and the right-hand sides pass by, four at a time
// (warp_solve.cuh). The floor is n^2 + 2 n nrhs scalars over the memory's bandwidth. op(A) = A^T is
// solved with the transposed factors: the launcher swaps the strides, U^T is solved first, and the
// rows are interchanged at the end.
#include "launch.cuh"
#include "warp_solve.cuh"

// The rows of b that the interchanges bring to the lane's own, found backwards from there
__device__ inline void origins(int (&at)[ROWS], const int* piv, int n)
{
    int own[ROWS];
    #pragma unroll
    for (int e = 0; e < ROWS; ++e) at[e] = row(e), own[e] = row(e) < n ? piv[row(e)] : 0;
    #pragma unroll
    for (int e = ROWS - 1; e >= 0; --e)
        #pragma unroll 4
        for (int s = (n - 32 * e < 32 ? n - 32 * e : 32) - 1; s >= 0; --s) {
            const int k = 32 * e + s, p = of_lane(own[e], s);
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) at[i] = at[i] == k ? p : at[i] == p ? k : at[i];
        }
    #pragma unroll
    for (int e = 0; e < ROWS; ++e)  // pivots that are none must not reach past b
        if (at[e] < 0 || at[e] >= n) at[e] = row(e);
}

// X := op(A)^-1 B for the right-hand sides from `first` on; row `at` of b is brought to the lane's.
template <int R>
__device__ void solve(const Square& lu, const Diagonal& d, const int (&at)[ROWS],
                      const Strided<const scalar_t>& b, const Strided<scalar_t>& x, bool trans,
                      int n, int nrhs, int first)
{
    scalar_t y[R][ROWS];
    #pragma unroll
    for (int r = 0; r < R; ++r)
        #pragma unroll
        for (int e = 0; e < ROWS; ++e)
            y[r][e] = row(e) < n && first + r < nrhs ? b(trans ? row(e) : at[e], first + r)
                                                     : scalar_t{};
    if (trans) {
        substitute<true, false, false>(lu, d, n, y);
        substitute<false, true, false>(lu, d, n, y);
    } else {
        substitute<true, true, false>(lu, d, n, y);
        substitute<false, false, false>(lu, d, n, y);
    }
    __syncwarp();  // x may be b
    #pragma unroll
    for (int r = 0; r < R; ++r)
        #pragma unroll
        for (int e = 0; e < ROWS; ++e)
            if (row(e) < n && first + r < nrhs) x(trans ? at[e] : row(e), first + r) = y[r][e];
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrs_warp(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           int* info, size trans, size ns, size columns)
{
    wait_for_stream();
    const size m = blockIdx.x;
    const int n = size_of(ns, m), nrhs = size_of(columns, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    if (lane() == 0) *array_of(info, 1, m) = 0;
    int at[ROWS];
    origins(at, array_of(piv, n, m), n);
    const Square lu = fetched<false>(matrix_of(LU, lu_row, lu_col, lu_next, m), n, trans == 2);
    const Diagonal d(lu, n);
    if (nrhs == 1) solve<1>(lu, d, at, b, x, trans, n, nrhs, 0);
    else
        #pragma unroll 1
        for (int j = 0; j < nrhs; j += 4) solve<4>(lu, d, at, b, x, trans, n, nrhs, j);
}
