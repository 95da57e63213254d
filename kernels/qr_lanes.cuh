// qr_lanes.cuh: reflectors of a matrix whose columns a team of lanes has in registers.
//
// Lane l has columns l, l + LANES, ..., C of them. In step k every lane's register i holds row
// k + i: the update writes one register further down, so the loop over k needs no unrolling, and
// register 0 of all lanes is row k of the result. Column k crosses between lanes through shared
// memory; x^H a is then each lane's own work. Where both do not fit its registers a lane reads
// column k twice. The window of registers shrinks by 8 rows.
//
// A kernel says N, LANES, C and KEPT (geqrf_small.cu), and what becomes of the results: its `my` is
// a Team with put(k, j, c, top, h), row k of column j, which is register c of this lane; and
// beside(k, column, scaled, h), what else the reflector h is applied to, x being `scaled` times what
// `column` has.
#pragma once
#include "qr.cuh"

constexpr int TEAM = LANES;
#include "teams.cuh"

constexpr int STEP = N < 8 ? N : 8;             // of the window
constexpr int FEW = 16 / sizeof(scalar_t);
static_assert(N % FEW == 0);
static_assert(KEPT || LANES >= 32, "a team that reads twice goes its way alone");

// f over the team; all get the same
template <class T, class F> __device__ T over_team(T x, F f)
{
    if constexpr (FULL) {
        #pragma unroll
        for (int mask = LANES / 2; mask; mask /= 2) x = f(x, across(x, mask));
        return x;
    } else {
        return brought_together(x, f);
    }
}

struct alignas(16) Vector { scalar_t x[FEW]; };

struct Team {
    Vector (*columns)[N / FEW];  // in shared memory, two in turn
    real_t* squares;             // of a block's team, two in turn
    real_t back[C];              // what takes this lane's scaling out of R
    int n;                       // columns that get reflectors
    int rows, steps;             // of all teams of the warp, so many of the rows
};

// A lane's columns to within SMALL and LARGE where they are not; f(column, power of two)
template <class F> __device__ void to_usual(scalar_t (&a)[C][N], F f)
{
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        real_t most = 0;
        #pragma unroll
        for (int i = 0; i < N; ++i) most = larger(most, a[c][i]);
        Power power{1, 1};
        if (!is_usual(most)) {
            power = to_one(most);
            #pragma unroll
            for (int i = 0; i < N; ++i) a[c][i] = power.times(a[c][i]);
        }
        f(c, power);
    }
}

__device__ inline void team_sync()
{
    if (LANES > 32) __syncthreads();
    else __syncwarp();
}

// f(i, x) for rows 1 ... W - 1 of column k, in x or read a few rows at a time: the compiler moves
// nothing across __syncwarp(), and holds no more.
template <int W, class F>
__device__ void each(const scalar_t (&x)[KEPT ? W : 1], const Vector* column, F f)
{
    if constexpr (KEPT) {
        #pragma unroll
        for (int i = 1; i < W; ++i) f(i, x[i]);
    } else {
        #pragma unroll
        for (int i = 0; i < W; i += FEW) {
            if (i % 8 == 0) __syncwarp();
            const Vector v = column[i / FEW];
            #pragma unroll
            for (int e = 0; e < FEW; ++e)
                if (i + e) f(i + e, v.x[e]);
        }
    }
}
// `power` times column k
template <int W> __device__ void write(Vector* column, const scalar_t (&x)[N], Power power)
{
    #pragma unroll
    for (int i = 0; i < W; i += FEW) {
        Vector v;
        #pragma unroll
        for (int e = 0; e < FEW; ++e) v.x[e] = power.times(x[i + e]);
        column[i / FEW] = v;
    }
}

// x[k / LANES]: the column of lane k % LANES that is column k of the matrix
template <class T> __device__ T column_of(const T (&x)[C], int k)
{
    T r = x[0];
    #pragma unroll
    for (int c = 1; c < C; ++c) r = k < LANES * c ? r : x[c];
    return r;
}

