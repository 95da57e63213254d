// getri_small.cu: the inverses of a batch of n x n matrices, n <= N <= 32, from their LU factors.
//
// A team of LANES lanes has a member: its factors, which all of the team read at once, in shared
// memory by columns; of X every lane C columns in registers, so that none waits for another. Column
// j of X begins as that of the identity, its one where the interchanges bring it, and is solved
// with L, then U, a column of the factors at a time, 16 bytes of it at once.
//
// The floor: the factors read and X written once, 2 n^2 numbers; 2 n^3 operations. A member with a
// zero on U's diagonal, whose first is `info`, keeps its factors.
#include "launch.cuh"
#include "triangular_small.cuh"

static_assert(LANES * C >= N);

// The place of the first zero on the diagonal, counted from 1, or 0
__device__ inline int first_zero(const scalar_t* LU, int n, int t)
{
    unsigned zeros = 0;
    #pragma unroll
    for (int e = 0; e < N; e += LANES) {
        const bool zero = e + t < n && abs1(LU[(e + t) * (DOWN + 1)]) == 0;
        const unsigned bits = __ballot_sync(~0u, zero) >> (threadIdx.x % 32 - t);
        zeros |= (bits & ~0u >> (32 - LANES)) << e;
    }
    return __ffs(zeros);
}

// x := L^-1 x, C columns; L has ones on its diagonal
__device__ inline void solve_lower(scalar_t (&x)[C][N], const scalar_t* LU, int n)
{
    #pragma unroll
    for (int j = 0; j < N - 1; ++j) {
        if (j >= n - 1) break;
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
__device__ inline void solve_upper(scalar_t (&x)[C][N], const scalar_t* LU, unsigned lifted, int n)
{
    #pragma unroll
    for (int j = N - 1; j >= 0; --j) {
        if (j >= n) continue;
        #pragma unroll
        for (int q = j / VECTOR * VECTOR; q >= 0; q -= VECTOR) {
            const Vector u = *reinterpret_cast<const Vector*>(LU + j * DOWN + q);
            #pragma unroll
            for (int c = 0; c < C; ++c) {
                if (q + VECTOR > j) {
                    if (lifted >> j & 1) x[c][j] = mul(x[c][j], LIFT);
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
    __syncwarp();
    const int zero = first_zero(square, n, t);
    if (t == 0 && here) info[b] = zero;
    scalar_t x[C][N];
    #pragma unroll
    for (int c = 0; c < C; ++c)
        #pragma unroll
        for (int i = 0; i < N; ++i) x[c][i] = scalar_t(real_t(i == one[c]));
    __syncwarp();
    if (zero) {
        #pragma unroll
        for (int c = 0; c < C; ++c)
            #pragma unroll
            for (int i = 0; i < N; ++i)
                if (t + LANES * c < N) x[c][i] = square[(t + LANES * c) * DOWN + i];
    }
    __syncwarp();
    const unsigned lifted = diagonal_of<true>(square, n, false, t);
    __syncwarp();
    if (!zero) {
        solve_lower(x, square, n);
        solve_upper(x, square, lifted, n);
    }
    __syncwarp();
    if (by_rows(out)) {
        store_columns(out, x, n, n, t);
        return;
    }
    #pragma unroll
    for (int c = 0; c < C; ++c)
        #pragma unroll
        for (int i = 0; i < N; ++i)
            if (t + LANES * c < N) square[(t + LANES * c) * DOWN + i] = x[c][i];
    __syncwarp();
    each_of_team<DOWN>(out, square, n, n, t, [](scalar_t& to, const scalar_t& from) {
        to = from;
    });
}
