// sums.cuh: sums over the lanes of a warp.
#pragma once
#include "shuffle.cuh"

__device__ inline int lane() { return threadIdx.x % 32; }

// Sums of N numbers over the lanes that differ in BITS bits from FIRST on. A lane keeps every
// 2^BITS-th, from the one on that its bits spell; where there are fewer, some lanes have the same.
template <int FIRST, int BITS, int N> __device__ void sum_over(scalar_t (&t)[N])
{
    int left = N;
    #pragma unroll
    for (int b = 0; b < BITS; ++b) {
        const int mask = 1 << (FIRST + b);
        const bool odd = lane() & mask;
        if (left > 1) {
            #pragma unroll
            for (int i = 0; i < N / 2; ++i) {
                if (2 * i >= left) continue;
                const scalar_t keep = odd ? t[2 * i + 1] : t[2 * i];
                const scalar_t give = odd ? t[2 * i] : t[2 * i + 1];
                t[i] = add(keep, across(give, mask));
            }
            left /= 2;
        } else t[0] = add(t[0], across(t[0], mask));
    }
}
