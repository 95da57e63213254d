// cholesky_solve.cuh: A X = B for one matrix by a block, the factor L in tiles in shared memory.
//
// Eight right-hand sides are eight rows of Z = B^H, and Z L^-H, then Z L^-1 are made of its tiles
// as rows of L are made: the next tile is solved by the first warp, while the others take the
// product with the last one off those beyond. A factor by its upper triangle comes with swapped
// strides and is that of conj(A): the right-hand sides are conjugated.
#pragma once
#include "cholesky_tile.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BLOCKS = 1;
#endif
constexpr int SIDES = 8;    // right-hand sides of a block

__device__ inline scalar_t over(real_t x, scalar_t d) { return x / real(d); }
template <class R> __device__ complex<R> over(complex<R> x, complex<R> d)
{
    return {x.re / d.re, x.im / d.re};
}

// What a block has in shared memory: L, its tiles below each other column by column, Z, and of
// double precision the inverses of the diagonal tiles
struct System {
    scalar_t* room;
    int rows;                // of tiles

    __device__ scalar_t* l(int I, int J) const { return tile_of(room, rows, I, J); }
    __device__ scalar_t* z(int I) const { return room + 64 * (rows * (rows + 1) / 2 + I); }
    __device__ scalar_t* inverse(int I) const { return z(rows + I); }
};

// The tile's adjoint: this lane's part of it
__device__ inline Tile get_adjoint(scalar_t* tile)
{
    Tile a;
    #pragma unroll
    for (int e = 0; e < 2; ++e) a.x[e] = conj(tile[place_in_tile(tile_col(e), tile_row())]);
    return a;
}

// inv(l), zeros above the diagonal
__device__ inline Tile inverse_of(const Tile& l)
{
    Tile y = ones();
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int p = place_of(j), source = p / 2;
        const scalar_t own = p % 2 ? l.x[1] : l.x[0];
        const real_t r = real_t(1) / of_lane(real(own), 4 * p + source);
        const scalar_t column = of_lane(own, 4 * g() + source);
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const scalar_t above = mul(of_lane(y.x[e], 4 * p + t()), r);
            if (tile_row() == j) y.x[e] = above;
            if (tile_row() > j) y.x[e] = minus_product(y.x[e], column, above);
        }
    }
    return y;
}

// A row of the tile z, one to each of eight lanes, := row L^-H (DOWN) or row L^-1. USUAL: the
// diagonal of L has reciprocals.
template <bool DOWN, bool USUAL> __device__ void solve_side(scalar_t* z, scalar_t* l, int side)
{
    const auto at = [=](scalar_t* tile, int i, int j) -> scalar_t& {
        return tile[place_in_tile(i, j)];
    };
    scalar_t x[8], d[8];
    #pragma unroll
    for (int c = 0; c < 8; ++c) {
        x[c] = at(z, side, c), d[c] = at(l, c, c);
        if (USUAL) d[c] = scalar_t{near_reciprocal(real(d[c]))};
    }
    #pragma unroll
    for (int step = 0; step < 8; ++step) {
        const int c = DOWN ? step : 7 - step;
        x[c] = USUAL ? mul(x[c], real(d[c])) : over(x[c], d[c]);
        #pragma unroll
        for (int r = 0; r < 8; ++r) {
            if (DOWN && r > c) x[r] = minus_product(x[r], x[c], conj(at(l, r, c)));
            if (!DOWN && r < c) x[r] = minus_product(x[r], x[c], at(l, c, r));
        }
    }
    #pragma unroll
    for (int c = 0; c < 8; ++c) at(z, side, c) = x[c];
}

// z L^-1 by substitution, where a product with zeros would make nan of inf
__device__ inline Tile substitute_up(Tile z, const Tile& l)
{
    #pragma unroll 1
    for (int j = 7; j >= 0; --j) {
        const int p = place_of(j), source = p / 2;
        const scalar_t own = p % 2 ? l.x[1] : l.x[0], its = p % 2 ? z.x[1] : z.x[0];
        const scalar_t d = of_lane(own, 4 * p + source);
        const scalar_t x = over(of_lane(its, 4 * g() + source), d);
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const scalar_t right = of_lane(l.x[e], 4 * p + t());
            if (tile_col(e) == j) z.x[e] = x;
            if (tile_col(e) < j) z.x[e] = minus_product(z.x[e], x, right);
        }
    }
    return z;
}

