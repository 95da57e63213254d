// potrs_block.cu: solve with the Cholesky factors of a batch, a block to eight right-hand sides.
//
// The floor is n^2 / 2 + 2 n nrhs scalars over the memory's bandwidth: L is read once, and both
// sweeps are chains of n / 8 tiles in shared memory (cholesky_solve.cuh). A member whose `failed`
// is not zero gets X := B.
#include "cholesky_solve.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrs_block(const scalar_t* C, size c_row, size c_col, size c_next,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            const int* failed, size upper, size ns, size columns, size slabs)
{
    wait_for_stream();
    const size m = blockIdx.x / slabs, first = blockIdx.x % slabs * SIDES;
    const int n = size_of(ns, m);
    const int sides = int(min(size(SIDES), size_of(columns, m) - first));
    if (sides <= 0) return;
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    const Strided<const scalar_t> in{b.p + first * b.cs, b.rs, b.cs};
    const Strided<scalar_t> out{x.p + first * x.cs, x.rs, x.cs};
    if (failed && *array_of(failed, size(1), m)) {
        if (in.p != out.p)
            for_each(n, sides, out.cs == 1, [=](int i, int j) { out(i, j) = in(i, j); });
        return;
    }
    solve_block(matrix_of(C, c_row, c_col, c_next, m), in, out, upper, n, sides, c_next,
                reinterpret_cast<scalar_t*>(dynamic_shared));
}
