// sytrd_block.cu: Hermitian matrices to real tridiagonal ones, A = Q T Q^H, for a batch.
//
// A block has a matrix, both triangles of it, in shared memory. Column by column a reflector
// H = I - tau v v^H takes what is below the subdiagonal to zero, and the rest becomes H^H A H =
// A - v w^H - w v^H. Updates are put off for NB columns: A v is taken of the old A and corrected by
// v and w of the panel (LAPACK's latrd). So every element right of a column is read once for it,
// n^3 / 3 in all, and changed n / NB times; 4/3 n^3 fused operations. Five barriers a column.
//
// Reflector j goes to column j of F, rows j + 1 and on, its one left out: F is what geqrf leaves,
// of Q without its first row and column. `most` is the largest part of A; where it is not near one
// T is that of A times a power of two (scale_of in tridiagonal.cuh).
#include "launch.cuh"
#include "sytrd.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int NB = 1;       // columns of a panel
constexpr int BLOCKS = 1;   // per multiprocessor for which registers are rationed
#endif
constexpr int DEEP = 4;     // loads that are under way together

// What a block has in dynamic shared memory
struct Room {
    scalar_t *X, *V, *W;   // columns `ld`, n and n apart
    scalar_t *parts;       // of a product, a row of them for each slice of columns
    scalar_t *dots;        // of the panel's columns with v: V's, then W's
    scalar_t *head;        // the element below the diagonal
    scalar_t *sums;        // a number for each warp
    real_t *norms;         // a number for each warp
    int ld;
};

__device__ inline Room room(int n)
{
    const int tiles = (n + 31) / 32;
    scalar_t* p = reinterpret_cast<scalar_t*>(dynamic_shared);
    Room s;
    s.ld = n | 1;
    s.X = p;
    s.V = p + n * s.ld;
    s.W = s.V + n * NB;
    s.parts = s.W + n * NB;
    s.dots = s.parts + 32 * (tiles > WARPS ? tiles : WARPS);
    s.head = s.dots + 2 * NB;
    s.sums = s.head + 1;
    s.norms = reinterpret_cast<real_t*>(s.sums + WARPS);
    return s;
}

// How the warps share a product of order m: a tile of 32 rows and a slice of the columns to each,
// or, where there are more tiles than warps, several tiles. Powers of two: nothing is divided.
struct Share {
    int tiles, log, slices, columns;   // columns of a slice

    __device__ Share(int m)
    {
        tiles = (m + 31) / 32;
        for (log = 0; 1 << log < tiles; ++log);
        slices = 1 << log < WARPS ? WARPS >> log : 1;
        int shift = 0;
        while (1 << shift < slices) ++shift;
        columns = (m + slices - 1) >> shift;
    }
    // f(row, first, last, slice), `row` being the lane's
    template <class F> __device__ void each(int m, F f) const
    {
        const int lane = threadIdx.x % 32, slice = slices > 1 ? warp() >> log : 0;
        const int first = slice * columns, end = first + columns;
        for (int tile = slices > 1 ? warp() & (1 << log) - 1 : warp(); tile < tiles; tile += WARPS)
            f(32 * tile + lane, first, end < m ? end : m, slice);
    }
};
static_assert((WARPS & WARPS - 1) == 0);

// A to X, both triangles, scaled to about one where it is not; its largest part
__device__ inline real_t load(Strided<const scalar_t> A, bool conj_a, Room s, int n)
{
    real_t most = 0;
    for_each(n, n, A.cs == 1, [=, &most](int i, int j) {
        if (i < j) return;
        scalar_t x = A(i, j);
        x = i == j ? scalar_t(real(x)) : conj_a ? conj(x) : x;
        s.X[j * s.ld + i] = x;
        s.X[i * s.ld + j] = conj(x);
        most = larger(most, x);
    });
    most = block_most(most, s.norms);
    if (!is_near_one(most)) {
        const Power scale = scale_of(most);
        for (int e = thread(); e < n * s.ld; e += THREADS)
            if (e % s.ld < n) s.X[e] = scale.times(s.X[e]);
    }
    __syncthreads();
    return most;
}

// parts := slices of X v below and right of column j; dots := V^H v, W^H v of `done` columns
__device__ inline void multiply(const Room& s, const Share& share, const scalar_t* v, int j, int n,
                                int done)
{
    const int m = n - j - 1;
    share.each(m, [&](int r, int first, int last, int slice) {
        const scalar_t* x = s.X + (j + 1 + first) * s.ld + j + 1 + (r < m ? r : m - 1);
        scalar_t sum[4] = {};
        int c = first;
        for (; c + DEEP <= last; c += DEEP, x += DEEP * s.ld) {
            scalar_t y[DEEP];
            #pragma unroll
            for (int i = 0; i < DEEP; ++i) y[i] = x[i * s.ld];
            #pragma unroll
            for (int i = 0; i < DEEP; ++i) sum[i % 4] = plus(sum[i % 4], y[i], v[j + 1 + c + i]);
        }
        for (; c < last; ++c, x += s.ld) sum[0] = plus(sum[0], *x, v[j + 1 + c]);
        s.parts[slice * 32 * share.tiles + r] = add(add(sum[0], sum[1]), add(sum[2], sum[3]));
    });
    for (int task = WARPS - 1 - warp(); task < 2 * done; task += WARPS) {
        const scalar_t* const p = (task < done ? s.V + task * n : s.W + (task - done) * n) + j + 1;
        scalar_t sum{};
        for (int r = threadIdx.x % 32; r < m; r += 32) sum = plus_inner(sum, p[r], v[j + 1 + r]);
        #pragma unroll
        for (int d = 16; d; d /= 2) sum = add(sum, across(sum, d));
        if (threadIdx.x % 32 == 0) s.dots[task] = sum;
    }
}

