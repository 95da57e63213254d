// gels_shared.cu: min |A x - b| for a batch of m x n matrices, n <= m <= N, of full rank, one
// right-hand side each: a warp to each.
//
// The factorization takes b along (qr_shared.cuh), which becomes Q^H b, and R is there for the way
// up. Memory is read and written once: the floor is 2 m n + 2 m scalars over its bandwidth. A b that
// is not within SMALL and LARGE is scaled to 1, and for the way up to the root of R's diagonal, by
// powers of two, which are taken out of what is stored: R^-1 Q^H b is as far from overflow then as
// from underflow. Where R has a zero on its diagonal `info` is the first, and x is Q^H b; of
// R = 0 it is zero.
constexpr bool SIDE = true;
#include "launch.cuh"
#include "least_squares.cuh"
#include "qr_shared.cuh"
#include "solve_up.cuh"

constexpr int DOWN = (N + 31) / 32;  // rows of a lane
__device__ inline int row(int q) { return threadIdx.x + 32 * q; }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gels_shared(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
            size q_col, size q_next, const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next, int* infos, size ms, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    scalar_t* const a = reinterpret_cast<scalar_t*>(dynamic_shared);
    const size member = blockIdx.x;
    const int m = size_of(ms, member), n = size_of(ns, member);
    const auto b = matrix_of(B, b_row, b_col, b_next, member);
    const auto x = matrix_of(X, x_row, x_col, x_next, member);
    fetch(a, matrix_of(A, a_row, a_col, a_next, member), m, n);
    scalar_t y[DOWN];
    real_t most = 0;
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        y[q] = row(q) < m ? b(row(q), 0) : scalar_t{};
        most = larger(most, y[q]);
    }
    int shift = to_usual(most);
    #pragma unroll
    for (int q = 0; q < DOWN; ++q)
        if (row(q) < N) s.side[row(q)] = shifted(y[q], shift);

    qr_in_shared(a, s, nullptr, m, n);
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) y[q] = row(q) < m ? s.side[row(q)] : scalar_t{};
    const auto rank = rank_of<DOWN>(n, [&](int i, int j) { return at(a, i, j); });
    if (threadIdx.x == 0) *array_of(infos, 1, member) = rank.info(n);
    if (shift) {
        #pragma unroll
        for (int q = 0; q < DOWN; ++q) y[q] = shifted(y[q], rank.half);
        shift += rank.half;
    }
    if (!rank.lost(n)) {
        scalar_t known[DOWN];
        #pragma unroll
        for (int q = 0; q < DOWN; ++q) known[q] = y[q];
        solve_up(known, n, [&](scalar_t v, int q) { return rank.diagonal.under(v, q); },
                 [&](int K, int r, int q) { return a[(K + r) * LD + (row(q) ^ turn(r))]; });
        #pragma unroll
        for (int q = 0; q < DOWN; ++q)
            if (row(q) < n) y[q] = known[q];
    }
    #pragma unroll
    for (int q = 0; q < DOWN; ++q)
        if (row(q) < m) x(row(q), 0) = rank.none && row(q) < n ? scalar_t{} : shifted(y[q], -shift);
    store(a, matrix_of(QR, q_row, q_col, q_next, member), m, n);
}
