// approximate.cuh: what the hardware approximates: reciprocals, roots, powers of two.
#pragma once

#ifndef BLASX_SIM
__device__ inline float approximate_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double approximate_reciprocal(double x)
{
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}
__device__ inline float approximate_rsqrt(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline double approximate_rsqrt(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}
// 2^x, 0 below 2^-126
__device__ inline float power_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
template <class R> R approximate_reciprocal(R x) { return R(1) / x; }
template <class R> R approximate_rsqrt(R x) { return R(1) / sqrt(x); }
inline float power_of(float x) { return exp2f(x); }
#endif
