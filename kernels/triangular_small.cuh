// triangular_small.cuh: solves and products with a lower triangular matrix of order n <= N.
//
// A team of LANES lanes, of a warp or a block, has LANES C columns of a member's X, a lane C of
// them in registers; L, which all of the team read at once, is in shared memory, by columns. So a
// step is a column of L, 16 bytes at a time, for C columns of X, and no lane waits for another.
// Where B or X lies by columns it goes through shared memory, too, so that lanes move neighbours.
//
// The floor: B read and X written once, and the triangle: (n^2 / 2 + 2 n nrhs) numbers, but n^2 of
// L where a row is a few sectors. n^2 nrhs operations: 512 fused ones to a column at n = 32.
#pragma once
#include "compiling.cuh"
#include "small_columns.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int LANES = 32;   // lanes to a member
#endif
constexpr int TALL = N + 1;                          // a column of X there: no bank twice
constexpr int STRIP = (LANES * C * TALL + VECTOR - 1) / VECTOR * VECTOR;
constexpr int TEAMS = THREADS / LANES;
constexpr int NEAR = LANES < 32 ? LANES : 32;        // of a team in a warp
static_assert(LANES <= 32 ? 32 % LANES == 0 : TEAMS == 1);

__device__ inline void team_sync()
{
    if (LANES > 32) __syncthreads();
    else __syncwarp();
}

// Those for which f(i)
template <class F> __device__ Bits where(int t, F f)
{
    Bits found{};
    #pragma unroll
    for (int e = 0; e < N; e += NEAR) {
        const unsigned some = __ballot_sync(~0u, f(e + t % NEAR)) >> (threadIdx.x % 32 - t % NEAR);
        add_bits(found, some & ~0u >> (32 - NEAR), e);
    }
    return found;
}

// to := the lower triangle of a, without its diagonal if `unit`; without waiting
__device__ inline void fetch_triangle(scalar_t* to, Strided<const scalar_t> a, int n, bool unit,
                                      int t)
{
    const bool across = by_rows(a);
    const size along = across ? a.cs : a.rs, next = across ? a.rs : a.cs;
    const int to_along = across ? DOWN : 1, to_next = across ? 1 : DOWN;
    #pragma unroll 4
    for (int o = 0; o < n; ++o)
        #pragma unroll
        for (int e = 0; e < N; e += LANES) {
            const int i = e + t;
            if ((across ? i < o : i > o && i < n) || (i == o && !unit))
                copy_async<sizeof(scalar_t)>(to + i * to_along + o * to_next,
                                             a.p + i * along + o * next, sizeof(scalar_t));
        }
}

// The diagonal of L, n x n, inverted in its place if SOLVE; those that were lifted first, as below
// TINY the reciprocal may overflow
template <bool SOLVE>
__device__ Bits diagonal_of(scalar_t* L, int n, bool unit, int t)
{
    const auto there = [=](int i) { return i < n && !unit; };
    const Bits lifted = SOLVE ? where(t, [=](int i) {
        return there(i) && abs1(L[i * (DOWN + 1)]) < TINY; }) : Bits{};
    if (LANES > 32) __syncthreads();   // all warps have looked
    #pragma unroll
    for (int e = 0; e < N; e += LANES) {
        const int i = e + t;
        const scalar_t d = there(i) ? L[i * (DOWN + 1)] : scalar_t{1};
        const bool small = SOLVE && there(i) && abs1(d) < TINY;
        if (i < N) L[i * (DOWN + 1)] = SOLVE ? reciprocal(small ? mul(d, LIFT) : d) : d;
    }
    return lifted;
}

