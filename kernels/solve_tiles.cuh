// solve_tiles.cuh: triangular solves with the matrix of a warp in tiles (tiles.cuh).
//
// The factor goes to shared memory by rows, and lane r has row r of R right-hand sides. A step sends
// one row of the solution to all lanes, and every lane takes its multiple off its own: a shuffle and
// a product long, where a team by columns also waits for the column. Eight steps are the body of a
// loop: unrolled altogether the code is longer than the instruction cache, and waits for it.
#pragma once
#include "tiles.cuh"

__device__ inline void to_rows(const Block& a, Scratch& s)
{
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        #pragma unroll
        for (int j = 0; j < NT; ++j)
            write_pair(&s.whole[row(i)][8 * j], a[i][2 * j], a[i][2 * j + 1]);
    __syncwarp();
}

// y := inv(L) y (DOWN) or inv(U) y for the triangle in s, with or without a diagonal of ones. A
// lane's row stands at place `at` of the factor; step j uses row j, which is in lane f.order[j] if
// rows were MOVED.
template <bool DOWN, bool MOVED, int R>
__device__ void substitute_by_rows(const Scratch& s, int at, const Factors& f, scalar_t (&y)[R],
                                   int n, bool unit)
{
    #pragma unroll 1
    for (int step = 0; step < NT; ++step) {
        const int k = DOWN ? step : NT - 1 - step;
        Row x = {};
        if (N == 32 || lane() < N) read_row(&s.whole[lane()][8 * k], x);
        #pragma unroll
        for (int part = 0; part < 8; ++part) {
            const int r = DOWN ? part : 7 - part, j = 8 * k + r;
            if (j >= n) continue;
            const int p = MOVED ? kept(f.order, j) : j;
            #pragma unroll
            for (int q = 0; q < R; ++q) {
                scalar_t v = from(y[q], p);
                if (!unit) v = over_diagonal(v, f, j);
                if (at == j) y[q] = v;
                else if (DOWN ? at > j : at < j) y[q] = minus_product(y[q], x[r], v);
            }
        }
    }
}

// y := inv(L^H) y for the lower triangle in s: row j of L is column j of L^H.
template <int R>
__device__ void substitute_adjoint_by_rows(const Scratch& s, const Factors& f, scalar_t (&y)[R],
                                           int n)
{
    #pragma unroll 8
    for (int j = N - 1; j >= 0; --j) {
        if (j >= n) continue;
        const scalar_t l = lane() < j ? conj(s.whole[j][lane()]) : scalar_t{};
        #pragma unroll
        for (int q = 0; q < R; ++q) {
            const scalar_t v = over_diagonal(from(y[q], j), f, j);
            if (lane() == j) y[q] = v;
            else if (lane() < j) y[q] = minus_product(y[q], l, v);
        }
    }
}
