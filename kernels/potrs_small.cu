// potrs_small.cu: solve with the Cholesky factors of a batch of n x n matrices, n <= N.
//
// A team of lanes holds the factor in registers and takes the right-hand sides LC at a time: the
// floor is n^2 / 2 + 2 n nrhs scalars over the memory's bandwidth. A factor by its upper triangle
// comes with swapped strides and is that of conj(A): the right-hand sides are conjugated.
#include "cholesky.cuh"
#include "solve.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
potrs_small(const scalar_t* C, size c_row, size c_col, size c_next,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            int* info, size upper, size n, size nrhs, size batch)
{
    const size m = team_matrix();
    const int order = m < batch ? n : 0;
    const Strided<const scalar_t> c{C + m * c_next, c_row, c_col};
    const Strided<const scalar_t> b{B + m * b_next, b_row, b_col};
    const Strided<scalar_t> x{X + m * x_next, x_row, x_col};

    Block a;
    load(a, c, c.in_packs<CV>(n, c_next), [=](int i, int j) { return i < order && j <= i; });
    Factors f;
    invert_diagonal(a, f, n);
    solve_positive(a, f, b, x, upper, order, n, nrhs, true);
    if (member() == 0 && m < batch) info[m] = 0;
}
