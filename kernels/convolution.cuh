// convolution.cuh: convolutions, and the gradients of their weights, as products whose second
// operand is never in memory:
//
//     C(r, s) = sum over k of A(r, k) X(k, s)
//
// Numbers s and k stand for three indices each: one for an image and one of its windows, (n, i, j),
// the other for an element of what all windows have, (c, p, q). X(k, s) is of image n, channel c,
// the number in row p step + i stride + row, column q step + j stride + col, or 0 where no such is.
// So places add up: of s and of k each there is one in the image, and one in C or in A.
//
//     y      s = (n, i, j), k = (c, p, q), A the weights; dx likewise, of dy and weights turned round
//     dW     s = (c, p, q), k = (n, i, j), A = dy; the k of a split to a block, its C apart
//
// A block has BM x BN of C, of one group of channels; a warp TM x TN. A and X come to shared memory
// BK of k at a time, by copies of single numbers, of A also of four, STAGES - 1 of them under way.
// ALONG: neighbours in memory are neighbours in k, else in s; these are what neighbouring threads
// copy.
//
// PAIRS, of single precision: words in place of numbers are pairs of half precision (pair_words.cu),
// scaled by an exponent for all of an operand. Then the tensor cores sum BK of k before sums are
// added here, and take 16 at a time, else 8.
//
// Floor: x read and y written once, or 6 m n k operations of the tensor cores. Measured: 33 Tflop/s
// of 2 m n k, with PAIRS 45 (64 x 64 x 56 x 56, 64 filters of 3 x 3).
#pragma once
#include "pairs.cuh"
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"
#include "tensor.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int PAIRS = 0;
constexpr int FOURS = 0;
#endif
static_assert(!PAIRS || (sizeof(scalar_t) == 4 && BK % 16 == 0));
static_assert(!FOURS || PAIRS);
static_assert(WARPS == BM / TM * (BN / TN) && TM % 16 == 0 && TN % 8 == 0 && BK % 8 == 0);
static_assert(THREADS % BK == 0 && BM * BK % THREADS == 0 && BN * BK % THREADS == 0);

constexpr int NOWHERE = -(1 << 28);  // the row of what there is no more of
constexpr int PITCH = BK + 16 / int(sizeof(scalar_t));

struct alignas(16) Place {
    int at, row, col;  // in the image
    int other;         // in A, or in C
};

// What a number stands for
struct Index {
    int count, inner, last;  // how many there are; to one of the first index; of the third
    int first, second, third, row, col;        // from one to the next in the image; rows and columns
    int other_first, other_second, other_third;  // in A, or in C

    __device__ Place operator()(int i, int end) const
    {
        if (i >= end) return {0, NOWHERE, NOWHERE, 0};
        const int a = int(unsigned(i) / unsigned(inner)), rest = i - a * inner;
        const int b = int(unsigned(rest) / unsigned(last)), c = rest - b * last;
        return {a * first + b * second + c * third, b * row, c * col,
                a * other_first + b * other_second + c * other_third};
    }
};

struct Image {
    const scalar_t* p;
    int height, width;

    __device__ void fetch(scalar_t* to, const Place& a, const Place& b) const
    {
        const bool there = (unsigned(a.row + b.row) < unsigned(height))
                           & (unsigned(a.col + b.col) < unsigned(width));
        copy_async<sizeof(scalar_t)>(to, p + (there ? a.at + b.at : 0),
                                     there ? int(sizeof(scalar_t)) : 0);
    }
};

template <bool ALONG> struct Stage {
    static constexpr int LEADING = ALONG ? PITCH : BN + 8;
    static constexpr int OF_A = BM * PITCH, NUMBERS = OF_A + (ALONG ? BN : BK) * LEADING;
    scalar_t* p;

    __device__ explicit Stage(int tile)
        : p(reinterpret_cast<scalar_t*>(dynamic_shared) + tile % STAGES * NUMBERS) {}
    __device__ scalar_t& a(int r, int k) const { return p[r * PITCH + k]; }
    __device__ scalar_t& x(int k, int s) const
    {
        return p[OF_A + (ALONG ? s * LEADING + k : k * LEADING + s)];
    }
};

// The high and the low parts of two pairs
__device__ inline unsigned high_parts(unsigned x, unsigned y) { return (x & 0xffff) | y << 16; }
__device__ inline unsigned low_parts(unsigned x, unsigned y) { return x >> 16 | (y & 0xffff0000); }

