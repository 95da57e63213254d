// inverse_strips.cuh: the inverse of a matrix from its factors in shared memory: those of LU, or
// CHOLESKY's, L and, above it, L^H.
//
// A warp holds R columns of inv(L) in registers (column_strips.cuh), of which the rows above the
// first are zero: it solves with L from there down and with U or L^H from the end up, 8 rows at a
// time, and waits for no other warp. The tiles on the diagonal are inverted first, so that all of
// it are products of 8 x 8 tiles, by the tensor cores. Rows that are solved go to the end of the
// strip, which is turned over between the two: loops are short, and their arrays are indexed by
// constants. Of CHOLESKY's inverse only a triangle is wanted, and the way up ends at its diagonal.
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
static_assert(N % 8 == 0 && N <= WARPS * R);

struct Found {            // on the diagonal that is not of ones
    scalar_t inverse[N];  // of its numbers
    int zero;             // the first that is zero, from 1, or N + 1
    unsigned most, least; // of single precision: what else there is, as bits

    __device__ void clear() { zero = N + 1, most = 0, least = ALL; }
};

__device__ inline scalar_t* square() { return reinterpret_cast<scalar_t*>(dynamic_shared); }
// The inverses of the tiles on L's diagonal, one below the other, 8 numbers to a row
__device__ inline scalar_t* lower_tiles() { return square() + N * LD; }

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

// The tiles on the diagonal: inv(U)'s take the place of both factors' there, with zeros, inv(L)'s
// go to lower_tiles(). A column of either is a lane's, so 16 lanes have a tile; of CHOLESKY 8, for
// one is the other's.
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
            if (there) (upper ? tile + i * LD : lower_tiles() + 8 * (first + i))[c] = x[i];
            if (CHOLESKY && there) tile[c * LD + i] = conj(x[i]);
        }
    }
}

__device__ inline void read(Strip::Tile& tile, const scalar_t* from, int pitch)
{
    Strip::read(tile, [=](int r, int c) {
        return *reinterpret_cast<const Few*>(from + r * pitch + c);
    });
}

// The first 8 rows of the strip are solved with the inverse of their tile on the diagonal and taken
// off the next `others` times 8 by tiles `apart` from each other, their own being the first. All
// others go one place on, and -1 times these to the end: of two solves the signs cancel.
__device__ inline void solve_rows(Strip& strip, const scalar_t* inverse, int pitch, int others,
                                  const scalar_t* tile, int apart)
{
    Strip::Operand o;
    Strip::Tile own;
    Strip::Rows solved;
    Strip::operand_of<-1>(o, strip.x[0]);
    read(own, inverse, pitch);
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
            read(tiles[q - first], tile + min(q, others) * apart, LD);
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

// put(i, j, x) for the elements x of inv(U) inv(L), of CHOLESKY's those with i >= j, when nobody
// needs the factors any more. All wait at the end.
template <class Put> __device__ void invert(int n, int tiles, Put put)
{
    const int begin = warp() * (R / 8);
    const int end = CHOLESKY ? begin : 0;  // of the way up
    Strip strip;
    strip.clear();
    #pragma unroll
    for (int I = 0; I < R / 8 && I < NT; ++I)
        strip.each(I, [=](int k, int c, scalar_t) { return scalar_t(real_t(8 * I + k == c)); });
    #pragma unroll
    for (int up = 0; up < 2; ++up) {  // with L, then, from the end, with U
        #pragma unroll 1
        for (int left = begin < tiles ? tiles - (up ? end : begin) : 0; left > 0; --left) {
            const int J = up ? end + left - 1 : tiles - left;
            const scalar_t* const diagonal = square() + 8 * J * (LD + 1);
            solve_rows(strip, up ? diagonal : lower_tiles() + 64 * J, up ? LD : 8, left - 1,
                       diagonal, up ? -8 * LD : 8 * LD);
        }
        if (!up) turn_over(strip);
    }
    __syncthreads();
    #pragma unroll
    for (int I = 0; I < NT; ++I)
        strip.each(NT - 1 - I, [&](int k, int c, scalar_t x) {
            const int i = 8 * (end + I) + k, j = 8 * begin + c;
            if (i < n && j < n && (!CHOLESKY || i >= j)) put(i, j, x);
            return x;
        });
    __syncthreads();
}
