// cholesky_tile.cuh: tiles of 8 x 8 (tile.cuh) in shared memory; the Cholesky factor of one, and
// solves with it.
#pragma once
#include "async.cuh"
#include "block.cuh"
#include "reciprocal.cuh"
#include "shuffle.cuh"
#include "tile.cuh"

// -- tiles in shared memory, 64 numbers each: of double precision as the lanes have them, else by
// rows, their 16 bytes so bent that eight rows meet no bank twice

__device__ inline int lane() { return threadIdx.x % 32; }

constexpr int CHUNK = 16 / sizeof(scalar_t);
struct alignas(16) Quad { scalar_t x[CHUNK]; };
using Row = scalar_t[8];

__device__ inline int chunk_of(int row, int col)
{
    return 8 * row + (col / CHUNK ^ (CHUNK == 4 ? row / 4 : row / 2)) * CHUNK;
}
__device__ inline Quad& quad(scalar_t* tile, int row, int col)
{
    return *reinterpret_cast<Quad*>(tile + chunk_of(row, col));
}

// Tile (I, J) of a lower triangle of so many rows of tiles, column by column
__device__ inline scalar_t* tile_of(scalar_t* room, int rows, int I, int J)
{
    return room + 64 * (J * (rows - 1) - J * (J - 1) / 2 + I);
}

// Where a tile has element e of this lane
__device__ inline scalar_t* mine(scalar_t* tile, int e)
{
    if (!TENSOR) return tile + chunk_of(g(), 2 * t()) + 2 * t() % CHUNK + e;
    return tile + (PAIR == 2 ? 2 * lane() + e : 32 * e + lane());
}
__device__ inline Tile get(scalar_t* tile)
{
    if constexpr (PAIR == 2) return *reinterpret_cast<const Tile*>(mine(tile, 0));
    else return {*mine(tile, 0), *mine(tile, 1)};
}
__device__ inline void put(scalar_t* tile, const Tile& a)
{
    if constexpr (PAIR == 2) *reinterpret_cast<Tile*>(mine(tile, 0)) = a;
    else *mine(tile, 0) = a.x[0], *mine(tile, 1) = a.x[1];
}

// c -= CHUNK columns of a times those of b, adjoint: the lane's row of a, and of b two
__device__ inline void subtract(Tile& c, const Quad& a, const Quad (&b)[2])
{
    #pragma unroll
    for (int k = 0; k < CHUNK; ++k)
        #pragma unroll
        for (int e = 0; e < 2; ++e) c.x[e] = minus_product(c.x[e], a.x[k], conj(b[e].x[k]));
}

// c[q] -= a[q] b^H
template <int COUNT>
__device__ void subtract_product(Tile (&c)[COUNT], scalar_t* const (&a)[COUNT], scalar_t* b)
{
    if constexpr (TENSOR) {
        Tile left[COUNT];
        #pragma unroll
        for (int q = 0; q < COUNT; ++q) left[q] = get(a[q]);
        add_adjoint<-1>(c, left, get(b));
    } else {
        #pragma unroll
        for (int h = 0; h < 8; h += CHUNK) {
            const Quad right[2] = {quad(b, 2 * t(), h), quad(b, 2 * t() + 1, h)};
            #pragma unroll
            for (int q = 0; q < COUNT; ++q) subtract(c[q], quad(a[q], g(), h), right);
        }
    }
}

// Tile (I, J) of the lower triangle of an n x n matrix goes to shared memory, zeros past n.
template <bool PACKS, class T>
__device__ void copy_pairs(scalar_t* tile, const Strided<T>& A, int I, int J, int n)
{
    const int i = 8 * I + tile_row();
    #pragma unroll
    for (int e = 0; e < (PACKS ? 1 : 2); ++e) {
        constexpr int bytes = (PACKS ? 2 : 1) * sizeof(scalar_t);
        const int j = 8 * J + tile_col(e);
        const bool there = i < n && j <= i;
        copy_async<bytes>(mine(tile, e), there ? &A(i, j) : A.p, there ? bytes : 0);
    }
}
template <class T>
__device__ void copy_tile(scalar_t* tile, const Strided<T>& A, bool packs, int I, int J, int n)
{
    if (packs) copy_pairs<PAIR == 2>(tile, A, I, J, n);
    else copy_pairs<false>(tile, A, I, J, n);
}

// Where a tile has element (r, c)
__device__ inline int place_in_tile(int r, int c)
{
    if (!TENSOR) return chunk_of(r, c) + c % CHUNK;
    return PAIR == 2 ? 8 * r + c : 4 * place_of(r) + 32 * (place_of(c) % 2) + place_of(c) / 2;
}

struct Diagonal {           // what all warps see of the diagonal tile
    int info;               // of the matrix: 0, or the first column whose pivot is not positive
    alignas(16) scalar_t factor[TENSOR ? 64 : 1], inverse[TENSOR ? 64 : 1];
    alignas(16) scalar_t columns[TENSOR ? 1 : 8][8];  // (c, r): conj(L(r, c))
    real_t reciprocals[8];
};

// -- the diagonal tile