// What a word stands for, scaled
__device__ inline float both_parts(float x)
{
    return first_of(__float_as_uint(x)) + second_of(__float_as_uint(x));
}
__device__ inline double both_parts(double x) { return x; }

// `origin`: the place of s = 0, k = 0. Of y `more` is what is added to each row of C, or null, of dW
// where the sums of A's rows go. FOURS: four of A's neighbours in k can be copied at once, and a
// split is a multiple of four. The exponents are of PAIRS.
template <bool ALONG>
__device__ void convolution(const scalar_t* A, size a_row, size a_group, Image image, size x_group,
                         scalar_t* C, size c_row, size c_group, size c_split, scalar_t* more,
                         int rows, const Index& of_k, const Index& of_s, Place origin, int split,
                         const int* exponent_a, const int* exponent_x)
{
    __shared__ Place places_s[BN], places_k[2][BK];
    const int row_tiles = (rows + BM - 1) / BM, tiles_s = (of_s.count + BN - 1) / BN;
    const int splits = (of_k.count + split - 1) / split;
    unsigned block = blockIdx.x;
    const int first_r = int(block % row_tiles) * BM;
    block /= row_tiles;
    const int first_s = int(block % tiles_s) * BN;
    block /= tiles_s;
    const int first_k = int(block % splits) * split, group = int(block / splits);
    const int end = first_k + split < of_k.count ? first_k + split : of_k.count;
    const int tiles = (end - first_k + BK - 1) / BK;
    A += group * a_group + first_r * a_row;
    image.p += group * x_group;
    C += group * c_group + first_k / split * c_split;

    const auto in_k = [&](int tile) {  // of a thread's own k
        return of_k(first_k + tile * BK + thread() % BK, end);
    };
    const auto prepare = [&](int tile) {
        if (!ALONG && thread() < BK) places_k[tile % 2][thread()] = in_k(tile);
    };
    for (int s = thread(); s < BN; s += THREADS) {
        Place place = of_s(first_s + s, of_s.count);
        place.at += origin.at, place.row += origin.row, place.col += origin.col;
        places_s[s] = place;
    }
    prepare(0);
    __syncthreads();
    static_assert(ALONG || THREADS % BN == 0);
    const Place mine = places_s[thread() % BN];  // unless ALONG, what a thread copies
    const auto fetch = [&](int tile) {
        if (tile < tiles) {
            const Stage<ALONG> to(tile);
            const int k = thread() % BK;
            const Place own = ALONG ? in_k(tile) : places_k[tile % 2][k];
            if constexpr (FOURS) {
                constexpr int EACH = BK / 4;
                #pragma unroll
                for (int q = 0; q < BM * EACH; q += THREADS) {
                    const int e = q + thread(), r = e / EACH, first = e % EACH * 4;
                    if (BM * EACH % THREADS != 0 && e >= BM * EACH) continue;
                    const Place of = ALONG ? of_k(first_k + tile * BK + first, end)
                                           : places_k[tile % 2][first];
                    const bool there = (of.row > NOWHERE) & (first_r + r < rows);
                    copy_async<16>(&to.a(r, first), A + (there ? r * a_row + of.other : 0),
                                   there ? 16 : 0);
                }
            } else {
                #pragma unroll
                for (int q = 0; q < BM; q += THREADS / BK) {
                    const int r = q + thread() / BK;
                    const bool there = (own.row > NOWHERE) & (first_r + r < rows);
                    copy_async<sizeof(scalar_t)>(&to.a(r, k),
                                                 A + (there ? r * a_row + own.other : 0),
                                                 there ? int(sizeof(scalar_t)) : 0);
                }
            }
            if (ALONG) {
                #pragma unroll
                for (int q = 0; q < BN; q += THREADS / BK)
                    image.fetch(&to.x(k, q + thread() / BK), own, places_s[q + thread() / BK]);
            } else {
                #pragma unroll
                for (int q = 0; q < BK; q += (THREADS + BN - 1) / BN)
                    image.fetch(&to.x(q + thread() / BN, thread() % BN), mine,
                                places_k[tile % 2][q + thread() / BN]);
            }
        }
        end_group();
    };
    #pragma unroll 1
    for (int tile = 0; tile < STAGES - 1; ++tile) {
        fetch(tile);
        prepare(tile + 1);
        __syncthreads();
    }

    const int g = thread() % 32 / 4, t = thread() % 4;
    const int r0 = warp() % (BM / TM) * TM, s0 = warp() / (BM / TM) * TN;
    const bool sums_rows = ALONG && first_s == 0 && s0 == 0 && more;
    scalar_t c[TM / 16][TN / 8][4] = {}, sums[TM / 16][2] = {};
    #pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        await_groups<STAGES - 2>();
        __syncthreads();
        fetch(tile + STAGES - 1);
        prepare(tile + STAGES);
        const Stage<ALONG> from(tile);
        if (sums_rows)
            #pragma unroll
            for (int k = t; k < BK; k += 4)
                #pragma unroll
                for (int i = 0; i < TM / 8; ++i)
                    sums[i / 2][i % 2] += PAIRS ? both_parts(from.a(r0 + 8 * i + g, k))
                                                : from.a(r0 + 8 * i + g, k);
        if constexpr (PAIRS) {
            constexpr int DEEP = BK / 16;
            const auto word = [&](int k, int s) { return __float_as_uint(from.x(k + t, s + g)); };
            unsigned high[DEEP][TM / 16][4], low[DEEP][TM / 16][4];
            #pragma unroll
            for (int d = 0; d < DEEP; ++d)
                #pragma unroll
                for (int i = 0; i < TM / 16; ++i)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int r = r0 + 16 * i + e % 2 * 8 + g, k = 16 * d + e / 2 * 8 + t;
                        const unsigned first = __float_as_uint(from.a(r, k));
                        const unsigned second = __float_as_uint(from.a(r, k + 4));
                        high[d][i][e] = high_parts(first, second);
                        low[d][i][e] = low_parts(first, second);
                    }
            #pragma unroll
            for (int j = 0; j < TN / 8; ++j) {
                float part[TM / 16][4] = {};
                #pragma unroll
                for (int d = 0; d < DEEP; ++d) {
                    unsigned x[4];
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) x[e] = word(16 * d + 4 * e, s0 + 8 * j);
                    const unsigned x_high[2] = {high_parts(x[0], x[1]), high_parts(x[2], x[3])};
                    const unsigned x_low[2] = {low_parts(x[0], x[1]), low_parts(x[2], x[3])};
                    #pragma unroll
                    for (int i = 0; i < TM / 16; ++i) {
                        tensor_product(part[i], low[d][i], x_high, half());
                        tensor_product(part[i], high[d][i], x_low, half());
                        tensor_product(part[i], high[d][i], x_high, half());
                    }
                }
                #pragma unroll
                for (int i = 0; i < TM / 16; ++i)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) c[i][j][e] += part[i][e];
            }
        } else {
            #pragma unroll
            for (int k = 0; k < BK; k += 8) {
                scalar_t a[TM / 16][4];
                #pragma unroll
                for (int i = 0; i < TM / 16; ++i)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e)
                        a[i][e] = from.a(r0 + 16 * i + e % 2 * 8 + g, k + e / 2 * 4 + t);
                #pragma unroll
                for (int j = 0; j < TN / 8; ++j) {
                    const scalar_t x[2] = {from.x(k + t, s0 + 8 * j + g),
                                           from.x(k + 4 + t, s0 + 8 * j + g)};
                    #pragma unroll
                    for (int i = 0; i < TM / 16; ++i) tensor_product(c[i][j], a[i], x);
                }
            }
        }
    }

    const float down_a = PAIRS ? power(-*exponent_a) : 1, down_x = PAIRS ? power(-*exponent_x) : 1;
    #pragma unroll
    for (int i = 0; i < TM / 16; ++i)
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int r = r0 + 16 * i + 8 * h + g, row = first_r + r;
            if (ALONG) {
                scalar_t sum = sums[i][h];
                sum += across(sum, 1);
                sum += across(sum, 2);
                if (PAIRS) sum *= down_a;
                if (sums_rows && t == 0 && row < rows)
                    more[first_k / split * c_split + group * rows + row] = sum;
            }
            if (row >= rows) continue;
            const scalar_t add = !ALONG && more ? more[group * rows + row] : scalar_t(0);
            scalar_t* const to = C + row * c_row;
            #pragma unroll
            for (int j = 0; j < TN / 8; ++j)
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int s = s0 + 8 * j + 2 * t + e;
                    scalar_t sum = c[i][j][2 * h + e];
                    if (PAIRS) sum *= down_a, sum *= down_x;
                    if (first_s + s < of_s.count) to[places_s[s].other] = sum + add;
                }
        }
}
