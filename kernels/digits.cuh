// digits.cuh: numbers of single precision as three digits of 8 bits, for products of bytes.
//
// A line (a row of A, a column of B) is scaled by 2^e times 1, 1.25, 1.5 or 1.75, so that its largest
// number comes close below 2^23, and rounded to integers q = 2^16 x + 2^8 y + z, -128 <= x, y, z <= 127.
// Of two lines
//
//     sum q q' = 2^32 sum x x' + 2^24 sum (x y' + y x') + 2^16 sum (x z' + y y' + z x') + ...
//
// is exact but for the terms left out, 2^8 sum (y z' + z y') and less, and for rounding. Where digits
// and what rounding does behave like noise, that adds up like sqrt(k), as the rounding of sums does, and
// stays below it where k is some thousands. They do where lines are `even`:
//
//   - of 128 neighbours at most half are below 2^18: no part of a line is small beside the rest, so
//     that what has small factors on one side and large ones on the other counts;
//   - in every block's part of a line the mean is at least 2^23 / 12 (of normal numbers it is
//     2^23 / 6.5 or more if the largest is 4.1 standard deviations, 2^23 / 10 if it is 6.3),
//   - and the lowest digits, and what rounding did, add up to at most 7 standard deviations of what
//     they would by chance: no error is the same all along a line.
//
// What is not even, or not finite, is known by a flag, and left to others; lines of zeros are even.
#pragma once
#include "pairs.cuh"

constexpr int DIGITS = 3, LARGEST = 127 * 0x10101;  // of three digits of 127

// How a line is scaled: its numbers are `down` `rest` / `times` times the integers, of down and rest
// neither out of range
struct alignas(16) Scaled {
    float down, rest, times, inverse;  // of times
};

// The scale of a line, of its largest number (as an unsigned pattern, finite), as two factors
struct DigitScale {
    int e;
    float times, first, second;

    __device__ explicit DigitScale(unsigned largest) : e(scale_of(largest) + 23 - TOP)
    {
        float x = Scale(e).of(__int_as_float(int(largest)));  // in [2^22, 2^23), or 0
        if (x > LARGEST) --e, x /= 2;
        times = x * 1.75f <= LARGEST ? 1.75f : x * 1.5f <= LARGEST ? 1.5f
              : x * 1.25f <= LARGEST ? 1.25f : 1;
        first = power(e / 2) * times, second = power(e - e / 2);
    }
    __device__ float of(float x) const { return x * first * second; }
    // Of integers in units of 2^12
    __device__ Scaled undone() const
    {
        const Line line = line_of(e - 12);
        return {line.down, line.rest, times, 1 / times};
    }
};

// What `count` lowest digits, and remains of rounding of a quarter of them, add up to by chance, at most
__device__ inline bool by_chance(int lowest, float remains, float count)
{
    const float root = sqrtf(count);
    return fabsf(float(lowest)) <= 7 * 74 * root && fabsf(remains) <= 7 * 0.36f / 2 * root;
}
