// digits.cuh: numbers of single precision as three digits of 8 bits, for products of bytes.
//
// A line (a row of A, a column of B) is scaled by the power of two that takes its largest number close
// below 2^23, and rounded to integers q = 2^16 x + 2^8 y + z, -128 <= x, y, z <= 127. Of two lines
//
//     sum q q' = 2^32 sum x x' + 2^24 sum (x y' + y x') + 2^16 sum (x z' + y y' + z x') + ...
//
// is exact but for the terms left out, 2^8 sum (y z' + z y') and less, and for rounding. Where digits
// and what rounding does behave like noise, that adds up like sqrt(k), as the rounding of sums does, and
// stays below it: of normal numbers 0.7 of what cuBLAS's errors are at k = 4096, less beyond. They do
// where lines are `even`:
//
//   - of 128 neighbours, if any is not zero, 32 are not, their mean is at least 2^23 / 40, and at most
//     half of them are below 2^18: no part of a line is small beside the rest, so that what has small
//     factors on one side and large ones on the other counts;
//   - in every block's part of a line the mean of those that are not zero is at least 2^23 / 13 (of
//     normal ones it is 2^23 / 10, or more: 7 standard deviations from this bound in 500 of them),
//   - and the lowest digits, and what rounding did, add up to at most 7 standard deviations of what
//     they would by chance: no error is the same all along a line.
//
// What is not even, or not finite, is known by a flag, and left to others.
#pragma once
#include "pairs.cuh"

constexpr int DIGITS = 3, MOST_OF_LINE = 127 * (1 << 16) + 127 * (1 << 8) + 127;

// The exponent of the scale of a line, of its largest number (as an unsigned pattern)
__device__ inline int scale_of_digits(unsigned largest)
{
    const int e = scale_of(largest) + 23 - TOP;
    return Scale(e).of(__int_as_float(int(largest))) > float(MOST_OF_LINE) ? e - 1 : e;
}

// A number rounded to an integer, and what remains of it
struct Rounded {
    unsigned size;  // of the integer
    bool negative;
    float rest;

    __device__ explicit Rounded(float x) : negative(x < 0)  // |x| < 2^23
    {
        const float large = fabsf(x) + 0x1p23f, rounding = fabsf(x) - (large - 0x1p23f);
        size = __float_as_uint(large) & 0x7fffff;
        rest = negative ? -rounding : rounding;
    }
    // Its digits: z in the lowest byte, y, x
    __device__ unsigned digits() const
    {
        return ((negative ? 0u - size : size) + 0x8080) ^ 0x8080;
    }
};

// What numbers are like: how many are not zero, how large they are, and how many are small
struct Evenness {
    unsigned sum = 0, some = 0;  // of these 2^16 for each small one

    __device__ void take(unsigned q, float x)
    {
        sum += q;
        some += (x != 0) + (unsigned(x != 0 && q < 1u << 18) << 16);
    }
    __device__ unsigned count() const { return some & 0xffff; }
    __device__ bool even() const
    {
        const unsigned small = some >> 16;
        return !count() || (count() >= 32 && sum >= count() * ((1u << 23) / 40)
                            && 2 * small <= count());
    }
};

// What `count` lowest digits and remains of rounding add up to by chance, at most
__device__ inline bool by_chance(int lowest, float remains, float count)
{
    const float root = sqrtf(count);
    return fabsf(float(lowest)) <= 7 * 74 * root && fabsf(remains) <= 7 * 0.36f * root;
}
