// geqrf_leaf.cu: QR of a leaf of a large matrix, W columns and all rows below them, by one cluster.
//
// The leaf is in registers (reflectors.cuh). A column x below its alpha is one exchange: x^H a for
// all columns a of the leaf, among them x^H x and, for the reflectors before it, what T is made of.
// Warp 0 sends the sums of its block and makes the reflector of those that come (qr.cuh), while
// another sends the row of alpha, and the last makes the column of T that the reflector before closes:
//
//     T(:, j) = -tau T(:, :j) V(:, :j)^H v,  v^H a = alpha's row of a + conj(scale) x^H a.
//
// Columns that would over- or underflow are scaled where they are loaded; an x whose squares vanish
// is lifted, and its sums are made again, which also tells it from zero.
//
// The leaf crosses memory three times: in, R with the reflectors, and V with its ones and zeros for
// the products that follow. The floor is the column's way: the sums in registers, three shuffles,
// two meetings of the block, a message and a root, 0.6 us; and 2 W m multiplications.
#include "launch.cuh"
#include "reciprocal.cuh"
#include "reflectors.cuh"

constexpr int LD = W + 1;
static_assert(8 * WARPS >= W && WARPS > 2);

constexpr real_t RAISE = sizeof(real_t) == 8 ? real_t(0x1p380) : real_t(0x1p42);  // twice: lifted

struct Shared {
    word barrier[2];
    Pack sums[2][CLUSTER][CHUNKS], heads[2][CHUNKS], head[CHUNKS];
    Pack part[WARPS][CHUNKS];
    scalar_t T[W * LD], f[W], z[2][W], tau[W], scale;
    Power up[W], down[W];                   // what columns were scaled by, and its inverse
    real_t beta;
    int again, unusual;
};

enum { DONE, LIFT_IT, LOWER_IT };

// A pack of this lane to the same place in all blocks, those of its group in turn
__device__ inline void send_to_all(const Pack* place, const Pack& x, const word& barrier)
{
    const unsigned to = shared_address(place), at = shared_address(&barrier);
    const Chunk c = bits_of(x);
    #pragma unroll
    for (int r = 0; r < CLUSTER; r += GROUPS) {
        const int rank = r + lane() / CHUNKS;
        if (rank < CLUSTER) send(address_in(to, rank), c, address_in(at, rank));
    }
}

// As of qr.cuh, of numbers in the usual range: without branches
__device__ inline Reflector near_reflector(scalar_t alpha, real_t squares)
{
    const real_t re = real(alpha), im = imaginary(alpha);
    const real_t all = fma(re, re, fma(im, im, squares)), q = near_rsqrt(all);
    const real_t y = all * q, norm = fma(fma(-y, y, all), q / 2, y);
    const real_t sign = re < 0 ? real_t(-1) : real_t(1);
    Reflector h;
    h.beta = -sign * norm;
    set_parts(h.tau, fma(sign * re, q, real_t(1)), sign * im * q);
    scalar_t below;
    set_parts(below, fma(sign, norm, re), im);
    h.scale = near_reciprocal(below);
    return h;
}

struct Leaf : Rows {
    scalar_t* A;              // of which this is the top left
    size lda;
    int steps;
    Shared& s;
    int turn;                 // messages so far

    __device__ Leaf(scalar_t* A, size lda, int m, int steps, Shared& s)
        : A(A), lda(lda), steps(steps), s(s), turn(0)
    {
        this->m = m, rank = blockIdx.x;
        load(A, lda, steps);
    }

    // What the warps have put up, of all blocks; by warp 0, of whose lanes each has a chunk
    template <bool MOST> __device__ Pack exchange()
    {
        const int b = turn % 2;
        const Pack mine = combined<MOST, WARPS>(s.part);
        if (lane() == 0) expect(shared_address(&s.barrier[b]), (CLUSTER + !MOST) * CHUNKS * 16);
        send_to_all(&s.sums[b][rank][lane() % CHUNKS], mine, s.barrier[b]);
        await(shared_address(&s.barrier[b]), turn / 2 % 2);
        return combined<MOST, CLUSTER>(s.sums[b]);
    }

