// posv_block.cu: solve A x = b for a batch of positive definite matrices, a block to each, n > 32.
//
// The matrix is in shared memory from the first load to the last store, and b goes down with its
// panels (cholesky_block.cuh). The way up is one warp's, while other blocks factor. The floor is
// 2 n^2 + 2 n scalars over the memory's bandwidth out of place, n^2 less in place, and n^3 / 3
// operations. An upper triangle comes with swapped strides: conj(A) conj(x) = conj(b) is solved. A
// member that fails gets x := b.
constexpr bool SIDE = true;
#include "cholesky_block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
posv_block(const scalar_t* A, size a_row, size a_col, size a_next,
           scalar_t* C, size c_row, size c_col, size c_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           int* info, size upper, size ns, size columns)
{
    wait_for_stream();
    const size m = blockIdx.x;
    const int n = size_of(ns, m), rows = (n + 7) / 8;
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    scalar_t* const room = reinterpret_cast<scalar_t*>(dynamic_shared);
    scalar_t* const side = room + 32 * rows * (rows + 1);
    for (int i = thread(); i < 8 * rows; i += THREADS) {
        const scalar_t given = i < n ? b(i, 0) : scalar_t{};
        side[i] = upper ? conj(given) : given;
    }
    const int failed = cholesky_block(matrix_of(A, a_row, a_col, a_next, m),
                                      matrix_of(C, c_row, c_col, c_next, m), n, a_next, c_next,
                                      room, side);
    if (thread() == 0) *array_of(info, size(1), m) = failed;
    if (warp() > 0) return;
    scalar_t y[DOWN];
    if (!failed) solve_for_side(y, room, side, n);
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        const int i = lane() + 32 * q;
        if (i < n) x(i, 0) = failed ? b(i, 0) : upper ? conj(y[q]) : y[q];
    }
}
