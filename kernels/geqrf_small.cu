// geqrf_small.cu: QR factorization of a batch of m x n matrices, m, n <= N.
//
// A team of LANES lanes, of a warp or a block of two, holds a matrix, a lane one to three columns in
// registers (qr_lanes.cuh). Memory is read and written once: the floor is 2 m n scalars; 4/3 n^3
// operations, two thirds more for what the window and the reading of dead lanes waste. SLIM
// members, whose columns are far fewer than their rows, have a lane to a column, and as many steps.
#include "launch.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int LANES = 32;   // of a team
constexpr int SLIM = 0;     // 1: n <= LANES
constexpr int KEPT = 1;     // column k stays in registers; 0: it is read twice
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int C = SLIM ? 1 : (N + LANES - 1) / LANES;  // columns to a lane
#include "qr_lanes.cuh"
static_assert(C <= 3);

struct Member : Team {
    Strided<scalar_t> out;
    scalar_t* tau;
    int m;
    bool here;                   // in the batch

    __device__ void put(int k, int j, int c, scalar_t top, const Reflector& h) const
    {
        const bool mine = here && (!RAGGED || k < m);
        if (j >= k) top = mul(top, back[c]);
        if (mine && j < n) out(k, j) = top;
        if (mine && j == k && k < n) tau[k] = h.tau;
    }
    __device__ void beside(int, const Vector*, Power, const Reflector&) const {}
    // The rows in which no column begins are where the last step left them.
    __device__ void put_rest(const scalar_t (&x)[N], int steps) const
    {
        const int lane = member();
        #pragma unroll
        for (int i = 0; i < N; ++i)
            if (steps + i < m && lane < n) out(steps + i, lane) = x[i];
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_small(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
            size q_col, size q_next, scalar_t* tau, size ms, size ns, size batch)
{
    wait_for_stream();
    __shared__ Vector columns[TEAMS][2][N / FEW];
    __shared__ real_t squares[2];
    const int lane = member();
    const size at = size(blockIdx.x) * TEAMS + team();
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const auto in = matrix_of(A, a_row, a_col, a_next, b);

    // Unless SLIM every row passes register 0: to store the last ones from where they are takes
    // registers.
    const int rows = most_of_warp<LANES>(m), steps = SLIM ? most_of_warp<LANES>(n) : rows;
    Member my{{columns[team()], squares, {}, n, rows, steps}, matrix_of(QR, q_row, q_col, q_next, b),
              array_of(tau, m < n ? m : n, b), m, here};
    scalar_t a[C][N];
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        const int j = lane + LANES * c;
        #pragma unroll
        for (int i = 0; i < N; ++i) {
            a[c][i] = scalar_t{};
            if (here && i < m && j < n) a[c][i] = in(i, j);
        }
    }
    to_usual(a, [&](int c, Power power) {
        my.back[c] = power.inverse().times(real_t(1));
    });
    team_sync();  // in place: all of the team have loaded
    all_steps<N>(a, my, 0);
    if (SLIM && here) my.put_rest(a[0], steps);
}
