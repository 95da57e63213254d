// solve_tiles.cuh: triangular solves with the matrix of a warp in tiles (tiles.cuh).
//
// Lane r has row r of R right-hand sides. A panel of the factor passes through shared memory to
// rows; a step sends one row of the solution to all lanes, and every lane takes its multiple off
// its own: a shuffle and a product long, where a team by columns also waits for the column.
#pragma once
#include "tiles.cuh"

// y := inv(L) y (DOWN) or inv(U) y for the triangle of a, with or without a diagonal of ones. A
// lane's row stands at place `at` of the factor; step j uses row j, which is in lane f.order[j] if
// rows were MOVED.
template <bool DOWN, bool MOVED, int R>
__device__ void substitute_by_panels(const Block& a, int at, const Factors& f, scalar_t (&y)[R],
                                     int n, bool unit, Scratch& s)
{
    #pragma unroll
    for (int step = 0; step < NT; ++step) {
        const int k = DOWN ? step : NT - 1 - step;
        to_panel(a, k, 0, s);
        Row x = {};
        if (N == 32 || lane() < N) read_row(s.panel[lane()], x);
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
        __syncwarp();
    }
}

// y := inv(L^H) y for the lower triangle of a: row j of L, which is column j of L^H, comes to the
// lanes through shared memory.
template <int R>
__device__ void substitute_adjoint_by_panels(const Block& a, const Factors& f, scalar_t (&y)[R],
                                             int n, Scratch& s)
{
    #pragma unroll
    for (int k = NT - 1; k >= 0; --k) {
        #pragma unroll
        for (int j = 0; j <= k; ++j) write_pair(&s.u[g()][8 * j], a[k][2 * j], a[k][2 * j + 1]);
        __syncwarp();
        #pragma unroll
        for (int r = 7; r >= 0; --r) {
            const int j = 8 * k + r;
            if (j >= n) continue;
            const scalar_t l = lane() < j ? conj(s.u[r][lane()]) : scalar_t{};
            #pragma unroll
            for (int q = 0; q < R; ++q) {
                const scalar_t v = over_diagonal(from(y[q], j), f, j);
                if (lane() == j) y[q] = v;
                else if (lane() < j) y[q] = minus_product(y[q], l, v);
            }
        }
        __syncwarp();
    }
}
