// attention_weights.cuh: which query looks at which key, and the walk of a softmax along the keys.
//
// Powers are of 2: with c = scale log2(e), a weight is 2^(c s - top) for an integer `top` above all c s
// of its row so far, and is scaled by 2^UP. Where the top rises, what was summed is multiplied by a
// power of two, so that nothing is rounded. Rows are in the registers that tensor cores leave them
// in (half.cuh): a lane (g, t) has of tile i the rows g and g + 8, columns 8 j + 2 t and the next:
// s(i, j, e) is of row 8 (e / 2), column e % 2.
#pragma once
#include "approximate.cuh"
#include "half.cuh"
#include "block.cuh"
#include "pairs.cuh"
#include "shuffle.cuh"

constexpr int UP = 14;
#define NOTHING __int_as_float(int(0xff800000))  // -inf

// What is multiplied: pairs of halves in place of single precision
template <class T> struct number_of_two_bytes { using type = T; };
template <> struct number_of_two_bytes<float> { using type = half; };
using number_t = number_of_two_bytes<scalar_t>::type;
template <class T> constexpr bool IS_HALF = true;
template <> constexpr bool IS_HALF<bfloat16> = false;

// 2^e, or the nearest number that is one
__device__ inline float near_power(int e) { return power(e < -126 ? -126 : e > 127 ? 127 : e); }

// c of P = 2^(c s - ..), for s that are scaled by 2^-e. It is never 0, which times -inf would be nan:
// where it should be, c s is 0 all the same.
__device__ inline float power_factor(float scale, int e)
{
    return fmaxf(scale * 1.4426950408889634f * near_power(e), 0x1p-126f);
}

__device__ inline int lane() { return thread() % 32; }

// Which of n keys query i of m looks at: those that the mask has, and, `causal`, none after key
// i + n - m
struct Looks {
    const unsigned char* mask;
    size query, key;
    int m, n, causal;

    // True if that is all keys up to the last one, for all queries from the first on
    __device__ bool all(int first_query, int last_key) const
    {
        return !mask && last_key < n && (!causal || last_key <= first_query + n - m);
    }
    // How many keys some query up to the last one may look at
    __device__ int keys(int last_query) const
    {
        const int end = causal ? last_query + 1 + n - m : n;
        return end < 0 ? 0 : end < n ? end : n;
    }
    // -inf in place of scores of what is not looked at: s(i, j, e) of rows from `row` on, which are queries, columns keys,
    // or, KEYED, the other way
    template <bool KEYED, int TILES, int N, class S>
    __device__ void hide(const S& s, int row, int column) const
    {
        row += lane() / 4, column += lane() % 4 * 2;
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int at = row + 16 * i + 8 * h;
                const int begin = KEYED ? first_query(at) : 0;
                const int end = at >= (KEYED ? n : m) ? 0 : KEYED ? m : keys(at);
                #pragma unroll
                for (int j = 0; j < N; ++j)
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int c = column + 8 * j + e;
                        if (c < begin || c >= end) s(i, j, 2 * h + e) = NOTHING;
                    }
                if (!mask) continue;
                const size next = KEYED ? key : query, step = KEYED ? query : key;
                const unsigned char* p = mask + (at < (KEYED ? n : m) ? at : 0) * next + column * step;
                #pragma unroll
                for (int j = 0; j < N; ++j, p += 8 * step) {
                    const int c = column + 8 * j;
                    if (c < end && !p[0]) s(i, j, 2 * h) = NOTHING;
                    if (c + 1 < end && !p[step]) s(i, j, 2 * h + 1) = NOTHING;
                    if (j % 4 == 3) __syncwarp();  // no more at a time than there is room for
                }
            }
    }
    // The first query that may look at keys from the first on
    __device__ int first_query(int first_key) const
    {
        const int begin = causal ? first_key + m - n : 0;
        return begin < 0 ? 0 : begin;
    }
};

