// lu_windows.cuh: LU of one matrix that shared memory has no room for, by a block, in windows of
// WINDOW columns, with partial pivoting unless UNPIVOTED: then rows stay where they are.
//
// All rows of a window are in shared memory, in the order that the pivots to its left have given
// them. The panels of L to its left pass by, 8 columns each, the next while one is at work: the
// rows beside a panel's triangle are solved with it, and those below take the product off. Then the
// window is factored as a matrix that lies in shared memory (lu_shared.cuh) and goes where the
// result goes, and the rows of L to its left follow its interchanges. So A crosses memory once each
// way, and L again for every window to its right, most of it from and to the L2 cache.
//
// A sum over k goes upwards, as in one window: the bits of the result do not depend on WINDOW.
#pragma once
#include "lu_shared.cuh"

static_assert(!IN_WINDOWS || WINDOW % 32 == 0);
constexpr int LINES = IN_WINDOWS ? N : 1;

struct Interchanges {      // lies behind Shared
    int pivot[LINES];
    int from[LINES];       // where the rows were before this window was factored
    int order[2][LINES];   // and in A, before this window and after it
};

// What moves numbers is called and not inlined: it would be most of the program.

// a(i, :) := from(rows[i], :), m x n, under way until await_all()
__device__ __noinline__ void begin_rows(scalar_t* a, Strided<const scalar_t> from, const int* rows,
                                  int m, int n)
{
    constexpr int word = sizeof(scalar_t);
    if (from.template in_packs<VECTOR>(n, 0)) {
        #pragma unroll 2
        for (int i = warp(); i < m; i += WARPS) {
            const scalar_t* const row = &from(rows[i], 0);
            for (int j = VECTOR * lane_id(); j < n; j += 32 * VECTOR)
                copy_async<16>(at(a, i, j), row + j, 16);
        }
    } else if (from.cs == 1) {
        for (int i = warp(); i < m; i += WARPS) {
            const scalar_t* const row = &from(rows[i], 0);
            for (int j = lane_id(); j < n; j += 32) copy_async<word>(at(a, i, j), row + j, word);
        }
    } else {
        for (int j = warp(); j < n; j += WARPS)
            for (int i = lane_id(); i < m; i += 32)
                copy_async<word>(at(a, i, j), &from(rows[i], j), word);
    }
}

__device__ __noinline__ void send_rows(Strided<scalar_t> to, scalar_t* a, int m, int n)
{
    send<LD>(to, a, m, n);
}

// The panel of L at (k, k) of `out`, m rows, `steps` columns, likewise
__device__ __noinline__ void begin_panel(scalar_t* l, Strided<const scalar_t> out, int k, int m,
                                         int steps)
{
    begin_fetch<PITCH>(l, part(out, k, k), m - k, steps);
}

// The `cols` columns of a window take off what the first `left` columns of L, in `out`, and the
// rows of U that they make here come to.
__device__ inline void take_off(Shared& s, scalar_t* a, scalar_t* panels,
                                Strided<const scalar_t> out, int m, int left, int cols)
{
    const int down = whole_panels(m), end = whole_panels(cols);
    const auto panel_at = [=](int k) { return panels + k / NB % 2 * down * PITCH; };
    const auto bring = [=](int k) {
        begin_panel(panel_at(k), out, k, m, left - k < NB ? left - k : NB);
    };
    bring(0);
    #pragma unroll 1
    for (int k = 0; k < left; k += NB) {
        const int steps = left - k < NB ? left - k : NB, below = down - k - NB;
        scalar_t* const l = panel_at(k), * const top = at(a, k, 0);
        await_all();           // all are done with the panel before, too
        if (k + NB < left) bring(k + NB);
        for (int j = thread(); j < end; j += THREADS)
            beside<true, false, PITCH>(s.exchange[0], top + j, l, steps);
        __syncthreads();
        const int strips = (end + TN - 1) / TN, chunks = (below + 31) / 32;
        #pragma unroll 1
        for (int task = warp(); task < strips * chunks; task += WARPS) {
            const int chunk = task / strips, j = (task - chunk * strips) * TN;
            const int first = NB + 32 * chunk, rows = below + NB - first;
            scalar_t* const c = at(top, first, j), * const left_of_c = at<PITCH>(l, first, 0);
            const int some = rows < 32 ? rows : 32;
            if (end - j >= TN) {
                subtract<TN, PITCH>(c, left_of_c, top + j, some);
            } else {
                #pragma unroll 1
                for (int e = 0; e < end - j; e += NB)
                    subtract<NB, PITCH>(c + e, left_of_c, top + j + e, some);
            }
        }
    }
    __syncthreads();
}

// P A = L U of the m x n matrix `in`, to `out`, which may be the same; inv(L) P b to y, of `nrhs`
// columns b, which may be the same, unless a pivot is zero. Returns info, in the first thread.
__device__ inline int lu_by_windows(Strided<const scalar_t> in, Strided<scalar_t> out, int* piv,
                                    int m, int n, Strided<const scalar_t> b = {},
                                    Strided<scalar_t> y = {}, int nrhs = 0)
{
    scalar_t* const a = matrix_in_shared();
    Shared& s = behind(m);
    Interchanges& rows = *reinterpret_cast<Interchanges*>(&s + 1);
    const int order = m < n ? m : n;
    const Strided<const scalar_t> made{out.p, out.rs, out.cs};
    int turn = 0;
    if (thread() == 0) s.info = 0;
    for (int i = thread(); i < m; i += THREADS) rows.order[0][i] = i;
    __syncthreads();
    #pragma unroll 1
    for (int k = 0; k < n; k += WINDOW, turn ^= !UNPIVOTED) {
        const bool last = n - k <= WINDOW;
        const int width = last ? n - k : WINDOW, sides = last ? nrhs : 0;
        const int cols = sides ? whole_panels(width) + sides : width;
        begin_rows(a, part(in, 0, k), rows.order[turn], m, width);
        if (sides) begin_rows(a + whole_panels(width), b, rows.order[turn], m, sides);
        await_all();
        if (k) take_off(s, a, panels_behind(m), made, m, k < order ? k : order, cols);
        const int steps = k >= order ? 0 : order - k < width ? order - k : width;
        if (steps) {
            int* const pivots = UNPIVOTED ? nullptr : rows.pivot + k;
            const int zero = lu_in_shared(s, at(a, k, 0), pivots, m - k, width, cols, k);
            if (thread() == 0 && zero && !s.info) s.info = k + zero;
        }
        for (int i = thread(); i < m && !UNPIVOTED; i += THREADS) {
            int from = i;
            for (int p = k + steps - 1; p >= k && i >= k; --p) {
                const int other = rows.pivot[p];
                from = from == p ? other : from == other ? p : from;
            }
            rows.from[i] = from;
            rows.order[turn ^ 1][i] = rows.order[turn][from];
        }
        send_rows(part(out, 0, k), a, m, width);
        __syncthreads();
        if (sides && !s.info) send_rows(y, a + whole_panels(width), m, sides);
        __syncthreads();
        for (int j = 0; j < k && steps && !UNPIVOTED; j += WINDOW) {  // the rows of L follow
            begin_rows(a, part(made, 0, j), rows.from + k, m - k, WINDOW);
            await_all();
            send_rows(part(out, k, j), a, m - k, WINDOW);
            __syncthreads();
        }
    }
    if (piv) for (int i = thread(); i < order; i += THREADS) piv[i] = rows.pivot[i];
    return thread() == 0 ? s.info : 0;
}
