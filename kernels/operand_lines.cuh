// operand_lines.cuh: an operand of single precision as lines along k, any strides, and what is made
// of it (pairs.cuh).
#pragma once
#include "pairs.cuh"

using size = long long;

struct alignas(16) Four { float x[4]; };

struct Operand {
    const float* X;
    size lines, k;        // how many lines, how long
    size next, step;      // from a line to the next, and along it
    unsigned short* pairs;  // [2][lines][room] halves: the high parts, the low parts
    size room;            // a multiple of 8
    Line* about;
    unsigned* largest;    // [chunks][lines]: patterns of the largest numbers; none where steps are 1
    size chunks;

    // True if four neighbours along `stride` can be read at once
    __device__ bool in_fours(size stride, size other) const
    {
        return stride == 1 && (size(X) | 4 * other) % 16 == 0;
    }
};

// x[e] := X[first + e * stride], e < n; zeros from there on
__device__ inline void read_four(float (&x)[4], const float* X, size stride, size n, bool whole)
{
    if (whole && n >= 4) {
        const Four v = *reinterpret_cast<const Four*>(X);
        #pragma unroll
        for (int e = 0; e < 4; ++e) x[e] = v.x[e];
    } else {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            x[e] = 0;
            if (e < n) x[e] = X[e * stride];
        }
    }
}

// The pattern of |x|: the larger, the larger |x|, and above all those that are not finite
__device__ inline unsigned pattern(float x) { return __float_as_uint(x) & 0x7fffffffu; }
