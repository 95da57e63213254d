// trmm_small.cu: X = alpha L B for a batch, L lower triangular of order n <= N <= 96. Who holds
// what, and the floor: triangular_small.cuh.
#include "launch.cuh"
#include "triangular_small.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
trmm_small(const scalar_t* A, size a_row, size a_col, size a_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next, size alpha_re, size alpha_im,
           size ns, size nrhs, size conjugated, size unit, size slabs,
           size staged, size teams)
{
    wait_for_stream();
    columns_of_team<false>(A, a_row, a_col, a_next, B, b_row, b_col, b_next, X, x_row, x_col,
                           x_next, alpha_re, alpha_im, nullptr, ns, nrhs, conjugated, unit, slabs,
                           staged, teams);
}
