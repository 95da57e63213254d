// posv_small.cu: solve A X = B for a batch of positive definite n x n matrices, n <= N.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh) and solves with
// the factor it has in registers: the floor is 2 n^2 + 2 n nrhs scalars over the memory's
// bandwidth. An upper triangle comes with swapped strides: conj(A) conj(X) = conj(B) is solved.
// Above N = 32 the team is a warp (cholesky_large.cuh), and there is one right-hand side.
#include "cholesky.cuh"
#include "cholesky_large.cuh"
#include "launch.cuh"
#include "solve.cuh"

// The matrix of a warp and its right-hand side; returns its info.
__device__ inline int factor_and_solve(const Strided<const scalar_t>& in,
                                       const Strided<scalar_t>& out, bool in_packs, bool out_packs,
                                       const Strided<const scalar_t>& b,
                                       const Strided<scalar_t>& x, bool upper, int order)
{
    __shared__ Side all[WARPS];
    scalar_t* const side = all[threadIdx.x / 32];
    scalar_t y[(N + 31) / 32];
    #pragma unroll
    for (int q = 0; q < (N + 31) / 32; ++q) {
        const int i = lane() + 32 * q;
        const scalar_t given = i < order ? b(i, 0) : scalar_t{};
        y[q] = upper ? conj(given) : given;
    }
    const int failed = cholesky_large<true>(in, out, in_packs, out_packs, order, y, side);
    for (int i = lane(); i < order; i += 32)
        x(i, 0) = failed ? b(i, 0) : upper ? conj(side[i]) : side[i];
    return failed;
}

// The matrix of a team and its right-hand sides; returns its info. No lane leaves early if the team
// has none.
__device__ inline int factor_and_solve(const Strided<const scalar_t>& in,
                                       const Strided<scalar_t>& out, const Whole& given,
                                       Whole taken, bool in_packs, bool out_packs,
                                       const Strided<const scalar_t>& b,
                                       const Strided<scalar_t>& x, bool upper, int n, int nrhs,
                                       bool here)
{
    const int order = here ? n : 0;
    const bool both = in.p != out.p;
    const auto wanted = [=](int i, int j) { return i < order && j < order && (both || j <= i); };

    Block a;
    load(a, in, given, in_packs, wanted);
    Factors f;
    cholesky(a, f, n);
    if (here) restore(a, in, f, n);

    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = row(i);
    if (!both) taken.bytes = 0;
    taken.lower = !both;
    store(a, out, taken, out_packs, to, wanted);
    solve_positive(a, f, b, x, upper, order, n, nrhs, !f.info);
    return f.info;
}

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
    const bool in_packs = in.in_packs<CV>(n, a_next), out_packs = out.in_packs<CV>(n, c_next);
    int failed;
    if constexpr (LARGE)
        failed = factor_and_solve(in, out, in_packs, out_packs, b, x, upper, order);
    else
        failed = factor_and_solve(in, out, {A, a_row, a_col, a_next, n, n, batch},
                                  {C, c_row, c_col, c_next, n, n, batch}, in_packs, out_packs, b,
                                  x, upper, n, nrhs, here);
    if (member() == 0 && here) *array_of(info, 1, m) = failed;
}
