// getri_block.cu: the inverses of a batch of n x n matrices from their LU factors, a block to WIDTH
// columns of one, in `parts` blocks a matrix.
//
// The columns are the solutions for those of the identity: 2 n^3 operations. The floor is 2 n^2
// scalars over the memory's bandwidth; every block reads the factors, which the L2 cache keeps.
// A member with a zero on U's diagonal, whose first is `info`, keeps its factors.
#include "diagonal.cuh"
#include "launch.cuh"
#include "lu_solve.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getri_block(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns, size parts)
{
    wait_for_stream();
    const size m = blockIdx.x / parts;
    const int n = size_of(ns, m), first = int(blockIdx.x % parts) * WIDTH;
    const int width = n - first < WIDTH ? n - first : WIDTH;
    const auto lu = matrix_of(LU, lu_row, lu_col, lu_next, m);
    const auto x = part(matrix_of(X, x_row, x_col, x_next, m), 0, first);
    __shared__ unsigned found[WARPS];
    const int zero = first_zero(lu, n, found);
    if (thread() == 0 && first == 0) *array_of(info, 1, m) = zero;
    if (zero)
        for_each(n, width, lu.cs == 1, [=](int i, int j) { x(i, j) = lu(i, first + j); });
    else
        solve_with_lu(lu, array_of(piv, n, m), {nullptr, 0, 1}, x, n, width, first, 0);
}
