// least_squares.cuh: what gels says of a member's R and how it scales b, by a warp.
#pragma once
#include "reciprocals.cuh"
#include "shifted.cuh"
#include "shuffle.cuh"

// The exponent of what takes right-hand sides near 1, `most` being the lane's largest number of
// them; 0 where they are within SMALL and LARGE
__device__ inline int to_usual(real_t most)
{
    most = most_of_lanes(most);
    return is_usual(most) ? 0 : exponent(to_one(most));
}

template <int ROWS> struct Rank {
    int zero;                    // the first zero on R's diagonal; n if there is none
    bool none;                   // R is zero altogether
    int half;                    // of the exponent of R's diagonal
    Reciprocals<ROWS> diagonal;  // of the lane's numbers of it, 32 apart

    __device__ bool lost(int n) const { return zero < n; }
    // As LAPACK has it
    __device__ int info(int n) const { return zero == n || none ? 0 : zero + 1; }
};

// Of R of order n, element (i, j) of which is r(i, j)
template <int ROWS, class R> __device__ Rank<ROWS> rank_of(int n, R r)
{
    const int lane = threadIdx.x % 32;
    scalar_t d[ROWS];
    int zero = n;
    real_t most = 0;
    #pragma unroll
    for (int q = ROWS - 1; q >= 0; --q) {
        const int i = lane + 32 * q;
        d[q] = i < n ? r(i, i) : scalar_t{1};
        if (abs1(d[q]) == 0) zero = i;
        if (i < n) most = larger(most, d[q]);
    }
    most = most_of_lanes(most);
    const int half = most > 0 && !isinf(most) ? ilogb(most) / 2 : 0;
    zero = int(__reduce_min_sync(ALL, unsigned(zero)));
    bool any = zero > 0;
    if (!any)
        for (int j = 0; j < n; ++j)
            for (int i = lane; i <= j; i += 32) any |= abs1(r(i, j)) != 0;
    any = __any_sync(ALL, any);
    return {zero, !any, half, Reciprocals<ROWS>([&](int q) { return d[q]; })};
}
