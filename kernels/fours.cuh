// fours.cuh: numbers of single precision, four at a time, and their patterns.
#pragma once

struct alignas(16) Four { float x[4]; };

// The pattern of |x|: the larger, the larger |x|, and above all those that are not finite
__device__ inline unsigned pattern(float x) { return __float_as_uint(x) & 0x7fffffffu; }
