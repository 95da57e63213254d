// crt_split.cu: both operands of a product of double precision, line by line, scaled to integers and
// given by their remainders (moduli.cuh), a plane of bytes for each modulus and one for the first
// bits of their size, k along its rows.
//
// A block has LINES lines of an operand, a warp LINES / WARPS of these, and a lane four numbers of
// each 128, whatever the constants: so sums do not depend on them. Slices DEEP long, as they lie in
// memory, pass through a ring of two stages in shared memory, twice: for the length of the lines,
// which says how far they are scaled (Cauchy, Schwarz: what two of them multiply to is as small as
// the moduli ask for), and for the integers. An integer is eight bytes, a remainder the remainder
// of two products of four of them.
//
// A complex number is two integers, scaled alike, and their sum is a third.
//
// KNOWN: of A alone, some columns after others, whose lines become no longer than is known before:
// of a Cholesky factor, whose line i has squares that add up to A_ii. All columns are scaled alike,
// and read once; nothing is kept of what rounding does, nor are sizes. Lines that turn out to be
// longer, or are not finite, have an infinite loss.
//
// Floor: 17 + MODULI bytes an entry: read twice, written once. 1.00 ms for two operands of 8192 at
// 4.3 TB/s, 15 of them. Five operations an entry and modulus, 0.5 ms. KNOWN: 8 + MODULI bytes.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int LINES = 16;    // of a block
constexpr int WARPS = 8;     // of it
constexpr int DEEP = 256;    // of k in a stage
constexpr int BLOCKS = 2;    // per multiprocessor for which registers are rationed
constexpr int FEWER = 0;     // 1: 14 moduli, not 15
constexpr int KNOWN = 0;
#endif
#include "async.cuh"
#include "launch.cuh"
#include "scalar.cuh"
#include "shuffle.cuh"
#include "moduli.cuh"

using size = long long;

constexpr int THREADS = 32 * WARPS, EACH = LINES / WARPS;
static_assert(LINES % WARPS == 0 && LINES % 16 == 0 && DEEP % 128 == 0);

#ifndef BLASX_SIM           // the launch says how much
extern __shared__ __align__(128) char dynamic_shared[];
#endif

struct alignas(8) Number {
    double parts[REALS];
};
struct Operand {
    const Number* X;
    size lines, k;
    size next, step;        // from a line to the next, and along it
    unsigned char* planes;  // [MODULI PARTS + 1][..][row], `plane` bytes from one to the next
    size room, row, plane;  // multiples of 16; `room`, of a row, is ours
    Line* about;
    bool conjugated;
    const double* squares;  // KNOWN: what they add up to at most, there for the first columns
};

// A stage: where number k of a line is; ACROSS: lines lie side by side. Neighbours in the order of
// memory go to different banks, and so do the lanes' numbers.
template <bool ACROSS> __device__ int place(int line, int k)
{
    return ACROSS ? k * LINES + k / 4 + line : line * (DEEP + 2) + k;
}
constexpr int STAGE = DEEP * (LINES + 1) > LINES * (DEEP + 2) ? DEEP * (LINES + 1)
                                                              : LINES * (DEEP + 2);

// The slice from p on, zeros where there is nothing
template <bool ACROSS>
__device__ void bring(Number* to, const Operand& of, size line, size p, bool whole)
{
    if (REALS == 1 && !ACROSS && whole) {
        #pragma unroll 4
        for (int c = threadIdx.x; c < LINES * DEEP / 2; c += THREADS) {
            const int l = c / (DEEP / 2), q = c % (DEEP / 2) * 2;
            const size left = line + l < of.lines ? of.k - p - q : 0;
            const int valid = left <= 0 ? 0 : left == 1 ? 8 : 16;
            copy_async<16, true>(to + place<ACROSS>(l, q),
                                 valid ? of.X + (line + l) * of.next + p + q : of.X, valid);
        }
    } else {
        #pragma unroll 4
        for (int c = threadIdx.x; c < LINES * DEEP; c += THREADS) {
            const int l = ACROSS ? c % LINES : c / DEEP, q = ACROSS ? c / LINES : c % DEEP;
            const bool there = line + l < of.lines && p + q < of.k;
            const Number* const from =
                there ? of.X + (line + l) * of.next + (p + q) * of.step : of.X;
            Number* const at = to + place<ACROSS>(l, q);
            #pragma unroll
            for (int r = 0; r < REALS; ++r)
                copy_async<8>(at->parts + r, from->parts + r, there ? 8 : 0);
        }
    }
    end_group();
}

