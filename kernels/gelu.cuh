// gelu.cuh: gelu, its approximation by tanh, and the slopes of both, in single precision by the
// hardware's powers of two and reciprocals.
#pragma once
#include "approximate.cuh"

// The normal distribution function P(x) = 1 / (1 + 2^-xz), z a polynomial of x^2, fitted to x P(x),
// whose error stays below 7e-8.
__device__ inline float normal_share(float x)
{
    const float y = x * x;
    float z = fmaf(y, 5.23388e-9f, -3.860164e-7f);
    z = fmaf(y, z, 1.14667395e-5f);
    z = fmaf(y, z, -1.59485247e-4f);
    z = fmaf(y, z, -9.5295031e-5f);
    z = fmaf(y, z, 0.104838194f);
    z = fmaf(y, z, 2.30220735f);
    return approximate_reciprocal(1 + power_of(-x * z));
}
// (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3): the same with a polynomial of degree 1
__device__ inline float share_by_tanh(float x)
{
    const float z = fmaf(x * x, 0.1029432396f, 2.302208198f);
    return approximate_reciprocal(1 + power_of(-x * z));
}

__device__ inline float gelu(float x) { return x * normal_share(x); }
__device__ inline float gelu_approximately(float x) { return x * share_by_tanh(x); }

// P + x p, p the normal density
__device__ inline float gelu_slope(float x)
{
    const float density = 0.398942280f * power_of(-0.721347520f * (x * x));
    return fmaf(x, density, normal_share(x));
}
// s + x s (1 - s) 2 u'
__device__ inline float gelu_approximate_slope(float x)
{
    const float s = share_by_tanh(x);
    return fmaf(x * s * (1 - s), fmaf(x * x, 0.21406445f, 1.595769122f), s);
}