// Steps `first` and on, STEP of them, by a window of W rows
template <int W, class My> __device__ void steps(scalar_t (&a)[C][N], My& my, int first)
{
    const int lane = member();
    #pragma unroll 1
    for (int k = first; k < first + STEP && k < my.steps; ++k) {
        Vector* const column = my.columns[k % 2];
        #pragma unroll
        for (int c = 0; c < C; ++c)
            if (lane + LANES * c == k) write<W>(column, a[c], {1, 1});
        team_sync();
        scalar_t x[KEPT ? W : 1], inner[C], sums[C][2] = {};
        if (KEPT)
            #pragma unroll
            for (int i = 0; i < W; i += FEW) {
                const Vector v = column[i / FEW];
                #pragma unroll
                for (int e = 0; e < FEW; ++e) x[KEPT ? i + e : 0] = v.x[e];
            }
        each<W>(x, column, [&](int i, scalar_t x) {
            #pragma unroll
            for (int c = 0; c < C; ++c) sums[c][i % 2] = plus_inner(sums[c][i % 2], x, a[c][i]);
        });
        #pragma unroll
        for (int c = 0; c < C; ++c) inner[c] = add(sums[c][0], sums[c][1]);
        scalar_t alpha = KEPT ? x[0] : column->x[0];
        real_t squares;
        if constexpr (LANES > 32) {
            if (lane == k % LANES) my.squares[k % 2] = real(column_of(inner, k));
            team_sync();
            squares = my.squares[k % 2];
        } else {
            squares = real(of_member(column_of(inner, k), k % LANES));
        }
        bool none = k >= my.n;
        Power undo{1, 1}, scaled{1, 1};
        if (!none && !(squares >= LEAST)) {          // rare: x is zero, tiny or nan
            real_t most = 0;
            each<W>(x, column, [&](int, scalar_t x) { most = larger(most, x); });
            none = most == 0 && imaginary(alpha) == 0;
            const Power power = to_one(larger(most, alpha));
            undo = power.inverse();
            alpha = power.times(alpha);
            if constexpr (KEPT) {
                scaled = power;
                #pragma unroll
                for (int i = 0; i < W; ++i) x[i] = power.times(x[i]);
            } else {
                team_sync();
                #pragma unroll
                for (int c = 0; c < C; ++c)
                    if (lane + LANES * c == k) write<W>(column, a[c], power);
                team_sync();
            }
            squares = 0;
            #pragma unroll
            for (int c = 0; c < C; ++c) inner[c] = scalar_t{};
            each<W>(x, column, [&](int i, scalar_t x) {
                squares += real(plus_inner(scalar_t{}, x, x));
                #pragma unroll
                for (int c = 0; c < C; ++c) inner[c] = plus_inner(inner[c], x, a[c][i]);
            });
        }
        const Reflector h = reflector(alpha, squares, none);
        scalar_t down[C];
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = lane + LANES * c;
            // What a lane takes off its column: nothing left of k; column k becomes x scale.
            const scalar_t sum = add(a[c][0], mul(conj(h.scale), inner[c]));
            const scalar_t w = j > k ? mul(conj(h.tau), sum) : scalar_t{};
            down[c] = j == k ? mul(h.scale, real_t(-1)) : mul(h.scale, w);
            const scalar_t top = j == k && !none ? scalar_t{undo.times(h.beta)}
                                                 : minus_product(a[c][0], scalar_t{1}, w);
            my.put(k, j, c, top, h);
        }
        my.beside(k, column, scaled, h);
        each<W>(x, column, [&](int i, scalar_t x) {
            #pragma unroll
            for (int c = 0; c < C; ++c)
                a[c][i - 1] = minus_product(lane + LANES * c == k ? scalar_t{} : a[c][i], x, down[c]);
        });
        #pragma unroll
        for (int c = 0; c < C; ++c) a[c][W - 1] = scalar_t{};
    }
}

// All steps, the window no larger than what is left of the rows; register i then has row steps + i.
template <int W, class My> __device__ void all_steps(scalar_t (&a)[C][N], My& my, int first)
{
    if (my.rows - first > W - STEP) {
        steps<W>(a, my, first);
        first += STEP;
    }
    if constexpr (W > STEP) all_steps<W - STEP>(a, my, first);
}
