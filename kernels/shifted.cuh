// shifted.cuh: x 2^e, rounded once, and what e a power of two is.
#pragma once
#include "qr.cuh"

__device__ inline int exponent(Power power)
{
    return ilogb(power.first) + ilogb(power.second);
}
__device__ inline float shifted(float x, int e) { return e ? scalbnf(x, e) : x; }
__device__ inline double shifted(double x, int e) { return e ? scalbn(x, e) : x; }
template <class R> __device__ complex<R> shifted(complex<R> x, int e)
{
    return {shifted(x.re, e), shifted(x.im, e)};
}
