// potrs_lines.cu: solve with the Cholesky factors of a batch, a warp to each right-hand side of a
// matrix, the factor as it lies in memory (solve_lines.cuh).
//
// The floor is n^2 + 2 n scalars a right-hand side over the memory's bandwidth, of which half may
// come from the L2 cache; above it are 2 n steps of one number each, while other warps' factors
// come. A factor by its upper triangle comes with swapped strides and is conj(L). A member whose
// `failed` is not zero gets X := B.
#include "launch.cuh"
#include "solve_lines.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrs_lines(const scalar_t* C, size c_row, size c_col, size c_next,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            const int* failed, size upper, size ns, size columns, size parts, size members,
            size room)
{
    wait_for_stream();
    Side mine(parts, room);
    const size m = mine.member;
    if (m >= members) return;
    const int n = mine.n = size_of(ns, m), side = mine.number;
    if (side >= size_of(columns, m)) return;
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    const auto c = matrix_of(C, c_row, c_col, c_next, m);
    const Scratch s = mine.s;
    mine.each([=](int i) { s.x[i] = b(i, side); });
    if (!failed || *array_of(failed, size(1), m) == 0) {
        sweep<true>({c.p, c.rs, c.cs, upper != 0, false, true}, s, n);
        sweep<false>({c.p, c.cs, c.rs, upper == 0, false, true}, s, n);
    }
    mine.each([=](int i) { x(i, side) = s.x[i]; });
}
