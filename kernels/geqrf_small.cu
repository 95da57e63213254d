// geqrf_small.cu: QR factorization of a batch of m x n matrices, m, n <= N.
//
// A team of LANES lanes, of a warp or a block of two, holds a matrix, a lane one column in
// registers, or two: columns lane and lane + LANES. In step k every lane's register i holds row
// k + i: the update writes one register further down, so the loop over k needs no unrolling, and
// register 0 of all lanes is row k of the result, stored at once. Column k crosses between lanes
// through shared memory; x^H a is then each lane's own work. Where both do not fit its registers a
// lane reads column k twice. The window of registers shrinks by 8 rows. Memory is read and written
// once: the floor is 2 m n scalars; 4/3 n^3 operations, two thirds more for what the window and the
// reading of dead lanes waste.
#include "block.cuh"
#include "launch.cuh"
#include "qr.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int LANES = 32;   // of a team
constexpr int KEPT = 1;     // column k stays in registers; 0: it is read twice
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int C = (N + LANES - 1) / LANES;      // columns to a lane
constexpr int TEAMS = THREADS / LANES;          // of a block
constexpr int STEP = N < 8 ? N : 8;             // of the window
constexpr int FEW = 16 / sizeof(scalar_t);
static_assert(N % FEW == 0 && C <= 2 && (LANES <= 32 ? 32 % LANES == 0 : TEAMS == 1));
static_assert(KEPT || LANES >= 32, "a team that reads twice goes its way alone");

struct alignas(16) Vector { scalar_t x[FEW]; };

struct Member {
    Strided<scalar_t> out;
    scalar_t* tau;
    Vector (*columns)[N / FEW];  // of the team in shared memory, two in turn
    real_t* squares;             // of a block's team, two in turn
    real_t back[C];              // what takes this lane's scaling out of R
    int m, n;
    int steps;                   // of all teams of the warp: m, but of a RAGGED batch the largest
    bool here;                   // in the batch
};

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
    return C == 1 || k < LANES ? x[0] : x[C - 1];
}

// Steps `first` and on, STEP of them, by a window of W rows
template <int W> __device__ void steps(scalar_t (&a)[C][N], const Member& my, int first)
{
    const int lane = threadIdx.x % LANES;
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
            squares = real(of_lane<LANES>(column_of(inner, k), k % LANES));
        }
        bool none = k >= my.n;
        Power undo{1, 1};
        if (!none && !(squares >= LEAST)) {          // rare: x is zero, tiny or nan
            real_t most = 0;
            each<W>(x, column, [&](int, scalar_t x) { most = larger(most, x); });
            none = most == 0 && imaginary(alpha) == 0;
            const Power power = to_one(larger(most, alpha));
            undo = power.inverse();
            alpha = power.times(alpha);
            if constexpr (KEPT) {
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
        const bool mine = my.here && (!RAGGED || k < my.m);
        scalar_t down[C];
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = lane + LANES * c;
            // What a lane takes off its column: nothing left of k; column k becomes x scale.
            const scalar_t sum = add(a[c][0], mul(conj(h.scale), inner[c]));
            const scalar_t w = j > k ? mul(conj(h.tau), sum) : scalar_t{};
            down[c] = j == k ? mul(h.scale, real_t(-1)) : mul(h.scale, w);
            scalar_t top = j == k && !none ? scalar_t{undo.times(h.beta)}
                                           : minus_product(a[c][0], scalar_t{1}, w);
            if (j >= k) top = mul(top, my.back[c]);
            if (mine && j < my.n) my.out(k, j) = top;
            if (mine && j == k && k < my.n) my.tau[k] = h.tau;
        }
        each<W>(x, column, [&](int i, scalar_t x) {
            #pragma unroll
            for (int c = 0; c < C; ++c)
                a[c][i - 1] = minus_product(lane + LANES * c == k ? scalar_t{} : a[c][i], x, down[c]);
        });
        #pragma unroll
        for (int c = 0; c < C; ++c) a[c][W - 1] = scalar_t{};
    }
}

// All steps, the window no larger than what is left of m rows
template <int W> __device__ void all_steps(scalar_t (&a)[C][N], const Member& my, int first)
{
    if (my.steps - first > W - STEP) {
        steps<W>(a, my, first);
        first += STEP;
    }
    if constexpr (W > STEP) all_steps<W - STEP>(a, my, first);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_small(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
            size q_col, size q_next, scalar_t* tau, size ms, size ns, size batch)
{
    wait_for_stream();
    __shared__ Vector columns[TEAMS][2][N / FEW];
    __shared__ real_t squares[2];
    const int team = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const size at = size(blockIdx.x) * TEAMS + team;
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const auto in = matrix_of(A, a_row, a_col, a_next, b);

    Member my{matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, m < n ? m : n, b),
              columns[team], squares, {}, m, n,
              RAGGED && LANES < 32 ? int(__reduce_max_sync(ALL, unsigned(m))) : m, here};
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
        my.back[c] = power.inverse().times(real_t(1));
    }
    team_sync();  // in place: all of the team have loaded
    all_steps<N>(a, my, 0);
}
