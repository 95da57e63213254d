// sytrd_cluster.cu: Hermitian matrices to real tridiagonal ones, A = Q T Q^H, for a batch, a cluster
// of blocks to a matrix.
//
// As sytrd_block.cu, for matrices that are too large for a block's shared memory, or few. Both
// triangles lie in `work`, in the L2 cache; packs of 16 bytes of columns belong to the blocks in
// turns. Every block has v and w of a panel, and makes v for itself. Then it takes the products of
// v with its own columns, and with its share of the panel's, a warp a product, and sends them to all
// blocks: with these, of the old A, each makes w for itself. Columns are changed after every panel
// by whom they belong to, and the cluster meets. So every element right of a column is read once for
// it, n^3 / 3 in all, by one block: the floor is that over what blocks have of L2's bandwidth, 64
// bytes a clock each. One exchange and four barriers of a block a column, one of the cluster a panel.
//
// What a number is summed from and in which order does not depend on CLUSTER: nor do the bits. F
// may lie in `work`, a row below: column j of it is written when nobody reads that of X any more.
#include "cluster.cuh"
#include "launch.cuh"
#include "sytrd.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int NB = 8;       // columns of a panel
constexpr int CLUSTER = 1;  // blocks
#endif
constexpr int IN_16 = 16 / sizeof(scalar_t);  // numbers
constexpr int DEEP = sizeof(scalar_t) == 4 ? 4 : 8 / IN_16;  // rows that are under way together
constexpr int HIGH = 64;    // rows of a tile of the update

struct alignas(16) Pack { scalar_t x[IN_16]; };  // of a row, or one number and nothing

// What a block has in dynamic shared memory
struct Room {
    word* arrived;         // two barriers, and two of y and of dots, for columns in turns
    Pack *y;               // A v, `packs` of it
    Pack *dots;            // of the panel's columns with v: V's, then W's
    scalar_t *X, *V, *W;   // columns n apart; X in global memory
    scalar_t *head;        // the element below the diagonal
    scalar_t *sums;        // a number for each warp
    real_t *norms;         // a number for each warp
    real_t *most;
    int packs;
};

template <class T, class P> __device__ void take(T*& x, P*& p, int count)
{
    x = reinterpret_cast<T*>(p);
    p = reinterpret_cast<P*>(x + count);
}
__device__ inline Room room(scalar_t* work, int n)
{
    char* p = dynamic_shared;
    Room s;
    s.X = work;
    s.packs = (n + IN_16 - 1) / IN_16;
    take(s.arrived, p, 2);
    take(s.y, p, 2 * s.packs);
    take(s.dots, p, 4 * NB);
    take(s.V, p, n * NB);
    take(s.W, p, n * NB);
    take(s.head, p, 1);
    take(s.sums, p, WARPS);
    take(s.norms, p, WARPS);
    take(s.most, p, 1);
    return s;
}

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline unsigned rank() { return blockIdx.x % CLUSTER; }

// What another block has written, past this one's first cache
__device__ inline float fresh(const float* p) { return *const_cast<const volatile float*>(p); }
__device__ inline double fresh(const double* p) { return *const_cast<const volatile double*>(p); }
template <class R> __device__ complex<R> fresh(const complex<R>* p)
{
    return {fresh(&p->re), fresh(&p->im)};
}

// A to X, both triangles, scaled to about one where it is not; its largest part
__device__ inline real_t load(Strided<const scalar_t> A, bool conj_a, const Room& s, int n)
{
    const bool by_rows = A.cs == 1;
    real_t most = 0;
    for (int o = rank() * WARPS + warp(); o < n; o += CLUSTER * WARPS)
        for (int q = (by_rows ? 0 : o) + lane(); q < (by_rows ? o + 1 : n); q += 32) {
            const int i = by_rows ? o : q, j = by_rows ? q : o;
            scalar_t x = A(i, j);
            x = i == j ? scalar_t(real(x)) : conj_a ? conj(x) : x;
            s.X[j * n + i] = x;
            s.X[i * n + j] = conj(x);
            most = larger(most, x);
        }
    *s.most = block_most(most, s.norms);
    if (CLUSTER > 1 && thread() == 0) {
        for (int i = 0; i < 2; ++i) make_barrier(shared_address(s.arrived + i), 1);
        show_barriers();
    }
    meet_cluster<CLUSTER>();
    most = 0;
    for (int b = 0; b < CLUSTER; ++b) most = larger(most, in_cluster<CLUSTER>(*s.most, b));
    if (!is_near_one(most)) {
        const Power scale = scale_of(most);
        for (int c = rank() * WARPS + warp(); c < n; c += CLUSTER * WARPS)
            for (int r = lane(); r < n; r += 32) s.X[c * n + r] = scale.times(fresh(s.X + c * n + r));
    }
    meet_cluster<CLUSTER>();
    return most;
}

