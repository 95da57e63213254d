// cholesky_tiles.cuh: A = L L^H of the matrix of a warp, by panels of 8 columns (tiles.cuh).
//
// In a panel lane r holds row r, and a step costs one column of the diagonal block through shared
// memory; the tiles right of the panel take a product of rank 8. What is above the diagonal is
// never changed. Rows past n are rows of the identity: every matrix takes N steps.
#pragma once
#include "factors.cuh"
#include "tiles.cuh"

// Panel k, of which x are a lane's rows, 32 from each other, becomes that of L; row `first` is the
// lane's in the diagonal block, if it has one. Step j sends column j of the diagonal block to all
// lanes, as it stands before it is scaled: the pivot is among it. From the first column whose pivot
// is not positive on (f.info) the rest is not L's. A right-hand SIDE, its rows in b as those of x,
// becomes L^-1 of it as far as the panel knows.
template <bool SIDE, int R>
__device__ void factor_panel(Row (&x)[R], scalar_t (&b)[R], int first, int k, Factors& f,
                             Scratch& s)
{
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
        if (first >> 3 == k) s.head[j % 2][lane() & 7] = x[0][j];
        __syncwarp();
        Row d;
        read_row(s.head[j % 2], d, j);
        const real_t pivot = real(d[j]);
        real_t r;
        if (in_range(pivot)) {  // and so says every lane
            r = near_rsqrt(pivot);
        } else {
            if (!(pivot > 0) && !f.info) f.info = 8 * k + j + 1;
            r = f.info ? real_t(1) : rsqrt(pivot);
        }
        if (!LARGE) keep(f.inverse, 8 * k + j, scalar_t{r});
        const scalar_t y = SIDE ? from(b[0], j) : scalar_t{};
        if (SIDE && lane() == j) b[0] = mul(y, r);
        if (first == 8 * k + j) x[0][j] = scalar_t{pivot};
        #pragma unroll
        for (int q = 0; q < R; ++q) {
            x[q][j] = mul(x[q][j], r);
            const scalar_t l = mul(x[q][j], r);  // by 1 / pivot: what came is not L's column yet
            #pragma unroll
            for (int c = j + 1; c < 8; ++c) x[q][c] = minus_product(x[q][c], l, conj(d[c]));
            if (SIDE && (q || lane() > j)) b[q] = minus_product(b[q], l, y);
        }
    }
}

__device__ inline void cholesky_by_panels(Block& a, Factors& f, int n)
{
    Scratch& s = scratch();
    f.info = 0, f.lifted = 0;
    ones_from(a, n);
    #pragma unroll
    for (int k = 0; k < NT; ++k) {
        to_panel(a, k, k, s);
        Row x[1] = {};
        scalar_t none[1];
        if (N == 32 || lane() < N) read_row(s.panel(lane()), x[0]);
        factor_panel<false>(x, none, lane(), k, f, s);
        if (N == 32 || lane() < N) write_row(s.panel(lane()), x[0]);

        const scalar_t above[2] = {a[k][2 * k], a[k][2 * k + 1]};
        from_panel(a, k, k, s);
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            if (g() < tile_col(e)) a[k][2 * k + e] = above[e];

        Left l[NT];
        #pragma unroll
        for (int i = k + 1; i < NT; ++i) left_operand(l[i], s.panel(row(i)));
        #pragma unroll
        for (int j = k + 1; j < NT; ++j) {
            Right u;
            adjoint_operand(u, l[j], [&](int q, int c) { return conj(s.panel(8 * j + c)[q]); });
            #pragma unroll
            for (int i = j; i < NT; ++i) {
                scalar_t c0 = a[i][2 * j], c1 = a[i][2 * j + 1];
                rank_8(c0, c1, l[i], u);
                if (i > j || g() >= tile_col(0)) a[i][2 * j] = c0;
                if (i > j || g() >= tile_col(1)) a[i][2 * j + 1] = c1;
            }
        }
        __syncwarp();
    }
}
