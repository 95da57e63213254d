// cholesky_tiles.cuh: A = L L^H of the matrix of a warp, by panels of 8 columns (tiles.cuh).
//
// Every lane factors the 8 x 8 block on the diagonal for itself, which costs no word from others;
// lane r solves row r of the panel with it, and the tiles right of the panel take a product of
// rank 8. What is above the diagonal is never changed.
#pragma once
#include "tiles.cuh"

// d := its Cholesky factor below the diagonal, r := the reciprocals of the diagonal of L. From the
// first column whose pivot is not positive on (f.info) the rest is not L's.
__device__ inline void factor_diagonal(scalar_t (&d)[8][8], real_t (&r)[8], int first, int n,
                                       Factors& f)
{
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
        const real_t pivot = real(d[j][j]);
        if (!(pivot > 0) && !f.info && first + j < n) f.info = first + j + 1;
        r[j] = f.info || first + j >= n ? real_t(1) : rsqrt(pivot);
        #pragma unroll
        for (int i = j + 1; i < 8; ++i) d[i][j] = mul(d[i][j], r[j]);
        #pragma unroll
        for (int i = j + 1; i < 8; ++i)
            #pragma unroll
            for (int c = j + 1; c <= i; ++c) d[i][c] = minus_product(d[i][c], d[i][j], conj(d[c][j]));
    }
}

__device__ inline void cholesky_by_panels(Block& a, Factors& f, int n)
{
    __shared__ Scratch scratch[WARPS];
    Scratch& s = scratch[threadIdx.x / 32];
    f.info = 0, f.lifted = 0;
    #pragma unroll
    for (int k = 0; k < NT; ++k) {
        if (8 * k >= n) break;
        to_panel(a, k, k, s);
        scalar_t d[8][8];
        real_t r[8];
        #pragma unroll
        for (int i = 0; i < 8; ++i) read_row(s.panel[8 * k + i], d[i]);
        Row x = {};
        if (lane() >= 8 * k && lane() < N) read_row(s.panel[lane()], x);
        factor_diagonal(d, r, 8 * k, n, f);
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            keep(f.inverse, 8 * k + j, number(r[j]));
            if (lane() == 8 * k + j) x[j] = number(real(x[j]));
            const scalar_t l = mul(x[j], r[j]);
            if (lane() >= 8 * k + j) x[j] = l;
            #pragma unroll
            for (int c = j + 1; c < 8; ++c)
                if (lane() >= 8 * k + c) x[c] = minus_product(x[c], l, conj(d[c][j]));
        }
        __syncwarp();
        if (lane() >= 8 * k && lane() < N) write_row(s.panel[lane()], x);
        from_panel(a, k, k, s);

        #pragma unroll
        for (int j = k + 1; j < NT; ++j) {
            Right u;
            right_operand(u, [&](int q, int c) { return conj(s.panel[8 * j + c][q]); });
            #pragma unroll
            for (int i = j; i < NT; ++i) {
                Left l;
                left_operand(l, s.panel[row(i)]);
                scalar_t c0 = a[i][2 * j], c1 = a[i][2 * j + 1];
                rank_8(c0, c1, l, u);
                if (i > j || g() >= 2 * t()) a[i][2 * j] = c0;
                if (i > j || g() >= 2 * t() + 1) a[i][2 * j + 1] = c1;
            }
        }
        __syncwarp();
    }
}
