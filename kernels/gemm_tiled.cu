// gemm_tiled.cu: C := alpha op(A) op(B) + beta C, by tiles in shared memory and in registers.
//
// The second rung of the ladder. A block owns BM x BN elements of C and a warp TM x TN of these, in
// registers. Slices of op(A) and op(B), BK deep, pass through a ring of STAGES in shared memory, by
// copies that go on while others are multiplied; both lie there k after k, whatever their layout in
// memory, so that the loop of products is one for all.
//
//     vector units (s, c)     4 x 8 lanes, each TM / 4 x TN / 8 elements in squares of V x V,
//                             V numbers to 16 bytes; one k a step
//     tensor cores (d, z)     16 x 8 tiles (tensor.cuh), 8 k a step
//
// In the names of MAGMA's gemm for Fermi: BLK_M, BLK_N, BLK_K are BM, BN, BK; DIM_X x DIM_Y threads
// are 4 BM / TM x 8 BN / TN; what its DIM_XA ... DIM_YB choose, the threads that read a slice,
// follows here from the layout.
//
// Floor: 2 m n k operations. A slice is BM + BN elements for BM BN products, from L2, where GROUP
// rows of tiles at a time keep what neighbours read; a step of a warp TM + TN elements from shared
// memory for TM TN.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int BM = 128, BN = 128;  // the tile of a block
constexpr int TM = 32, TN = 64;    // of a warp
constexpr int BK = 16;             // of k in a slice
constexpr int STAGES = 3;          // slices in shared memory
constexpr int AHEAD = 1;           // 1: a step is read while the one before it is multiplied
constexpr int GROUP = 8;           // rows of tiles that are worked on together
constexpr int WARPS = 8;           // of the block
constexpr int BLOCKS = 1;          // per multiprocessor for which registers are rationed
#endif
#include "launch.cuh"
#include "async.cuh"
#include "block.cuh"
#include "operands.cuh"
#include "tensor.cuh"

constexpr bool TENSOR = sizeof(real_t) == 8;
constexpr int V = 16 / sizeof(scalar_t), STEP = TENSOR ? 8 : 1, WARPS_ACROSS = BN / TN;
static_assert(BM % TM == 0 && BN % TN == 0 && WARPS == BM / TM * WARPS_ACROSS);
static_assert(BK % ((1 + AHEAD) * STEP) == 0 && STAGES >= 2);

// Numbers from one k to the next: what a warp reads together lies in different banks.
constexpr int PAD = (TENSOR ? 32 : 16) / sizeof(scalar_t), LDA = BM + PAD, LDB = BN + PAD;
constexpr int SLICE = BK * (LDA + LDB);

// -- from memory to shared memory

