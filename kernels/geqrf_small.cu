// geqrf_small.cu: QR factorization of a batch of m x n matrices, m, n <= N.
//
// A team of LANES lanes, of a warp or a block of two, holds a matrix: PARTS neighbouring lanes share
// the rows of a column, every PARTS-th to each, and have C columns, COLUMNS apart, in registers. Of
// the rows from k on lane `part` holds PARTS i + part in register i: every PARTS steps the update
// writes one register further down, so that the loop over k needs no unrolling, and row k of the
// result is in register 0, stored at once. Column k crosses between lanes through shared memory;
// x^H a is then the work of the PARTS lanes of a column. The window of registers shrinks by 8 rows.
// Memory is read and written once: the floor is 2 m n scalars; 4/3 n^3 operations, two thirds more
// for what the window and the reading of dead lanes waste.
#include "block.cuh"
#include "launch.cuh"
#include "qr.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int LANES = 32;   // of a team
constexpr int PARTS = 1;    // of them to a column
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int COLUMNS = LANES / PARTS, C = (N + COLUMNS - 1) / COLUMNS, ROWS = N / PARTS;
constexpr int TEAMS = THREADS / LANES;          // of a block
constexpr int STEP = N < 8 ? N : 8;             // of the window
constexpr int FEW = 16 / sizeof(scalar_t);
constexpr int LINE = ROWS / FEW + (PARTS > 1);  // of a part in shared memory: no bank twice
constexpr int BELOW = PARTS == 1 ? 1 : 0;       // the first register that may have a row below k
static_assert(ROWS % FEW == 0 && N % STEP % PARTS == 0 && LANES % PARTS == 0 && STEP % PARTS == 0);
static_assert(LANES <= 32 ? 32 % LANES == 0 : TEAMS == 1 && PARTS > 1);

struct alignas(16) Vector { scalar_t x[FEW]; };

struct Member {
    Strided<scalar_t> out;
    scalar_t* tau;
    Vector (*columns)[PARTS][LINE];  // of the team in shared memory, two in turn
    int m, n;
    int steps;                   // of all teams of the warp: m, but of a RAGGED batch the largest
    bool here;                   // in the batch
};

__device__ inline void team_sync()
{
    if (LANES > 32) __syncthreads();
    else __syncwarp();
}
__device__ inline int part() { return threadIdx.x % PARTS; }
__device__ inline int column(int c) { return threadIdx.x % LANES / PARTS + COLUMNS * c; }

// Over the lanes of a column
template <class T> __device__ T over_parts(T x)
{
    #pragma unroll
    for (int d = 1; d < PARTS; d *= 2) x = add(x, across(x, d));
    return x;
}
__device__ inline real_t largest_of_parts(real_t x)
{
    #pragma unroll
    for (int d = 1; d < PARTS; d *= 2) x = larger(x, across(x, d));
    return x;
}

// The lane's part of x^H a for R rows
template <int R> __device__ scalar_t inner_part(const scalar_t* x, const scalar_t (&a)[ROWS])
{
    scalar_t sums[2] = {};
    #pragma unroll
    for (int i = BELOW; i < R; ++i) sums[i % 2] = plus_inner(sums[i % 2], x[i], a[i]);
    return add(sums[0], sums[1]);
}

