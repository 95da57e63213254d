// gels_small.cu: min |A X - B| for a batch of m x n matrices of full rank, n <= m <= N.
//
// A team of LANES lanes of a warp holds a matrix by columns in registers, as geqrf_small does
// (qr_lanes.cuh), and B in shared memory, lane l the rows l, l + LANES, ... Each reflector is applied
// to B as soon as it is there, the lanes' sums added up by shuffles. What R is goes to shared memory,
// too, by columns; with a lane to a row R X = Q^H B is solved backwards. Columns of A and of B are
// scaled to within SMALL and LARGE at the outset where they are not, by powers of two, which are
// taken out of what is stored: what lies between is neither lost nor too large.
//
// The floor: A and B are read, the factors and X written, once: 2 m n + 2 m nrhs scalars; 4/3 n^3
// operations where m = n, 4 m n more for a column of B. Where R has a zero on its diagonal `info` is
// the first, and X is Q^H B; of R = 0 it is zero.
#include "launch.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest m
constexpr int LANES = 32;   // of a team
constexpr int C = 1;        // columns to a lane
constexpr int KEPT = 1;     // as of geqrf_small.cu
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
#include "qr_lanes.cuh"
#include "shifted.cuh"
static_assert(LANES <= 32);

constexpr int ROWS = (N + LANES - 1) / LANES;  // to a lane
constexpr int DOWN = N + 1;                    // from a column of R to the next: other banks

struct Member : Team {
    Strided<scalar_t> out;
    scalar_t *r, *b;     // R by columns; B by columns, N apart
    int m, nrhs, sides;  // `sides`: the largest nrhs of the warp
    bool here;           // in the batch
    bool any;            // of this lane's columns of R a number is not zero

    __device__ void put(int k, int j, int c, scalar_t top, const Reflector&)
    {
        if (j >= n || k >= m) return;
        if (j >= k) {
            r[j * DOWN + k] = top;
            any |= abs1(top) != 0;
            top = mul(top, back[c]);
        }
        if (here) out(k, j) = top;
    }

    // The lanes have rows of their own: nothing here is read by another lane.
    __device__ void beside(int k, const Vector* column, Power scaled, const Reflector& h) const
    {
        const int lane = member();
        const scalar_t* const x = column->x;  // of row k + i at i
        for (int c = 0; c < sides; ++c) {
            scalar_t* const y = b + c * N;
            scalar_t sum{}, mine{};
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                const int i = lane + LANES * q;
                if (i == k && i < m) mine = y[i];
                if (i > k && i < m) sum = plus_inner(sum, scaled.times(x[i - k]), y[i]);
            }
            sum = over_team(sum, [](scalar_t x, scalar_t y) { return add(x, y); });
            const scalar_t head = of_member(mine, k % LANES);
            const scalar_t w = mul(conj(h.tau), add(head, mul(conj(h.scale), sum)));
            const scalar_t down = mul(h.scale, w);
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                const int i = lane + LANES * q;
                if (i < k || i >= m || (RAGGED && k >= n)) continue;
                if (i == k) y[i] = minus_product(head, scalar_t{1}, w);
                else y[i] = minus_product(y[i], scaled.times(x[i - k]), down);
            }
        }
    }
};

