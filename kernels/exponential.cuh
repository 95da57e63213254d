// exponential.cuh: e^x, x <= 0, of the numbers of a row less the largest of them.
#pragma once
#include "approximate.cuh"
#include "packs.cuh"

// As a summand: 2^(x log2 e) of the hardware, 2 |x| + 2 units in the last place off at most, 0 below
// 2^-126. A sum of them that has e^0 among it is off by two or three.
__device__ inline float summand(float x) { return power_of(x * 1.44269504f); }
__device__ inline double summand(double x) { return exp(x); }

// As an answer: so where it will be rounded to half precision
__device__ inline real_t power(real_t x)
{
    if constexpr (sizeof(scalar_t) == 2) return summand(x);
    else return exp(x);
}

// In one instruction; a where b is nan
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return fmax(a, b); }
