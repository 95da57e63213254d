// reciprocal.cuh: reciprocals and roots by the hardware's approximations and Newton's iteration.
#pragma once
#include "approximate.cuh"
#include "scalar.cuh"

// 1 / x and 1 / sqrt(x) for TINY <= |x| < HUGE without a branch, wrong by an ulp at most: the
// hardware's approximation and Newton's iteration; a part of a complex reciprocal by a few.
constexpr real_t HUGE = 1 / TINY / 4;

// True for TINY <= x < HUGE, by what a positive number begins with
__device__ inline bool in_range(float x)
{
    return __float_as_uint(x) - 0x00800000u < 0x7d800000u - 0x00800000u;
}
__device__ inline bool in_range(double x)
{
    return unsigned(__double2hiint(x)) - 0x00100000u < 0x7fb00000u - 0x00100000u;
}

// The seeds have 20 bits (double) or 23 (float); a step of third order makes 60 of 20.
template <class R> __device__ R near_reciprocal(R x)
{
    const R y = approximate_reciprocal(x), e = fma(-x, y, R(1));
    return fma(y, sizeof(R) == 8 ? fma(e, e, e) : e, y);
}
template <class R> __device__ complex<R> near_reciprocal(complex<R> x)
{
    const R a = abs1(x.re), b = abs1(x.im), s = mirror(a < b ? b : a);
    const R re = x.re * s, im = x.im * s, q = s * near_reciprocal(fma(re, re, im * im));
    return {re * q, -im * q};
}

// 1 / x for any |x| of at least TINY, `usual` if it is less than HUGE
template <class R> __device__ R any_reciprocal(R x, bool usual)
{
    if (usual) return near_reciprocal(x);
    const R y = near_reciprocal(x / 16) / 16;
    return isinf(x) ? R(0) : y;  // of which the iteration would make nan
}
template <class R> __device__ complex<R> any_reciprocal(complex<R> x, bool)
{
    return near_reciprocal(x);
}

template <class R> __device__ R near_rsqrt(R x)
{
    const R y = approximate_rsqrt(x), e = fma(-x * y, y, R(1));
    return fma(y * e, fma(R(0.375), e, R(0.5)), y);
}