// x := L times x, or its inverse times x if SOLVE, C columns: what column j of L has to do with x
template <bool SOLVE>
__device__ void all_columns(scalar_t (&x)[C][N], const scalar_t* L, Bits lifted, int n)
{
    #pragma unroll
    for (int step = 0; step < N; ++step) {
        const int j = SOLVE ? step : N - 1 - step;  // x(j) is known, or not needed as it was
        if (!SOLVE) look_no_further_back();
        if (SOLVE && j >= n) break;  // of a product rows from n on are not wanted, nor used
        #pragma unroll
        for (int q = 0; q < N; q += VECTOR) {
            if (q + VECTOR <= j) continue;
            const Vector l = *reinterpret_cast<const Vector*>(L + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c) {
                if (SOLVE && q <= j) {
                    if (has(lifted, j)) x[c][j] = mul(x[c][j], LIFT);
                    x[c][j] = mul(l.x[j % VECTOR], x[c][j]);
                }
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e > j)
                        x[c][q + e] = minus_product(x[c][q + e], l.x[e],
                                                    SOLVE ? x[c][j] : mul(x[c][j], real_t(-1)));
            }
        }
        if (!SOLVE)
            #pragma unroll
            for (int c = 0; c < C; ++c) x[c][j] = mul(L[j * (DOWN + 1)], x[c][j]);
    }
}

// What a thread does for its team's columns of X, of which `teams` teams of the launch have some,
// `slabs` of them in a member. `staged`: B or X lies by columns. A member with an info other than
// zero gets X := B.
template <bool SOLVE>
__device__ void columns_of_team(
    const scalar_t* A, size a_row, size a_col, size a_next, const scalar_t* B, size b_row,
    size b_col, size b_next, scalar_t* X, size x_row, size x_col, size x_next, size alpha_re,
    size alpha_im, const int* info, size ns, size nrhs, size conjugated, size unit, size slabs,
    size staged, size teams)
{
    const int team = threadIdx.x / LANES, t = threadIdx.x % LANES;
    const size number_of = size(blockIdx.x) * TEAMS + team;
    const size mine = number_of < teams ? number_of : teams - 1;
    const size b = slabs == 1 ? mine : mine / slabs, first = (mine - b * slabs) * (LANES * C);
    const int n = size_of(ns, b);
    const int m = number_of < teams ? int(min(size(LANES * C), size_of(nrhs, b) - first)) : 0;
    const scalar_t alpha = number<scalar_t>::of(alpha_re, alpha_im);
    const bool turned = conjugated != 0, kept = info && *array_of(info, size(1), b);
    const auto in = part(matrix_of(B, b_row, b_col, b_next, b), 0, int(first));
    const auto out = part(matrix_of(X, x_row, x_col, x_next, b), 0, int(first));
    scalar_t* const L = reinterpret_cast<scalar_t*>(dynamic_shared)
                        + team * (TRIANGLE + (staged ? STRIP : 0));
    scalar_t* const strip = L + TRIANGLE;

    scalar_t x[C][N];
    fetch_triangle(L, matrix_of(A, a_row, a_col, a_next, b), n, unit != 0, t);
    if (staged)
        each_of_team<TALL>(in, strip, n, m, t, LANES, [](const scalar_t& from, scalar_t& to) {
            copy_async<sizeof(scalar_t)>(&to, &from, sizeof(scalar_t));
        });
    else
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = t + LANES * c;
            const scalar_t* p = &in(0, j);
            #pragma unroll
            for (int i = 0; i < N; ++i, p += in.rs) x[c][i] = i < n && j < m ? *p : scalar_t{};
        }
    end_group();
    await_groups<0>();
    team_sync();
    const Bits lifted = diagonal_of<SOLVE>(L, n, unit != 0, t);
    if (staged)
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i) x[c][i] = strip[(t + LANES * c) * TALL + i];
    if (!kept)
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i) {
                x[c][i] = scaled(alpha, x[c][i]);
                if (turned) x[c][i] = conj(x[c][i]);
            }
    team_sync();
    if (!kept) all_columns<SOLVE>(x, L, lifted, n);
    if (turned && !kept)
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i) x[c][i] = conj(x[c][i]);
    if (staged) {
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i) strip[(t + LANES * c) * TALL + i] = x[c][i];
        team_sync();
        each_of_team<TALL>(out, strip, n, m, t, LANES,
                           [](scalar_t& to, const scalar_t& from) { to = from; });
        return;
    }
    store_columns(out, x, n, m, t, LANES);
}
