// digits.cuh: numbers of single precision as three digits of 8 bits, for products of bytes.
//
// A line (a row of A, a column of B) is scaled by the power of two that takes its largest number close
// below 2^23, and rounded to integers q = 2^16 x + 2^8 y + z, -128 <= x, y, z <= 127. Of two lines
//
//     sum q q' = 2^32 sum x x' + 2^24 sum (x y' + y x') + 2^16 sum (x z' + y y' + z x') + ...
//
// is exact but for the terms left out, each below 2^-24 of the largest there are, and for rounding:
// 2^-24 of the largest number of the line for each. Where both behave like noise, they add up like
// sqrt(k), as the rounding of sums does, and stay below it by far. They do where lines are `even`:
//
//   - of 128 neighbours, if any is not zero 64 are, their mean is at least 2^23 / 20, and at most half
//     of them are below 2^18: no part of a line is small beside the rest, so that what has small
//     factors on one side and large ones on the other does not count (normal and uniform numbers are
//     far from these bounds: by 7 standard deviations, or more);
//   - in every block's part of a line the lowest digits, and what rounding did, add up to at most 7
//     standard deviations of what they would by chance: no error is the same all along a line.
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

// The digits of an integer: z in the lowest byte, y, x
__device__ inline unsigned digits_of(int q) { return (unsigned(q) + 0x8080) ^ 0x8080; }

// What 128 neighbours are like: how many are there, their sum, and how many are small
struct Evenness {
    unsigned sum = 0, some = 0;  // of these 2^16 for each small one

    __device__ void take(int q, bool there)
    {
        const unsigned size = unsigned(q < 0 ? -q : q);
        sum += size;
        some += there + (unsigned(there && size < 1u << 18) << 16);
    }
    __device__ bool even() const
    {
        const unsigned count = some & 0xffff, small = some >> 16;
        return count == 0 || (count >= 64 && sum >= count * ((1u << 23) / 20) && 2 * small <= count);
    }
};

// What `count` lowest digits and remains of rounding add up to by chance, at most
__device__ inline bool by_chance(int lowest, float remains, float count)
{
    const float root = sqrtf(count);
    return fabsf(float(lowest)) <= 7 * 74 * root && fabsf(remains) <= 7 * 0.36f * root;
}
