// operand_lines.cuh: an operand of single precision as lines along k, any strides, and where its
// pairs go (pairs.cuh).
#pragma once
#include "fours.cuh"
#include "pairs.cuh"

using size = long long;

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int COMPLEX = 0;
#endif

// Complex numbers are real ones side by side, k of them twice as many:
//
//     (a + i a') (b + i b') = [a a'] [b; -b'] + i [a a'] [b'; b]
//
// so that A is its own real and imaginary parts, and a line of B, TWICE, becomes two. Where the
// lines of A lie side by side, the parts of each k go to lines of their own.
enum { TWICE = 1, CONJUGATED = 2 };

struct Operand {
    const float* X;
    size lines, k;        // how many lines, how long, both counted in real numbers as they lie
    size next, step;      // from a line to the next, and along it
    size team;            // of warps to a line; 0: lines lie side by side, and so do their pairs
    size how;             // of complex ones: TWICE, CONJUGATED
    unsigned short* pairs;  // halves: the high parts, the low parts, [lines][room], or [k][room]
    size room;            // a multiple of 8
    About* about;

    __device__ bool twice() const { return COMPLEX && how & TWICE; }
};

// Behind what is known of an operand's lines there is which of their numbers are lost: of number p of
// a line, bit p % 64 of its word p / 64, k of them; of lines TWICE those of the line they are made of.
// Of a line of which no more than UNMARKED are they may say anything: normal numbers have such, which
// do no harm, and need not wait for them.
constexpr int UNMARKED = 2;
__device__ inline size lost_words(size k) { return (k + 63) / 64; }
__device__ inline unsigned* lost_bits(const About* about, size lines, size k, size line)
{
    return const_cast<unsigned*>(reinterpret_cast<const unsigned*>(about + lines))
        + 2 * lost_words(k) * line;
}

// A thread's share of an operand: groups of four numbers
struct Share {
    const float* X;       // the first
    size next, step;      // from a group to the next, and from a number to the next
    size groups;
    size left, less;      // numbers from the first group on that exist, less so many a group
    bool whole;           // a group can be read at once

    __device__ int count(size g) const
    {
        const size n = left - g * less;
        return n < 4 ? int(n) : 4;
    }
    __device__ Four read(size g) const
    {
        const float* const x = X + g * next;
        const int n = count(g);
        if (whole && n == 4) return *reinterpret_cast<const Four*>(x);
        Four v;
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            v.x[e] = 0;
            if (e < n) v.x[e] = x[e * step];
        }
        return v;
    }
    // read(g) on its way to shared memory
    __device__ void bring(Four& to, size g) const
    {
        const float* const x = X + g * next;
        const int n = count(g);
        if (whole && n == 4) return copy_async<16, true>(&to, x, 16);
        #pragma unroll
        for (int e = 0; e < 4; ++e)
            copy_async<4>(&to.x[e], e < n ? x + e * step : x, e < n ? 4 : 0);
    }
};
