// reciprocals.cuh: the reciprocals of K numbers, a diagonal's, lifted first where they would overflow.
#pragma once
#include "reciprocal.cuh"

template <int K> struct Reciprocals {
    scalar_t inverse[K];
    real_t lift[K];

    template <class F> __device__ explicit Reciprocals(F number)
    {
        #pragma unroll
        for (int e = 0; e < K; ++e) {
            const scalar_t d = number(e);
            lift[e] = abs1(d) < TINY ? LIFT : real_t(1);
            inverse[e] = reciprocal(mul(d, lift[e]));
        }
    }
    __device__ scalar_t under(scalar_t x, int e) const { return mul(mul(x, lift[e]), inverse[e]); }
};