template <bool DOWN> __device__ void solve_tile(const System& s, int k)
{
    if constexpr (TENSOR) {
        const Tile l = lower_half(get(s.l(k, k)));
        const Tile c[1] = {get(s.z(k))};
        Tile x[1];
        times_inverse(x, c, DOWN ? l : get_adjoint(s.l(k, k)),
                      DOWN ? get(s.inverse(k)) : get_adjoint(s.inverse(k)));
        if (!__any_sync(~0u, !is_finite(x[0]))) {
            put(s.z(k), x[0]);
        } else if (DOWN) {
            substitute(s.z(k), l);
        } else {
            x[0] = substitute_up(c[0], l);
            put(s.z(k), x[0]);
        }
    } else {
        const int i = lane() % 8;
        const real_t d = real(s.l(k, k)[place_in_tile(i, i)]);
        const bool usual = !__any_sync(~0u, !in_range(d));
        if (lane() < 8) {
            if (usual) solve_side<DOWN, true>(s.z(k), s.l(k, k), lane());
            else solve_side<DOWN, false>(s.z(k), s.l(k, k), lane());
        }
    }
    __syncwarp();
}

// Tile I of Z -= tile k times that of L^H (DOWN) or L
template <bool DOWN> __device__ void subtract_tile(const System& s, int I, int k)
{
    Tile c[1] = {get(s.z(I))};
    scalar_t* const left = s.z(k);
    if constexpr (DOWN) {
        scalar_t* const a[1] = {left};
        subtract_product(c, a, s.l(I, k));
    } else if constexpr (TENSOR) {
        const Tile a[1] = {get(left)};
        add_adjoint<-1>(c, a, get_adjoint(s.l(k, I)));
    } else {
        scalar_t* const l = s.l(k, I);
        #pragma unroll
        for (int h = 0; h < 8; h += CHUNK) {
            const Quad a = quad(left, g(), h);
            #pragma unroll
            for (int m = 0; m < CHUNK; ++m)
                #pragma unroll
                for (int e = 0; e < 2; ++e)
                    c[0].x[e] = minus_product(
                        c[0].x[e], a.x[m], l[chunk_of(h + m, 2 * t()) + 2 * t() % CHUNK + e]);
        }
    }
    put(s.z(I), c[0]);
}

template <bool DOWN> __device__ void sweep(const System& s)
{
    const auto tile = [&](int step) { return DOWN ? step : s.rows - 1 - step; };
    #pragma unroll 1
    for (int step = 0; step < s.rows; ++step) {
        if (warp() == 0) {
            if (step) subtract_tile<DOWN>(s, tile(step), tile(step - 1));
            __syncwarp();
            solve_tile<DOWN>(s, tile(step));
        }
        if (step && (WARPS == 1 || warp() > 0))
            for (int far = step + max(warp(), 1); far < s.rows; far += max(WARPS - 1, 1))
                subtract_tile<DOWN>(s, tile(far), tile(step - 1));
        __syncthreads();
    }
}

// X := inv(L L^H) B for at most eight columns. `room`: in shared memory, the tiles of System.
__device__ inline void solve_block(const Strided<const scalar_t>& L,
                                   const Strided<const scalar_t>& B, const Strided<scalar_t>& X,
                                   bool upper, int n, int sides, size next, scalar_t* room)
{
    const System s{room, (n + 7) / 8};
    const bool packs = L.in_packs<PAIR>(n, next);
    for (int I = warp(); I < s.rows; I += WARPS)
        #pragma unroll 2
        for (int J = 0; J <= I; ++J) copy_tile(s.l(I, J), L, packs, I, J, n);
    end_group();
    for (int I = warp(); I < s.rows; I += WARPS) {
        Tile b = {};
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int i = 8 * I + tile_col(e);
            if (i < n && tile_row() < sides) {
                const scalar_t x = B(i, tile_row());
                b.x[e] = upper ? x : conj(x);
            }
        }
        put(s.z(I), b);
    }
    await_groups<0>();
    __syncwarp();
    for (int I = warp(); I < s.rows; I += WARPS) {  // each warp the tiles it brought
        Tile l = lower_half(get(s.l(I, I)));
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            if (tile_row() == tile_col(e) && 8 * I + tile_row() >= n) l.x[e] = scalar_t{1};
        put(s.l(I, I), l);
        if constexpr (TENSOR) put(s.inverse(I), inverse_of(l));
    }
    __syncthreads();
    sweep<true>(s);
    sweep<false>(s);
    for (int I = warp(); I < s.rows; I += WARPS) {
        const Tile x = get(s.z(I));
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int i = 8 * I + tile_col(e);
            if (i < n && tile_row() < sides) X(i, tile_row()) = upper ? x.x[e] : conj(x.x[e]);
        }
    }
}