// x := the solution of R x = y, lane l having rows l, l + LANES, ... of n, and of what they are
// divided by the reciprocals, of numbers that are lifted by as much; n <= most of all teams of a warp
__device__ inline void solve_upper(scalar_t (&x)[ROWS], const scalar_t (&inverse)[ROWS],
                                   const real_t (&lift)[ROWS], const scalar_t* r, int n, int most)
{
    const int lane = member();
    for (int k = most - 1; k >= 0; --k) {
        scalar_t mine{};
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (lane + LANES * q == k) mine = mul(mul(x[q], inverse[q]), lift[q]);
        const scalar_t found = of_member(mine, k % LANES);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const int i = lane + LANES * q;
            if (i == k) x[q] = found;
            else if (i < k && k < n) x[q] = minus_product(x[q], r[k * DOWN + i], found);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gels_small(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
           size q_col, size q_next, const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next, int* infos, size ms, size ns,
           size sides_of, size apart, size batch)
{
    wait_for_stream();
    __shared__ Vector columns[TEAMS][2][N / FEW];
    const int lane = member();
    const size at = size(blockIdx.x) * TEAMS + team();
    const bool here = at < batch;
    const size number = here ? at : batch - 1;
    const int m = size_of(ms, number), n = size_of(ns, number), nrhs = size_of(sides_of, number);
    const int rows = most_of_warp<LANES>(m), steps = most_of_warp<LANES>(n),
              sides = most_of_warp<LANES>(nrhs);
    const auto in = matrix_of(A, a_row, a_col, a_next, number);
    const auto given = matrix_of(B, b_row, b_col, b_next, number);
    const auto out = matrix_of(X, x_row, x_col, x_next, number);
    scalar_t* const room = reinterpret_cast<scalar_t*>(dynamic_shared) + team() * int(apart);

    Member my{{columns[team()], nullptr, {}, n, rows, steps},
              matrix_of(QR, q_row, q_col, q_next, number), room, room + n * DOWN, m, nrhs, sides,
              here, false};
    scalar_t a[C][N];
    int shift[C];
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        const int j = lane + LANES * c;
        #pragma unroll
        for (int i = 0; i < N; ++i) {
            a[c][i] = scalar_t{};
            if (here && i < m && j < n) a[c][i] = in(i, j);
        }
    }
    for (int c = 0; c < nrhs; ++c)
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const int i = lane + LANES * q;
            if (i < m) my.b[c * N + i] = here ? given(i, c) : scalar_t{};
        }
    to_usual(a, [&](int c, Power power) {
        my.back[c] = power.inverse().times(real_t(1));
        shift[c] = exponent(power);
    });
    // Of B a power for all columns: what is solved is R X = Q^H B
    real_t most = 0;
    for (int c = 0; c < nrhs; ++c)
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const int i = lane + LANES * q;
            if (i < m) most = larger(most, my.b[c * N + i]);
        }
    most = over_team(most, [](real_t x, real_t y) { return larger(x, y); });
    const Power of_b = is_usual(most) ? Power{1, 1} : to_one(most);
    const int shift_b = exponent(of_b);
    if (shift_b)
        for (int c = 0; c < nrhs; ++c)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                const int i = lane + LANES * q;
                if (i < m) my.b[c * N + i] = of_b.times(my.b[c * N + i]);
            }
    team_sync();  // in place: all of the team have loaded
    all_steps<N>(a, my, 0);
    if (m > steps) {  // the rows in which no column begins are where the last step left them
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i)
                if (here && steps + i < m && lane + LANES * c < n)
                    my.out(steps + i, lane + LANES * c) = a[c][i];
    }
    team_sync();

    scalar_t inverse[ROWS];
    real_t lift[ROWS];
    int zero = n, none = !my.any;
    #pragma unroll
    for (int q = 0; q < ROWS; ++q) {
        const int i = lane + LANES * q;
        inverse[q] = scalar_t{};
        lift[q] = 1;
        if (i >= n) continue;
        const scalar_t d = my.r[i * (DOWN + 1)];
        lift[q] = abs1(d) < TINY ? LIFT : real_t(1);
        inverse[q] = reciprocal(mul(d, lift[q]));
        if (abs1(d) == 0 && i < zero) zero = i;
    }
    zero = over_team(zero, [](int x, int y) { return y < x ? y : x; });
    none = over_team(none, [](int x, int y) { return x & y; });
    if (lane == 0 && here) *array_of(infos, 1, number) = zero == n || none ? 0 : zero + 1;
    for (int c = 0; c < sides; ++c) {
        scalar_t x[ROWS];
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const int i = lane + LANES * q;
            x[q] = i < n && c < nrhs ? my.b[c * N + i] : scalar_t{};
        }
        solve_upper(x, inverse, lift, my.r, n, steps);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const int i = lane + LANES * q;
            if (i >= m || c >= nrhs || !here) continue;
            const scalar_t y = shifted(my.b[c * N + i], -shift_b);
            out(i, c) = i >= n || (zero < n && !none) ? y
                        : none ? scalar_t{} : shifted(x[q], shift[q < C ? q : 0] - shift_b);
        }
    }
}
