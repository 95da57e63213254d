// inverse_strips.cuh: the inverse of a matrix from its factors in shared memory: those of LU, or
// CHOLESKY's, L and, above it, L^H.
//
// A warp holds R columns of inv(L) in registers (column_strips.cuh), of which the rows above the
// first are zero: it solves with L from there down and with U or L^H from the end up, 8 rows at a
// time, and waits for no other warp. The tiles on the diagonal are inverted first, so that all of
// it are products of 8 x 8 tiles, by the tensor cores. Rows that are solved go to the end of the
// strip, which is turned over between the two: loops are short, and their arrays are indexed by
// constants. Of CHOLESKY's inverse only a triangle is wanted, and the way up ends at its diagonal.
//
// The more to the right a strip, the shorter its way. Where there are more strips than warps (TWICE)
// the last ones are second strips, the first of these the last warp's. They are done first, lie
// where the inverse is to be in memory meanwhile, and come back when nobody needs the factors any
// more. So warps have more registers: those of a quarter of the multiprocessor with two warps 255,
// with three 168.
#pragma once
#define SPLIT true
#include "column_strips.cuh"
#include "moves.cuh"
#include "reciprocal.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int TIGHT = 0;    // 1: no gap between rows, where another block has room then
#endif
// Two or four rows that are read together begin in other halves or quarters of the banks.
constexpr int GAP = VECTOR == 1 ? 1 : N % 16 ? 0 : 8;
constexpr int LD = N + (TIGHT ? 0 : GAP);
constexpr bool IN_PARTS = sizeof(real_t) == 4;
constexpr bool TWICE = N > WARPS * R;
static_assert(N % 8 == 0 && N <= 2 * WARPS * R);

struct Found {            // on the diagonal that is not of ones
    scalar_t inverse[N];  // of its numbers
    int zero;             // the first that is zero, from 1, or N + 1
    unsigned most, least; // of single precision: what else there is, as bits

    __device__ void clear() { zero = N + 1, most = 0, least = ALL; }
};

__device__ inline scalar_t* square() { return reinterpret_cast<scalar_t*>(dynamic_shared); }

// Zeros from n to the end of the last tiles
__device__ inline void fill_tiles(int n)
{
    const int all = (n + 7) / 8 * 8, past = all - n;
    for (int e = thread(); e < past * all; e += THREADS) {
        square()[(n + e % past) * LD + e / past] = scalar_t{};
        square()[e / past * LD + n + e % past] = scalar_t{};
    }
}

// What is on the diagonal. A barrier stands before and after.
__device__ inline void look_at(Found& s, int n)
{
    unsigned most = 0, least = ALL;
    for (int i = thread(); i < n; i += THREADS) {
        const real_t some = abs1(square()[i * (LD + 1)]);
        if (some == 0) atomicMin(&s.zero, i + 1);
        if constexpr (IN_PARTS)
            most = max(most, __float_as_uint(some)), least = min(least, __float_as_uint(some));
    }
    if constexpr (IN_PARTS) {
        most = __reduce_max_sync(ALL, most), least = ~__reduce_max_sync(ALL, ~least);
        if (lane() == 0) atomicMax(&s.most, most), atomicMin(&s.least, least);
    }
}

// The inverses of the tiles on the diagonal take their places, but for the ones of inv(L)'s. A
// column of inv(L) or inv(U) is a lane's, so 16 lanes have a tile; of CHOLESKY 8, for one is the
// other's.
__device__ inline void invert_tiles(const Found& s, int tiles)
{
    constexpr int LANES = CHOLESKY ? 8 : 16, TOGETHER = 32 / LANES;  // tiles of a warp
    const int c = thread() % 8;
    const bool upper = thread() % LANES < LANES - 8;
    #pragma unroll 1
    for (int J = thread() / LANES; J < (tiles + TOGETHER - 1) / TOGETHER * TOGETHER;
         J += THREADS / LANES) {
        const bool there = J < tiles;
        const int first = 8 * (there ? J : J / TOGETHER * TOGETHER);  // as others of the warp
        scalar_t* const tile = square() + first * (LD + 1);
        scalar_t x[8];
        #pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = scalar_t(real_t(i == c));
        if (upper)
            #pragma unroll
            for (int i = 7; i >= 0; --i) {
                #pragma unroll
                for (int k = i + 1; k < 8; ++k)
                    x[i] = minus_product(x[i], tile[i * LD + k], x[k]);
                x[i] = mul(s.inverse[first + i], x[i]);
            }
        else
            #pragma unroll
            for (int i = 0; i < 8; ++i) {
                #pragma unroll
                for (int k = 0; k < i; ++k)
                    x[i] = minus_product(x[i], tile[i * LD + k], x[k]);
                if constexpr (CHOLESKY) x[i] = mul(s.inverse[first + i], x[i]);
            }
        __syncwarp();  // no lane needs the tile any more
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (!there || (upper ? i > c : i < c + !CHOLESKY)) continue;
            tile[i * LD + c] = x[i];
            if (CHOLESKY) tile[c * LD + i] = conj(x[i]);
        }
    }
}

__device__ inline void read(Strip::Tile& tile, const scalar_t* from)
{
    Strip::read(tile, [=](int r, int c) {
        return *reinterpret_cast<const Few*>(from + r * LD + c);
    });
}

