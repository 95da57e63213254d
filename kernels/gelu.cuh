// gelu.cuh: gelu, its approximation by tanh, and the slopes of both, in single precision by the
// hardware's powers of two and reciprocals.
#pragma once
#include "approximate.cuh"

#ifndef BLASX_SIM
__device__ inline float larger_or_nan(float x, float y)
{
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
__device__ inline float smaller_or_nan(float x, float y)
{
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
#else
inline float larger_or_nan(float x, float y) { return x < y ? y : x; }
inline float smaller_or_nan(float x, float y) { return x > y ? y : x; }
#endif

// Of the normal distribution P the share below -u, 0 <= u <= 16: 2^z, z a polynomial fitted to its
// logarithm. u times it is off by less than 8e-8, and by 2e-5 of itself where half precision has it.
__device__ inline float normal_tail(float u)
{
    float z = fmaf(u, -1.10477765e-6f, 1.72467098e-5f);
    z = fmaf(u, z, -7.29259773e-5f);
    z = fmaf(u, z, -4.34357993e-4f);
    z = fmaf(u, z, 7.49022234e-3f);
    z = fmaf(u, z, -5.28245419e-2f);
    z = fmaf(u, z, -0.459085613f);
    z = fmaf(u, z, -1.15112245f);
    return power_of(fmaf(u, z, -0.999999642f));
}
__device__ inline float up_to_16(float x) { return smaller_or_nan(fabsf(x), 16); }

// (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)
__device__ inline float share_by_tanh(float x)
{
    const float z = fmaf(x * x, 0.1029432396f, 2.302208198f);
    return approximate_reciprocal(1 + power_of(-x * z));
}

// x P(x) = max(x, 0) - |x| P(-|x|)
__device__ inline float gelu(float x)
{
    const float u = up_to_16(x);
    return fmaf(-u, normal_tail(u), fmaxf(x, 0));
}
__device__ inline float gelu_approximately(float x) { return x * share_by_tanh(x); }

// P + x p, p the normal density, is below 0 P(-u) - u p(u), u = |x|, and above it 1 less that.
__device__ inline float gelu_slope(float x)
{
    const float u = up_to_16(x), v = 0.849321800f * u;  // p(u) = 2^(-v^2) / sqrt(2 pi)
    const float below = fmaf(-0.469718639f * v, power_of(-v * v), normal_tail(u));
    return x > 0 ? 1 - below : below;
}
// s + x s (1 - s) 2 u'
__device__ inline float gelu_approximate_slope(float x)
{
    const float s = share_by_tanh(x);
    return fmaf(x * s * (1 - s), fmaf(x * x, 0.21406445f, 1.595769122f), s);
}
