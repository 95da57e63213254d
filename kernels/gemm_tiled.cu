// gemm_tiled.cu: C := alpha op(A) op(B) + beta C, by tiles in shared memory and in registers.
//
// The second rung of the ladder. A block owns BM x BN elements of C and a warp TM x TN of these, in
// registers. Slices of op(A) and op(B), BK deep, pass through a ring of STAGES in shared memory, by
// copies that go on while others are multiplied.
//
//     vector units (s, c)     4 x 8 lanes, each TM / 4 x TN / 8 elements in squares of V x V,
//                             V numbers to 16 bytes. Slices lie k by k, whatever the layout in
//                             memory: what a lane wants of one k are then neighbours.
//     tensor cores (d, z)     16 x 8 tiles (tensor.cuh). Slices lie as the operands do, by rows or
//                             by k: copies are of 16 bytes, and lanes want single numbers anyway.
//
// In the names of MAGMA's gemm for Fermi: BLK_M, BLK_N, BLK_K are BM, BN, BK; DIM_X x DIM_Y threads
// are 4 BM / TM x 8 BN / TN; what its DIM_XA ... DIM_YB choose, the threads that read a slice,
// follows here from the layout.
//
// Floor: 2 m n k operations. A slice is BM + BN elements for BM BN products, from L2, where GROUP
// rows of tiles at a time keep what neighbours read; for each k a warp reads TM + TN elements from
// shared memory for TM TN products. Measured at n = 4096: 0.89 of cuBLAS's speed in single, 0.95 in
// double precision.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int BM = 128, BN = 128;  // the tile of a block
constexpr int TM = 32, TN = 64;    // of a warp
constexpr int BK = 16;             // of k in a slice
constexpr int STEP = 8;            // of k between two reads: 1, on the tensor cores 8 or 16
constexpr int STAGES = 3;          // slices in shared memory
constexpr int AHEAD = 1;           // 1: a step is read while the one before it is multiplied
constexpr int GROUP = 8;           // rows of tiles that are worked on together
constexpr int WARPS = 8;           // of the block
constexpr int BLOCKS = 1;          // per multiprocessor for which registers are rationed
constexpr int MARKED = 0;          // 1: only elements that have a bit
#endif
#include "launch.cuh"
#include "async.cuh"
#include "block.cuh"
#include "operands.cuh"
#include "tensor.cuh"

constexpr bool TENSOR = sizeof(real_t) == 8;
constexpr int V = 16 / sizeof(scalar_t), WARPS_ACROSS = BN / TN;
static_assert(BM % TM == 0 && BN % TN == 0 && WARPS == BM / TM * WARPS_ACROSS);
static_assert(TENSOR ? STEP == 8 || STEP == 16 : STEP == 1);
static_assert(BK % ((1 + AHEAD) * STEP) == 0 && STAGES >= 2);

// -- from memory to shared memory

