// potrf_block.cu: Cholesky factorization of a batch of matrices, a block to each (32 < n <= 1024).
// They may be what is left of larger ones of which `before` columns are done, 0 or RAGGED the
// address of a number for each: members whose info says that those failed are left alone.
//
// The floor is 2 n^2 scalars over the memory's bandwidth out of place, half of that in place, and
// n^3 / 3 operations of the tensor cores (vector units in single precision):
// cholesky_block.cuh says who holds what.
constexpr bool SIDE = false;
#include "cholesky_block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrf_block(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* C, size c_row, size c_col, size c_next, int* info, size ns,
            size before)
{
    wait_for_stream();
    const size b = blockIdx.x;
    const int done = before ? size_of(before, b) : 0;
    if (done && *array_of(info, size(1), b)) return;
    const int failed = cholesky_block(matrix_of(A, a_row, a_col, a_next, b),
                                      matrix_of(C, c_row, c_col, c_next, b), size_of(ns, b), a_next,
                                      c_next, reinterpret_cast<scalar_t*>(dynamic_shared));
    if (thread() == 0) *array_of(info, size(1), b) = failed ? done + failed : 0;
}
