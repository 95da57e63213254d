// low.cuh: numbers of double precision rounded to single.
#pragma once
#include "scalar.cuh"

__device__ inline float low(double x) { return float(x); }
__device__ inline complex<float> low(complex<double> x) { return {float(x.re), float(x.im)}; }
__device__ inline double modulus(double x) { return fabs(x); }
__device__ inline double modulus(complex<double> x) { return sqrt(fma(x.re, x.re, x.im * x.im)); }

using low_t = decltype(low(scalar_t{}));
