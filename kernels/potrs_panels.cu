// potrs_panels.cu: solve with the Cholesky factors of a batch, a block to WIDTH right-hand sides of
// a matrix, `parts` blocks to each: where L does not fit a block (potrs_block.cu).
//
// L passes by twice in panels, as LU factors do (lu_solve.cuh), once for either sweep: the floor is
// n^2 / 2 + 2 n nrhs scalars over the memory's bandwidth, the second time from the L2 cache. A
// factor by its upper triangle comes with swapped strides and is conj(L). A member whose `failed`
// is not zero gets X := B.
#include "launch.cuh"
#include "lu_solve.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrs_panels(const scalar_t* C, size c_row, size c_col, size c_next,
             const scalar_t* B, size b_row, size b_col, size b_next,
             scalar_t* X, size x_row, size x_col, size x_next,
             const int* failed, size upper, size ns, size columns, size parts)
{
    wait_for_stream();
    const size m = blockIdx.x / parts;
    const int n = size_of(ns, m), nrhs = size_of(columns, m);
    const int first = int(blockIdx.x % parts) * WIDTH;
    const int width = nrhs - first < WIDTH ? nrhs - first : WIDTH;
    const auto l = matrix_of(C, c_row, c_col, c_next, m);
    const Strided<const scalar_t> l_transposed{l.p, l.cs, l.rs};
    const auto b = part(matrix_of(B, b_row, b_col, b_next, m), 0, first);
    const auto x = part(matrix_of(X, x_row, x_col, x_next, m), 0, first);
    const ByRows<scalar_t> y{reinterpret_cast<scalar_t*>(dynamic_shared), leading(WIDTH)};
    const ByRows<scalar_t> t{y.p + n * y.ld, leading(NB)};
    for_each(n, width, b.cs == 1, [=](int i, int j) { y(i, j) = b(i, j); });
    if (!failed || !*array_of(failed, size(1), m)) {
        solve_lower(l, t, y, n, width, false, upper);
        solve_upper(l_transposed, t, y, n, width, false, !upper);
    } else {
        __syncthreads();
    }
    for_each(n, width, x.cs == 1, [=](int i, int j) { x(i, j) = y(i, j); });
}
