// getrs_lines.cu: solve with the LU factors of a batch, a warp to each right-hand side of a matrix,
// the factors as they lie in memory (solve_lines.cuh).
//
// The floor is n^2 + 2 n scalars a right-hand side over the memory's bandwidth; above it are 2 n
// steps of one number each, while other warps' factors come. op(A) = A^T is solved with the
// transposed factors: the launcher swaps the strides, U^T is solved first, and the rows are
// interchanged at the end. Members whose `failed` is not zero get X := B.
#include "launch.cuh"
#include "solve_lines.cuh"

// Interchange rows of x as piv says, from the first pivot on, or BACK. Pivots that are none must not
// reach past x.
template <bool BACK> __device__ void interchange(scalar_t* x, const int* piv, int n)
{
    const int chunks = (n + 31) / 32;
    for (int turn = 0; turn < chunks; ++turn) {
        const int k = 32 * (BACK ? chunks - 1 - turn : turn), some = min(32, n - k);
        const int pivots = lane() < some ? piv[k + lane()] : 0;
        for (int e = 0; e < some; ++e) {
            const int i = BACK ? some - 1 - e : e, p = of_lane(pivots, i);
            if (lane() > 0 || p < 0 || p >= n) continue;
            const scalar_t y = x[k + i];
            x[k + i] = x[p], x[p] = y;
        }
    }
    __syncwarp();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrs_lines(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            int* info, const int* failed, size trans, size ns, size columns, size parts,
            size members, size room)
{
    wait_for_stream();
    Side mine(parts, room);
    const size m = mine.member;
    if (m >= members) return;
    const int n = mine.n = size_of(ns, m), side = mine.number;
    if (lane() == 0 && side == 0 && !failed) *array_of(info, size(1), m) = 0;
    if (side >= size_of(columns, m)) return;
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);
    const auto lu = matrix_of(LU, lu_row, lu_col, lu_next, m);
    const Scratch s = mine.s;
    const bool solved = !failed || *array_of(failed, size(1), m) == 0;
    mine.each([=](int i) { s.x[i] = b(i, side); });
    if (solved) {
        const int* const pivots = array_of(piv, n, m);
        Triangle t{lu.p, lu.rs, lu.cs, trans == 2, trans == 0, false};
        if (!trans) interchange<false>(s.x, pivots, n);
        sweep<true>(t, s, n);
        t.unit = trans != 0;
        sweep<false>(t, s, n);
        if (trans) interchange<true>(s.x, pivots, n);
    }
    mine.each([=](int i) { x(i, side) = s.x[i]; });
}