// f(line of the warp's, four numbers, their k) for all that lanes have
template <bool ACROSS, class F>
__device__ void each(const Operand& of, size line, bool whole, F f)
{
    Number* const stages = reinterpret_cast<Number*>(dynamic_shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    bring<ACROSS>(stages, of, line, 0, whole);
    int now = 0;
    for (size p = 0; p < of.k; p += DEEP, now ^= 1) {
        if (p + DEEP < of.k) {
            bring<ACROSS>(stages + (now ^ 1) * STAGE, of, line, p + DEEP, whole);
            await_groups<1>();
        } else {
            await_groups<0>();
        }
        __syncthreads();
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            #pragma unroll 1
            for (int q = 0; q < DEEP; q += 128) {
                Number x[4];
                #pragma unroll
                for (int i = 0; i < 4; ++i)
                    x[i] = stages[now * STAGE + place<ACROSS>(warp * EACH + e, q + 4 * lane + i)];
                f(e, x, p + q + 4 * lane);
            }
        __syncthreads();  // the next slice but one comes to this place
    }
}

// The exponent's bits of |x|: 0 of subnormals, 2047 of what is not finite
__device__ inline int exponent_of(double x) { return __double2hiint(x) >> 20 & 2047; }

// A sum of squares, in units of 4^(top - 1023), and the largest exponent among the numbers; units
// in which neither the largest overflow nor the smallest vanish
struct Squares {
    static constexpr int LEAST = 24, MOST = 2044;
    int top = LEAST, largest = 0;
    double sum = 0;

    __device__ static double factor(int from, int to)  // of a sum whose units change
    {
        return 2 * (to - from) > 1000 ? 0 : power(2 * (from - to));
    }
    __device__ void take(const Number (&x)[4])
    {
        int e = 0;
        #pragma unroll
        for (const Number& number : x)
            for (double part : number.parts) e = max(e, exponent_of(part));
        largest = max(largest, e);
        e = min(e, MOST);
        if (e > top) sum *= factor(top, e), top = e;
        const double unit = power(1023 - top);
        #pragma unroll
        for (const Number& number : x)
            for (double part : number.parts) sum = fma(part * unit, part * unit, sum);
    }
    __device__ void take_all_lanes()
    {
        for (int mask = 16; mask; mask /= 2) {
            const int other_top = across(top, mask);
            const double other = across(sum, mask);
            const int most = max(top, other_top);
            sum = sum * factor(top, most) + other * factor(other_top, most);
            top = most;
            largest = max(largest, across(largest, mask));
        }
    }
};

__device__ constexpr int logarithm(double x)  // rounded down
{
    int e = 0;
    while (x >= 2) x /= 2, ++e;
    return e;
}

// How lines are scaled: as far as their length lets them
__device__ inline Line scaled(const Squares& squares)
{
    if (squares.largest == 2047) return {0, 0, __int_as_float(0x7f800000), 0, 0};
    const double sum = squares.sum * (1 + 0x1p-30);  // what rounding took from it
    if (sum == 0) return {0, 0, 0, 0, 0};
    // 2^between <= BOUND / sum < 2^(between + 1)
    constexpr int of_bound = logarithm(BOUND);
    const int of_sum = exponent_of(sum) - 1023;
    const int between = of_bound - of_sum - (sum * power(of_bound - of_sum) > BOUND);
    const int half = between >> 1;
    const float length = sqrtf(float(sum * power(2 * half) / BOUND)) * (1 + 0x1p-20f);
    const int shift = half + 1023 - squares.top;
    return {shift, length, 0, 0, unsigned(squares.largest - 1022 + shift)};
}

// The same where the sum of squares is known, before any number is; 2^-8 for rounding
__device__ inline Line scaled(double square)
{
    Squares squares;
    squares.take({{fmin(sqrt(square), 0x1p511) * (1 + 0x1p-9)}});
    if (!(square >= 0)) squares.largest = 2047;
    Line line = scaled(squares);
    line.length = 0;
    return line;
}

#ifndef BLASX_SIM
__device__ inline unsigned plus_bytes(unsigned sum, unsigned a, unsigned b)
{
    return __dp4a(a, b, sum);
}
#else
__device__ inline unsigned plus_bytes(unsigned sum, unsigned a, unsigned b)
{
    for (int e = 0; e < 32; e += 8) sum += (a >> e & 255) * (b >> e & 255);
    return sum;
}
#endif

// The lowest bytes of four words
__device__ inline unsigned bytes_of(unsigned a, unsigned b, unsigned c, unsigned d)
{
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// The remainders of four integers, of the first in the lowest byte, for each modulus. Half of them
// are made by double precision, whose units would have nothing to do: an integer below 2^55 / p is
// a quotient that is wrong by at most 0.52, and what it leaves is a byte where p is below 245.
struct Integers {
    static constexpr int FIRST = FEWER ? 7 : MODULI;  // of those
    unsigned low[4], high[4];  // of each + 2^63
    double whole[4];

    __device__ void set(int i, long long n)
    {
        low[i] = unsigned(n);
        high[i] = unsigned(n >> 32) ^ 0x80000000u;
    }
    __device__ void set(int i, double x)  // x is an integer
    {
        set(i, __double2ll_rn(x));
        whole[i] = x;
    }
    __device__ long long number(int i) const
    {
        return (long long)(high[i] ^ 0x80000000u) << 32 | low[i];
    }
    __device__ unsigned rest(int m, int i) const
    {
        constexpr double ONES = 0x1.8p52;  // what is added to it loses its fraction
        const double quotient = fma(whole[i], TABLE.of_p[m], ONES) - ONES;
        return __double2loint(fma(-quotient, double(TABLE.p[m]), whole[i]) + ONES);
    }
    template <bool WHOLE> __device__ unsigned modulo(int m) const  // WHOLE: set by doubles
    {
        if (TABLE.p[m] == 256) return bytes_of(low[0], low[1], low[2], low[3]);
        if (WHOLE && m >= FIRST) return bytes_of(rest(m, 0), rest(m, 1), rest(m, 2), rest(m, 3));
        unsigned all = 0;
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            unsigned sum = plus_bytes(TABLE.first[m], low[i], TABLE.low[m]);
            sum = plus_bytes(sum, high[i], TABLE.high[m]);
            all += sum - __umulhi(sum, TABLE.of_small[m]) * TABLE.p[m] << 8 * i;
        }
        return all ^ 0x80808080u;  // - 128 each
    }
};

template <bool ACROSS> __device__ void split_lines(const Operand& of, size line)
{
    const bool whole = of.step == 1 && (size(of.X) | 8 * of.next) % 16 == 0;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Line about[EACH];
    int inexact[EACH] = {}, fair[EACH] = {};
    double sums[EACH] = {};  // KNOWN: of squares, in units of BOUND
    if constexpr (KNOWN) {
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const size row = min(line + warp * EACH + e, of.lines - 1);
            about[e] = of.squares ? scaled(of.squares[row]) : of.about[row];
        }
    } else {
        Squares squares[EACH];
        each<ACROSS>(of, line, whole,
                     [&](int e, const Number (&x)[4], size) { squares[e].take(x); });
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            squares[e].take_all_lanes();
            about[e] = scaled(squares[e]);
        }
    }
    const double from = fair_from(double(of.k));
    each<ACROSS>(of, line, whole, [&](int e, const Number (&x)[4], size p) {
        const size row = line + warp * EACH + e;
        const bool finite = about[e].loss == 0;
        const int half = about[e].shift / 2;  // the scale is a product
        const double first = power(half), second = power(about[e].shift - half);
        const double unit = power(SIZE - int(about[e].top));
        Integers integers[REALS];
        unsigned sizes = 0;
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            double most = 0;
            #pragma unroll
            for (int r = 0; r < REALS; ++r) {
                const double y = finite ? x[i].parts[r] * first * second : 0, n = rint(y);
                integers[r].set(i, r == 1 && of.conjugated ? -n : n);
                if constexpr (KNOWN) {
                    sums[e] += y * y * (1 / BOUND);
                } else {
                    most = fmax(most, fabs(y));
                    inexact[e] += finite && (n != y || (y == 0) != (x[i].parts[r] == 0));
                }
            }
            sizes |= unsigned(int(most * unit)) << 8 * i;
            fair[e] += most >= from;
        }
        if (row >= of.lines || p >= of.room) return;
        unsigned char* const to = of.planes + row * of.row + p;
        const auto store = [=](int plane, unsigned bytes) {
            *reinterpret_cast<unsigned*>(to + plane * of.plane) = bytes;
        };
        #pragma unroll
        for (int m = 0; m < MODULI; ++m)
            #pragma unroll
            for (int r = 0; r < REALS; ++r)
                store(PARTS * m + r, integers[r].template modulo<true>(m));
        if constexpr (REALS == 2) {
            Integers both;
            #pragma unroll
            for (int i = 0; i < 4; ++i)
                both.set(i, integers[0].number(i) + integers[REALS - 1].number(i));
            #pragma unroll
            for (int m = 0; m < MODULI; ++m) store(PARTS * m + 2, both.modulo<false>(m));
        }
        if (!KNOWN) store(PARTS * MODULI, sizes);
    });
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const size row = line + warp * EACH + e;
        if constexpr (KNOWN) {
            for (int mask = 16; mask; mask /= 2) sums[e] += across(sums[e], mask);
            const float length = about[e].length;
            about[e].length = sqrtf(length * length + float(sums[e])) * (1 + 0x1p-20f);
            if (!(about[e].length <= 1)) about[e].loss = __int_as_float(0x7f800000);
            if (lane == 0 && row < of.lines) of.about[row] = about[e];
            continue;
        }
        int wrong = inexact[e], good = fair[e];
        for (int mask = 16; mask; mask /= 2)
            wrong += across(wrong, mask), good += across(good, mask);
        if (wrong)  // half of 1 each, or less
            about[e].loss = sqrtf(float(wrong)) * float((1 + 0x1p-20) / 2 / sqrt(BOUND));
        about[e].fair = unsigned(good);
        if (lane == 0 && row < of.lines) of.about[row] = about[e];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
crt_split(size blocks, size k, size room, size row, const Number* A, size m, size a_next,
          size a_step, unsigned char* a_planes, size a_plane, Line* a_about, size a_conjugated,
          const Number* B, size n, size b_next, size b_step, unsigned char* b_planes, size b_plane,
          Line* b_about, size b_conjugated, const double* squares)
{
    wait_for_stream();
    const bool left = blockIdx.x < blocks;
    const Operand of{left ? A : B, left ? m : n, k, left ? a_next : b_next, left ? a_step : b_step,
                     left ? a_planes : b_planes, room, row, left ? a_plane : b_plane,
                     left ? a_about : b_about, (left ? a_conjugated : b_conjugated) != 0, squares};
    const size line = (blockIdx.x - (left ? 0 : blocks)) * LINES;
    if (llabs(of.next) < llabs(of.step)) split_lines<true>(of, line);
    else split_lines<false>(of, line);
}
