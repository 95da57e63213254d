// hetrs_rows.cu: from LAPACK's factors of P A P^T = L D L^H, in which L(:, j) has rows as the j-th
// step left them, to L with all rows where they are in the end, strictly below the diagonal, and
// the rows of A they were.
//
// A thread follows one row back: after the step of column j it is where it was before the steps to
// its right, so that it reads L(:, j) there, and then goes through the interchange of that step.
// Blocks of order 2 are pairs of negative ipiv, from either end of a run of them. An upper triangle
// is a lower one whose rows and columns are counted from the other end: strides are turned round.
// Whatever stands in ipiv, nothing outside the matrix is read.
//
// Floor: half of n^2 numbers there, by sectors of 32 bytes where rows have moved, and back.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 2;
#endif
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
hetrs_rows(const scalar_t* A, size rs, size cs, size n, const int* ipiv, scalar_t* L, size ls,
           size* rows)
{
    wait_for_stream();
    const int i = int(blockIdx.x) * THREADS + thread(), last = int(min(size(i | 31), n - 1));
    int p = i, after = 0;
    while (last + 1 + after < n && ipiv[(last + 1 + after) * rs] < 0) ++after;
    int c = last;
    if (after % 2) ++c;  // the first of a pair: begin at its second
    const auto copy = [&](int c, int from) {
        if (c < i && i < n) L[i * rs + c * ls] = from < 0 ? scalar_t{} : A[from * rs + c * cs];
    };
    #pragma unroll 4
    while (c >= 0) {
        const size to = ipiv[c * rs], row = to < 0 ? -to : to, there = rs < 0 ? n - row : row - 1;
        const int kp = int(max(size(0), min(there, n - 1)));
        copy(c, p);
        if (to < 0 && c > 0) copy(c - 1, c == i ? -1 : p);
        if (c <= i) p = p == c ? kp : p == kp ? c : p;
        c -= to < 0 ? 2 : 1;
    }
    if (i < n) rows[i * rs] = rs < 0 ? n - 1 - p : p;
}
