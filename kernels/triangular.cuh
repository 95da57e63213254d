// triangular.cuh: solves and products with a lower triangular matrix from the left.
//
// All cases of trsm and trmm are this one through strides: a transposed A swaps them, an upper one
// is the lower one of reversed rows and columns (negative strides), and X op(A) = B is
// op(A)^T X^T = B^T. What strides cannot do is the conjugate: conj(L) X = B is L conj(X) = conj(B).
//
// A warp holds R columns of N rows of X in registers (column_strips.cuh) and waits for no other
// warp: L is in shared memory, in tiles of 8 x 8, and so is, on its way, one block of 8 rows of the
// strip.
#pragma once
#include "column_strips.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int DEEP = 2;     // tiles across a slice of L that is on its way
constexpr int STAGES = 2;   // slices in shared memory
constexpr int RESIDENT = 0; // 1: no matrix has more than N rows
#endif
constexpr int TILE = 64;
constexpr int SLICE = DEEP * (NT * TILE + WARPS * BLOCK);
static_assert(N % (8 * DEEP) == 0);

// Where a tile has its element (r, c): a row's 16 bytes change places from row to row, so that
// columns, too, meet few banks twice
__device__ inline int in_tile(int r, int c)
{
    constexpr int packs = 8 / VECTOR, bend = 8 / packs;
    return 8 * r + ((c / VECTOR) ^ (r / bend % packs)) * VECTOR + c % VECTOR;
}
__device__ inline Vector in_tile_from(const scalar_t* tile, int r, int c)
{
    return *reinterpret_cast<const Vector*>(tile + in_tile(r, c));
}

// L, n x n, with ones on its diagonal if `unit`, as a warp copies it: of a tile a lane has two
// elements, 4 rows or columns apart, its neighbours those that lie next to them.
struct Lower {
    Strided<const scalar_t> a;
    int n;
    bool unit, across;
    int r, c;

    __device__ Lower(Strided<const scalar_t> a, int n, bool unit) : a(a), n(n), unit(unit)
    {
        across = by_rows(a);
        r = across ? lane() / 8 : lane() % 8;
        c = across ? lane() % 8 : lane() / 8;
    }
    // to := the tile from (i, j) on, without waiting, but not what is above the diagonal of L or
    // past its end; ZERO: zeros there, and the ones of a unit diagonal
    template <bool ZERO> __device__ void fetch(scalar_t* to, int i, int j) const
    {
        const scalar_t* from = &a(i + r, j + c);
        #pragma unroll
        for (int q = 0; q < 2; ++q, from += 4 * (across ? a.rs : a.cs)) {
            const int down = across ? r + 4 * q : r, right = across ? c : c + 4 * q;
            scalar_t* const at = to + in_tile(down, right);
            const bool there = i + down < n && j + right <= i + down - unit;
            if (ZERO && unit && i + down == j + right) *at = scalar_t{1};
            else if (there) copy_async<sizeof(scalar_t)>(at, from, sizeof(scalar_t));
            else if (ZERO) *at = scalar_t{};
        }
    }
};

// The tiles (I, J), J <= I, of m rows and columns of L from (first, first) on, row after row,
// number I (I + 1) / 2 + J
__device__ inline void fetch_triangle(scalar_t* tiles, const Lower& L, int first, int m)
{
    int I = 0, J = warp();
    for (int number = warp();; number += WARPS, J += WARPS) {
        while (J > I) J -= ++I;
        if (8 * I >= m) break;
        L.fetch<false>(tiles + number * TILE, first + 8 * I, first + 8 * J);
    }
}

// DEEP tiles across and N rows down of L from (first, k) on: tile (I, d) is number d NT + I.
template <bool ZERO>
__device__ void fetch_panel(scalar_t* tiles, const Lower& L, int first, int k)
{
    #pragma unroll
    for (int number = 0; number < DEEP * NT; number += WARPS) {
        const int mine = number + warp();
        if (mine < DEEP * NT)
            L.fetch<ZERO>(tiles + mine * TILE, first + mine % NT * 8, k + mine / NT * 8);
    }
}

