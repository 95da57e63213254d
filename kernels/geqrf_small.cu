// geqrf_small.cu: QR factorization of a batch of m x n matrices, m, n <= N, a power of two.
//
// A team of N lanes holds a matrix, a lane one column in registers, or two: columns lane and
// lane + 32. In step k every lane's register i holds row k + i: the update writes one register further down, so the loop over k needs no
// unrolling, and register 0 of all lanes is row k of the result, stored at once. Column k crosses
// between lanes through shared memory; x^H a is then each lane's own work. The window of registers
// shrinks by an eighth of N. Memory is read and written once: the floor is 2 m n scalars; 4/3 n^3
// operations, two thirds more for what the window and the reading of dead lanes waste.
#include "launch.cuh"
#include "memory.cuh"
#include "qr.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int WARPS = 2;    // warps per block
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int LANES = N < 32 ? N : 32;           // of a team
constexpr int C = N / LANES;                    // columns to a lane
constexpr int TEAMS = 32 / LANES;               // of a warp
constexpr int STEP = N < 8 ? N : 8;             // of the window
constexpr int FEW = 16 / sizeof(scalar_t);
static_assert(N % FEW == 0 && 32 % LANES == 0 && C <= 2);

struct alignas(16) Vector { scalar_t x[FEW]; };

struct Member {
    Strided<scalar_t> out;
    scalar_t* tau;
    Vector (*columns)[N / FEW];  // of the team in shared memory, two in turn
    real_t back[C];              // what takes this lane's scaling out of R
    int m, n;
    int steps;                   // of all teams of the warp: m, but of a RAGGED batch the largest
    bool here;                   // in the batch
};

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
            if (lane + LANES * c == k)
                #pragma unroll
                for (int i = 0; i < W; i += FEW) {
                    Vector v;
                    #pragma unroll
                    for (int e = 0; e < FEW; ++e) v.x[e] = a[c][i + e];
                    column[i / FEW] = v;
                }
        __syncwarp();
        scalar_t x[W], inner[C];
        #pragma unroll
        for (int i = 0; i < W; i += FEW) {
            const Vector v = column[i / FEW];
            #pragma unroll
            for (int e = 0; e < FEW; ++e) x[i + e] = v.x[e];
        }
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            scalar_t sums[2] = {};
            #pragma unroll
            for (int i = 1; i < W; ++i) sums[i % 2] = plus_inner(sums[i % 2], x[i], a[c][i]);
            inner[c] = add(sums[0], sums[1]);
        }
        real_t squares = real(of_lane<LANES>(column_of(inner, k), k % LANES));
        bool none = k >= my.n;
        Power undo{1, 1};
        if (!none && !(squares >= LEAST)) {          // rare: x is zero, tiny or nan
            real_t most = 0;
            #pragma unroll
            for (int i = 1; i < W; ++i) most = larger(most, x[i]);
            none = most == 0 && imaginary(x[0]) == 0;
            const Power power = to_one(larger(most, x[0]));
            undo = power.inverse();
            squares = 0;
            #pragma unroll
            for (int c = 0; c < C; ++c) inner[c] = scalar_t{};
            #pragma unroll
            for (int i = 0; i < W; ++i) {
                x[i] = power.times(x[i]);
                #pragma unroll
                for (int c = 0; c < C; ++c)
                    if (i) inner[c] = plus_inner(inner[c], x[i], a[c][i]);
                if (i) squares += real(plus_inner(scalar_t{}, x[i], x[i]));
            }
        }
        const Reflector h = reflector(x[0], squares, none);
        const bool mine = my.here && (!RAGGED || k < my.m);
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = lane + LANES * c;
            // What a lane takes off its column: nothing left of k; column k becomes x scale.
            const scalar_t sum = add(a[c][0], mul(conj(h.scale), inner[c]));
            const scalar_t w = j > k ? mul(conj(h.tau), sum) : scalar_t{};
            const scalar_t down = j == k ? mul(h.scale, real_t(-1)) : mul(h.scale, w);
            scalar_t top = j == k && !none ? scalar_t{undo.times(h.beta)}
                                           : minus_product(a[c][0], scalar_t{1}, w);
            if (j >= k) top = mul(top, my.back[c]);
            if (mine && j < my.n) my.out(k, j) = top;
            if (mine && j == k && k < my.n) my.tau[k] = h.tau;
            #pragma unroll
            for (int i = 1; i < W; ++i)
                a[c][i - 1] = minus_product(j == k ? scalar_t{} : a[c][i], x[i], down);
            a[c][W - 1] = scalar_t{};
        }
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

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
geqrf_small(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
            size q_col, size q_next, scalar_t* tau, size ms, size ns, size batch)
{
    wait_for_stream();
    __shared__ Vector columns[WARPS * TEAMS][2][N / FEW];
    const int team = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const size at = size(blockIdx.x) * (WARPS * TEAMS) + team;
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const auto in = matrix_of(A, a_row, a_col, a_next, b);

    Member my{matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, m < n ? m : n, b),
              columns[team], {}, m, n, RAGGED ? int(__reduce_max_sync(ALL, unsigned(m))) : m, here};
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
    __syncwarp();  // in place: all of the team have loaded
    all_steps<N>(a, my, 0);
}
