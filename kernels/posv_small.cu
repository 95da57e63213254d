// posv_small.cu: solve A X = B for a batch of positive definite n x n matrices, n <= N.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh) and solves with
// the factor it has in registers: the floor is 2 n^2 + 2 n nrhs scalars over the memory's
// bandwidth. An upper triangle comes with swapped strides: conj(A) conj(X) = conj(B) is solved.
#include "cholesky.cuh"
#include "launch.cuh"
#include "solve.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
posv_small(const scalar_t* A, size a_row, size a_col, size a_next,
           scalar_t* C, size c_row, size c_col, size c_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           int* info, size upper, size ns, size columns, size batch)
{
    wait_for_stream();
    const auto [m, here] = team_matrix(batch);
    const int n = size_of(ns, m), order = here ? n : 0, nrhs = size_of(columns, m);
    const auto in = matrix_of(A, a_row, a_col, a_next, m);
    const auto out = matrix_of(C, c_row, c_col, c_next, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    const bool both = in.p != out.p;
    const auto wanted = [=](int i, int j) { return i < order && j < order && (both || j <= i); };

    Block a;
    load(a, in, {A, a_row, a_col, a_next, n, n, batch}, in.in_packs<CV>(n, a_next), wanted);
    Factors f;
    cholesky(a, f, n);
    if (here) restore(a, in, f, n);

    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = row(i);
    Whole whole{C, c_row, c_col, c_next, n, n, batch};
    if (!both) whole.bytes = 0;
    store(a, out, whole, out.in_packs<CV>(n, c_next), to, wanted);
    solve_positive(a, f, b, x, upper, order, n, nrhs, !f.info);
    if (member() == 0 && here) *array_of(info, 1, m) = f.info;
}
