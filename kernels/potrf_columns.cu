// potrf_columns.cu: Cholesky factorization of a batch of matrices, a block to each, the lower
// triangle in its registers (cholesky_columns.cuh).
//
// The floor is 2 n^2 scalars over the memory's bandwidth out of place, half of that in place, and
// n^3 / 3 operations.
constexpr bool SIDE = false;
#include "cholesky_columns.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrf_columns(const scalar_t* A, size a_row, size a_col, size a_next,
              scalar_t* C, size c_row, size c_col, size c_next, int* info, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    if (thread() < 2) s.info[thread()] = 0;
    Columns a;
    {
        const size b = block();
        const int n = size_of(ns, b);
        const auto in = matrix_of(A, a_row, a_col, a_next, b);
        const auto out = matrix_of(C, c_row, c_col, c_next, b);
        fetch(a, in, a_next, out, c_next, n);
    }
    __syncthreads();
    factor_from<0>(a, s);

    const size b = block();
    const int n = size_of(ns, b);
    const auto in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(C, c_row, c_col, c_next, b);
    const int found = put_back(a, s, in, a_next, out, c_next, n);
    if (thread() == 0) *array_of(info, size(1), b) = found;
}
