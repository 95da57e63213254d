// solve_up.cuh: a triangular solve from the last row up, by a warp, of one right-hand side.
//
// Lane l has the numbers l, l + 32, ... of x. A step is one number of the solution, which goes to
// all lanes, and a multiple of which they take off theirs: what they take it times comes from
// shared memory, eight steps' at once, before the first of these waits for its number.
#pragma once
#include "shuffle.cuh"

// x := U^-1 x of order n. under(x, q): x over the diagonal's number in row l + 32 q; at(K, r, q):
// the number of that row in column K + r, K a multiple of 8.
template <int R, class Under, class At>
__device__ void solve_up(scalar_t (&x)[R], int n, Under under, At at)
{
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int q = R - 1; q >= 0; --q) {
        const auto take = [&](int K, int r) {
            const int p = K + r - 32 * q;
            const scalar_t y = of_lane(under(x[q], q), p);
            #pragma unroll
            for (int e = 0; e <= q; ++e)
                if (e < q || lane < p) x[e] = minus_product(x[e], at(K, r, e), y);
        };
        int k = (n < 32 * (q + 1) ? n : 32 * (q + 1)) - 1;
        if (k < 32 * q) continue;
        #pragma unroll 1
        for (; (k & 7) != 7; --k) take(k & ~7, k & 7);
        #pragma unroll 1
        for (int K = k - 7; K >= 32 * q; K -= 8)
            #pragma unroll
            for (int r = 7; r >= 0; --r) take(K, r);
        x[q] = under(x[q], q);
    }
}
