// pairs.cuh: a number of single precision as the sum of two of half precision.
//
// Line i of an operand (a row of A, a column of B) is first scaled by the power of two that takes its
// largest number into [2^14, 2^15): x = high + low + error, 11 bits each. The error is at most
// 2^-22 |x| where low is a normal number, which it is for |x| >= 2^-3 (2^-17 of the largest, or
// more), and elsewhere at most 2^-25, half of the smallest half. A number with an error above
// 2^-22 |x| is lost; the lines count theirs.
//
// What lost numbers of a line do to its product with a line y is at most 2^-25 times the sum of |y|
// where they are: at most 2^TOP for each of them, and at most the sum of all |y|, which every line
// knows of itself. The sum is the lesser where few numbers of y are near its largest, as in lines
// of which many are lost; the count where few are lost.
//
// Where few terms count, neither the pairs' errors nor those of the tensor cores are small beside
// what they make, and A times the identity would not be A. So of a line with no more than FEW numbers
// that are not zero their places are known: its products are made of these alone, in double precision.
#pragma once
#include "half.cuh"

constexpr int TOP = 15;              // scaled numbers are below 2^TOP
constexpr int FEW = 8;               // numbers, or fewer, but not none
constexpr int ONLY_FEW = 1 << 27;    // so many more lost: a line with as few
constexpr int NOT_FINITE = 1 << 29;  // so many lost: a line with such a number, its pairs are zeros

// What is known of a line: 2^-e = down times rest, e the exponent of its scale, and both factors
// near its root, so that neither is out of range; how many numbers are lost; the sum of the sizes of
// all, scaled, in units of 2^TOP / SIZES, or a little more.
struct alignas(16) Line {
    float down, rest;
    int lost, sizes;
};
struct About {
    Line line;
    int few;          // numbers that are not zero, if only few are not
    int places[FEW];  // theirs, along k, in order
};

// Of a part of a line whose sizes add up to `sum`, or a little more: a thousandth and a unit are more
// than what rounding took. Of zeros none: they come to no harm. Integers, for the parts of a line come
// in any order; 2^26 numbers make less than 2^31.
constexpr int SIZES = 16;
__device__ inline int sizes_of(float sum)
{
    return sum > 0 ? int(sum * (1.001f * SIZES / float(1 << TOP))) + 1 : 0;
}

// 2^e, -126 <= e <= 127
__device__ inline float power(int e) { return __int_as_float((e + 127) << 23); }
// 1 by one of these
__device__ inline float one_by(float x)
{
    return __int_as_float(int((254u << 23) - __float_as_uint(x)));
}

// The exponent of the scale of a line, of its largest number (as an unsigned pattern: not finite
// from 0x7f800000 on)
__device__ inline int scale_of(unsigned largest)
{
    if (largest == 0 || largest >= 0x7f800000) return 0;
    if (largest < 0x00800000)  // subnormal: 24 more make it normal
        return 24 + TOP - 1 + 127 - int(__float_as_uint(__int_as_float(int(largest)) * 0x1p24f) >> 23);
    return TOP - 1 + 127 - int(largest >> 23);
}

// The exponent of the scale of an array whose numbers all have one, of its largest finite number: 2^-e
// of two such are numbers, and so is what they make of a number one after the other
constexpr int MOST_OF_ALL = 100, LEAST_OF_ALL = -113;
__device__ inline int scale_of_all(unsigned largest)
{
    const int e = scale_of(largest);
    return e > MOST_OF_ALL ? MOST_OF_ALL : e < LEAST_OF_ALL ? LEAST_OF_ALL : e;
}
__device__ inline unsigned larger_finite(unsigned most, float x)
{
    const unsigned bits = __float_as_uint(x) & 0x7fffffff;
    return bits > most && bits < 0x7f800000 ? bits : most;
}

__device__ inline Line line_of(int e)
{
    const int half_of = e / 2;
    return {power(-half_of), power(half_of - e), 0, 0};
}

// The scale 2^e of a line as two factors, for neither is out of range: 1 / down and 1 / rest
struct Scale {
    float first, second;
    __device__ explicit Scale(int e = 0) : first(power(e / 2)), second(power(e - e / 2)) {}
    __device__ explicit Scale(const Line& line)
        : first(one_by(line.down)), second(one_by(line.rest))
    {}
    __device__ float of(float x) const { return x * first * second; }
    __device__ double exactly(float x) const { return x * (double(first) * second); }
};

// The high and low parts of two scaled numbers, of the first in the lower halves
struct Pair { unsigned high, low; };
__device__ inline Pair pairs_of(float x, float y)
{
    const unsigned high = two_halves(x, y);
    return {high, two_halves(x - first_of(high), y - second_of(high))};
}

// True if the pair of x, scaled from `from`, is not good to 2^-22
__device__ inline bool is_lost(float x, float from)
{
    const float remains = x - float(half(x));
    return fabsf(remains - float(half(remains))) > 0x1p-22f * fabsf(x) || (x == 0) != (from == 0);
}
constexpr float NONE_LOST = 0x1p-3f;  // from this on, scaled, none is
