// solve.cuh: triangular solves with the factors that a team holds.
//
// Right-hand sides come LC at a time: the lanes (., t) of a team solve for the t-th. A step takes
// one number of the solution and one column of the factor to the lanes that need them. A matrix in
// tiles has a way of its own (solve_tiles.cuh).
#pragma once
#include "lu.cuh"

// The tags of a matrix whose rows are where they belong
__device__ inline void in_order(Tags& tag)
{
    #pragma unroll
    for (int i = 0; i < RN; ++i) tag[i] = row(i) << PLACE | row(i);
}

// The reciprocals of the diagonal of a, into f
__device__ inline void invert_diagonal(const Block& a, Factors& f, int n)
{
    f.lifted = 0;
    const int steps = most_of_warp<TEAM>(n);
    #pragma unroll
    for (int q = 0; q < KEEP; ++q) f.inverse[q] = scalar_t{1};
    #pragma unroll
    for (int k = 0; k < N; ++k) {
        if (k >= steps) break;
        keep(f.inverse, k, from(a[k / LR][slot_of(k)], k % LR * LC + t_of(k)));
    }
    #pragma unroll
    for (int q = 0; q < KEEP; ++q) {
        const bool tiny = abs1(f.inverse[q]) < TINY;
        const unsigned bits = __ballot_sync(ALL, tiny) >> (lane() - member());
        f.lifted |= (bits & ALL >> (32 - TEAM)) << TEAM * q;
        f.inverse[q] = reciprocal(tiny ? mul(f.inverse[q], LIFT) : f.inverse[q]);
    }
}

__device__ inline scalar_t over_diagonal(scalar_t y, const Factors& f, int k)
{
    return mul(f.lifted >> k & 1 ? mul(y, LIFT) : y, kept(f.inverse, k));
}

#include "solve_tiles.cuh"

// b := inv(L) b (DOWN) or inv(U) b, the triangle of a with or without a diagonal of ones. Step k
// uses row k, which is where f.order says if rows were MOVED.
template <bool DOWN, bool MOVED>
__device__ void substitute(const Block& a, const Tags& tag, const Factors& f, Column& b, int n,
                           bool unit)
{
    const int steps = most_of_warp<TEAM>(n);
    #pragma unroll
    for (int step = 0; step < N; ++step) {
        const int k = DOWN ? step : N - 1 - step;
        if (k < steps) {
            const bool active = !RAGGED || k < n;
            const int p = MOVED ? kept(f.order, k) : k;
            scalar_t y = from(pick(b, p / LR), p % LR * LC + t());
            if (!unit) y = over_diagonal(y, f, k);
            Column c;
            column(a, k, c);
            #pragma unroll
            for (int i = 0; i < RN; ++i) {
                const int at = place(tag[i]);
                if (active && at == k) b[i] = y;
                else if (active && (DOWN ? at > k : at < k)) b[i] = minus_product(b[i], c[i], y);
            }
        }
    }
}

// b := inv(L^H) b, L the lower triangle of a: its columns are the rows of L^H, and a step is a
// product of a column with the part of the solution that is known.
__device__ inline void substitute_adjoint(const Block& a, const Factors& f, Column& b, int n)
{
    const int steps = most_of_warp<TEAM>(n);
    #pragma unroll
    for (int k = N - 1; k >= 0; --k) {
        if (k < steps) {
            Column c;
            column(a, k, c);
            scalar_t s{};
            #pragma unroll
            for (int i = 0; i < RN; ++i)
                if (row(i) > k && row(i) < n) s = minus_product(s, conj(c[i]), b[i]);
            s = team_sum(s);
            const scalar_t y = over_diagonal(add(from(b[k / LR], k % LR * LC + t()), s), f, k);
            if (row(k / LR) == k && (!RAGGED || k < n)) b[k / LR] = y;
        }
    }
}

// R right-hand sides, from the first-th on, with a matrix in tiles (see solve_positive)
template <int R>
__device__ void solve_positive_rows(const Scratch& s, const Factors& f,
                                    const Strided<const scalar_t>& B, const Strided<scalar_t>& X,
                                    bool upper, int order, int n, int nrhs, int first,
                                    bool positive)
{
    scalar_t given[R], y[R];
    #pragma unroll
    for (int q = 0; q < R; ++q) {
        given[q] = lane() < order && first + q < nrhs ? B(lane(), first + q) : scalar_t{};
        y[q] = upper ? conj(given[q]) : given[q];
    }
    substitute_by_rows<true, false>(s, lane(), f, y, n, false);
    substitute_adjoint_by_rows(s, f, y, n);
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (lane() < order && first + q < nrhs)
            X(lane(), first + q) = !positive ? given[q] : upper ? conj(y[q]) : y[q];
}

// X := inv(L L^H) B, or B itself unless it is `positive`; conj(X) of conj(B) for an upper factor.
// order: the rows there are, none for a team past the end; n: for such a team those of the others.
__device__ inline void solve_positive(const Block& a, const Factors& f,
                                      const Strided<const scalar_t>& B,
                                      const Strided<scalar_t>& X, bool upper, int order, int n,
                                      int nrhs, bool positive)
{
    if constexpr (TILES) {
        const Scratch& s = scratch();
        to_rows(a, scratch());
        if (nrhs == 1) solve_positive_rows<1>(s, f, B, X, upper, order, n, nrhs, 0, positive);
        else
            #pragma unroll 1
            for (int j = 0; j < nrhs; j += 4)
                solve_positive_rows<4>(s, f, B, X, upper, order, n, nrhs, j, positive);
        return;
    }
    Tags tag;
    in_order(tag);
    const int columns = most_of_warp<TEAM>(nrhs);
    #pragma unroll 1
    for (int first = 0; first < columns; first += LC) {
        const int j = first + t();
        Column given, y;
        #pragma unroll
        for (int i = 0; i < RN; ++i) {
            given[i] = row(i) < order && j < nrhs ? B(row(i), j) : scalar_t{};
            y[i] = upper ? conj(given[i]) : given[i];
        }
        substitute<true, false>(a, tag, f, y, n, false);
        substitute_adjoint(a, f, y, n);
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            if (row(i) < order && j < nrhs)
                X(row(i), j) = !positive ? given[i] : upper ? conj(y[i]) : y[i];
    }
}
