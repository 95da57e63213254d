// geqrf_leaf.cu: QR of a leaf of a large matrix, W columns and all rows below them, by one cluster;
// and Q^H times the columns right of it.
//
// The leaf is in registers, its rows dealt to the blocks in turn: of a warp, lane (g, r) has ROWS
// rows, eight lanes of each next to each other, and of these every fourth column from g on. A
// column x below its alpha is one exchange: x^H a for all columns a of the leaf, among them x^H x
// and, for the reflectors before it, what T is made of. Lanes add rows of theirs, eight lanes theirs
// so that each ends with a column, warps by way of shared memory, and blocks send their sums to all
// others, which add them up in one order. Warp 0 does it and makes the reflector (qr.cuh), while the
// last warp makes the column of T that the reflector before closes:
//
//     T(:, j) = -tau T(:, :j) V(:, :j)^H v,  v^H a = alpha row of a + conj(scale) x^H a.
//
// Columns that would over- or underflow are scaled where they are loaded; an x whose squares vanish
// is lifted, and its sums are made again, which also tells it from zero.
//
// A column to the right is read twice and written once; its inner products with V go to the block
// that makes T^H of them, and back to all. The leaf crosses memory twice: R with the reflectors, and
// V, with its ones and zeros, for the products that follow.
//
// The floor is the column's way: the sums in registers, three shuffles, two meetings of the block, a
// message (0.15 us) and a root; 0.6 us where rows are few, and 2 W m multiplications a column.
#include "block.cuh"
#include "cluster.cuh"
#include "launch.cuh"
#include "qr.cuh"
#include "reciprocal.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int CLUSTER = 8, ROWS = 4, COLUMNS = 8;
#endif

constexpr int W = 4 * COLUMNS, LD = W + 1;
constexpr int VECTOR = 16 / sizeof(scalar_t), CHUNKS = W / VECTOR, GROUPS = 32 / CHUNKS;
constexpr int BATCH = 32, MINE = BATCH / CLUSTER;  // columns to the right at once, and of a block
static_assert(CHUNKS >= 1 && CHUNKS <= 32 && BATCH % CLUSTER == 0 && 8 * WARPS >= W && WARPS > 1);

constexpr real_t RAISE = sizeof(real_t) == 8 ? real_t(0x1p380) : real_t(0x1p42);  // twice: lifted

struct alignas(16) Pack { scalar_t x[VECTOR]; };

struct Shared {
    word barrier[2], gathered, spread;
    Pack sums[2][CLUSTER][CHUNKS], heads[2][CHUNKS], total[CHUNKS], head[CHUNKS];
    Pack gather[CLUSTER][MINE][CHUNKS], product[MINE][CHUNKS], y[BATCH][CHUNKS];
    union {
        Pack part[WARPS][CHUNKS];           // of a column of the leaf
        Pack parts[BATCH][WARPS][CHUNKS];   // of columns to the right
    };
    scalar_t T[W * LD], f[W], z[2][W], tau[W], scale;
    Power up[W], down[W];                   // what columns were scaled by, and its inverse
    real_t beta;
    int again, unusual;
};

enum { DONE, LIFT_IT, LOWER_IT };

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline scalar_t* numbers(Pack* p) { return p->x; }

// Sums of N numbers over the lanes that differ in BITS bits from FIRST on. A lane keeps every 2^BITS-th,
// from the number on that its bits spell, where there are so many; N of one are with all lanes.
template <int FIRST, int BITS, int N> __device__ void sum_over(scalar_t (&t)[N])
{
    int left = N;
    #pragma unroll
    for (int b = 0; b < BITS; ++b) {
        const int mask = 1 << (FIRST + b);
        const bool odd = lane() & mask;
        if (left > 1) {
            #pragma unroll
            for (int i = 0; i < N / 2; ++i) {
                if (2 * i >= left) continue;
                const scalar_t keep = odd ? t[2 * i + 1] : t[2 * i];
                const scalar_t give = odd ? t[2 * i] : t[2 * i + 1];
                t[i] = add(keep, across(give, mask));
            }
            left /= 2;
        } else t[0] = add(t[0], across(t[0], mask));
    }
}

// The sum of COUNT rows of packs, or what is largest in them; lane l has chunk l % CHUNKS
template <bool MOST, int COUNT> __device__ Pack combined(const Pack (*rows)[CHUNKS])
{
    const auto both = [](scalar_t x, scalar_t y) {
        scalar_t z = add(x, y);
        if (MOST) set_parts(z, larger(real(x), real(y)), real_t(0));
        return z;
    };
    Pack t{};
    #pragma unroll
    for (int r = 0; r < COUNT; r += GROUPS) {
        if (COUNT % GROUPS && r + lane() / CHUNKS >= COUNT) continue;
        const Pack x = rows[r + lane() / CHUNKS][lane() % CHUNKS];
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) t.x[e] = r ? both(t.x[e], x.x[e]) : x.x[e];
    }
    #pragma unroll
    for (int mask = CHUNKS; mask < 32; mask *= 2)
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) t.x[e] = both(t.x[e], across(t.x[e], mask));
    return t;
}

