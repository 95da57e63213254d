// gels_warp.cu: min |A X - B| for a batch with the QR factors of A, m x n, n <= m <= N, of full rank.
//
// A warp has a member and four right-hand sides at a time, or the only one, in registers. What geqrf
// left passes by twice (passing_columns.cuh): the reflectors, first to last, for Y = Q^H B; then R,
// last column to first, for R X = Y. A step is a column, and a number of each right-hand side that
// all lanes wait for. Columns of B that are not within SMALL and LARGE are scaled to the root of R's
// diagonal, by a power of two, which is taken out of what is stored: R^-1 Q^H b is as far from
// overflow then as from underflow.
//
// The floor: the factors and B are read, X written, once: m n + 2 m nrhs scalars, 4 m n - n^2
// operations a column of B. Where R has a zero on its diagonal `info` is the first, and X is Q^H B;
// of R = 0 it is zero.
#include "launch.cuh"
#include "least_squares.cuh"
#include "passing_columns.cuh"
static_assert(LANES == 32, "warps go their own ways");

template <int R>
__device__ void solve(const Passing& qr, const Rank<ROWS>& rank,
                      const Strided<const scalar_t>& b, const Strided<scalar_t>& x, int nrhs,
                      int first)
{
    Sides<R> sides;
    sides.load(b, qr.m, nrhs, first);
    real_t most = 0;
    sides.each([&](int, int, scalar_t y) { most = larger(most, y); });
    int shift = to_usual(most);
    if (shift) shift += rank.half;
    if (shift) sides.each([&](int, int, scalar_t& y) { y = shifted(y, shift); });
    sides.reflect(qr, true, false);
    if (!rank.lost(qr.n)) sides.substitute(qr, rank.diagonal);
    sides.each([&](int i, int j, scalar_t y) {
        if (i < qr.m && first + j < nrhs)
            x(i, first + j) = rank.none && i < qr.n ? scalar_t{} : shifted(y, -shift);
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
    const auto rank = rank_of<ROWS>(n, [&](int i, int j) { return qr.a(i, j); });
    if (lane() == 0) *array_of(infos, 1, at) = rank.info(n);
    if (nrhs == 1) solve<1>(qr, rank, b, x, nrhs, 0);
    else
        #pragma unroll 1
        for (int j = 0; j < nrhs; j += TOGETHER) solve<TOGETHER>(qr, rank, b, x, nrhs, j);
}
