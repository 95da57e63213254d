// gels_warp.cu: min |A X - B| for a batch with the QR factors of A, m x n, n <= m <= N, of full rank.
//
// A warp has a member and four right-hand sides at a time, or the only one, in registers. What geqrf
// left passes by twice (passing_columns.cuh): the reflectors, first to last, for Y = Q^H B; then R,
// last column to first, for R X = Y. A step is a column, and a number of each right-hand side that
// all lanes wait for. Columns of B are scaled to within SMALL and LARGE at the outset where they are
// not, by a power of two, which is taken out of what is stored.
//
// The floor: the factors and B are read, X written, once: m n + 2 m nrhs scalars, 4 m n - n^2
// operations a column of B. Where R has a zero on its diagonal `info` is the first, and X is Q^H B;
// of R = 0 it is zero.
#include "launch.cuh"
#include "shifted.cuh"
#include "passing_columns.cuh"
static_assert(LANES == 32, "warps go their own ways");

// Whether all of R is zero
__device__ inline bool is_zero(const Passing& qr)
{
    bool any = false;
    for (int j = 0; j < qr.n; ++j)
        for (int i = lane(); i <= j; i += 32) any |= abs1(qr.a(i, j)) != 0;
    return !__any_sync(ALL, any);
}

template <int R>
__device__ void solve(const Passing& qr, const Reciprocals<ROWS>& diagonal, bool lost, bool none,
                      const Strided<const scalar_t>& b, const Strided<scalar_t>& x, int nrhs,
                      int first)
{
    Sides<R> sides;
    sides.load(b, qr.m, nrhs, first);
    real_t most = 0;
    sides.each([&](int, int, scalar_t y) { most = larger(most, y); });
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) most = larger(most, across(most, mask));
    const Power power = is_usual(most) ? Power{1, 1} : to_one(most);
    const int shift = exponent(power);
    if (shift) sides.each([&](int, int, scalar_t& y) { y = power.times(y); });
    sides.reflect(qr, true, false);
    if (!lost) sides.substitute(qr, diagonal);
    sides.each([&](int i, int j, scalar_t y) {
        if (i < qr.m && first + j < nrhs)
            x(i, first + j) = none && i < qr.n ? scalar_t{} : shifted(y, -shift);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gels_warp(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
          size tau_next, const scalar_t* B, size b_row, size b_col, size b_next, scalar_t* X,
          size x_row, size x_col, size x_next, int* infos, size ms, size ns, size sides_of,
          size apart, size batch)
{
    wait_for_stream();
    const size at = size(blockIdx.x) * WARPS + warp();
    if (at >= batch) return;
    const int m = size_of(ms, at), n = size_of(ns, at), nrhs = size_of(sides_of, at);
    const Passing qr{matrix_of(QR, q_row, q_col, q_next, at), array_of(tau, tau_next, at),
                     reinterpret_cast<scalar_t*>(dynamic_shared) + warp() * STAGES * int(apart),
                     int(apart), m, n, n};
    const auto b = matrix_of(B, b_row, b_col, b_next, at);
    const auto x = matrix_of(X, x_row, x_col, x_next, at);
    scalar_t d[ROWS];
    int zero = n;
    #pragma unroll
    for (int q = ROWS - 1; q >= 0; --q) {
        d[q] = row(q) < n ? qr.a(row(q), row(q)) : scalar_t{1};
        if (abs1(d[q]) == 0) zero = row(q);
    }
    zero = int(__reduce_min_sync(ALL, unsigned(zero)));
    const bool none = zero == 0 && is_zero(qr);
    if (lane() == 0) *array_of(infos, 1, at) = zero == n || none ? 0 : zero + 1;
    const Reciprocals<ROWS> diagonal([&](int q) { return d[q]; });
    if (nrhs == 1) solve<1>(qr, diagonal, zero < n, none, b, x, nrhs, 0);
    else
        #pragma unroll 1
        for (int j = 0; j < nrhs; j += TOGETHER)
            solve<TOGETHER>(qr, diagonal, zero < n, none, b, x, nrhs, j);
}
