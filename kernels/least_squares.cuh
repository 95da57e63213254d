// least_squares.cuh: what gels says of a member's R and how it scales b, by a warp.
#pragma once
#include "reciprocals.cuh"
#include "shifted.cuh"
#include "shuffle.cuh"

// What takes right-hand sides, `most` being the lane's largest number of them, to within SMALL and
// LARGE
__device__ inline Power to_usual(real_t most)
{
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) most = larger(most, across(most, mask));
    return is_usual(most) ? Power{1, 1} : to_one(most);
}

template <int ROWS> struct Rank {
    int zero;                    // the first zero on R's diagonal; n if there is none
    bool none;                   // R is zero altogether
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
    #pragma unroll
    for (int q = ROWS - 1; q >= 0; --q) {
        const int i = lane + 32 * q;
        d[q] = i < n ? r(i, i) : scalar_t{1};
        if (abs1(d[q]) == 0) zero = i;
    }
    zero = int(__reduce_min_sync(ALL, unsigned(zero)));
    bool any = zero > 0;
    if (!any)
        for (int j = 0; j < n; ++j)
            for (int i = lane; i <= j; i += 32) any |= abs1(r(i, j)) != 0;
    any = __any_sync(ALL, any);
    return {zero, !any, Reciprocals<ROWS>([&](int q) { return d[q]; })};
}