// The softmax of 16 TILES rows
template <int TILES> struct Softmax {
    float top[TILES][2], total[TILES][2] = {}, shrink[TILES][2];

    __device__ Softmax()
    {
        #pragma unroll
        for (int i = 0; i < TILES; ++i) top[i][0] = top[i][1] = NOTHING;
    }
    // Weights in place of scores s of 8 N columns; what was summed before is to be multiplied by
    // `shrink`. A row has CHAINS of sums and of largest numbers, each of which waits for itself
    // alone; several begin with their first numbers.
    template <int N, int CHAINS = 1, class S> __device__ void weigh(const S& s, float c)
    {
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                float largest[CHAINS] = {NOTHING}, sums[CHAINS] = {};
                #pragma unroll
                for (int j = 0; j < N; ++j) {
                    const float x = fmaxf(s(i, j, 2 * h), s(i, j, 2 * h + 1));
                    float& to = largest[j % CHAINS];
                    to = CHAINS > 1 && j < CHAINS ? x : fmaxf(to, x);
                }
                float most = largest[0];
                #pragma unroll
                for (int j = 1; j < CHAINS; ++j) most = fmaxf(most, largest[j]);
                most = fmaxf(most, across(most, 1));
                most = ceilf(c * fmaxf(most, across(most, 2)));
                const float now = fmaxf(top[i][h], most), from = now == NOTHING ? 0.0f : now;
                shrink[i][h] = power(int(fmaxf(top[i][h] - from, -126.0f)));
                top[i][h] = now;
                #pragma unroll
                for (int j = 0; j < N; ++j)
                    #pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; ++e) {
                        float& p = s(i, j, e);
                        p = power_of(fmaf(p, c, UP - from));
                        float& to = sums[j % CHAINS];
                        to = CHAINS > 1 && j < CHAINS && e == 2 * h ? p : to + p;
                    }
                float sum = sums[0];
                #pragma unroll
                for (int j = 1; j < CHAINS; ++j) sum += sums[j];
                total[i][h] = fmaf(total[i][h], shrink[i][h], sum);
            }
    }
    // total := 1 / the sum of the weights, 0 of none; L of rows from `row` on of m gets UP - log2 of
    // the sum of all 2^(c s): P is 2^(c s + L), scaled. Integers are added apart, so that little is
    // rounded.
    __device__ void finish(float* L, int row, int m)
    {
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                float& sum = total[i][h];
                sum += across(sum, 1);
                sum += across(sum, 2);
                const unsigned bits = __float_as_uint(sum);
                const float more = log2f(__int_as_float(int((bits & 0x7fffff) | 0x3f800000)));
                const float whole = top[i][h] - 2 * UP + (int(bits >> 23) - 127);
                const int at = row + 16 * i + 8 * h + lane() / 4;
                if (lane() % 4 == 0 && at < m)
                    L[at] = sum == 0 ? NOTHING : sum == sum ? -whole - more : sum;
                sum = sum == 0 ? 0.0f : 1 / sum;
            }
    }
};

struct alignas(8) Neighbours { float first, second; };

// Four lanes side by side have four words each: lane t gets word t of each of them.
__device__ inline void transpose(unsigned (&x)[4])
{
    #pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
        const bool upper = lane() & bit;
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & bit) continue;
            const unsigned other = across(upper ? x[i] : x[i ^ bit], bit);
            (upper ? x[i] : x[i ^ bit]) = other;
        }
    }
}

// Times factor(i, h), 16 TILES rows x(i, j, e) to memory, from `first` on, numbers below `width` of
// each. Of two bytes eight are stored at once, of columns that four lanes have two each of.
template <int TILES, int N, class X, class F>
__device__ void put_lines(scalar_t* to, size next, const X& x, int first, int count, int width,
                          F factor)
{
    if (first >= count) return;  // and nothing is computed for it before
    constexpr int TOGETHER = sizeof(scalar_t) == 2 && N % 4 == 0 ? 4 : 1;
    #pragma unroll
    for (int i = 0; i < TILES; ++i)
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = first + 16 * i + 8 * h + lane() / 4, t = lane() % 4;
            const float by = factor(i, h);
            #pragma unroll
            for (int j = 0; j < N; j += TOGETHER) {
                const int col = TOGETHER == 4 ? 8 * (j + t) : 8 * j + 2 * t;
                const bool there = row < count && col < width;
                scalar_t* const p = to + row * next + col;
                const auto two = [&](int j) {
                    return Neighbours{x(i, j, 2 * h) * by, x(i, j, 2 * h + 1) * by};
                };
                const auto word = [&](int j) {
                    return two_of(two(j).first, two(j).second, number_t());
                };
                if constexpr (sizeof(scalar_t) == 4) {
                    if (there) *reinterpret_cast<Neighbours*>(p) = two(j);
                } else if constexpr (TOGETHER == 1) {
                    if (there) *reinterpret_cast<unsigned*>(p) = word(j);
                } else {
                    unsigned words[4] = {word(j), word(j + 1), word(j + 2), word(j + 3)};
                    transpose(words);
                    if (there)
                        *reinterpret_cast<uint4*>(p) = make_uint4(words[0], words[1], words[2],
                                                                  words[3]);
                }
            }
        }
}
