// lu_columns.cuh: solve with the LU factors that a team holds, for right-hand sides b(i, j).
//
// The interchanges of rows come first (last if `trans`): a lane reads the rows of b that they bring
// to its own.
#pragma once
#include "solve.cuh"

// The row of b that the interchanges bring to row(i), found backwards from there
__device__ inline int origin(int at, const int (&piv)[KEEP], int n)
{
    const int i = at, steps = most_of_warp<TEAM>(n);
    #pragma unroll
    for (int k = N - 1; k >= 0; --k)
        if (k < steps) {
            const int p = kept(piv, k);
            at = at == k ? p : at == p ? k : at;
        }
    return at >= 0 && at < n ? at : i;  // pivots that are none must not reach past b
}

// R right-hand sides, from the first-th on, with factors in tiles; row `at` of b is the lane's.
template <int R>
__device__ void solve_rows(const Scratch& s, int at, const Factors& f,
                           const Strided<const scalar_t>& b, const Strided<scalar_t>& x, bool trans,
                           int order, int n, int nrhs, int first)
{
    scalar_t y[R];
    #pragma unroll
    for (int q = 0; q < R; ++q)
        y[q] = lane() < order && first + q < nrhs ? b(trans ? lane() : at, first + q) : scalar_t{};
    substitute_by_rows<true, false>(s, lane(), f, y, n, !trans);
    substitute_by_rows<false, false>(s, lane(), f, y, n, trans);
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (lane() < order && first + q < nrhs) x(trans ? at : lane(), first + q) = y[q];
}

// The pivots of a matrix of order n; those past `order` interchange nothing
__device__ inline void load_pivots(Factors& f, const int* piv, int order)
{
    #pragma unroll
    for (int q = 0; q < KEEP; ++q) {
        const int k = member() + TEAM * q;
        f.piv[q] = k < order ? piv[k] : k;
    }
}

// x := the solutions for columns 0 to nrhs of b, with factors in a and f; rows and columns up to
// `order` are there.
__device__ inline void solve_columns(const Block& a, const Factors& f,
                                     const Strided<const scalar_t>& b, const Strided<scalar_t>& x,
                                     size trans, int order, int n, int nrhs)
{
    if constexpr (TILES) {
        const int at = origin(lane(), f.piv, n);
        const Scratch& s = scratch();
        to_rows(a, scratch());
        if (nrhs == 1) solve_rows<1>(s, at, f, b, x, trans, order, n, nrhs, 0);
        else
            #pragma unroll 1
            for (int j = 0; j < nrhs; j += 4)
                solve_rows<4>(s, at, f, b, x, trans, order, n, nrhs, j);
        return;
    }
    Tags tag;
    in_order(tag);
    int at[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) at[i] = origin(row(i), f.piv, n);

    const int most = most_of_warp<TEAM>(nrhs);
    #pragma unroll 1
    for (int first = 0; first < most; first += LC) {
        const int j = first + t();
        Column y;
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            y[i] = row(i) < order && j < nrhs ? b(trans ? row(i) : at[i], j) : scalar_t{};
        substitute<true, false>(a, tag, f, y, n, !trans);
        substitute<false, false>(a, tag, f, y, n, trans);
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            if (row(i) < order && j < nrhs) x(trans ? at[i] : row(i), j) = y[i];
    }
}
