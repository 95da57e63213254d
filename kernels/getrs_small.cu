// getrs_small.cu: solve with the LU factors of a batch of n x n matrices, n <= N.
//
// A team of lanes holds the factors in registers and takes the right-hand sides LC at a time: the
// floor is n^2 + 2 n nrhs scalars over the memory's bandwidth. op(A) = A^T is solved with the
// transposed factors: the launcher swaps the strides, U^T is solved first, and the rows are
// interchanged at the end.
#include "launch.cuh"
#include "solve.cuh"

// The row of b that the interchanges bring to row(i), found backwards from there
__device__ inline int origin(int at, const int (&piv)[KEEP], int n)
{
    const int i = at, steps = steps_of_warp(n);
    #pragma unroll
    for (int k = N - 1; k >= 0; --k)
        if (k < steps) {
            const int p = kept(piv, k);
            at = at == k ? p : at == p ? k : at;
        }
    return at >= 0 && at < n ? at : i;  // pivots that are none must not reach past b
}

// R right-hand sides, from the first-th on, with factors in tiles; row `at` of b is the lane's.
template <int R>
__device__ void solve_rows(const Scratch& s, int at, const Factors& f,
                           const Strided<const scalar_t>& b, const Strided<scalar_t>& x,
                           bool trans, int order, int n, int nrhs, int first)
{
    scalar_t y[R];
    #pragma unroll
    for (int q = 0; q < R; ++q)
        y[q] = lane() < order && first + q < nrhs ? b(trans ? lane() : at, first + q) : scalar_t{};
    substitute_by_rows<true, false>(s, lane(), f, y, n, !trans);
    substitute_by_rows<false, false>(s, lane(), f, y, n, trans);
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (lane() < order && first + q < nrhs) x(trans ? at : lane(), first + q) = y[q];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
getrs_small(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            int* info, size trans, size ns, size columns, size batch)
{
    wait_for_stream();
    const auto [m, here] = team_matrix(batch);
    const int n = size_of(ns, m), order = here ? n : 0, nrhs = size_of(columns, m);
    const auto lu = matrix_of(LU, lu_row, lu_col, lu_next, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);

    Block a;
    load(a, lu, lu.in_packs<CV>(n, lu_next), [=](int i, int j) { return i < order && j < order; });
    if (trans == 2) {
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            #pragma unroll
            for (int s = 0; s < CN; ++s) a[i][s] = conj(a[i][s]);
    }
    Tags tag;
    Factors f;
    in_order(tag);
    invert_diagonal(a, f, n);

    #pragma unroll
    for (int q = 0; q < KEEP; ++q) {
        const int k = member() + TEAM * q;
        f.piv[q] = k < order ? array_of(piv, n, m)[k] : k;
    }
    if (member() == 0 && here) *array_of(info, 1, m) = 0;

    if constexpr (TILES) {
        const int at = origin(lane(), f.piv, n);
        const Scratch& s = scratch();
        to_rows(a, scratch());
        if (nrhs == 1) solve_rows<1>(s, at, f, b, x, trans, order, n, nrhs, 0);
        else
            #pragma unroll 1
            for (int j = 0; j < nrhs; j += 4)
                solve_rows<4>(s, at, f, b, x, trans, order, n, nrhs, j);
        return;
    }
    int at[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) at[i] = origin(row(i), f.piv, n);

    const int most = steps_of_warp(nrhs);
    #pragma unroll 1
    for (int first = 0; first < most; first += LC) {
        const int j = first + t();
        Column y;
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            y[i] = row(i) < order && j < nrhs ? b(trans ? row(i) : at[i], j) : scalar_t{};
        substitute<true, false>(a, tag, f, y, n, !trans);
        substitute<false, false>(a, tag, f, y, n, trans);
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            if (row(i) < order && j < nrhs) x(trans ? at[i] : row(i), j) = y[i];
    }
}
