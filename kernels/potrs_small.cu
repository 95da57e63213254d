// potrs_small.cu: solve with the Cholesky factors of a batch of n x n matrices, n <= N.
//
// A team of lanes holds the factor in registers and takes the right-hand sides LC at a time: the
// floor is n^2 / 2 + 2 n nrhs scalars over the memory's bandwidth. A factor by its upper triangle
// comes with swapped strides and is that of conj(A): the right-hand sides are conjugated.
#include "cholesky.cuh"
#include "launch.cuh"
#include "solve.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
potrs_small(const scalar_t* C, size c_row, size c_col, size c_next,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            int* info, size upper, size ns, size columns, size batch)
{
    wait_for_stream();
    const auto [m, here] = team_matrix(batch);
    const int n = size_of(ns, m), order = here ? n : 0, nrhs = size_of(columns, m);
    const auto c = matrix_of(C, c_row, c_col, c_next, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);

    Block a;
    load(a, c, {C, c_row, c_col, c_next, n, n, batch}, c.in_packs<CV>(n, c_next),
         [=](int i, int j) { return i < order && j <= i; });
    Factors f;
    invert_diagonal(a, f, n);
    solve_positive(a, f, b, x, upper, order, n, nrhs, true);
    if (member() == 0 && here) *array_of(info, 1, m) = 0;
}