// One column of the diagonal tile a, and, for the tensor cores, one row of its inverse y; and, with
// a right-hand SIDE of which lanes have their row, one number of L^-1 b
template <bool SIDE, class Root>
__device__ void eliminate(Tile& a, Tile& y, scalar_t& b, int j, Root root)
{
    const int p = place_of(j), source = p / 2;
    const scalar_t own = p % 2 ? a.x[1] : a.x[0];
    const real_t pivot = of_lane(real(own), 4 * p + source), r = root(pivot);
    const scalar_t column = of_lane(own, 4 * g() + source), l = mul(column, r), m = mul(l, r);
    const bool below = tile_row() > j, on = tile_row() == j;
    if constexpr (SIDE) {
        const scalar_t above = of_lane(b, 4 * p);
        b = below ? minus_product(b, m, above) : on ? mul(b, r) : b;
    }
    #pragma unroll
    for (int e = 0; e < 2; ++e) {
        const scalar_t right = of_lane(own, 4 * (2 * t() + e) + source);
        if (below && tile_col(e) > j) a.x[e] = minus_product(a.x[e], m, conj(right));
        if constexpr (TENSOR) {
            const scalar_t above = of_lane(y.x[e], 4 * p + t());
            y.x[e] = below ? minus_product(y.x[e], m, above) : on ? mul(y.x[e], r) : y.x[e];
        }
    }
    #pragma unroll
    for (int e = 0; e < 2; ++e)
        if (tile_col(e) == j && (below || on)) a.x[e] = on ? scalar_t{pivot * r} : l;
}

__device__ inline Tile ones()
{
    const int i = tile_row();
    return {scalar_t{real_t(i == tile_col(0))}, scalar_t{real_t(i == tile_col(1))}};
}

// a := L on and below the diagonal, y := inv(L), zeros above; b := L^-1 b if there is a SIDE.
// Returns 1 + the first column whose pivot is not positive, or 0; the columns from there on mean
// nothing. All lanes get the same.
template <bool SIDE>
__device__ int factor_tile(Tile& a, Tile& y, scalar_t& b, real_t* reciprocals)
{
    const Tile given = a;
    const scalar_t side = b;
    bool usual = true;
    y = ones();
    #pragma unroll
    for (int j = 0; j < 8; ++j)
        eliminate<SIDE>(a, y, b, j, [&](real_t pivot) {
            usual = usual && in_range(pivot);
            const real_t r = near_rsqrt(pivot);
            if (!TENSOR && threadIdx.x % 32 == j) reciprocals[j] = r;
            return r;
        });
    if (usual) return 0;
    int failed = 0;
    a = given, y = ones(), b = side;
    #pragma unroll 1
    for (int j = 0; j < 8; ++j)
        eliminate<SIDE>(a, y, b, j, [&](real_t pivot) {
            if (!(pivot > 0) && !failed) failed = j + 1;
            const real_t r = failed ? real_t(1) : rsqrt(pivot);
            if (!TENSOR && threadIdx.x % 32 == j) reciprocals[j] = r;
            return r;
        });
    return failed;
}
__device__ inline int factor_tile(Tile& a, Tile& y, real_t* reciprocals)
{
    scalar_t none{};
    return factor_tile<false>(a, y, none, reciprocals);
}

// -- solves with it

__device__ inline Tile lower_half(const Tile& a)
{
    return {tile_col(0) <= tile_row() ? a.x[0] : scalar_t{},
            tile_col(1) <= tile_row() ? a.x[1] : scalar_t{}};
}

// x := c L^-H for y = inv(L) and l, of which the other half is zero: many tiles at a time, whose
// products do not wait for each other
template <int COUNT>
__device__ void times_inverse(Tile (&x)[COUNT], const Tile (&c)[COUNT], const Tile& l,
                              const Tile& y)
{
    Tile left[COUNT];
    #pragma unroll
    for (int q = 0; q < COUNT; ++q) x[q] = {}, left[q] = c[q];
    add_adjoint<1>(x, c, y);
    add_adjoint<-1>(left, x, l);
    add_adjoint<1>(x, left, y);
}

__device__ inline bool is_finite(const Tile& c)
{
    return isfinite(abs1(c.x[0])) && isfinite(abs1(c.x[1]));
}

// A row of a tile := row L^-H
__device__ inline void solve_row(scalar_t* tile, int row, const Diagonal& diagonal)
{
    Row x;
    #pragma unroll
    for (int h = 0; h < 8; h += CHUNK)
        #pragma unroll
        for (int e = 0; e < CHUNK; ++e) x[h + e] = quad(tile, row, h).x[e];
    #pragma unroll
    for (int c = 0; c < 8; ++c) {
        x[c] = mul(x[c], diagonal.reciprocals[c]);
        #pragma unroll
        for (int h = 0; h < 8; h += CHUNK) {
            if (h + CHUNK <= c + 1) continue;
            const Quad l = *reinterpret_cast<const Quad*>(&diagonal.columns[TENSOR ? 0 : c][h]);
            #pragma unroll
            for (int e = 0; e < CHUNK; ++e)
                if (h + e > c) x[h + e] = minus_product(x[h + e], x[c], l.x[e]);
        }
    }
    #pragma unroll
    for (int h = 0; h < 8; h += CHUNK) {
        Quad q;
        #pragma unroll
        for (int e = 0; e < CHUNK; ++e) q.x[e] = x[h + e];
        quad(tile, row, h) = q;
    }
}

// The tile := tile L^-H by substitution: where a product with zeros would make nan of inf
__device__ inline void substitute(scalar_t* tile, const Tile& l)
{
    Tile c = get(tile);
    #pragma unroll 1
    for (int j = 0; j < 8; ++j) {
        const int p = place_of(j), source = p / 2;
        const scalar_t theirs = p % 2 ? l.x[1] : l.x[0], its = p % 2 ? c.x[1] : c.x[0];
        const real_t r = real_t(1) / of_lane(real(theirs), 4 * p + source);
        const scalar_t x = mul(of_lane(its, 4 * g() + source), r);
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const scalar_t left = of_lane(theirs, 4 * (2 * t() + e) + source);
            if (tile_col(e) == j) c.x[e] = x;
            if (tile_col(e) > j) c.x[e] = minus_product(c.x[e], x, conj(left));
        }
    }
    put(tile, c);
}
