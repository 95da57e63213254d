// trsm_lines.cu: L x = alpha b for a batch, L lower triangular, a warp to each column, the triangle
// as it lies in memory (solve_lines.cuh): where there are few columns.
//
// The floor is n^2 / 2 + 2 n scalars a column over the memory's bandwidth; above it are n steps of
// one number each, while other warps' triangles come. A member whose `failed` is not zero gets
// X := B.
#include "launch.cuh"
#include "solve_lines.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
trsm_lines(const scalar_t* A, size a_row, size a_col, size a_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next, size alpha_re, size alpha_im,
           const int* failed, size ns, size columns, size conjugated, size unit, size parts,
           size members, size room)
{
    wait_for_stream();
    Side mine(parts, room);
    const size m = mine.member;
    if (m >= members) return;
    const int n = mine.n = size_of(ns, m), side = mine.number;
    if (side >= size_of(columns, m)) return;
    const auto a = matrix_of(A, a_row, a_col, a_next, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    const Scratch s = mine.s;
    const bool solved = !failed || *array_of(failed, size(1), m) == 0;
    const scalar_t alpha = number(alpha_re, alpha_im);
    mine.each([=](int i) { s.x[i] = solved ? mul(b(i, side), alpha) : b(i, side); });
    if (solved) sweep<true>({a.p, a.rs, a.cs, conjugated != 0, unit != 0, false}, s, n);
    mine.each([=](int i) { x(i, side) = s.x[i]; });
}