// f(pack, first column, its place) for every `every`th of the block's packs right of column j, from
// its `from`th on
template <class F> __device__ void for_own(int j, int n, int from, int every, F f)
{
    const int first = (j + 1) / IN_16, own = first + (rank() - first) % CLUSTER;
    for (int pack = own + CLUSTER * from; pack * IN_16 < n; pack += CLUSTER * every) f(pack);
}

// The block's part of y := X v below and right of column j and of dots := V^H v, W^H v, `done`
// columns each, to all blocks
__device__ inline void multiply(const Room& s, const scalar_t* v, int j, int n, int done)
{
    const int turn = j % 2;
    const auto tell = [&](Pack& to, const Pack& x) {  // all lanes have x
        if constexpr (CLUSTER == 1) {
            if (lane() == 0) to = x;
        } else if (lane() < CLUSTER) {
            send(address_in(shared_address(&to), lane()), reinterpret_cast<const Chunk&>(x),
                 address_in(shared_address(s.arrived + turn), lane()));
        }
    };
    for_own(j, n, warp(), WARPS, [&](int pack) {
        const scalar_t* x[IN_16];  // columns past the matrix mean nothing
        #pragma unroll
        for (int e = 0; e < IN_16; ++e) {
            const int c = IN_16 * pack + e;
            x[e] = s.X + (c > j && c < n ? c : n - 1) * n;
        }
        scalar_t sum[IN_16][2] = {};
        for (int r = j + 1 + lane(); r < n; r += 32 * DEEP) {
            scalar_t read[DEEP][IN_16] = {};
            #pragma unroll
            for (int i = 0; i < DEEP; ++i)
                #pragma unroll
                for (int e = 0; e < IN_16; ++e)
                    if (r + 32 * i < n) read[i][e] = x[e][r + 32 * i];
            #pragma unroll
            for (int i = 0; i < DEEP; ++i) {
                const scalar_t y = r + 32 * i < n ? v[r + 32 * i] : scalar_t{};
                #pragma unroll
                for (int e = 0; e < IN_16; ++e)
                    sum[e][i % 2] = plus_inner(sum[e][i % 2], read[i][e], y);
            }
        }
        Pack all;
        #pragma unroll
        for (int e = 0; e < IN_16; ++e) {
            all.x[e] = add(sum[e][0], sum[e][1]);
            #pragma unroll
            for (int d = 16; d; d /= 2) all.x[e] = add(all.x[e], across(all.x[e], d));
        }
        tell(s.y[turn * s.packs + pack], all);
    });
    for (int task = rank() + CLUSTER * (WARPS - 1 - warp()); task < 2 * done;
         task += CLUSTER * WARPS) {
        const scalar_t* const p = task < done ? s.V + task * n : s.W + (task - done) * n;
        Pack sum = {};
        for (int r = j + 1 + lane(); r < n; r += 32) sum.x[0] = plus_inner(sum.x[0], p[r], v[r]);
        #pragma unroll
        for (int d = 16; d; d /= 2) sum.x[0] = add(sum.x[0], across(sum.x[0], d));
        tell(s.dots[turn * 2 * NB + task], sum);
    }
}

// X -= V W^H + W V^H below and right of column j, in the block's columns, a tile of rows and a part
// of the columns to a warp
__device__ inline void update(const Room& s, int j, int n)
{
    const int tiles = (n - j - 1 + HIGH - 1) / HIGH, parts = tiles < WARPS ? WARPS / tiles : 1;
    for (int task = warp(); task < tiles * parts; task += WARPS) {
        const int part = task / tiles, first = j + 1 + HIGH * (task - part * tiles) + lane();
        scalar_t v[2][NB], w[2][NB];
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int r = first + 32 * h < n ? first + 32 * h : n - 1;
            #pragma unroll
            for (int k = 0; k < NB; ++k) v[h][k] = s.V[k * n + r], w[h][k] = s.W[k * n + r];
        }
        for_own(j, n, part, parts, [&](int pack) {
            #pragma unroll
            for (int e = 0; e < IN_16; ++e) {
                const int c = IN_16 * pack + e;
                if (c <= j || c >= n) continue;
                scalar_t* const x = s.X + c * n + first;
                scalar_t y[2];
                #pragma unroll
                for (int h = 0; h < 2; ++h)
                    y[h] = first + 32 * h < n ? x[32 * h] : scalar_t{};
                #pragma unroll
                for (int k = 0; k < NB; ++k) {
                    const scalar_t by_w = conj(s.W[k * n + c]), by_v = conj(s.V[k * n + c]);
                    #pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        y[h] = minus_product(y[h], v[h][k], by_w);
                        y[h] = minus_product(y[h], w[h][k], by_v);
                    }
                }
                #pragma unroll
                for (int h = 0; h < 2; ++h)
                    if (first + 32 * h < n) x[32 * h] = y[h];
            }
        });
    }
}

