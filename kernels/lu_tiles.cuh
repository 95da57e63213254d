// lu_tiles.cuh: LU of the matrix of a warp, by panels of 8 columns, with partial pivoting unless
// UNPIVOTED.
//
// In a panel lane r holds row r, so that a step costs the pivot search, one row through shared
// memory and products within the lane. Rows never move here either: `at` is the place of the
// lane's row so far. Right of the panel the pivot rows are solved with the panel's 8 x 8 L, a
// column to a lane, and all rows below them take a product of rank 8 (tiles.cuh).
//
// Rows past m are rows of the identity, columns past n are zero: every matrix takes N steps, of
// which those past min(m, n) change nothing that is stored.
#pragma once
#include "tiles.cuh"

// The lane with the largest x among those with a place of at least k, of equals the one whose
// place is lowest, as LAPACK picks it. `most` is one more than the high word of that largest.
__device__ inline int pivot_lane(scalar_t x, int at, int k, unsigned& most, bool& zero)
{
    const unsigned hi = at >= k ? high(x) : 0;
    zero = false;
    if (UNPIVOTED || k == N - 1) {  // one row is asked
        const int p = UNPIVOTED ? k : __ffs(__ballot_sync(ALL, at == k)) - 1;
        most = __shfl_sync(ALL, hi, p);
        zero = most == 1 && __shfl_sync(ALL, low(x), p) == 0;
        return p;
    }
    most = __reduce_max_sync(ALL, hi);
    unsigned best = __ballot_sync(ALL, hi == most);
    if ((best & (best - 1)) || most == 1) {
        const unsigned lo = hi == most ? low(x) : 0, second = __reduce_max_sync(ALL, lo);
        zero = most == 1 && second == 0;
        const unsigned key = hi == most && lo == second ? at : ALL;
        best = __ballot_sync(ALL, key == __reduce_min_sync(ALL, key));
    }
    return __ffs(best) - 1;
}

// Factor panel k, lane r's row of which is x; `order` gets the lanes of its pivots.
__device__ inline void factor_panel(Row& x, int& at, int k, int (&order)[8], int last, Factors& f,
                                    Scratch& s)
{
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int j = 8 * k + r;
        unsigned most;
        bool zero;
        const int p = pivot_lane(x[r], at, j, most, zero);
        const int chosen = UNPIVOTED ? j : __shfl_sync(ALL, at, p);
        const bool one = UNPIVOTED && zero;  // that is what a zero counts as
        const bool lifted = most < high(TINY) && !one, usual = !lifted && most < high(HUGE);
        order[r] = p;
        keep(f.piv, j, chosen);
        keep(f.order, j, p);
        if (zero && !f.info && j < last) f.info = j + 1;
        if (lifted) {
            x[r] = at >= j ? mul(x[r], LIFT) : x[r];
            f.lifted |= 1u << j;
        }
        Row u = {};
        u[r] = one ? scalar_t{1} : any_reciprocal(x[r], usual);
        #pragma unroll
        for (int c = r + 1; c < 8; ++c) u[c] = x[c];
        if (lane() == p) write_row(s.head[r % 2], u, r);
        __syncwarp();
        read_row(s.head[r % 2], u, r);
        keep(f.inverse, j, u[r]);

        const bool mine = lane() == p;
        if (lifted && mine) x[r] = mul(x[r], 1 / LIFT);
        if constexpr (!UNPIVOTED) at = mine ? j : at == j ? chosen : at;
        if (at > j && (one || !zero)) {
            x[r] = mul(x[r], u[r]);
            #pragma unroll
            for (int c = r + 1; c < 8; ++c) x[c] = minus_product(x[c], x[r], u[c]);
        }
    }
}

// The pivot rows right of panel k: from the tiles to s.u, solved with the panel's L, and back.
__device__ inline void solve_pivot_rows(Block& a, const int (&place)[NT], int k,
                                        const int (&order)[8], Scratch& s)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (place[i] >> 3 == k)
            #pragma unroll
            for (int j = k + 1; j < NT; ++j)
                write_pair(&s.u[place[i] & 7][8 * j], a[i][2 * j], a[i][2 * j + 1]);
    __syncwarp();
    const int column = 8 * (k + 1) + lane();
    if (column < N) {
        Row y;
        #pragma unroll
        for (int q = 0; q < 8; ++q) y[q] = s.u[q][column];
        #pragma unroll
        for (int q = 1; q < 8; ++q) {
            Row l;
            read_row(s.panel(order[q]), l);
            #pragma unroll
            for (int r = 0; r < q; ++r) y[q] = minus_product(y[q], l[r], y[r]);
            s.u[q][column] = y[q];
        }
    }
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (place[i] >> 3 == k)
            #pragma unroll
            for (int j = k + 1; j < NT; ++j)
                read_pair(&s.u[place[i] & 7][8 * j], a[i][2 * j], a[i][2 * j + 1]);
}

// The rows below the pivot rows of panel k, right of it
__device__ inline void update(Block& a, const int (&place)[NT], int k, const Scratch& s)
{
    #pragma unroll
    for (int j = k + 1; j < NT; ++j) {
        Right u;
        right_operand(u, [&](int r, int c) { return s.u[r][8 * j + c]; });
        #pragma unroll
        for (int i = 0; i < NT; ++i) {
            Left l;
            left_operand(l, s.panel(row(i)));
            scalar_t c0 = a[i][2 * j], c1 = a[i][2 * j + 1];
            rank_8(c0, c1, l, u);
            if (place[i] >= 8 * k + 8) a[i][2 * j] = c0, a[i][2 * j + 1] = c1;
            if (sizeof(scalar_t) > 4 && !TENSOR) __syncwarp();  // or all operands stay in registers
        }
    }
}

__device__ inline void lu_by_panels(Block& a, Tags& tag, Factors& f, int m, int n)
{
    Scratch& s = scratch();
    f.info = 0, f.lifted = 0;
    int at = lane() < N ? lane() : -1, place[NT];
    ones_from(a, m);
    #pragma unroll
    for (int k = 0; k < NT; ++k) {
        int order[8];
        Row x = {};
        to_panel(a, k, 0, s);
        if (N == 32 || lane() < N) read_row(s.panel(lane()), x);
        factor_panel(x, at, k, order, m < n ? m : n, f, s);
        if (N == 32 || lane() < N) write_row(s.panel(lane()), x);
        from_panel(a, k, 0, s);
        #pragma unroll
        for (int i = 0; i < NT; ++i)
            place[i] = UNPIVOTED ? row(i) : __shfl_sync(ALL, at, row(i));
        if (k + 1 < NT) {
            solve_pivot_rows(a, place, k, order, s);
            update(a, place, k, s);
            __syncwarp();
        }
    }
    #pragma unroll
    for (int i = 0; i < NT; ++i) tag[i] = row(i) < m ? place[i] << PLACE | row(i) : -1;
}
