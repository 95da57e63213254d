// sytrd_rows.cu: small Hermitian matrices to real tridiagonal ones, A = Q T Q^H, for a batch.
//
// As sytrd_block.cu, whose outputs these are, with the matrix in registers: a team of N / EACH
// lanes, a part of a warp or some warps, has a matrix and a lane EACH of its rows, N / EACH apart.
// A step reads v twice and w once from shared memory, for all EACH rows, and moves the columns one
// register to the left as it updates them, so that the loop is not unrolled; columns past the last
// are left out by eights. N^3 shared memory words for each matrix and EACH; 4/3 n^3 fused
// operations on N^2 (N - n) more zeros; three barriers a column.
#include "block.cuh"
#include "launch.cuh"
#include "tridiagonal.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int EACH = 2;     // rows of a lane
constexpr int BLOCKS = 1;   // per multiprocessor for which registers are rationed
#endif
constexpr int TEAM = N / EACH, MEMBERS = THREADS / TEAM, EIGHT = 8;
static_assert(N % EIGHT == 0 && (TEAM <= 32 ? 32 % TEAM == 0 : THREADS == TEAM));

__device__ inline void team_sync()
{
    if (TEAM > 32) __syncthreads();
    else __syncwarp();
}
// The sum over the team, the same for all; `each` for a number of each of its warps
template <class T> __device__ T team_sum(T x, T* each)
{
    #pragma unroll
    for (int d = 1; d < (TEAM < 32 ? TEAM : 32); d *= 2) x = add(x, across(x, d));
    if (TEAM > 32) {
        if (threadIdx.x % 32 == 0) each[warp()] = x;
        __syncthreads();
        x = each[0];
        #pragma unroll
        for (int w = 1; w < WARPS; ++w) x = add(x, each[w]);
    }
    return x;
}

struct Member {
    scalar_t v[2 * N], w[2 * N];   // zeros from N on
    scalar_t head;
    scalar_t sums[WARPS];
    real_t norms[WARPS];
};

__device__ inline void tridiagonal(Strided<const scalar_t> A, bool conj_a, scalar_t* F, size f_col,
                                   scalar_t* tau, bool vectors, real_t* d, real_t* e,
                                   real_t* most, int n, bool here, Member& s)
{
    const int me = threadIdx.x % TEAM;
    scalar_t a[EACH][N];
    real_t size_of_a = 0;
    #pragma unroll
    for (int r = 0; r < EACH; ++r) {
        const int row = me + r * TEAM;
        #pragma unroll
        for (int c = 0; c < N; ++c) {
            scalar_t x{};
            if (row < n && c < n) {
                x = row >= c ? A(row, c) : A(c, row);
                x = row == c ? scalar_t(real(x)) : conj_a == row >= c ? conj(x) : x;
            }
            a[r][c] = x;
            size_of_a = larger(size_of_a, x);
        }
    }
    #pragma unroll
    for (int t = 1; t < (TEAM < 32 ? TEAM : 32); t *= 2)
        size_of_a = larger(size_of_a, across(size_of_a, t));
    if (TEAM > 32) {
        if (threadIdx.x % 32 == 0) s.norms[warp()] = size_of_a;
        __syncthreads();
        for (int w = 0; w < WARPS; ++w) size_of_a = larger(size_of_a, s.norms[w]);
    }
    if (here && me == 0) *most = size_of_a;
    const Power scale = scale_of(size_of_a);
    #pragma unroll
    for (int r = 0; r < EACH; ++r)
        #pragma unroll
        for (int c = 0; c < N; ++c) a[r][c] = scale.times(a[r][c]);
    for (int i = me; i < 2 * N; i += TEAM) s.v[i] = s.w[i] = scalar_t{};
    team_sync();

    const int steps = most_of_warp<TEAM>(n);
    #pragma unroll 1
    for (int j = 0; j < steps; ++j) {   // register c holds column j + c
        scalar_t v[EACH], w[EACH];
        real_t squares = 0;
        #pragma unroll
        for (int r = 0; r < EACH; ++r) {
            const int row = me + r * TEAM;
            if (row == j && here && (!RAGGED || j < n)) d[j] = real(a[r][0]);
            if (row == j + 1) s.head = a[r][0];
            if (row > j + 1) squares += square(a[r][0]);
        }
        squares = team_sum(squares, s.norms);
        if (j == steps - 1) return;
        team_sync();
        const scalar_t alpha = s.head;
        const bool none = squares + square(alpha) < LEAST
            || (squares == 0 && imaginary(alpha) == 0);
        const Reflector h = reflector(alpha, squares, none);
        if (me == 0 && here && (!RAGGED || j < n - 1)) {
            e[j] = h.beta;
            if (vectors) tau[j] = h.tau;
        }
        #pragma unroll
        for (int r = 0; r < EACH; ++r) {
            const int row = me + r * TEAM;
            v[r] = row <= j ? scalar_t{} : row == j + 1 ? scalar_t(1) : mul(a[r][0], h.scale);
            s.v[row] = v[r];
            if (here && vectors && row > j + 1 && row < n) F[j * f_col + row - 1] = v[r];
        }
        team_sync();
        scalar_t inner{};
        #pragma unroll
        for (int r = 0; r < EACH; ++r) w[r] = scalar_t{};
        #pragma unroll
        for (int c = 0; c < N; c += EIGHT) {
            if (j + 1 + c >= n) break;
            #pragma unroll
            for (int k = c; k < c + EIGHT; ++k) {
                if (k + 1 == N) break;
                const scalar_t x = s.v[j + 1 + k];
                #pragma unroll
                for (int r = 0; r < EACH; ++r) w[r] = plus(w[r], a[r][k + 1], x);
            }
        }
        #pragma unroll
        for (int r = 0; r < EACH; ++r) {
            w[r] = mul(w[r], h.tau);
            inner = plus_inner(inner, w[r], v[r]);
        }
        inner = mul(mul(h.tau, team_sum(inner, s.sums)), real_t(-0.5));
        #pragma unroll
        for (int r = 0; r < EACH; ++r) {
            w[r] = me + r * TEAM <= j ? scalar_t{} : plus(w[r], inner, v[r]);
            s.w[me + r * TEAM] = w[r];
        }
        team_sync();
        #pragma unroll
        for (int c = 0; c < N; c += EIGHT) {
            if (j + 1 + c >= n) break;
            #pragma unroll
            for (int k = c; k < c + EIGHT; ++k) {
                if (k + 1 == N) break;
                const scalar_t x = conj(s.w[j + 1 + k]), y = conj(s.v[j + 1 + k]);
                #pragma unroll
                for (int r = 0; r < EACH; ++r)
                    a[r][k] = minus_product(minus_product(a[r][k + 1], v[r], x), w[r], y);
            }
        }
        team_sync();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sytrd_rows(const scalar_t* A, size a_row, size a_col, size a_next, size conj_a,
           scalar_t* F, size f_col, size f_next, scalar_t* tau, size vectors, real_t* d,
           real_t* e, real_t* most, size ns, size batch)
{
    wait_for_stream();
    __shared__ Member members[MEMBERS];
    const size at = size(blockIdx.x) * MEMBERS + threadIdx.x / TEAM;
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int n = size_of(ns, b);
    tridiagonal(matrix_of(A, a_row, a_col, a_next, b), conj_a, array_of(F, f_next, b),
                stride_of(f_col, b), array_of(tau, n, b), vectors, array_of(d, n, b),
                array_of(e, n, b), array_of(most, 1, b), n, here, members[threadIdx.x / TEAM]);
}