// An operand's R rows of a tile (columns of B): how its slices lie in shared memory, by rows or by
// k, and which numbers each thread copies. What a warp reads together lies in different banks.
template <int R, bool BY_ROWS> struct Slices {
    static constexpr int PAD = BY_ROWS ? 4 : (TENSOR ? 32 : 16) / int(sizeof(scalar_t));
    static constexpr int ROW = BY_ROWS ? BK + PAD : 1, K = BY_ROWS ? 1 : R + PAD;  // strides
    static constexpr int SIZE = BY_ROWS ? R * ROW : BK * K;

    enum Way { ALONG_K, ACROSS, IN_VECTORS } way;  // which neighbours go to neighbouring threads
    const scalar_t* from;  // this thread's first number of the next slice
    size rs, ks;           // from one row to the next, and from one k
    int rows;              // of the tile's that exist

    __device__ Slices(const scalar_t* X, size rs, size ks, int first, int all_rows)
        : rs(rs), ks(ks), rows(min(all_rows - first, R))
    {
        const bool vectors = BY_ROWS ? in_vectors(X, rs, ks, 0) : in_vectors(X, ks, rs, 0);
        way = vectors ? IN_VECTORS : BY_ROWS || rs != 1 ? ALONG_K : ACROSS;
        from = X + (first + row()) * rs + k() * ks;
    }

    // The next slice, of which `depth` of k exist, on its way; zeros past the edges
    __device__ void bring(scalar_t* slice, int depth)
    {
        if (way == ALONG_K) bring<1, 1, THREADS / 8, 8>(slice, depth);
        else if (way == ACROSS) bring<1, 1, 32, WARPS>(slice, depth);
        else if (BY_ROWS) bring<1, V, THREADS / FEW, BK>(slice, depth);
        else bring<V, 1, R, THREADS / FEW>(slice, depth);
        from += BK * ks;
    }

private:
    static constexpr int FEW = (BY_ROWS ? BK : R) / V;  // vectors side by side

    // Where this thread begins in a slice
    __device__ int row() const
    {
        const int t = threadIdx.x;
        return way == ALONG_K ? t / 8 : way == ACROSS ? t % 32 : BY_ROWS ? t / FEW : t % FEW * V;
    }
    __device__ int k() const
    {
        const int t = threadIdx.x;
        return way == ALONG_K ? t % 8 : way == ACROSS ? t / 32 : BY_ROWS ? t % FEW * V : t / FEW;
    }

    // U rows of W of k at a time, DOWN rows and DEEP of k from one to the next
    template <int U, int W, int DOWN, int DEEP> __device__ void bring(scalar_t* to, int depth)
    {
        static_assert((R % DOWN == 0 || DOWN % R == 0) && (BK % DEEP == 0 || DEEP % BK == 0));
        if ((DOWN > R && row() >= R) || (DEEP > BK && k() >= BK)) return;
        to += row() * ROW + k() * K;
        if (rows == R && depth >= BK) bring<U, W, DOWN, DEEP, true>(to, depth);
        else bring<U, W, DOWN, DEEP, false>(to, depth);
    }
    template <int U, int W, int DOWN, int DEEP, bool WHOLE>
    __device__ void bring(scalar_t* to, int depth) const
    {
        constexpr int bytes = U * W * sizeof(scalar_t), TOGETHER = WHOLE ? R * BK : 1;
        #pragma unroll TOGETHER
        for (int j = 0; j < R; j += DOWN)
            #pragma unroll TOGETHER
            for (int i = 0; i < BK; i += DEEP) {
                const int across = min(max(rows - row() - j, 0), U);
                const int there = min(max(depth - k() - i, 0), W) * across * sizeof(scalar_t);
                copy_async<bytes, (bytes == 16)>(to + j * ROW + i * K, from + j * rs + i * ks,
                                                 WHOLE ? bytes : there);
            }
    }
};

// -- from shared memory to registers

// x, conjugated if `sign` is the bit of a sign, not if it is zero: without a branch
__device__ inline float flipped(float x, int sign)
{
    return __int_as_float(__float_as_int(x) ^ sign);
}
__device__ inline double flipped(double x, int sign)
{
    return __hiloint2double(__double2hiint(x) ^ sign, __double2loint(x));
}
__device__ inline float mirrored(float x, int) { return x; }
__device__ inline double mirrored(double x, int) { return x; }
template <class R> __device__ complex<R> mirrored(complex<R> x, int sign)
{
    return {x.re, flipped(x.im, sign)};
}

// What a lane needs for a step of k, and its part of C
template <class T> struct VectorTile {
    static constexpr int RM = TM / 4, RN = TN / 8, RUN = V;
    static_assert(TM % (4 * V) == 0 && TN % (8 * V) == 0);
    struct Operands { T a[RM], b[RN]; };
    T c[RM][RN];

    static __device__ int y() { return threadIdx.x % 32 / 8; }
    static __device__ int x() { return threadIdx.x % 8; }

    template <class A, class B>
    static __device__ void read(Operands& s, const T* a, const T* b, int sign_a, int sign_b)
    {
        few<RM, 4>(s.a, a + V * y(), sign_a);
        few<RN, 8>(s.b, b + V * x(), sign_b);
    }
    __device__ void add(const Operands& s)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) c[i][j] = plus_product(c[i][j], s.a[i], s.b[j]);
    }
    // f(i, j, x) for neighbours x in a row, the first (i, j) of the warp's tile
    template <class F> __device__ void runs(F f)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; j += V)
                f(i / V * 4 * V + V * y() + i % V, 8 * j + V * x(),
                  reinterpret_cast<T (&)[V]>(c[i][j]));
    }

private:
    template <int N, int LANES>
    static __device__ void few(T (&to)[N], const T* from, int sign)
    {
        struct alignas(16) Few { T x[V]; };
        #pragma unroll
        for (int i = 0; i < N; i += V) {
            const Few few = *reinterpret_cast<const Few*>(from + i * LANES);
            #pragma unroll
            for (int e = 0; e < V; ++e) to[i + e] = mirrored(few.x[e], sign);
        }
    }
};

