// posv_small.cu: solve A X = B for a batch of positive definite n x n matrices, n <= N.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh) and solves with
// the factor it has in registers: the floor is 2 n^2 + 2 n nrhs scalars over the memory's
// bandwidth. An upper triangle comes with swapped strides: conj(A) conj(X) = conj(B) is solved.
#include "cholesky.cuh"
#include "solve.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
posv_small(const scalar_t* A, size a_row, size a_col, size a_next,
           scalar_t* C, size c_row, size c_col, size c_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           int* info, size upper, size n, size nrhs, size batch)
{
    const size m = team_matrix();
    const int order = m < batch ? n : 0;
    const bool both = A != C;
    const Strided<const scalar_t> in{A + m * a_next, a_row, a_col};
    const Strided<scalar_t> out{C + m * c_next, c_row, c_col};
    const Strided<const scalar_t> b{B + m * b_next, b_row, b_col};
    const Strided<scalar_t> x{X + m * x_next, x_row, x_col};
    const auto wanted = [=](int i, int j) { return i < order && j < order && (both || j <= i); };

    Block a;
    load(a, in, in.in_packs<CV>(n, a_next), wanted);
    Factors f;
    cholesky(a, f, n);
    if (m < batch) restore(a, in, f, n);

    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = row(i);
    store(a, out, out.in_packs<CV>(n, c_next), to, wanted);
    solve_positive(a, f, b, x, upper, order, n, nrhs, !f.info);
    if (member() == 0 && m < batch) info[m] = f.info;
}