// X -= V W^H + W V^H below and right of column j, of `done` columns
__device__ inline void update(const Room& s, const Share& share, int j, int n, int done)
{
    const int m = n - j - 1;
    share.each(m, [&](int r, int first, int last, int) {
        if (r >= m) return;
        scalar_t v[NB], w[NB];
        #pragma unroll
        for (int k = 0; k < NB; ++k) {
            v[k] = k < done ? s.V[k * n + j + 1 + r] : scalar_t{};
            w[k] = k < done ? s.W[k * n + j + 1 + r] : scalar_t{};
        }
        #pragma unroll 2
        for (int c = first; c < last; ++c) {
            scalar_t* const x = s.X + (j + 1 + c) * s.ld + j + 1 + r;
            scalar_t y = *x;
            #pragma unroll
            for (int k = 0; k < NB; ++k) {
                if (k >= done) break;
                y = minus_product(y, v[k], conj(s.W[k * n + j + 1 + c]));
                y = minus_product(y, w[k], conj(s.V[k * n + j + 1 + c]));
            }
            *x = y;
        }
    });
}

// T of one member to d, e; where `vectors` the reflectors to F, `f_col` apart, and tau
__device__ inline void tridiagonal(Strided<const scalar_t> A, bool conj_a, scalar_t* F, size f_col,
                                   scalar_t* tau, bool vectors, real_t* d, real_t* e,
                                   real_t* most, int n, Room s)
{
    const real_t size_of_a = load(A, conj_a, s, n);
    if (thread() == 0) *most = size_of_a;
    #pragma unroll 1
    for (int j = 0, done = 0; j < n; ++j) {
        scalar_t* const v = s.V + done * n;
        scalar_t* const w = s.W + done * n;
        // Column j as it is by now
        real_t squares = 0;
        for (int r = j + thread(); r < n; r += THREADS) {
            scalar_t x = s.X[j * s.ld + r];
            for (int k = 0; k < done; ++k) {
                x = minus_product(x, s.V[k * n + r], conj(s.W[k * n + j]));
                x = minus_product(x, s.W[k * n + r], conj(s.V[k * n + j]));
            }
            if (r == j) d[j] = real(x);
            if (r == j + 1) *s.head = x;
            if (r > j) v[r] = x;
            if (r > j + 1) squares += square(x);
        }
        squares = block_sum(squares, s.norms);
        if (j == n - 1) return;
        const scalar_t alpha = *s.head;
        const bool none = squares + square(alpha) < LEAST
            || (squares == 0 && imaginary(alpha) == 0);
        const Reflector h = reflector(alpha, squares, none);
        if (thread() == 0) e[j] = h.beta;
        if (thread() == 0 && vectors) tau[j] = h.tau;
        for (int r = j + thread(); r < n; r += THREADS) {
            if (r <= j) continue;
            const scalar_t x = r == j + 1 ? scalar_t(1) : mul(v[r], h.scale);
            v[r] = x;
            if (vectors && r > j + 1) F[j * f_col + r - 1] = x;
        }
        __syncthreads();
        const int m = n - j - 1;
        const Share share(m);
        multiply(s, share, v, j, n, done);
        __syncthreads();
        scalar_t inner{};
        for (int r = thread(); r < m; r += THREADS) {
            scalar_t p = s.parts[r];
            for (int i = 1; i < share.slices; ++i) p = add(p, s.parts[i * 32 * share.tiles + r]);
            for (int k = 0; k < done; ++k) {
                p = minus_product(p, s.V[k * n + j + 1 + r], s.dots[done + k]);
                p = minus_product(p, s.W[k * n + j + 1 + r], s.dots[k]);
            }
            p = mul(p, h.tau);
            w[j + 1 + r] = p;
            inner = plus_inner(inner, p, v[j + 1 + r]);
        }
        inner = mul(mul(h.tau, block_sum(inner, s.sums)), real_t(-0.5));
        for (int r = thread(); r < m; r += THREADS)
            w[j + 1 + r] = plus(w[j + 1 + r], inner, v[j + 1 + r]);
        __syncthreads();
        if (++done == NB) {
            update(s, share, j, n, done);
            done = 0;
            __syncthreads();
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sytrd_block(const scalar_t* A, size a_row, size a_col, size a_next, size conj_a,
            scalar_t* F, size f_col, size f_next, scalar_t* tau, size vectors, real_t* d,
            real_t* e, real_t* most, size ns)
{
    wait_for_stream();
    const size b = blockIdx.x;
    const int n = size_of(ns, b);
    tridiagonal(matrix_of(A, a_row, a_col, a_next, b), conj_a, array_of(F, f_next, b),
                stride_of(f_col, b), array_of(tau, n, b), vectors, array_of(d, n, b),
                array_of(e, n, b), array_of(most, 1, b), n, room(n));
}