// T of one member to d, e; where `vectors` the reflectors to F, `f_col` apart, and tau
__device__ inline void tridiagonal(Strided<const scalar_t> A, bool conj_a, scalar_t* F, size f_col,
                                   scalar_t* tau, bool vectors, real_t* d, real_t* e,
                                   real_t* most, int n, const Room& s)
{
    const bool tells = rank() == 0 && thread() == 0;
    const real_t size_of_a = load(A, conj_a, s, n);
    if (tells) *most = size_of_a;
    #pragma unroll 1
    for (int j = 0, done = 0; j < n; ++j) {
        scalar_t* const v = s.V + done * n;
        scalar_t* const w = s.W + done * n;
        const int turn = j % 2, told = s.packs - (j + 1) / IN_16 + 2 * done;
        if (CLUSTER > 1 && thread() == 0 && j < n - 1)
            expect(shared_address(s.arrived + turn), sizeof(Pack) * told);
        // Column j as it is by now
        real_t squares = 0;
        for (int r = j + thread(); r < n; r += THREADS) {
            scalar_t x = fresh(s.X + j * n + r);
            for (int k = 0; k < done; ++k) {
                x = minus_product(x, s.V[k * n + r], conj(s.W[k * n + j]));
                x = minus_product(x, s.W[k * n + r], conj(s.V[k * n + j]));
            }
            if (r == j && rank() == 0) d[j] = real(x);
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
        if (tells) e[j] = h.beta;
        if (tells && vectors) tau[j] = h.tau;
        for (int r = j + thread(); r < n; r += THREADS)
            if (r > j) v[r] = r == j + 1 ? scalar_t(1) : mul(v[r], h.scale);
        __syncthreads();
        multiply(s, v, j, n, done);
        if constexpr (CLUSTER == 1) __syncthreads();
        else await(shared_address(s.arrived + turn), j / 2 % 2);
        // Nobody reads column j of X any more: F may lie there
        const scalar_t* const y = s.y[turn * s.packs].x;
        const Pack* const dots = s.dots + turn * 2 * NB;
        scalar_t inner{};
        for (int r = j + thread(); r < n; r += THREADS) {
            if (r <= j) continue;
            scalar_t p = y[r];
            for (int k = 0; k < done; ++k) {
                p = minus_product(p, s.V[k * n + r], dots[done + k].x[0]);
                p = minus_product(p, s.W[k * n + r], dots[k].x[0]);
            }
            p = mul(p, h.tau);
            w[r] = p;
            inner = plus_inner(inner, p, v[r]);
            if (vectors && r > j + 1 && rank() == unsigned(j) % CLUSTER) F[j * f_col + r - 1] = v[r];
        }
        inner = mul(mul(h.tau, block_sum(inner, s.sums)), real_t(-0.5));
        for (int r = j + thread(); r < n; r += THREADS)
            if (r > j) w[r] = plus(w[r], inner, v[r]);
        __syncthreads();
        if (++done == NB) {
            update(s, j, n);
            done = 0;
            meet_cluster<CLUSTER>();
        }
    }
}

extern "C" __global__ void BY_CLUSTERS __launch_bounds__(THREADS, 1)
sytrd_cluster(const scalar_t* A, size a_row, size a_col, size a_next, size conj_a,
              scalar_t* F, size f_col, size f_next, scalar_t* tau, size vectors, real_t* d,
              real_t* e, real_t* most, scalar_t* work, size work_next, size ns)
{
    wait_for_stream();
    const size b = blockIdx.x / CLUSTER;
    const int n = size_of(ns, b);
    tridiagonal(matrix_of(A, a_row, a_col, a_next, b), conj_a, array_of(F, f_next, b),
                stride_of(f_col, b), array_of(tau, n, b), vectors, array_of(d, n, b),
                array_of(e, n, b), array_of(most, 1, b), n,
                room(array_of(work, work_next, b), n));
}