template <class T, int DEEP> struct TensorTile {
    static constexpr int RM = TM / 16, RN = TN / 8, RUN = 2;
    static_assert(TM % 16 == 0 && TN % 8 == 0);
    struct Operands { T a[RM][DEEP / 2], b[RN][DEEP / 4]; };
    T c[RM][RN][4];

    static __device__ int g() { return threadIdx.x % 32 / 4; }
    static __device__ int t() { return threadIdx.x % 4; }

    template <class A, class B>
    static __device__ void read(Operands& s, const T* a, const T* b, int sign_a, int sign_b)
    {
        a += g() * A::ROW + t() * A::K, b += g() * B::ROW + t() * B::K;
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int e = 0; e < DEEP / 2; ++e)
                s.a[i][e] = mirrored(a[(16 * i + e % 2 * 8) * A::ROW + e / 2 * 4 * A::K], sign_a);
        #pragma unroll
        for (int j = 0; j < RN; ++j)
            #pragma unroll
            for (int e = 0; e < DEEP / 4; ++e)
                s.b[j][e] = mirrored(b[8 * j * B::ROW + 4 * e * B::K], sign_b);
    }
    __device__ void add(const Operands& s)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) tensor_product(c[i][j], s.a[i], s.b[j]);
    }
    template <class F> __device__ void runs(F f)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j)
                #pragma unroll
                for (int half = 0; half < 2; ++half)
                    f(16 * i + 8 * half + g(), 8 * j + 2 * t(),
                      reinterpret_cast<T (&)[2]>(c[i][j][2 * half]));
    }
};

template <bool, class T> struct Choice { using type = VectorTile<T>; };
template <class T> struct Choice<true, T> { using type = TensorTile<T, STEP>; };
using Tile = Choice<TENSOR, scalar_t>::type;

// -- from registers to memory

// C and its numbers
struct Result {
    scalar_t* C;
    size m, n, rs, cs;
    scalar_t alpha, beta;
    bool read, vectors;
    const unsigned short* marks;  // bits of 16 elements of a row each

    __device__ bool marked(int i, int j) const
    {
        return !MARKED || marks[i * ((n + 15) / 16) + j / 16] >> j % 16 & 1;
    }

    // N neighbours in a row, from (i, j) on
    template <int N> __device__ void put(const scalar_t (&x)[N], int i, int j) const
    {
        constexpr int bytes = N * sizeof(scalar_t);
        struct alignas(bytes > 16 ? 16 : bytes) Few { scalar_t x[N]; };
        if (i >= m || j >= n) return;
        scalar_t* const at = C + i * rs + j * cs;
        if (!MARKED && vectors && j + N <= n) {
            Few few{};
            if (read) few = *reinterpret_cast<const Few*>(at);
            #pragma unroll
            for (int e = 0; e < N; ++e) few.x[e] = finished(x[e], few.x[e]);
            *reinterpret_cast<Few*>(at) = few;
        } else {
            #pragma unroll
            for (int e = 0; e < N; ++e)
                if (j + e < n && marked(i, j + e))
                    at[e * cs] = finished(x[e], read ? at[e * cs] : scalar_t{});
        }
    }
    __device__ scalar_t finished(scalar_t x, scalar_t old) const
    {
        return plus_product(read ? mul(beta, old) : scalar_t{}, alpha, x);
    }
};

// -- the loop

// A product of the launch: C = A B of m x n, k between; the block's tile begins at (i, j)
struct Product {
    int m, n, k, i, j;
    const scalar_t *A, *B;
    size ars, acs, brs, bcs;
    int sign_a, sign_b;  // the bit of a sign if conjugated
};