__device__ inline Chunk bits_of(const Pack& p)
{
    Chunk c;
    memcpy(&c, &p, sizeof c);
    return c;
}

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

struct Leaf {
    scalar_t* A;              // of which this is the top left
    size lda;
    int m, steps, rank;
    Shared& s;
    scalar_t a[ROWS][COLUMNS];
    int turn;                 // messages so far

    __device__ int r() const { return lane() % 8; }
    __device__ int g() const { return lane() / 8; }
    __device__ int row(int q) const { return ((rank * ROWS + q) * WARPS + warp()) * 8 + r(); }
    __device__ int column(int c) const { return 4 * c + g(); }

    __device__ void load()
    {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                a[q][c] = row(q) < m && column(c) < steps ? A[row(q) + column(c) * lda]
                                                          : scalar_t{};
    }

    // What the warps have put up, of all blocks; by warp 0, to s.total and s.heads
    template <bool MOST> __device__ void exchange()
    {
        const int b = turn % 2;
        const Pack mine = combined<MOST, WARPS>(s.part);
        if (lane() == 0) expect(shared_address(&s.barrier[b]), (CLUSTER + 1) * CHUNKS * 16);
        send_to_all(&s.sums[b][rank][lane() % CHUNKS], mine, s.barrier[b]);
        if (rank == 0)
            send_to_all(&s.heads[b][lane() % CHUNKS], s.head[lane() % CHUNKS], s.barrier[b]);
        await_messages(shared_address(&s.barrier[b]), turn / 2 % 2);
        const Pack all = combined<MOST, CLUSTER>(s.sums[b]);
        if (lane() < CHUNKS) s.total[lane()] = all;
        __syncwarp();
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
            if (rank == 0 && lane() < CHUNKS) s.head[lane()] = Pack{};
            __syncwarp();
            exchange<true>();
            const real_t size = lane() < W ? real(numbers(s.total)[lane()]) : real_t(0);
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
    __device__ int reflect(int j, bool lifted)
    {
        const scalar_t* const heads = numbers(s.heads[turn % 2]);
        const scalar_t* const total = numbers(s.total);
        scalar_t alpha = heads[j];
        real_t squares = real(total[j]);
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
        const int k = lane();
        if (k < W) {
            scalar_t sum = total[k];
            if (lower) sum = mul(mul(sum, 1 / RAISE), 1 / RAISE);
            const scalar_t w = add(heads[k], mul(conj(h.scale), sum));
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

    // Column j to all lanes that have rows of it; which registers it is in, the program has to say.
    template <int C = 0> __device__ void take(int j, scalar_t (&x)[ROWS]) const
    {
        if (C == COLUMNS - 1 || j < 4 * C + 4) {
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) x[q] = of_lane(a[q][C], j % 4 * 8 + r());
        } else if constexpr (C + 1 < COLUMNS) take<C + 1>(j, x);
    }

    // Columns from j on lose what is along v, and j becomes v.
    template <int C = 0> __device__ void take_off(int j, const scalar_t (&v)[ROWS])
    {
        if (C == COLUMNS - 1 || j < 4 * C + 4) {
            #pragma unroll
            for (int c = C; c < COLUMNS; ++c) {
                const scalar_t f = s.f[column(c)];
                #pragma unroll
                for (int q = 0; q < ROWS; ++q) a[q][c] = minus_product(a[q][c], v[q], f);
            }
            if (g() != j % 4) return;
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                if (q || row(0) > j) a[q][C] = v[q];
            if (row(0) == j) a[0][C] = scalar_t{s.beta};
        } else if constexpr (C + 1 < COLUMNS) take_off<C + 1>(j, v);
    }

    // t[c] = x^H a for the columns a of this lane
    __device__ void inner_products(scalar_t (&t)[COLUMNS], const scalar_t (&x)[ROWS]) const
    {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) t[c] = plus_inner(scalar_t{}, x[0], a[0][c]);
        #pragma unroll
        for (int q = 1; q < ROWS; ++q)
            #pragma unroll
            for (int c = 0; c < COLUMNS; ++c) t[c] = plus_inner(t[c], x[q], a[q][c]);
    }

    __device__ void step(int j)
    {
        scalar_t x[ROWS];
        take(j, x);
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
                exchange<false>();
                const int again = reflect(j, lifted);
                if (lane() == 0) s.again = again;
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
        take_off(j, x);
    }

    // R and the reflectors to A; then the leaf is V, which goes to V, zeros above it
    __device__ void store(scalar_t* V, size ldv, int above)
    {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                const int i = row(q), k = column(c);
                if (k >= steps) {
                    a[q][c] = scalar_t{};
                    continue;
                }
                scalar_t x = a[q][c];
                if (s.unusual && i <= k) x = s.down[k].times(x);
                if (i < m) A[i + k * lda] = x;
                if (i <= k) a[q][c] = i == k ? scalar_t{1} : scalar_t{};
                if (i < m) V[i + k * ldv] = a[q][c];
            }
        if (rank == CLUSTER - 1)
            for (int e = thread(); e < above * steps; e += THREADS)
                V[e % above - above + e / above * ldv] = scalar_t{};
    }

