// getrs_small.cu: solve with the LU factors of a batch of n x n matrices, n <= N.
//
// A team of lanes holds the factors in registers and takes the right-hand sides LC at a time: the
// floor is n^2 + 2 n nrhs scalars over the memory's bandwidth. op(A) = A^T is solved with the
// transposed factors: the launcher swaps the strides, U^T is solved first, and the rows are
// interchanged at the end.
#include "launch.cuh"
#include "lu_columns.cuh"

#ifndef BLASX
constexpr int FACTORED = 0; // 1: getrf's infos are there, and members that have one are not solved
#endif

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
    load(a, lu, {LU, lu_row, lu_col, lu_next, n, n, batch}, lu.in_packs<CV>(n, lu_next),
         [=](int i, int j) { return i < order && j < order; });
    if (trans == 2) {
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            #pragma unroll
            for (int s = 0; s < CN; ++s) a[i][s] = conj(a[i][s]);
    }
    Factors f;
    invert_diagonal(a, f, n);
    load_pivots(f, array_of(piv, n, m), order);
    if (!FACTORED && member() == 0 && here) *array_of(info, 1, m) = 0;
    const bool singular = FACTORED && here && *array_of(info, 1, m);
    solve_columns(a, f, b, x, trans, singular ? 0 : order, n, nrhs);
    if (singular && b.p != x.p)
        for (int j = 0; j < nrhs; ++j)
            for (int i = member(); i < n; i += TEAM) x(i, j) = b(i, j);
}
