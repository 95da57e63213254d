// passing_columns.cuh: few right-hand sides that a team of lanes has, past whom a matrix's columns go.
//
// A team of LANES lanes of a warp has a member: of y, R right-hand sides of up to N rows, lane l
// holds the rows l, l + LANES, ... in registers. The matrix comes to shared memory NB columns at a
// time, the next while these are used: copied without registers between. A column is one step, a
// number of each right-hand side found by all lanes together: LANES' sums, or one lane's number, by
// shuffles. Teams of a warp go in step: what the largest of them needs, all wait for.
#pragma once
#include "async.cuh"
#include "block.cuh"
#include "reciprocals.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 64;       // the most rows
constexpr int LANES = 32;   // of a team
constexpr int NB = 16;      // columns that come at once
constexpr int UPTO = 4;     // right-hand sides that are served
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
static_assert(LANES <= 32 && 32 % LANES == 0 && NB <= LANES);

constexpr int ROWS = (N + LANES - 1) / LANES;  // of a lane
constexpr int LD = NB + 1;                     // lanes read a column from different banks
constexpr int STAGES = N > NB ? 2 : 1;
constexpr int TEAMS = THREADS / LANES;         // of a block
constexpr int TOGETHER = UPTO > 1 ? 4 : 1;     // right-hand sides that a team has at once

__device__ inline int lane() { return threadIdx.x % LANES; }
__device__ inline int row(int q) { return lane() + LANES * q; }
template <class T> __device__ T sum_of_team(T x)
{
    #pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) x = add(x, across(x, mask));
    return x;
}

// The first n columns of a matrix and as many numbers tau, of rows from `top` on to `end`; in shared
// memory a panel is `apart` numbers after the other, tau below the rows.
struct Passing {
    Strided<const scalar_t> a;
    const scalar_t* tau;
    scalar_t* room;
    int apart, m, n, most;  // `most`: n of all teams of the warp

    __device__ int panels() const { return (most + NB - 1) / NB; }
    __device__ scalar_t* panel(int p) const { return room + p % STAGES * apart; }

    __device__ void fetch(int p, int top, int end) const
    {
        constexpr int bytes = sizeof(scalar_t);
        scalar_t* const to = panel(p);
        const int k = p * NB, width = n - k < NB ? n - k : NB;
        if (a.rs == 1)
            for (int f = 0; f < width; ++f)
                #pragma unroll 4
                for (int i = top + lane(); i < end; i += LANES)
                    copy_async<bytes, bytes == 16>(to + i * LD + f, &a(i, k + f), bytes);
        else if (lane() % NB < width)
            #pragma unroll 4
            for (int i = top + lane() / NB; i < end; i += LANES / NB) {
                const int f = lane() % NB;
                copy_async<bytes, bytes == 16>(to + i * LD + f, &a(i, k + f), bytes);
            }
        if (lane() < width) copy_async<bytes, bytes == 16>(to + m * LD + lane(), tau + k + lane(),
                                                           bytes);
    }

    // f(panel, k) for the panels of columns k and on, FORWARD or from the last to the first; below
    // the diagonal or, UPPER, down to it
    template <bool UPPER, class F> __device__ void each(bool forward, F f) const
    {
        const auto ask = [&](int turn) {
            const int p = forward ? turn : panels() - 1 - turn, k = p * NB;
            if (turn < panels())
                fetch(p, UPPER ? 0 : k, !UPPER ? m : k + NB < n ? k + NB : n);
            end_group();
        };
        ask(0);
        #pragma unroll 1
        for (int turn = 0; turn < panels(); ++turn) {
            if (STAGES > 1) ask(turn + 1);
            await_groups<STAGES - 1>();
            __syncwarp();
            const int p = forward ? turn : panels() - 1 - turn;
            f(panel(p), p * NB);
            __syncwarp();
        }
    }
};

template <int R> struct Sides {
    scalar_t y[R][ROWS];

    // Columns from `first` on of x; nothing past its rows and columns
    __device__ void load(const Strided<const scalar_t>& x, int m, int nrhs, int first)
    {
        #pragma unroll
        for (int r = 0; r < R; ++r)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                y[r][q] = scalar_t{};
                if (row(q) < m && first + r < nrhs) y[r][q] = x(row(q), first + r);
            }
    }
    // f(row, column of R, its number)
    template <class F> __device__ void each(F f)
    {
        #pragma unroll
        for (int r = 0; r < R; ++r)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) f(row(q), r, y[r][q]);
    }

    // y := H y, or H^H y if `adjoint`, of every reflector H = I - tau v v^H whose v is below the
    // diagonal of a column, conjugated or not: H^H of the first column first
    __device__ void reflect(const Passing& of, bool adjoint, bool conjugated)
    {
        of.each<false>(adjoint, [&](const scalar_t* v, int k) {
            #pragma unroll 2
            for (int s = 0; s < NB; ++s) {
                const int f = adjoint ? s : NB - 1 - s;
                if (k + f < of.most) step(v + f, of, k + f, adjoint, conjugated);
            }
        });
    }
    __device__ void step(const scalar_t* v, const Passing& of, int j, bool adjoint,
                         bool conjugated)
    {
        const bool mine = j < of.n;
        scalar_t tau = mine ? v[of.m * LD] : scalar_t{}, x[ROWS], sums[R] = {};
        if (conjugated != adjoint) tau = conj(tau);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            if (LANES * (q + 1) <= j) continue;  // all lanes' rows are above
            const int i = row(q);
            x[q] = scalar_t{real_t(i == j)};
            if (mine && i > j && i < of.m) x[q] = conjugated ? conj(v[i * LD]) : v[i * LD];
            if (i < j || i >= of.m) continue;
            #pragma unroll
            for (int r = 0; r < R; ++r) sums[r] = plus_inner(sums[r], x[q], y[r][q]);
        }
        #pragma unroll
        for (int r = 0; r < R; ++r) {
            const scalar_t w = mul(tau, sum_of_team(sums[r]));
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                if (LANES * (q + 1) > j && row(q) >= j && row(q) < of.m && abs1(tau) != 0)
                    y[r][q] = minus_product(y[r][q], x[q], w);
        }
    }

    // y := R^-1 y, R the upper triangle, of whose diagonal lanes have the reciprocals of their rows
    __device__ void substitute(const Passing& of, const Reciprocals<ROWS>& diagonal)
    {
        of.each<true>(false, [&](const scalar_t* panel, int k) {
            #pragma unroll 2
            for (int f = NB - 1; f >= 0; --f)
                if (k + f < of.most) step(panel + f, of, k + f, diagonal);
        });
    }
    __device__ void step(const scalar_t* u, const Passing& of, int j, const Reciprocals<ROWS>& diagonal)
    {
        scalar_t x[ROWS];
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (j < of.n && row(q) < j) x[q] = u[row(q) * LD];
        #pragma unroll
        for (int r = 0; r < R; ++r) {
            scalar_t own{};
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                if (row(q) == j) own = diagonal.under(y[r][q], q);
            const scalar_t found = of_lane<LANES>(own, j % LANES);
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                if (j >= of.n) continue;
                if (row(q) == j) y[r][q] = found;
                else if (row(q) < j) y[r][q] = minus_product(y[r][q], x[q], found);
            }
        }
    }
};
