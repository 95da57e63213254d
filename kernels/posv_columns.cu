// posv_columns.cu: solve A x = b for a batch of positive definite matrices, a block to each, the
// lower triangle in its registers.
//
// b goes down a column behind the factorization, and up from column to column, L in the registers
// where it was found (cholesky_columns.cuh), while the stores of L are on their way. The floor is
// 2 n^2 + 2 n scalars over the memory's bandwidth out of place, n^2 less in place, and n^3 / 3
// operations. An upper triangle comes with swapped strides: conj(A) conj(x) = conj(b) is solved. A
// member that fails gets x := b.
constexpr bool SIDE = true;
#include "cholesky_columns.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
posv_columns(const scalar_t* A, size a_row, size a_col, size a_next,
             scalar_t* C, size c_row, size c_col, size c_next,
             const scalar_t* B, size b_row, size b_col, size b_next,
             scalar_t* X, size x_row, size x_col, size x_next,
             int* info, size upper, size ns, size columns)
{
    wait_for_stream();
    __shared__ Shared s;
    __shared__ Side side;
    if (thread() < 2) s.info[thread()] = 0;
    Columns a;
    {
        const size m = block();
        const int n = size_of(ns, m);
        const auto b = matrix_of(B, b_row, b_col, b_next, m);
        fetch(a, matrix_of(A, a_row, a_col, a_next, m), a_next,
              matrix_of(C, c_row, c_col, c_next, m), c_next, n);
        for (int i = thread(); i < N; i += THREADS) {
            const scalar_t given = i < n ? b(i, 0) : scalar_t{};
            side.x[i] = upper ? conj(given) : given;
        }
    }
    __syncthreads();
    factor_from<0>(a, s, &side);

    {
        const size m = block();
        put_back(a, s, matrix_of(A, a_row, a_col, a_next, m), a_next,
                 matrix_of(C, c_row, c_col, c_next, m), c_next, size_of(ns, m));
    }
    const int failed = s.info[0] + s.info[1];
    if (!failed) solve_for_side(a, s, side);

    const size m = block();
    const int n = size_of(ns, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    for (int i = thread(); i < n; i += THREADS)
        x(i, 0) = failed ? b(i, 0) : upper ? conj(side.x[i]) : side.x[i];
    if (thread() == 0) *array_of(info, size(1), m) = failed;
}
