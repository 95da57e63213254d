// getri_small.cu: the inverses of a batch of n x n matrices, n <= N <= 96, from their LU factors.
//
// A team of LANES lanes, of a warp or a block of two or three, has a member: its factors, which all of the
// team read at once, in shared memory by columns; of X every lane C columns in registers, so that
// none waits for another. Column
// j of X begins as that of the identity, its one where the interchanges bring it, and is solved
// with L, then U, a column of the factors at a time, 16 bytes of it at once.
//
// The floor: the factors read and X written once, 2 n^2 numbers; 2 n^3 operations. A member with a
// zero on U's diagonal, whose first is `info`, keeps its factors.
#include "launch.cuh"
#include "triangular_small.cuh"

static_assert(LANES * C >= N);

// x := L^-1 x, C columns; L has ones on its diagonal
__device__ inline void solve_lower(scalar_t (&x)[C][N], const scalar_t* LU, int n)
{
    #pragma unroll
    for (int j = 0; j < N - 1; ++j) {
        if (j >= n - 1) break;
        look_no_further_back();
        #pragma unroll
        for (int q = (j + 1) / VECTOR * VECTOR; q < N; q += VECTOR) {
            const Vector l = *reinterpret_cast<const Vector*>(LU + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c)
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e > j) x[c][q + e] = minus_product(x[c][q + e], l.x[e], x[c][j]);
        }
    }
}

// x := U^-1 x, C columns; on the diagonal of U are reciprocals, of numbers lifted where `lifted`
__device__ inline void solve_upper(scalar_t (&x)[C][N], const scalar_t* LU, Bits lifted, int n)
{
    #pragma unroll
    for (int j = N - 1; j >= 0; --j) {
        if (j >= n) continue;
        look_no_further_back();
        #pragma unroll
        for (int q = j / VECTOR * VECTOR; q >= 0; q -= VECTOR) {
            const Vector u = *reinterpret_cast<const Vector*>(LU + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c) {
                if (q + VECTOR > j) {
                    if (has(lifted, j)) x[c][j] = mul(x[c][j], LIFT);
                    x[c][j] = mul(u.x[j % VECTOR], x[c][j]);
                }
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (q + e < j) x[c][q + e] = minus_product(x[c][q + e], u.x[e], x[c][j]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getri_small(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns, size batch)
{
    wait_for_stream();
    const int team = threadIdx.x / LANES, t = threadIdx.x % LANES;
    const size number_of = size(blockIdx.x) * TEAMS + team;
    const bool here = number_of < batch;
    const size b = here ? number_of : batch - 1;
    const int n = here ? int(ns) : 0;  // a team past the end has a matrix of no rows
    const Strided<const scalar_t> in{LU + b * lu_next, lu_row, lu_col};
    const Strided<scalar_t> out{X + b * x_next, x_row, x_col};
    scalar_t* const square = reinterpret_cast<scalar_t*>(dynamic_shared) + team * TRIANGLE;

    each_of_team<DOWN>(in, square, n, n, t, [](const scalar_t& from, scalar_t& to) {
        copy_async<sizeof(scalar_t)>(&to, &from, sizeof(scalar_t));
    });
    end_group();
    int one[C];
    #pragma unroll
    for (int c = 0; c < C; ++c) one[c] = t + LANES * c;
    for (int k = 0; k < n; ++k) {
        const int p = piv[b * n + k];
        #pragma unroll
        for (int c = 0; c < C; ++c) one[c] = one[c] == k ? p : one[c] == p ? k : one[c];
    }
    await_groups<0>();
    team_sync();
    const int zero = first_of(where(t, [=](int i) {
        return i < n && abs1(square[i * (DOWN + 1)]) == 0; }));
    if (t == 0 && here) info[b] = zero;
    scalar_t x[C][N];
    #pragma unroll
    for (int c = 0; c < C; ++c)
        #pragma unroll
        for (int i = 0; i < N; ++i) x[c][i] = scalar_t(real_t(i == one[c]));
    team_sync();
    if (zero) {
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i)
                if (t + LANES * c < N) x[c][i] = square[(t + LANES * c) * DOWN + i];
    }
    team_sync();
    const Bits lifted = diagonal_of<true>(square, n, false, t);
    team_sync();
    if (!zero) {
        solve_lower(x, square, n);
        look_no_further_back();
        solve_upper(x, square, lifted, n);
    }
    team_sync();
    if (by_rows(out)) {
        store_columns(out, x, n, n, t);
        return;
    }
    #pragma unroll
    for (int c = 0; c < C; ++c)
        #pragma unroll
        for (int i = 0; i < N; ++i)
            if (t + LANES * c < N) square[(t + LANES * c) * DOWN + i] = x[c][i];
    team_sync();
    each_of_team<DOWN>(out, square, n, n, t, [](scalar_t& to, const scalar_t& from) {
        to = from;
    });
}