    // C := C - V T^H V^H C of `count` columns
    __device__ void apply(scalar_t* C, int count, int phase)
    {
        scalar_t x[ROWS];
        #pragma unroll 1
        for (int b = 0; b < count; ++b) {
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) x[q] = row(q) < m ? C[row(q) + b * lda] : scalar_t{};
            scalar_t t[COLUMNS];  // of C^H V
            inner_products(t, x);
            sum_over<0, 3>(t);
            if (r() < COLUMNS) numbers(s.parts[b][warp()])[column(r())] = conj(t[0]);
        }
        const int first = rank * MINE, mine = min(max(count - first, 0), MINE);
        const unsigned gathered = shared_address(&s.gathered), spread = shared_address(&s.spread);
        if (thread() == 0) {
            expect(gathered, CLUSTER * mine * CHUNKS * 16);
            expect(spread, count * CHUNKS * 16);
        }
        __syncthreads();
        for (int b = warp(); b < count; b += WARPS) {
            const Pack sum = combined<false, WARPS>(s.parts[b]);
            const unsigned to = shared_address(&s.gather[rank][b % MINE][lane() % CHUNKS]);
            if (lane() < CHUNKS)
                send(address_in(to, b / MINE), bits_of(sum), address_in(gathered, b / MINE));
        }
        await_messages(gathered, phase);
        for (int e = thread(); e < mine * CHUNKS; e += THREADS) {
            Pack sum = s.gather[0][e / CHUNKS][e % CHUNKS];
            #pragma unroll
            for (int k = 1; k < CLUSTER; ++k)
                #pragma unroll
                for (int i = 0; i < VECTOR; ++i)
                    sum.x[i] = add(sum.x[i], s.gather[k][e / CHUNKS][e % CHUNKS].x[i]);
            s.product[e / CHUNKS][e % CHUNKS] = sum;
        }
        __syncthreads();
        for (int e = thread(); e < mine * CHUNKS; e += THREADS) {
            Pack y{};
            for (int k = 0; k < e % CHUNKS * VECTOR + VECTOR; ++k)
                #pragma unroll
                for (int i = 0; i < VECTOR; ++i)
                    y.x[i] = plus_inner(y.x[i], s.T[(e % CHUNKS * VECTOR + i) * LD + k],
                                        numbers(s.product[e / CHUNKS])[k]);
            const unsigned to = shared_address(&s.y[first + e / CHUNKS][e % CHUNKS]);
            for (int k = 0; k < CLUSTER; ++k)
                send(address_in(to, k), bits_of(y), address_in(spread, k));
        }
        await_messages(spread, phase);
        #pragma unroll 1
        for (int b = 0; b < count; ++b) {
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) x[q] = scalar_t{};
            #pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const scalar_t y = numbers(s.y[b])[column(c)];
                #pragma unroll
                for (int q = 0; q < ROWS; ++q) x[q] = minus_product(x[q], a[q][c], y);
            }
            sum_over<3, 2>(x);
            constexpr int KEPT = ROWS > 4 ? ROWS / 4 : 1, STEP = ROWS < 4 ? ROWS : 4;
            #pragma unroll
            for (int p = 0; p < KEPT; ++p) {
                const int i = row(p * STEP + g() % STEP);
                if (i < m && g() < STEP) C[i + b * lda] = add(C[i + b * lda], x[p]);
            }
        }
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
geqrf_leaf(scalar_t* A, size lda, size m, size steps, size right, scalar_t* tau, scalar_t* V,
           size ldv, size above, scalar_t* TH, size ldt)
{
    wait_for_stream();
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    Leaf leaf{A, lda, int(m), int(steps), int(blockIdx.x), s};
    leaf.turn = 0;
    leaf.load();
    if (thread() == 0) {
        for (const word* barrier : {&s.barrier[0], &s.barrier[1], &s.gathered, &s.spread})
            make_barrier(shared_address(barrier), 1);
        show_barriers();
    }
    for (int e = thread(); e < W * LD; e += THREADS) s.T[e] = scalar_t{};
    meet_cluster();
    leaf.scale_columns();
    #pragma unroll 1
    for (int j = 0; j < leaf.steps; ++j) leaf.step(j);
    if (warp() == WARPS - 1) leaf.extend_t(leaf.steps - 1);
    leaf.store(V, ldv, int(above));
    __syncthreads();
    if (leaf.rank == 0) {
        for (int j = thread(); j < leaf.steps; j += THREADS) tau[j] = s.tau[j];
        for (int e = thread(); e < leaf.steps * leaf.steps; e += THREADS)
            TH[e % leaf.steps + e / leaf.steps * ldt]
                = conj(s.T[e % leaf.steps * LD + e / leaf.steps]);
    }
    for (int first = 0; first < int(right); first += BATCH)
        leaf.apply(A + (leaf.steps + first) * lda, min(int(right) - first, BATCH),
                   first / BATCH % 2);
}
