// lu_tiles.cuh: LU with partial pivoting of the matrix of a warp, by panels of 8 columns.
//
// In a panel lane l holds row l, and of more than 32 rows l + 32, so that a step costs the pivot
// search, one row through shared memory and products within the lane. Rows never move here either:
// `at` are the places of the lane's rows so far. Right of the panel the pivot rows are solved with
// the panel's 8 x 8 L, a column to a lane, and all rows below them take a product of rank 8
// (tiles.cuh).
//
// Rows past m are rows of the identity, columns past n are zero: every matrix takes N steps, of
// which those past min(m, n) change nothing that is stored.
#pragma once
#include "tiles.cuh"

constexpr int HELD = (N + 31) / 32;                 // rows of a panel in a lane: lane() + 32 q
using Places = int[HELD];
using LuScratch = ScratchFor<N, LESS>;              // that of a solution, if one follows

// Of x, the one that belongs to row p
template <class T> __device__ T of_row(const T (&x)[HELD], int p)
{
    T r = x[0];
    #pragma unroll
    for (int q = 1; q < HELD; ++q) r = p >= 32 * q ? x[q] : r;
    return r;
}

// The row with the largest of column c among those with a place of at least k, of equals the one
// whose place is lowest, as LAPACK picks it. `most` is one more than the high word of that largest.
__device__ inline int pivot_row(const Row (&x)[HELD], int c, const Places& at, int k,
                                unsigned& most, bool& zero)
{
    unsigned hi[HELD];
    #pragma unroll
    for (int q = 0; q < HELD; ++q) hi[q] = at[q] >= k ? high(x[q][c]) : 0;
    unsigned own = hi[0];
    int which = 0;
    #pragma unroll
    for (int q = 1; q < HELD; ++q)
        if (hi[q] > own) own = hi[q], which = q;
    const auto lows = [&](int q) { return low(x[q][c]); };
    const auto row_of = [&](unsigned lanes) {
        const int p = __ffs(lanes) - 1;
        return HELD == 1 ? p : p + 32 * __shfl_sync(ALL, which, p);
    };
    zero = false;
    if (k == N - 1) {  // one row is left
        bool here = at[0] == k;
        unsigned lo = lows(0);
        #pragma unroll
        for (int q = 1; q < HELD; ++q) {
            here = here || at[q] == k;
            lo = at[q] == k ? lows(q) : lo;
        }
        const unsigned lanes = __ballot_sync(ALL, here);
        const int p = __ffs(lanes) - 1;
        most = __shfl_sync(ALL, own, p);
        zero = most == 1 && __shfl_sync(ALL, lo, p) == 0;
        return row_of(lanes);
    }
    most = __reduce_max_sync(ALL, own);
    unsigned best = __ballot_sync(ALL, own == most);
    bool twice = false;
    #pragma unroll
    for (int q = 1; q < HELD; ++q) twice = twice || (own == most && hi[q] == hi[0]);
    if ((best & (best - 1)) || most == 1 || (HELD > 1 && __any_sync(ALL, twice))) {
        unsigned lo[HELD], largest = 0;
        #pragma unroll
        for (int q = 0; q < HELD; ++q) {
            lo[q] = hi[q] == most ? lows(q) : 0;
            largest = q && largest > lo[q] ? largest : lo[q];
        }
        const unsigned second = __reduce_max_sync(ALL, largest);
        zero = most == 1 && second == 0;
        unsigned key = hi[0] == most && lo[0] == second ? at[0] : ALL;
        which = 0;
        #pragma unroll
        for (int q = 1; q < HELD; ++q)
            if (hi[q] == most && lo[q] == second && unsigned(at[q]) < key) key = at[q], which = q;
        best = __ballot_sync(ALL, key == __reduce_min_sync(ALL, key));
    }
    return row_of(best);
}