    // Number k of such chunks
    __device__ static scalar_t of_chunks(const Pack& p, int k)
    {
        scalar_t x{};
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) {
            const scalar_t y = of_lane(p.x[e], k / VECTOR);
            x = k % VECTOR == e ? y : x;
        }
        return x;
    }

    // Columns whose squares would over- or underflow become such that do not.
    __device__ void scale_columns()
    {
        scalar_t most[COLUMNS];
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            real_t x = 0;
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) x = larger(x, a[q][c]);
            #pragma unroll
            for (int mask = 1; mask < 8; mask *= 2) x = larger(x, across(x, mask));
            set_parts(most[c], x, real_t(0));
        }
        if (r() == 0)
            #pragma unroll
            for (int c = 0; c < COLUMNS; ++c) numbers(s.part[warp()])[column(c)] = most[c];
        __syncthreads();
        if (warp() == 0) {
            const real_t size = real(of_chunks(exchange<true>(), lane() % W));
            const bool unusual = !is_usual(size);
            if (lane() < W) {
                s.up[lane()] = to_one(unusual ? size : real_t(0));
                s.down[lane()] = s.up[lane()].inverse();
            }
            const bool any = __any_sync(ALL, unusual);
            if (lane() == 0) s.unusual = any;
        }
        ++turn;
        __syncthreads();
        if (s.unusual)
            #pragma unroll
            for (int c = 0; c < COLUMNS; ++c)
                #pragma unroll
                for (int q = 0; q < ROWS; ++q) a[q][c] = s.up[column(c)].times(a[q][c]);
    }

    // By warp 0, from the sums: the reflector of column j, what it takes off, and its part of T.
    // The answer says whether x, which may have been `lifted`, has to be, or lowered again.
    __device__ int reflect(int j, const Pack& total, bool lifted)
    {
        const scalar_t* const heads = numbers(s.heads[turn % 2]);
        const int k = lane() % W;
        scalar_t alpha = heads[j], sum = of_chunks(total, k);
        const scalar_t head = heads[k];
        real_t squares = real(of_lane(sum, j));
        if (!lifted && squares < LEAST) return LIFT_IT;
        const bool none = squares == 0 && imaginary(alpha) == 0;
        const real_t most = larger(0, alpha);
        const bool low = lifted && most * most < LEAST;  // alpha, too
        const bool lower = lifted && !low;
        if (low) alpha = mul(mul(alpha, RAISE), RAISE);
        if (lower) squares = 0;
        Reflector h = near_reflector(alpha, squares);
        if (low) h.beta = h.beta / RAISE / RAISE;
        if (none) h.tau = h.scale = scalar_t{}, h.beta = real(heads[j]);
        if (lower) sum = mul(mul(sum, 1 / RAISE), 1 / RAISE);
        const scalar_t w = add(head, mul(conj(h.scale), sum));
        if (lane() < W) {
            s.f[k] = k > j ? mul(conj(h.tau), w) : scalar_t{};
            s.z[j % 2][k] = conj(w);
        }
        if (lane() == 0) s.tau[j] = h.tau, s.scale = h.scale, s.beta = h.beta;
        return lower ? LOWER_IT : DONE;
    }

    // Column j of T, by a warp, a row to a lane
    __device__ void extend_t(int j)
    {
        const int i = lane();
        if (i >= W) return;
        scalar_t sum{};
        #pragma unroll 4
        for (int k = 0; k < j; ++k) sum = minus_product(sum, s.T[k * LD + i], s.z[j % 2][k]);
        s.T[j * LD + i] = i < j ? mul(s.tau[j], sum) : i == j ? s.tau[j] : scalar_t{};
    }

    // A column to all lanes that have rows of it
    template <int C> __device__ void take(int j, scalar_t (&x)[ROWS]) const
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) x[q] = of_lane(a[q][C], j % 4 * 8 + r());
    }

    // Columns from j on lose what is along v, column j becomes v, and v the next x. Which registers
    // j is in, the program has to say: those of one of COUNT columns from FIRST on.
    template <int FIRST, int COUNT> __device__ void take_off(int j, scalar_t (&v)[ROWS])
    {
        constexpr int C = FIRST, HALF = COUNT / 2;
        if constexpr (COUNT > 1) {
            if (j / 4 < FIRST + HALF) take_off<FIRST, HALF>(j, v);
            else take_off<FIRST + HALF, COUNT - HALF>(j, v);
        } else {
            #pragma unroll
            for (int c = C; c < COLUMNS; ++c) {
                const scalar_t f = s.f[column(c)];
                #pragma unroll
                for (int q = 0; q < ROWS; ++q) a[q][c] = minus_product(a[q][c], v[q], f);
            }
            const bool mine = g() == j % 4;
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) a[q][C] = mine && (q || row(0) > j) ? v[q] : a[q][C];
            if (mine && row(0) == j) a[0][C] = scalar_t{s.beta};
            if (j % 4 < 3) take<C>(j + 1, v);
            else if constexpr (C + 1 < COLUMNS) take<C + 1>(j + 1, v);
        }
    }

    __device__ void step(int j, scalar_t (&x)[ROWS])
    {
        if (row(0) <= j) x[0] = scalar_t{};
        if (row(0) == j)
            #pragma unroll
            for (int c = 0; c < COLUMNS; ++c) numbers(s.head)[column(c)] = a[0][c];
        bool lifted = false;
        #pragma unroll 1
        for (;;) {
            scalar_t t[COLUMNS];
            inner_products(t, x);
            if (lifted) {  // of x^H x one is as it was in the sums
                scalar_t all{};
                #pragma unroll
                for (int q = 0; q < ROWS; ++q) all = plus_inner(all, x[q], x[q]);
                #pragma unroll
                for (int c = 0; c < COLUMNS; ++c) t[c] = column(c) == j ? all : t[c];
            }
            sum_over<0, 3>(t);
            if (r() < COLUMNS) numbers(s.part[warp()])[column(r())] = t[0];
            __syncthreads();
            if (warp() == 0) {
                const int again = reflect(j, exchange<false>(), lifted);
                if (lane() == 0) s.again = again;
            } else if (warp() == 1 && rank == 0) {
                const int b = turn % 2;
                send_to_all(&s.heads[b][lane() % CHUNKS], s.head[lane() % CHUNKS], s.barrier[b]);
            } else if (warp() == WARPS - 1 && j && !lifted) extend_t(j - 1);
            ++turn;
            __syncthreads();
            if (s.again == DONE) break;
            const real_t by = s.again == LIFT_IT ? RAISE : 1 / RAISE;
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) x[q] = mul(mul(x[q], by), by);
            if (s.again == LOWER_IT) break;
            lifted = true;
        }
        const scalar_t scale = s.scale;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) x[q] = mul(x[q], scale);
        if (row(0) == j) x[0] = scalar_t{1};
        take_off<0, COLUMNS>(j, x);
    }

    __device__ void factor()
    {
        scalar_t x[ROWS];
        take<0>(0, x);
        #pragma unroll 1
        for (int j = 0; j < steps; ++j) step(j, x);
        if (warp() == WARPS - 1) extend_t(steps - 1);
    }

    // R and the reflectors to A, V with its ones and zeros to V, zeros above it
    __device__ void store(scalar_t* V, size ldv, int above) const
    {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                const int i = row(q), k = column(c);
                if (k >= steps || i >= m) continue;
                const scalar_t x = a[q][c];
                A[i + k * lda] = s.unusual && i <= k ? s.down[k].times(x) : x;
                V[i + k * ldv] = i > k ? x : i == k ? scalar_t{1} : scalar_t{};
            }
        if (rank == CLUSTER - 1)
            for (int e = thread(); e < above * steps; e += THREADS)
                V[e % above - above + e / above * ldv] = scalar_t{};
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
geqrf_leaf(scalar_t* A, size lda, size m, size steps, scalar_t* tau, scalar_t* V, size ldv,
           size above, scalar_t* TH, size ldt)
{
    wait_for_stream();
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    Leaf leaf(A, lda, int(m), int(steps), s);
    if (thread() == 0) {
        for (const word& barrier : s.barrier) make_barrier(shared_address(&barrier), 1);
        show_barriers();
    }
    for (int e = thread(); e < W * LD; e += THREADS) s.T[e] = scalar_t{};
    meet_cluster();
    leaf.scale_columns();
    leaf.factor();
    leaf.store(V, ldv, int(above));
    if (leaf.rank) return;
    __syncthreads();
    for (int j = thread(); j < leaf.steps; j += THREADS) tau[j] = s.tau[j];
    for (int e = thread(); e < leaf.steps * leaf.steps; e += THREADS)
        TH[e % leaf.steps + e / leaf.steps * ldt]
            = conj(s.T[e % leaf.steps * LD + e / leaf.steps]);
}