// 8 rows of X from `first` on, where p is, to shared memory, without waiting; p goes to the next
// 8. What is not there stays what it is; ZERO: zeros.
template <bool ZERO>
__device__ void fetch_block(scalar_t* block, const Columns<const scalar_t>& x, const scalar_t*& p,
                            int first)
{
    x.each(p, first, [=](int, int k, int c, const scalar_t* from, bool there) {
        if (there) copy_async<sizeof(scalar_t)>(block + in_block(k, c), from, sizeof(scalar_t));
        else if (ZERO) block[in_block(k, c)] = scalar_t{};
    });
}

// Tile row I - UP of the strip := row I + its tile times o, for I from UP to `last`, and any number
// of rows after it. What a group of tiles wants of shared memory is on its way together, so all of
// at(I) must exist. EXACT: and no others, those from `begin` on.
template <int UP, bool EXACT, class At>
__device__ void add_tiles(Strip& strip, const Strip::Operand& o, int begin, int last, At at)
{
    #pragma unroll
    for (int first = UP; first < NT; first += GROUP) {
        if (first > last) break;
        Strip::Tile tile[GROUP];
        #pragma unroll
        for (int q = 0; q < GROUP && first + q < NT; ++q) {
            const scalar_t* const p = at(first + q);
            Strip::read(tile[q], [=](int r, int c) { return in_tile_from(p, r, c); });
        }
        #pragma unroll
        for (int q = 0; q < GROUP && first + q < NT; ++q)
            if (!EXACT || (begin <= first + q && first + q <= last))
                Strip::add(strip.x[first + q - UP], strip.x[first + q], o, tile[q]);
    }
}

// strip += SIGN L(m rows from `first` on, columns `begin` to `end`) X(rows `begin` to `end`), by
// all warps of the block, each with columns of its own if it has any. Slices of L and X pass
// through `ring`, which nobody must need any more. DIAGONAL: columns may be on the diagonal of L,
// or right of it.
template <int SIGN, bool DIAGONAL>
__device__ void add_product(Strip& strip, const Lower& L, int first, int m, int begin, int end,
                            const Columns<const scalar_t>& X, bool conjugated, scalar_t* ring)
{
    constexpr int width = 8 * DEEP;
    const int slices = (end - begin + width - 1) / width;
    const scalar_t* p = X.from(begin);
    const auto fetch = [&](int s) {
        if (s < slices) {
            const int k = begin + s * width;
            scalar_t* const at = ring + s % STAGES * SLICE;
            fetch_panel<DIAGONAL>(at, L, first, k);
            if (X.n > 0)
                #pragma unroll
                for (int d = 0; d < DEEP; ++d)
                    fetch_block<DIAGONAL>(at + DEEP * NT * TILE + (warp() * DEEP + d) * BLOCK, X,
                                          p, k + 8 * d);
        }
        end_group();
    };
    #pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) fetch(s);
    #pragma unroll 1
    for (int s = 0; s < slices; ++s) {
        await_groups<STAGES - 2>();
        __syncthreads();  // slice s is there, and nobody reads the one before any more
        fetch(s + STAGES - 1);
        if (X.n <= 0) continue;
        const scalar_t* const at = ring + s % STAGES * SLICE;
        #pragma unroll 1
        for (int d = 0; d < DEEP; ++d) {
            Strip::Operand o;
            Strip::operand<SIGN>(o, at + DEEP * NT * TILE + (warp() * DEEP + d) * BLOCK,
                                 conjugated);
            const int K = DIAGONAL ? (begin - first) / 8 + s * DEEP + d : 0;
            add_tiles<0, DIAGONAL>(strip, o, K, (m - 1) / 8, [=](int I) {
                return at + (d * NT + I) * TILE;
            });
        }
    }
}