template <bool A_BY_ROWS, bool B_BY_ROWS> __device__ void multiply(Tile& tile, const Product& w)
{
    using SlicesA = Slices<BM, A_BY_ROWS>;
    using SlicesB = Slices<BN, B_BY_ROWS>;
    constexpr int STAGE = SlicesA::SIZE + SlicesB::SIZE;
    scalar_t* const ring = reinterpret_cast<scalar_t*>(dynamic_shared);
    SlicesA a(w.A, w.ars, w.acs, w.i, w.m);
    SlicesB b(w.B, w.bcs, w.brs, w.j, w.n);
    const auto bring = [&](int stage, int depth) {
        if (depth > 0) {
            a.bring(ring + stage * STAGE, depth);
            b.bring(ring + stage * STAGE + SlicesA::SIZE, depth);
        }
        end_group();
    };
    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) bring(s, w.k - s * BK);

    const scalar_t* const at_a = ring + warp() / WARPS_ACROSS * TM * SlicesA::ROW;
    const scalar_t* const at_b = ring + SlicesA::SIZE + warp() % WARPS_ACROSS * TN * SlicesB::ROW;
    Tile::Operands operands[1 + AHEAD];
    const auto read = [&](int stage, int q) {
        const int slice = stage * STAGE;
        Tile::read<SlicesA, SlicesB>(
            operands[q / STEP % (1 + AHEAD)], at_a + slice + q * SlicesA::K,
            at_b + slice + q * SlicesB::K, w.sign_a, w.sign_b);
    };
    await_groups<STAGES - 2>();
    __syncthreads();
    if (AHEAD) read(0, 0);
    int now = 0, free = STAGES - 1;  // the slice at work, and the place of the next to come
    for (int left = w.k; left > 0; left -= BK) {
        bring(free, left - (STAGES - 1) * BK);
        free = now;
        #pragma unroll
        for (int q = 0; q < BK; q += STEP) {
            if (!AHEAD) read(now, q);
            if (q + STEP == BK) {
                now = now + 1 == STAGES ? 0 : now + 1;
                await_groups<STAGES - 2>();
                __syncthreads();  // the next slice is there, and nobody reads this one any more
            }
            if (AHEAD) read(now, (q + STEP) % BK);
            tile.add(operands[q / STEP % (1 + AHEAD)]);
        }
    }
}

// Whether any element of the block's tile, which begins at (i, j), is marked
__device__ inline bool any_marked(const unsigned short* marks, int m, int n, int i, int j)
{
    __shared__ bool found[WARPS];
    const int rows = min(BM, m - i), words = (min(BN, n - j) + 15) / 16;
    const size next = (n + 15) / 16;
    bool any = false;
    for (int e = threadIdx.x; e < rows * words; e += THREADS)
        any |= marks[(i + e / words) * next + j / 16 + e % words] != 0;
    any = __any_sync(0xffffffffu, any);
    if (threadIdx.x % 32 == 0) found[warp()] = any;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) any |= found[w];
    return any;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_tiled(size m, size n, size k, const scalar_t* A, size ars, size acs, size conj_a,
           const scalar_t* B, size brs, size bcs, size conj_b, scalar_t* C, size crs, size ccs,
           size alpha_re, size alpha_im, size beta_re, size beta_im, const unsigned short* marks)
{
    wait_for_stream();
    // Tile number blockIdx.x: down the rows of a group first, then across
    const int down = int((m + BM - 1) / BM), across = int((n + BN - 1) / BN);
    const int first = int(blockIdx.x) / (GROUP * across) * GROUP, high = min(GROUP, down - first);
    const int within = int(blockIdx.x) % (GROUP * across);
    const int i = (first + within % high) * BM, j = within / high * BN;

    if (MARKED && !any_marked(marks, int(m), int(n), i, j)) return;
    Tile tile{};
    const Product w{int(m), int(n), int(k), i, j, A, B, ars, acs, brs, bcs, conj_a ? 1 << 31 : 0,
                    conj_b ? 1 << 31 : 0};
    if constexpr (TENSOR) {  // slices as the operands lie
        if (ars == 1 && bcs == 1) multiply<false, false>(tile, w);
        else if (ars == 1) multiply<false, true>(tile, w);
        else if (bcs == 1) multiply<true, false>(tile, w);
        else multiply<true, true>(tile, w);
    } else {
        multiply<false, false>(tile, w);
    }

    const size beta_bits = (beta_re | beta_im) & 0x7fffffffffffffff;  // 0: a zero of either sign
    const Result result{C, m, n, crs, ccs, number(alpha_re, alpha_im), number(beta_re, beta_im),
                        beta_bits != 0, in_vectors(C, crs, ccs, 0), marks};
    const int i_warp = i + warp() / WARPS_ACROSS * TM, j_warp = j + warp() % WARPS_ACROSS * TN;
    tile.runs([&](int r, int s, scalar_t (&x)[Tile::RUN]) {
        result.put(x, i_warp + r, j_warp + s);
    });
}