// An operand's R rows of a tile (columns of B), and how the threads share its slices
template <int R, int LD> struct Source {
    enum Way { ALONG_K, ACROSS, IN_VECTORS } way;  // neighbouring threads take neighbours
    const scalar_t* from;  // this thread's first number of the next slice
    size rs, ks;           // from one row to the next, and from one k
    int r, k;              // where in a slice that number is
    int rows, left;        // that exist from there on, and of k

    __device__ Source(const scalar_t* X, size rs, size ks, size first, size all_rows, size all_k)
        : rs(rs), ks(ks)
    {
        const int t = threadIdx.x;
        way = rs != 1 ? ALONG_K : in_vectors(X, ks, rs, 0) ? IN_VECTORS : ACROSS;
        r = way == ALONG_K ? t / 8 : way == ACROSS ? t % 32 : t % (R / V) * V;
        k = way == ALONG_K ? t % 8 : way == ACROSS ? t / 32 : t / (R / V);
        from = X + (first + r) * rs + k * ks;
        rows = int(all_rows - first) - r, left = int(all_k) - k;
    }

    // The next slice, on its way to `to`; zeros past the edges
    __device__ void bring(scalar_t* to)
    {
        to += k * LD + r;
        if (way == IN_VECTORS) bring<V, R, THREADS / (R / V)>(to);
        else if (way == ACROSS) bring<1, 32, WARPS>(to);
        else bring<1, THREADS / 8, 8>(to);
        from += BK * ks, left -= BK;
    }

private:
    // W numbers at a time, DOWN rows and DEEP of k from one to the next
    template <int W, int DOWN, int DEEP> __device__ void bring(scalar_t* to) const
    {
        static_assert(R % DOWN == 0 && (BK % DEEP == 0 || DEEP % BK == 0));
        if (DEEP > BK && k >= BK) return;
        if (rows >= R && left >= BK) bring<W, DOWN, DEEP, true>(to);
        else bring<W, DOWN, DEEP, false>(to);
    }
    template <int W, int DOWN, int DEEP, bool WHOLE> __device__ void bring(scalar_t* to) const
    {
        constexpr int bytes = sizeof(scalar_t);
        #pragma unroll
        for (int j = 0; j < R; j += DOWN)
            #pragma unroll
            for (int i = 0; i < BK; i += DEEP) {
                const int there = i < left ? min(max(rows - j, 0), W) : 0;
                copy_async<W * bytes, (W * bytes == 16)>(
                    to + i * LD + j, from + j * rs + i * ks, (WHOLE ? W : there) * bytes);
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
__device__ inline float turned(float x, int) { return x; }
__device__ inline double turned(double x, int) { return x; }
template <class R> __device__ complex<R> turned(complex<R> x, int sign)
{
    return {x.re, flipped(x.im, sign)};
}

// What a lane needs for a step of k, and its part of C
template <class T> struct VectorTile {
    static constexpr int RM = TM / 4, RN = TN / 8, RUN = V;
    static_assert(TM % (4 * V) == 0 && TN % (8 * V) == 0);
    struct Step { T a[RM], b[RN]; };
    T c[RM][RN];

    static __device__ int y() { return threadIdx.x % 32 / 8; }
    static __device__ int x() { return threadIdx.x % 8; }

    static __device__ void read(Step& s, const T* a, const T* b, int sign_a, int sign_b)
    {
        few<RM, 4>(s.a, a + V * y(), sign_a);
        few<RN, 8>(s.b, b + V * x(), sign_b);
    }
    __device__ void add(const Step& s)
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
            for (int e = 0; e < V; ++e) to[i + e] = turned(few.x[e], sign);
        }
    }
};

template <class T> struct TensorTile {
    static constexpr int RM = TM / 16, RN = TN / 8, RUN = 2;
    static_assert(TM % 16 == 0 && TN % 8 == 0);
    struct Step { T a[RM][4], b[RN][2]; };
    T c[RM][RN][4];

    static __device__ int g() { return threadIdx.x % 32 / 4; }
    static __device__ int t() { return threadIdx.x % 4; }

    static __device__ void read(Step& s, const T* a, const T* b, int sign_a, int sign_b)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                s.a[i][e] = turned(a[(t() + e / 2 * 4) * LDA + 16 * i + e % 2 * 8 + g()], sign_a);
        #pragma unroll
        for (int j = 0; j < RN; ++j)
            #pragma unroll
            for (int e = 0; e < 2; ++e)
                s.b[j][e] = turned(b[(t() + 4 * e) * LDB + 8 * j + g()], sign_b);
    }
    __device__ void add(const Step& s)
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
template <class T> struct Choice<true, T> { using type = TensorTile<T>; };
using Tile = Choice<TENSOR, scalar_t>::type;

// -- from registers to memory

// C and its numbers
struct Result {
    scalar_t* C;
    size m, n, rs, cs;
    scalar_t alpha, beta;
    bool read, vectors;

    // N neighbours in a row, from (i, j) on
    template <int N> __device__ void put(const scalar_t (&x)[N], size i, size j) const
    {
        constexpr int bytes = N * sizeof(scalar_t);
        struct alignas(bytes > 16 ? 16 : bytes) Few { scalar_t x[N]; };
        if (i >= m || j >= n) return;
        scalar_t* const at = C + i * rs + j * cs;
        if (vectors && j + N <= n) {
            Few few{};
            if (read) few = *reinterpret_cast<const Few*>(at);
            #pragma unroll
            for (int e = 0; e < N; ++e) few.x[e] = finished(x[e], few.x[e]);
            *reinterpret_cast<Few*>(at) = few;
        } else {
            #pragma unroll
            for (int e = 0; e < N; ++e)
                if (j + e < n) at[e * cs] = finished(x[e], read ? at[e * cs] : scalar_t{});
        }
    }
    __device__ scalar_t finished(scalar_t x, scalar_t old) const
    {
        return plus_product(read ? mul(beta, old) : scalar_t{}, alpha, x);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_tiled(size m, size n, size k, const scalar_t* A, size ars, size acs, size conj_a,
           const scalar_t* B, size brs, size bcs, size conj_b, scalar_t* C, size crs, size ccs,
           size alpha_re, size alpha_im, size beta_re, size beta_im)
{
    wait_for_stream();
    // Tile number blockIdx.x: down the rows of a group first, then across
    const int down = int((m + BM - 1) / BM), across = int((n + BN - 1) / BN);
    const int first = int(blockIdx.x) / (GROUP * across) * GROUP, high = min(GROUP, down - first);
    const int within = int(blockIdx.x) % (GROUP * across);
    const size i0 = size(first + within % high) * BM, j0 = size(within / high) * BN;

    scalar_t* const ring = reinterpret_cast<scalar_t*>(dynamic_shared);
    Source<BM, LDA> a(A, ars, acs, i0, m, k);
    Source<BN, LDB> b(B, bcs, brs, j0, n, k);
    const auto bring = [&](int stage, size p) {
        if (p < k) {
            a.bring(ring + stage * SLICE);
            b.bring(ring + stage * SLICE + BK * LDA);
        }
        end_group();
    };
    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) bring(s, s * BK);

    const int i = warp() / WARPS_ACROSS * TM, j = warp() % WARPS_ACROSS * TN;
    const int sign_a = conj_a ? 1 << 31 : 0, sign_b = conj_b ? 1 << 31 : 0;
    Tile tile{};
    Tile::Step steps[1 + AHEAD];
    const auto read = [&](int stage, int q) {
        const scalar_t* const slice = ring + stage * SLICE;
        Tile::read(steps[q / STEP % (1 + AHEAD)], slice + q * LDA + i, slice + BK * LDA + q * LDB + j,
                   sign_a, sign_b);
    };
    await_groups<STAGES - 2>();
    __syncthreads();
    if (AHEAD) read(0, 0);
    int now = 0, free = STAGES - 1;  // the slice at work, and the place of the next to come
    for (size p = 0; p < k; p += BK) {
        bring(free, p + (STAGES - 1) * BK);
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
            tile.add(steps[q / STEP % (1 + AHEAD)]);
        }
    }

    const size beta_bits = (beta_re | beta_im) & 0x7fffffffffffffff;  // 0: a zero of either sign
    const bool in_lines = in_vectors(C, crs, ccs, 0);
    const Result result{C, m, n, crs, ccs, number(alpha_re, alpha_im), number(beta_re, beta_im),
                        beta_bits != 0, in_lines};
    tile.runs([&](int r, int s, scalar_t (&x)[Tile::RUN]) {
        result.put(x, i0 + i + r, j0 + j + s);
    });
}
