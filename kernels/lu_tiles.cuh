// lu_tiles.cuh: LU with partial pivoting of the matrix of a warp, by panels of 8 columns.
//
// In a panel lane r holds row r, so that a step costs the pivot search, one row through shared
// memory and products within the lane. Rows never move here either: `at` is the place of the
// lane's row so far. Right of the panel the pivot rows are solved with the panel's 8 x 8 L, a
// column to a lane, and all rows below them take a product of rank 8 (tiles.cuh).
#pragma once
#include "tiles.cuh"

// The lane with the largest x among those with a place of at least k, of equals the one whose
// place is lowest, as LAPACK picks it; `zero` tells whether that largest is zero.
__device__ inline int pivot_lane(scalar_t x, int at, int k, bool& zero)
{
    const real_t size = abs1(x);
    const unsigned hi = at >= k ? high(size) : 0, most = __reduce_max_sync(ALL, hi);
    unsigned best = __ballot_sync(ALL, hi == most);
    zero = false;
    if ((best & best - 1) || most == 1) {
        const unsigned lo = hi == most ? low(size) : 0, second = __reduce_max_sync(ALL, lo);
        zero = most == 1 && second == 0;
        const unsigned key = hi == most && lo == second ? at : ALL;
        best = __ballot_sync(ALL, key == __reduce_min_sync(ALL, key));
    }
    return __ffs(best) - 1;
}

// Factor panel k, lane r's row of which is x; `order` gets the lanes of its pivots, `steps` is
// how many there are.
__device__ inline void factor_panel(Row& x, int& at, int k, int (&order)[8], int steps, Factors& f,
                                    Scratch& s)
{
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        order[r] = 0;
        if (r >= steps) continue;
        const int j = 8 * k + r;
        bool zero;
        const int p = pivot_lane(x[r], at, j, zero), chosen = __shfl_sync(ALL, at, p);
        order[r] = p;
        keep(f.piv, j, chosen);
        keep(f.order, j, p);
        if (zero && !f.info) f.info = j + 1;

        const bool tiny = abs1(x[r]) < TINY;
        const scalar_t mine = reciprocal(tiny ? mul(x[r], LIFT) : x[r]);
        scalar_t (&head)[8] = s.head[r % 2];
        if (lane() == p) {
            Row y;
            #pragma unroll
            for (int c = 0; c < 8; ++c) y[c] = c == r ? mine : x[c];
            write_row(head, y);
        }
        const bool lifted = __shfl_sync(ALL, int(tiny), p);
        if (lifted) f.lifted |= 1u << j;
        __syncwarp();
        Row u;
        read_row(head, u);
        keep(f.inverse, j, u[r]);

        if (lane() == p) at = j;
        else if (at == j) at = chosen;
        if (at > j && !zero) {
            x[r] = mul(lifted ? mul(x[r], LIFT) : x[r], u[r]);
            #pragma unroll
            for (int c = r + 1; c < 8; ++c) x[c] = minus_product(x[c], x[r], u[c]);
        }
    }
}

// The pivot rows right of panel k: from the tiles to s.u, solved with the panel's L, and back.
__device__ inline void solve_pivot_rows(Block& a, const int (&place)[NT], int k,
                                        const int (&order)[8], int steps, Scratch& s)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (place[i] >= 8 * k && place[i] < 8 * k + 8)
            #pragma unroll
            for (int j = k + 1; j < NT; ++j)
                *reinterpret_cast<Two*>(&s.u[place[i] - 8 * k][8 * j + 2 * t()])
                    = {a[i][2 * j], a[i][2 * j + 1]};
    __syncwarp();
    const int column = 8 * (k + 1) + lane();
    if (column < N) {
        Row y;
        #pragma unroll
        for (int q = 0; q < 8; ++q) y[q] = q < steps ? s.u[q][column] : scalar_t{};
        #pragma unroll
        for (int q = 1; q < 8; ++q) {
            if (q >= steps) continue;
            Row l;
            read_row(s.panel[order[q]], l);
            #pragma unroll
            for (int r = 0; r < q; ++r) y[q] = minus_product(y[q], l[r], y[r]);
            s.u[q][column] = y[q];
        }
    }
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (place[i] >= 8 * k && place[i] < 8 * k + 8)
            #pragma unroll
            for (int j = k + 1; j < NT; ++j) {
                const Two pair = *reinterpret_cast<const Two*>(
                    &s.u[place[i] - 8 * k][8 * j + 2 * t()]);
                a[i][2 * j] = pair.x[0], a[i][2 * j + 1] = pair.x[1];
            }
}

// The rows below the pivot rows of panel k, right of it
__device__ inline void update(Block& a, const int (&place)[NT], int k, const Scratch& s)
{
    Left l[NT];
    #pragma unroll
    for (int i = 0; i < NT; ++i) left_operand(l[i], s.panel[row(i)]);
    #pragma unroll
    for (int j = k + 1; j < NT; ++j) {
        Right u;
        right_operand(u, [&](int r, int c) { return s.u[r][8 * j + c]; });
        #pragma unroll
        for (int i = 0; i < NT; ++i) {
            scalar_t c0 = a[i][2 * j], c1 = a[i][2 * j + 1];
            rank_8(c0, c1, l[i], u);
            if (place[i] >= 8 * k + 8) a[i][2 * j] = c0, a[i][2 * j + 1] = c1;
        }
    }
}

__device__ inline void lu_by_panels(Block& a, Tags& tag, Factors& f, int m, int n)
{
    __shared__ Scratch scratch[WARPS];
    Scratch& s = scratch[threadIdx.x / 32];
    f.info = 0, f.lifted = 0;
    int at = lane() < m ? lane() : -1, place[NT];
    const int last = m < n ? m : n;
    #pragma unroll
    for (int k = 0; k < NT; ++k) {
        if (8 * k >= last) break;
        const int steps = last - 8 * k;
        int order[8];
        Row x = {};
        to_panel(a, k, 0, s);
        if (lane() < N) read_row(s.panel[lane()], x);
        factor_panel(x, at, k, order, steps, f, s);
        if (lane() < N) write_row(s.panel[lane()], x);
        from_panel(a, k, 0, s);
        #pragma unroll
        for (int i = 0; i < NT; ++i) place[i] = __shfl_sync(ALL, at, row(i));
        if (8 * (k + 1) >= n) continue;
        solve_pivot_rows(a, place, k, order, steps, s);
        update(a, place, k, s);
        __syncwarp();
    }
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        const int p = __shfl_sync(ALL, at, row(i));
        tag[i] = p < 0 ? -1 : p << PLACE | row(i);
    }
}
