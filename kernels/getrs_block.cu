// getrs_block.cu: solve with the LU factors of a batch of n x n matrices, a block to WIDTH
// right-hand sides of one, `parts` blocks to a matrix.
//
// The floor is n^2 + 2 n nrhs scalars over the memory's bandwidth; what is above it is the wait for
// one panel after the other (lu_solve.cuh). Members whose `kept` is not zero leave b as it is.
#include "launch.cuh"
#include "lu_solve.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrs_block(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            int* info, const int* kept, size trans, size ns, size columns, size parts)
{
    wait_for_stream();
    const size m = blockIdx.x / parts;
    const int n = size_of(ns, m), nrhs = size_of(columns, m);
    const int first = int(blockIdx.x % parts) * WIDTH;
    const int width = nrhs - first < WIDTH ? nrhs - first : WIDTH;
    const auto lu = matrix_of(LU, lu_row, lu_col, lu_next, m);
    const auto b = part(matrix_of(B, b_row, b_col, b_next, m), 0, first);
    const auto x = part(matrix_of(X, x_row, x_col, x_next, m), 0, first);
    if (!kept && thread() == 0 && first == 0) *array_of(info, 1, m) = 0;
    if (!kept || !*array_of(kept, 1, m))
        solve_with_lu(lu, array_of(piv, n, m), b, x, n, width, trans);
    else if (b.p != x.p)
        for_each(n, width, b.cs == 1, [=](int i, int j) { x(i, j) = b(i, j); });
}