// A tile on the diagonal: of inv(U) or of inv(L)
template <bool UPPER> __device__ void read_half(Strip::Tile& tile, const scalar_t* from)
{
    Strip::read(tile, [=](int r, int c) {
        Few some = *reinterpret_cast<const Few*>(from + r * LD + c);
        #pragma unroll
        for (int e = 0; e < FEW; ++e) {
            const bool there = UPPER ? c + e >= r : c + e < r + CHOLESKY;
            if (!there) some.x[e] = scalar_t(real_t(!UPPER && !CHOLESKY && c + e == r));
        }
        return some;
    });
}

// The first 8 rows of the strip are solved with the inverse of their tile on the diagonal and taken
// off the next `others` times 8 by the tiles below it, or above. All others go one place on, and -1
// times these to the end: of two solves the signs cancel.
template <bool UP>
__device__ void solve_rows(Strip& strip, const scalar_t* diagonal, int others)
{
    constexpr int apart = UP ? -8 * LD : 8 * LD;
    Strip::Operand o;
    Strip::Tile own;
    Strip::Rows solved;
    Strip::operand_of<-1>(o, strip.x[0]);
    read_half<UP>(own, diagonal);
    Strip::add(solved, Strip::Rows{}, o, own);
    Strip::operand_of<1>(o, solved);
    #pragma unroll
    for (int first = 1; first < NT; first += GROUP) {
        Strip::Tile tiles[GROUP];
        Strip::Rows sums[GROUP];  // under way together: there is no branch between them
        if (first > others) {
            #pragma unroll
            for (int q = first; q < NT && q < first + GROUP; ++q) strip.x[q - 1] = strip.x[q];
            continue;
        }
        #pragma unroll
        for (int q = first; q < NT && q < first + GROUP; ++q)
            read(tiles[q - first], diagonal + min(q, others) * apart);
        #pragma unroll
        for (int q = first; q < NT && q < first + GROUP; ++q)
            Strip::add(sums[q - first], strip.x[q], o, tiles[q - first]);
        #pragma unroll
        for (int q = first; q < NT && q < first + GROUP; ++q)
            strip.x[q - 1] = q <= others ? sums[q - first] : strip.x[q];
    }
    strip.x[NT - 1] = solved;
}

__device__ inline void turn_over(Strip& strip)
{
    #pragma unroll
    for (int q = 0; q < NT / 2; ++q) {
        const Strip::Rows rows = strip.x[q];
        strip.x[q] = strip.x[NT - 1 - q], strip.x[NT - 1 - q] = rows;
    }
}

// The way down with L, then, from the end, up with U
template <bool UP> __device__ void go(Strip& strip, int from, int tiles)
{
    #pragma unroll 1
    for (int left = tiles - from; left > 0; --left) {
        const int J = UP ? from + left - 1 : tiles - left;
        solve_rows<UP>(strip, square() + 8 * J * (LD + 1), left - 1);
    }
}

constexpr int WIDE = R / 8;  // tiles across a strip
__device__ inline int end_of(int begin) { return CHOLESKY ? begin : 0; }  // of the way up

// The strip from tile `begin` on
__device__ inline void invert_strip(Strip& strip, int begin, int tiles)
{
    strip.clear();
    #pragma unroll
    for (int I = 0; I < WIDE && I < NT; ++I)
        strip.each(I, [=](int k, int c, scalar_t) { return scalar_t(real_t(8 * I + k == c)); });
    go<false>(strip, begin, tiles);
    turn_over(strip);
    go<true>(strip, begin < tiles ? end_of(begin) : tiles, tiles);
}

__device__ inline bool wanted(int i, int j, int n)
{
    return i < n && j < n && (!CHOLESKY || i >= j);
}
// f(i, j, x) for a lane's elements of the strip from tile `begin` on
template <class F> __device__ void each(Strip& strip, int begin, int n, F f)
{
    #pragma unroll
    for (int I = 0; I < NT; ++I)
        strip.each(NT - 1 - I, [&](int k, int c, scalar_t x) {
            const int i = 8 * (end_of(begin) + I) + k, j = 8 * begin + c;
            if (wanted(i, j, n)) f(i, j, x);
            return x;
        });
}

// put(i, j, x) for the elements x of inv(U) inv(L), of CHOLESKY's those with i >= j, when nobody
// needs the factors any more. All wait at the end. X: where the inverse will be.
template <class Put> __device__ void invert(int n, int tiles, const Strided<scalar_t>& X, Put put)
{
    const int own = warp() * WIDE, second = (2 * WARPS - 1) * WIDE - own;
    const bool twice = TWICE && second < tiles;
    Strip strip;
    #pragma unroll 1
    for (int begin = twice ? second : own;; begin = own) {
        invert_strip(strip, begin, tiles);
        if (begin == own) break;
        each(strip, begin, n, [=](int i, int j, scalar_t x) { X(i, j) = x; });
    }
    __syncthreads();
    each(strip, own, n, put);
    if (twice) {
        const int first = 8 * end_of(second), rows = n - first;
        const bool by_rows = X.cs == 1;
        #pragma unroll 4
        for (int e = lane(); e < R * rows; e += 32) {
            const int i = first + (by_rows ? e / R : e % rows);
            const int j = 8 * second + (by_rows ? e % R : e / rows);
            if (wanted(i, j, n)) put(i, j, X(i, j));
        }
    }
    __syncthreads();
}
