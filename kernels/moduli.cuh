// moduli.cuh: integers by their remainders modulo numbers that have no factor in common.
//
// An integer is known by its remainders c_i modulo p_i where it is below P / 2 in size, P the product
// of all p_i (the Chinese remainder theorem). With w_i = 1 modulo p_i and 0 modulo the others,
//
//     x = sum c_i w_i - q P,     q the integer nearest to sum c_i w_i / P.
//
// Remainders are bytes with a sign, any number of [-128, 127] that is right modulo p_i: products of
// lines of k < 2^17 of them fit 32 bits. Two lines of integers of length sqrt(BOUND) at most have a
// product below P / 2 in size, and so is what the remainders of their numbers multiply to.
//
// A complex number is two integers, and three remainders for each modulus, of its parts x and y and
// of x + y. Products of these, a b, c d and (a + c) (b + d), make the parts a b - c d and
// (a + c) (b + d) - a b - c d of complex products; modulo p nothing is lost by that.
#pragma once
#include "scalar.cuh"

// With 15 of them rounding numbers to integers does at most 0.12 2^-53
// to the product of two lines of numbers alike, at six standard deviations, whatever k; with 14 1.6
// 2^-53, which is still less than what sums of double precision lose where k is 4096 or more.
constexpr int MODULI = 15 - FEWER;
constexpr int REALS = sizeof(scalar_t) / sizeof(double), PARTS = REALS == 2 ? 3 : 1;

// Unsigned integers of 128 bits, in 32
struct Wide {
    unsigned digits[4] = {};

    __device__ constexpr Wide times(unsigned x) const
    {
        Wide y;
        unsigned long long carry = 0;
        for (int d = 0; d < 4; ++d) {
            carry += (unsigned long long)digits[d] * x;
            y.digits[d] = unsigned(carry);
            carry >>= 32;
        }
        return y;
    }
    __device__ constexpr unsigned modulo(unsigned p) const
    {
        unsigned long long rest = 0;
        for (int d = 3; d >= 0; --d) rest = (rest << 32 | digits[d]) % p;
        return unsigned(rest);
    }
    // Bits first ... first + 39
    __device__ constexpr unsigned long long part(int first) const
    {
        unsigned long long x = 0;
        for (int b = 39; b >= 0; --b) {
            const int bit = first + b;
            x = x << 1 | (bit < 128 ? digits[bit / 32] >> bit % 32 & 1 : 0);
        }
        return x;
    }
};

// What is known of all moduli
struct Moduli {
    unsigned p[16] = {256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193};
    // Of an integer x, |x| < 2^63, as the bytes of x + 2^63: x + 128 modulo p, and not negative, is
    // the sum of their products with those of `low` and `high`, and `first`
    unsigned low[16] = {}, high[16] = {}, first[16] = {};
    unsigned of_small[16] = {};  // floor(2^32 / p) + 1: quotients of numbers below 2^24
    double of_p[16] = {};        // 1 / p
    // Of an integer x, |x| <= 2^31 - 256: x + `shift`, not negative, is x + 128 modulo p
    unsigned shift[16] = {}, of_any[16] = {};  // floor(2^39 / p): quotients, or 1 less

    // The parts of w_i, and of P, each of 40 bits: in units of 2^80, 2^40, and 1
    double weights[3][16] = {}, product[3] = {};

    __device__ constexpr Moduli()
    {
        Wide all;
        all.digits[0] = 1;
        for (int i = 0; i < MODULI; ++i) all = all.times(p[i]);
        for (int i = 0; i < MODULI; ++i) {
            unsigned power = 1;  // of 256
            for (int b = 0; b < 8; ++b, power = power * 256 % p[i])
                (b < 4 ? low : high)[i] |= power << 8 * (b % 4);
            const unsigned long long half = 1ull << 63, of_31 = (1ull << 31) % p[i];
            first[i] = unsigned((128 + p[i] - half % p[i]) % p[i]);
            of_small[i] = unsigned((1ull << 32) / p[i] + 1);
            of_p[i] = 1.0 / p[i];
            shift[i] = unsigned((1ull << 31) + (128 + p[i] - of_31) % p[i]);
            of_any[i] = unsigned((1ull << 39) / p[i]);
            Wide others;
            others.digits[0] = 1;
            for (int j = 0; j < MODULI; ++j)
                if (j != i) others = others.times(p[j]);
            const unsigned rest = others.modulo(p[i]);
            unsigned inverse = 1;
            while (inverse * rest % p[i] != 1) ++inverse;
            for (int d = 0; d < 3; ++d)
                weights[d][i] = double(others.times(inverse).part(80 - 40 * d));
        }
        for (int d = 0; d < 3; ++d) product[d] = double(all.part(80 - 40 * d));
    }
};
__constant__ constexpr Moduli TABLE{};

// P / 2, less room for what rounding to integers adds to the length of lines of k < 2^27
constexpr double BOUND = (TABLE.product[0] * 0x1p80 + TABLE.product[1] * 0x1p40) / 2
                         * (1 - 0x1p-12);

// 2^e, -1022 <= e <= 1023
__device__ inline double power(int e) { return __hiloint2double((e + 1023) << 20, 0); }

// What is known of a line: its numbers times 2^shift are its integers, but for what rounding does;
// its length, and the most that rounding does to it, in units of sqrt(BOUND), rounded up; how many
// numbers are `fair`, not small for the line, of which a part is enough; all parts are below 2^top. One that is not finite has zeros
// for integers, and an infinite loss.
struct alignas(16) Line {
    int shift;
    float length, loss;
    unsigned fair : 24, top : 8;
};

// What rounding did to an element is at most, by Cauchy and Schwarz,
//
//     D = |a| loss(b) + |b| loss(a)
//
// of which half of 1 is the loss of each number that is not exact. The element is good if
// D <= k 2^-53 |A||B|, the bound of ordinary double precision. |A||B| is at least |x|. And lines
// with f and f' fair numbers have f + f' - k pairs of them, whose product is known: where more than
// half of every line is fair, D is small enough for any two (`enough`). Else a plane more is
// multiplied, of the first SIZE bits of numbers, for a product that is no larger than |A||B|.
constexpr int SIZE = 7;
__device__ inline double fair_from(double k) { return sqrt(BOUND / k) / 8; }
__device__ inline unsigned enough(double k)
{
    const double pairs = 0x1p59 * (1 + 0x1p-10) * sqrt(REALS * k / BOUND);
    return unsigned((k + pairs) / 2) + 1;
}