// Steps `first` and on, STEP of them, by a window of W rows. A column keeps x of its step, below
// the diagonal, until it is stored as v = x `scale`; R is stored times `back`.
template <int W>
__device__ void steps(scalar_t (&a)[C][ROWS], const Member& my, scalar_t (&scale)[C],
                      const real_t (&back)[C], int first)
{
    constexpr int R = W / PARTS, WHOLE = (R + FEW - 1) / FEW * FEW;
    #pragma unroll 1
    for (int k = first; k < first + STEP && k < my.steps; ++k) {
        const int head = (k - first) % PARTS;     // the part that has row k
        Vector (&x_of)[PARTS][LINE] = my.columns[k % 2];
        #pragma unroll
        for (int c = 0; c < C; ++c)
            if (column(c) == k)
                #pragma unroll
                for (int i = 0; i < R; i += FEW) {
                    Vector v;
                    #pragma unroll
                    for (int e = 0; e < FEW; ++e) v.x[e] = a[c][i + e];
                    x_of[part()][i / FEW] = v;
                }
        team_sync();
        scalar_t x[WHOLE], inner[C];
        #pragma unroll
        for (int i = 0; i < R; i += FEW) {
            const Vector v = x_of[part()][i / FEW];
            #pragma unroll
            for (int e = 0; e < FEW; ++e) x[i + e] = v.x[e];
        }
        scalar_t alpha = PARTS == 1 ? x[0] : x_of[head][0].x[0];
        if (PARTS > 1 && part() <= head) x[0] = scalar_t{};
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            inner[c] = scalar_t{};
            if (k < COLUMNS * (c + 1)) inner[c] = over_parts(inner_part<R>(x, a[c]));
        }
        real_t squares = 0;
        if constexpr (PARTS == 1) {
            const scalar_t own = C == 1 || k < COLUMNS ? inner[0] : inner[C - 1];
            squares = real(of_lane<LANES>(own, k % LANES));
        } else {
            #pragma unroll
            for (int i = 0; i < R; ++i) squares = real(plus_inner(scalar_t(squares), x[i], x[i]));
            squares = over_parts(squares);
        }
        bool none = k >= my.n;
        Power undo{1, 1};
        const bool rare = !none && !(squares >= LEAST);   // x is zero, tiny or nan
        if (PARTS == 1 ? rare : __any_sync(ALL, rare)) {
            real_t most = 0;
            #pragma unroll
            for (int i = BELOW; i < R; ++i) most = larger(most, x[i]);
            most = largest_of_parts(most);
            Power power{1, 1};
            if (rare) {
                none = most == 0 && imaginary(alpha) == 0;
                power = to_one(larger(most, alpha));
            }
            undo = power.inverse();
            alpha = power.times(alpha);
            #pragma unroll
            for (int i = 0; i < R; ++i) x[i] = power.times(x[i]);
            squares = 0;
            #pragma unroll
            for (int i = BELOW; i < R; ++i)
                squares = real(plus_inner(scalar_t(squares), x[i], x[i]));
            squares = over_parts(squares);
            #pragma unroll
            for (int c = 0; c < C; ++c) {
                inner[c] = over_parts(inner_part<R>(x, a[c]));
                if (column(c) == k)
                    #pragma unroll
                    for (int i = 0; i < R; ++i)
                        if (i || part() > head) a[c][i] = power.times(a[c][i]);
            }
        }
        const Reflector h = reflector(alpha, squares, none);
        const bool mine = my.here && (!RAGGED || k < my.m) && part() == head;
        scalar_t down[C];
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const int j = column(c);
            // What a lane takes off its column: nothing of k and left of it
            scalar_t a0 = a[c][0];
            if (PARTS > 1) a0 = of_lane<PARTS>(a0, head);
            const scalar_t sum = add(a0, mul(conj(h.scale), inner[c]));
            const scalar_t w = j > k ? mul(conj(h.tau), sum) : scalar_t{};
            down[c] = mul(h.scale, w);
            scalar_t top = j == k && !none ? scalar_t{undo.times(h.beta)}
                                           : minus_product(a0, scalar_t{1}, w);
            top = j < k ? mul(top, scale[c]) : mul(top, back[c]);
            if (mine && j < my.n) my.out(k, j) = top;
            if (mine && j == k && k < my.n) my.tau[k] = h.tau;
            if (j == k) scale[c] = h.scale;
        }
        const bool move = head == PARTS - 1;
        #pragma unroll
        for (int c = 0; c < C; ++c) {
            const bool dead = k >= COLUMNS * (c + 1);
            if (move) {
                #pragma unroll
                for (int i = 1; i < R; ++i)
                    a[c][i - 1] = dead ? a[c][i] : minus_product(a[c][i], x[i], down[c]);
                a[c][R - 1] = scalar_t{};
            } else if (!dead) {
                #pragma unroll
                for (int i = 0; i < R; ++i) a[c][i] = minus_product(a[c][i], x[i], down[c]);
            }
        }
    }
}

// All steps, the window no larger than what is left of m rows
template <int W>
__device__ void all_steps(scalar_t (&a)[C][ROWS], const Member& my, scalar_t (&scale)[C],
                          const real_t (&back)[C], int first)
{
    if (my.steps - first > W - STEP) {
        steps<W>(a, my, scale, back, first);
        first += STEP;
    }
    if constexpr (W > STEP) all_steps<W - STEP>(a, my, scale, back, first);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_small(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
            size q_col, size q_next, scalar_t* tau, size ms, size ns, size batch)
{
    wait_for_stream();
    __shared__ Vector columns[TEAMS][2][PARTS][LINE];
    const int team = threadIdx.x / LANES;
    const size at = size(blockIdx.x) * TEAMS + team;
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const auto in = matrix_of(A, a_row, a_col, a_next, b);

    const Member my{matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, m < n ? m : n, b),
                    columns[team], m, n,
                    RAGGED && LANES < 32 ? int(__reduce_max_sync(ALL, unsigned(m))) : m, here};
    scalar_t a[C][ROWS], scale[C] = {};
    real_t back[C];
    #pragma unroll
    for (int c = 0; c < C; ++c)
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int r = PARTS * i + part(), j = column(c);
            a[c][i] = scalar_t{};
            if (here && r < m && j < n) a[c][i] = in(r, j);
        }
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        real_t most = 0;
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) most = larger(most, a[c][i]);
        most = largest_of_parts(most);
        Power power{1, 1};
        if (!is_usual(most)) {
            power = to_one(most);
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) a[c][i] = power.times(a[c][i]);
        }
        back[c] = power.inverse().times(real_t(1));
    }
    team_sync();  // in place: all of the team have loaded
    all_steps<N>(a, my, scale, back, 0);
}
