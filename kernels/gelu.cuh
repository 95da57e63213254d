// gelu.cuh: gelu, its approximation by tanh, and the slopes of both, in single precision by the
// hardware's powers of two and reciprocals.
#pragma once
#include "approximate.cuh"

#if !TURING && !defined(BLASX_SIM)
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
__device__ inline float larger_or_nan(float x, float y) { return x < y ? y : x; }
__device__ inline float smaller_or_nan(float x, float y) { return x > y ? y : x; }
#endif

// The normal distribution function P(-u), 0 <= u <= 16: 2^z, z a polynomial fitted to its logarithm.
// The error of u P(-u) stays below 5e-8 and 1.2e-7 u, and a tenth of a unit of half precision.
__device__ inline float normal_tail(float u)
{
    float z = fmaf(u, -1.62297806e-06f, 2.44220082e-05f);
    z = fmaf(u, z, -0.000112756767f);
    z = fmaf(u, z, -0.000320754305f);
    z = fmaf(u, z, 0.00731314579f);
    z = fmaf(u, z, -0.0526767485f);
    z = fmaf(u, z, -0.459145278f);
    z = fmaf(u, z, -1.15111339f);
    return power_of(fmaf(u, z, -0.999999821f));
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