// Factor panel k, the lane's rows of which are x; `order` gets the rows of its pivots.
__device__ inline void factor_panel(Row (&x)[HELD], Places& at, int k, int (&order)[8], int last,
                                    Factors& f, LuScratch& s)
{
    #pragma unroll
    for (int r = 0; r < 8; ++r) {
        const int j = 8 * k + r;
        unsigned most;
        bool zero;
        const int p = pivot_row(x, r, at, j, most, zero);
        const int chosen = __shfl_sync(ALL, of_row(at, p), HELD == 1 ? p : p % 32);
        const bool lifted = most < high(TINY), usual = !lifted && most < high(HUGE);
        order[r] = p;
        keep(f.piv, j, chosen);
        keep(f.order, j, p);
        if (zero && !f.info && j < last) f.info = j + 1;
        if (lifted) {
            #pragma unroll
            for (int q = 0; q < HELD; ++q) x[q][r] = at[q] >= j ? mul(x[q][r], LIFT) : x[q][r];
            f.lifted |= 1u << j % 32;
        }
        Row u = {};
        #pragma unroll
        for (int c = r; c < 8; ++c) {
            u[c] = x[0][c];
            #pragma unroll
            for (int q = 1; q < HELD; ++q) u[c] = p >= 32 * q ? x[q][c] : u[c];
        }
        u[r] = any_reciprocal(u[r], usual);
        if (lane() == (HELD == 1 ? p : p % 32)) write_row(s.head[r % 2], u, r);
        __syncwarp();
        read_row(s.head[r % 2], u, r);
        keep(f.inverse, j, u[r]);

        #pragma unroll
        for (int q = 0; q < HELD; ++q) {
            const bool mine = lane() + 32 * q == p;
            if (lifted && mine) x[q][r] = mul(x[q][r], 1 / LIFT);
            at[q] = mine ? j : at[q] == j ? chosen : at[q];
            if (at[q] > j && !zero) {
                x[q][r] = mul(x[q][r], u[r]);
                #pragma unroll
                for (int c = r + 1; c < 8; ++c)
                    x[q][c] = minus_product(x[q][c], x[q][r], u[c]);
            }
        }
    }
}

// The pivot rows right of panel k: from the tiles to s.u, solved with the panel's L, and back.
__device__ inline void solve_pivot_rows(Block& a, const int (&place)[NT], int k,
                                        const int (&order)[8], LuScratch& s)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (place[i] >> 3 == k)
            #pragma unroll
            for (int j = k + 1; j < NT; ++j)
                write_pair(&s.u[place[i] & 7][8 * j], a[i][2 * j], a[i][2 * j + 1]);
    __syncwarp();
    #pragma unroll
    for (int first = 8 * (k + 1); first < N; first += 32) {
        const int column = first + lane();
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
__device__ inline void update(Block& a, const int (&place)[NT], int k, const LuScratch& s)
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
            // Or all operands stay in registers
            if ((sizeof(scalar_t) > 4 || LARGE) && !TENSOR) __syncwarp();
        }
    }
}

__device__ inline void lu_by_panels(Block& a, Tags& tag, Factors& f, int m, int n)
{
    LuScratch& s = scratch<LuScratch>();
    f.info = 0, f.lifted = 0;
    int place[NT];
    Places at;
    #pragma unroll
    for (int q = 0; q < HELD; ++q) at[q] = lane() + 32 * q < N ? lane() + 32 * q : -1;
    ones_from(a, m);
    #pragma unroll
    for (int k = 0; k < NT; ++k) {
        int order[8];
        Row x[HELD] = {};
        to_panel(a, k, 0, s);
        #pragma unroll
        for (int q = 0; q < HELD; ++q)
            if (N >= 32 * q + 32 || lane() + 32 * q < N) read_row(s.panel(lane() + 32 * q), x[q]);
        factor_panel(x, at, k, order, m < n ? m : n, f, s);
        #pragma unroll
        for (int q = 0; q < HELD; ++q)
            if (N >= 32 * q + 32 || lane() + 32 * q < N) write_row(s.panel(lane() + 32 * q), x[q]);
        from_panel(a, k, 0, s);
        #pragma unroll
        for (int i = 0; i < NT; ++i)
            place[i] = __shfl_sync(ALL, at[i / 4], HELD == 1 ? row(i) : row(i) % 32);
        if (k + 1 < NT) {
            solve_pivot_rows(a, place, k, order, s);
            update(a, place, k, s);
            __syncwarp();
        }
    }
    #pragma unroll
    for (int i = 0; i < NT; ++i) tag[i] = row(i) < m ? place[i] << PLACE | row(i) : -1;
}
