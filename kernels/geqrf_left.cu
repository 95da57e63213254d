// geqrf_left.cu: QR factorization of a batch of m x n matrices, panel by panel from the left.
//
// A block has a matrix. A panel of NB columns, all of its rows, comes to shared memory, where the
// reflectors of every panel before it are applied to it; then it is factored, and goes out once.
// With H_1 ... H_NB = I - V T V^H of an earlier panel and its W = V^H C,
//
//     C^T := C^T - ((C^T conj V) conj T) V^T
//
// by the tensor cores. Every warp has each WARPS-th tile of eight rows of C, and of all V: it sums
// its part of W^T, the block adds the parts up and multiplies by T, at three barriers, and the warp
// subtracts from its rows. V is read as it lies, a tile ahead, twice, once asked for by L2 and once
// found there: (m n^2 - n^3 / 3) / (2 NB) numbers of a matrix come from memory so, where L2 does not
// hold all matrices, and nothing is written but the result. The floor is 2 m n; every column waits
// for a barrier. T of all panels lies in global memory, in the order in which lanes read it.
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int NB = 16;      // columns of a panel
constexpr int ROWS = 2;     // of a panel to a thread
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
// Rows 2 t and columns g of a tile meet no bank twice
constexpr int LD = NB + (sizeof(scalar_t) == 4 ? 4 : sizeof(scalar_t) == 8 ? 2 : 1);
#include "qr_columns.cuh"
#include "tensor.cuh"
constexpr bool REAL = sizeof(scalar_t) == sizeof(real_t);
static_assert((NB == 16 || NB == 32) && WARPS > 1);

struct Shared {
    scalar_t z[NB][LD];       // V^H V above the diagonal
    scalar_t tau[NB];
    scalar_t row[2][PB];      // the row in which a step finds alpha
    scalar_t sums[2][WARPS][PB];
    real_t most[WARPS];
    alignas(16) scalar_t f[WARPS][PB];
    real_t sizes[NB];         // of the columns
    scalar_t* parts;          // of W^T, a part to each warp, and one more for (W^T) conj T
};
constexpr int PART = NB * NB; // numbers of a part: pairs of tiles, 128 numbers of 32 lanes each

__device__ inline int g() { return lane() / 4; }
__device__ inline int t() { return lane() % 4; }

// The first tile of eight rows from number `first` on that is this warp's
__device__ inline int own_tile(int first)
{
    return first + (warp() + WARPS - first % WARPS) % WARPS;
}

// 16 bytes, or what K numbers have if that is less
template <int K> struct Pack {
    static constexpr int FEW = K * sizeof(scalar_t) < 16 ? K : 16 / sizeof(scalar_t);
    struct alignas(FEW * sizeof(scalar_t)) type { scalar_t x[FEW]; };
};

template <int K> __device__ void read_packs(scalar_t (&v)[K], const scalar_t* p)
{
    constexpr int FEW = Pack<K>::FEW;
    #pragma unroll
    for (int c = 0; c < K; c += FEW) {
        const auto x = *reinterpret_cast<const typename Pack<K>::type*>(p + c);
        #pragma unroll
        for (int e = 0; e < FEW; ++e) v[c + e] = x.x[e];
    }
}

// 8 K reflectors from row `top` on, those of a tile's number l being K g + l, ones on their diagonal
template <int K> struct Reflectors {
    Strided<const scalar_t> V;
    int top, rows;
    bool packs;               // K neighbours can be read at once

    __device__ Reflectors(Strided<const scalar_t> of, int top, int rows)
        : V(of), top(top), rows(rows),
          packs(of.cs == 1 && (size(of.p) | size(of.rs * sizeof(scalar_t)))
                % alignof(typename Pack<K>::type) == 0) {}

    // Where a lane reads: ACROSS, rows 2 t and 2 t + 1 of a tile, a reflector to a group of lanes;
    // else a row to a group, numbers 2 t and 2 t + 1 of the reflectors
    template <bool ACROSS> static __device__ int row(int tile, int e)
    {
        return 8 * tile + (ACROSS ? 2 * t() + e : g());
    }
    template <bool ACROSS> static __device__ int column(int e)
    {
        return K * (ACROSS ? g() : 2 * t() + e);
    }
    // What memory has there, which nobody waits for yet
    template <bool ACROSS> __device__ void ask(scalar_t (&v)[2][K], int tile) const
    {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            #pragma unroll
            for (int l = 0; l < K; ++l) v[e][l] = scalar_t{};
            if (row<ACROSS>(tile, e) >= rows) continue;
            const scalar_t* const p = V.p + (row<ACROSS>(tile, e) - top) * V.rs
                                      + column<ACROSS>(e) * V.cs;
            if (packs)
                read_packs(v[e], p);
            else
                #pragma unroll
                for (int l = 0; l < K; ++l) v[e][l] = p[l * V.cs];
        }
    }
    // What V has in the place of R
    template <bool ACROSS> __device__ void trim(scalar_t (&v)[2][K], int tile) const
    {
        if (8 * tile < top + 8 * K)
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int i = row<ACROSS>(tile, e), above = i - top - column<ACROSS>(e);
                #pragma unroll
                for (int l = 0; l < K; ++l)
                    if (above <= l) v[e][l] = scalar_t{real_t(above == l && i < rows)};
            }
    }
};

// Asks for a panel, rows i to m of columns k and on, of n: it comes to L2, a line to a thread
__device__ inline void bring(Strided<const scalar_t> of, int i, int k, int m, int n)
{
    constexpr int LINE = 128 / sizeof(scalar_t), LINES = (NB + LINE - 1) / LINE;
    const int width = n - k < NB ? n - k : NB;
    if (of.cs == 1)
        for (int e = thread(); e < (m - i) * LINES; e += THREADS) {
            const int j = e % LINES * LINE;
            if (j < width) prefetch(&of(i + e / LINES, k + j));
        }
    else
        for (int j = warp(); j < width; j += WARPS)
            for (int r = i + lane() * LINE; r < m; r += 32 * LINE) prefetch(&of(r, k + j));
}

// What a lane has of the 16 I columns times 8 K reflectors of W^T
template <int K, int I> using Product = scalar_t[I][K][4];

template <int N> __device__ void copy(scalar_t (&to)[2][N], const scalar_t (&from)[2][N])
{
    #pragma unroll
    for (int e = 0; e < 2; ++e)
        #pragma unroll
        for (int l = 0; l < N; ++l) to[e][l] = from[e][l];
}

// The part of w = C^T conj(V) of this warp's tiles from number `tile` on; v: what V has across the
// first. TRAPEZOID: C itself is one of reflectors, from row `top` on.
template <bool TRAPEZOID, int K, int I>
__device__ void project(Product<K, I>& w, const Reflectors<K>& V, scalar_t (&v)[2][K],
                        const scalar_t* C, int tile, int tiles, int top = 0)
{
    #pragma unroll
    for (int i = 0; i < I; ++i)
        #pragma unroll
        for (int l = 0; l < K; ++l)
            #pragma unroll
            for (int e = 0; e < 4; ++e) w[i][l][e] = scalar_t{};
    #pragma unroll 1
    for (; tile < tiles; tile += WARPS) {
        scalar_t next[2][K], c[I][4];
        V.template ask<true>(next, tile + WARPS);
        V.template trim<true>(v, tile);
        #pragma unroll
        for (int i = 0; i < I; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = 8 * tile + 2 * t() + e / 2, column = 16 * i + 8 * (e % 2) + g();
                c[i][e] = C[row * LD + column];
                if (TRAPEZOID && row - top <= column)
                    c[i][e] = scalar_t{real_t(row - top == column)};
            }
        #pragma unroll
        for (int l = 0; l < K; ++l) {
            const scalar_t b[2] = {conj(v[0][l]), conj(v[1][l])};
            #pragma unroll
            for (int i = 0; i < I; ++i) tensor_product(w[i][l], c[i], b);
        }
        copy(v, next);
    }
}

// C -= V W of this warp's tiles, w: -W^T as an operand; v: what V has down the first
template <int K, int I>
__device__ void subtract(const Product<K, I>& w, const Reflectors<K>& V, scalar_t (&v)[2][K],
                         scalar_t* C, int tile, int tiles)
{
    #pragma unroll 1
    for (; tile < tiles; tile += WARPS) {
        scalar_t next[2][K], c[I][4];
        V.template ask<false>(next, tile + WARPS);
        V.template trim<false>(v, tile);
        scalar_t* const at = C + (8 * tile + 2 * t()) * LD + g();
        #pragma unroll
        for (int i = 0; i < I; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e) c[i][e] = at[e % 2 * LD + 16 * i + 8 * (e / 2)];
        #pragma unroll
        for (int l = 0; l < K; ++l)
            #pragma unroll
            for (int i = 0; i < I; ++i)
                tensor_product(c[i], w[i][l], {v[0][l], v[1][l]});
        #pragma unroll
        for (int i = 0; i < I; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e) at[e % 2 * LD + 16 * i + 8 * (e / 2)] = c[i][e];
        copy(v, next);
    }
}

// -- Parts of W^T in shared memory, 16 bytes a lane at a time

__device__ inline void keep(scalar_t* part, int tile, const scalar_t (&x)[4])
{
    constexpr int few = 16 / sizeof(scalar_t);
    #pragma unroll
    for (int e = 0; e < 4; e += few) {
        Vector v;
        #pragma unroll
        for (int d = 0; d < few; ++d) v.x[d] = x[e + d];
        *reinterpret_cast<Vector*>(part + 128 * tile + 32 * e + few * lane()) = v;
    }
}
__device__ inline void kept(scalar_t (&x)[4], const scalar_t* part, int tile)
{
    constexpr int few = 16 / sizeof(scalar_t);
    #pragma unroll
    for (int e = 0; e < 4; e += few) {
        const Vector v = *reinterpret_cast<const Vector*>(part + 128 * tile + 32 * e + few * lane());
        #pragma unroll
        for (int d = 0; d < few; ++d) x[e + d] = v.x[d];
    }
}

// Adds the parts of all warps up: f(tile, sum) by the warp that has the tile. One barrier, before.
template <int K, int I, class F>
__device__ void sum_up(const Product<K, I>& w, const Shared& s, F f)
{
    #pragma unroll
    for (int i = 0; i < I; ++i)
        #pragma unroll
        for (int l = 0; l < K; ++l) keep(s.parts + warp() * PART, i * K + l, w[i][l]);
    __syncthreads();
    #pragma unroll 1
    for (int tile = warp(); tile < I * K; tile += WARPS) {
        scalar_t x[WARPS][4];
        #pragma unroll
        for (int v = 0; v < WARPS; ++v) kept(x[v], s.parts + v * PART, tile);
        #pragma unroll
        for (int v = 1; v < WARPS; ++v)
            #pragma unroll
            for (int e = 0; e < 4; ++e) x[0][e] = add(x[0][e], x[v][e]);
        f(tile, x[0]);
    }
}

// Where T(c, l) of 8 K reflectors is: the pairs of numbers that a lane has of 8 x 8 tiles
template <int K> __device__ int place(int c, int l)
{
    return ((c % K * K + l % K) * 32 + l / K * 4 + c / K / 2) * 2 + c / K % 2;
}

// w := -(sum of the warps' parts w) conj T, as an operand of products; T: as `place` says, conjugated.
// Three barriers; the caller synchronises before parts are written again by another function than
// this.
template <int K, int I>
__device__ void times_t(Product<K, I>& w, const Shared& s, const scalar_t* T)
{
    constexpr int EACH = (I * K + WARPS - 1) / WARPS;
    scalar_t of_t[EACH][K][2];
    #pragma unroll
    for (int d = 0; d < EACH; ++d) {
        const int tile = warp() + d * WARPS < I * K ? warp() + d * WARPS : 0;
        #pragma unroll
        for (int l = 0; l < K; ++l)
            read_packs(of_t[d][l], T + ((l * K + tile % K) * 32 + lane()) * 2);
    }
    sum_up<K, I>(w, s, [&](int tile, const scalar_t (&x)[4]) { keep(s.parts, tile, x); });
    __syncthreads();
    scalar_t* const last = s.parts + WARPS * PART;
    #pragma unroll
    for (int d = 0; d < EACH; ++d) {
        const int tile = warp() + d * WARPS;
        if (tile >= I * K) break;
        scalar_t x[4] = {};
        #pragma unroll
        for (int l = 0; l < K; ++l) {
            scalar_t a[4];
            kept(a, s.parts, tile / K * K + l);
            tensor_product(x, {a[0], a[2], a[1], a[3]}, of_t[d][l]);
        }
        const real_t minus = -1;
        keep(last, tile, {mul(x[0], minus), mul(x[2], minus), mul(x[1], minus), mul(x[3], minus)});
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < I; ++i)
        #pragma unroll
        for (int l = 0; l < K; ++l) kept(w[i][l], last, i * K + l);
}

// Scales the columns whose squares might over- or underflow; true if there are
__device__ inline bool scale_columns(scalar_t* C, Shared& s, bool unusual, int m)
{
    if (block_most(unusual, s) == 0) return false;
    if (thread() < NB) {
        real_t most = 0;
        for (int i = 0; i < m; ++i) most = larger(most, C[i * LD + thread()]);
        s.sizes[thread()] = most;
    }
    __syncthreads();
    for_each(m, NB, true, [=, &s](int i, int j) {
        if (!is_usual(s.sizes[j])) C[i * LD + j] = to_one(s.sizes[j]).times(C[i * LD + j]);
    });
    __syncthreads();
    return true;
}

// Factors the panel at C, `rows` from row k on, `count` of its columns with a reflector; T: its T, if
// it is `wanted`
__device__ inline void factor(scalar_t* C, Shared& s, scalar_t* T, int m, int k, int count,
                              bool wanted)
{
    const int tiles = (m + 7) / 8;
    scalar_t* const V = C + k * LD;
    const Reflectors<2> first({V, LD, 1}, k, m);
    Product<2, 1> w;
    scalar_t v[2][2];
    int tile = own_tile(k / 8);
    #pragma unroll 1
    for (int p = 0; p < NB; p += PB) {
        if (NB > PB && p) {
            if (warp() == 0)
                form_t<PB>(s, [=](int c, int l, scalar_t x) { T[place<2>(c, l)] = conj(x); });
            __syncthreads();
            first.ask<true>(v, tile);
            project<false, 2, 1>(w, first, v, C + PB, tile, tiles);
            first.ask<false>(v, tile);
            times_t<2, 1>(w, s, T);
            subtract<2, 1>(w, first, v, C + PB, tile, tiles);
            __syncthreads();
        }
        factor_panel<REAL>(V + p * LD + p, s, m - k - p, count - p, p);
        __syncthreads();
    }
    if (NB > PB && wanted) {
        tile = own_tile((k + PB) / 8);
        first.ask<true>(v, tile);
        project<true, 2, 1>(w, first, v, C + PB, tile, tiles, k + PB);
        sum_up<2, 1>(w, s, [&](int tile, const scalar_t (&x)[4]) {
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                s.z[2 * (2 * t() + e % 2) + tile][PB + g() + 8 * (e / 2)] = x[e];
        });
        __syncthreads();
    }
    if (wanted && warp() == 0)
        form_t<NB>(s, [=](int c, int l, scalar_t x) { T[place<NB / 8>(c, l)] = conj(x); });
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_left(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
           size q_col, size q_next, scalar_t* TAU, scalar_t* TS, size ts_next, size ms, size ns)
{
    wait_for_stream();
    constexpr int K = NB / 8, I = NB / 16;
    __shared__ Shared s;
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b), steps = m < n ? m : n, tiles = (m + 7) / 8;
    const Strided<const scalar_t> in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(QR, q_row, q_col, q_next, b);
    const Strided<const scalar_t> result{out.p, out.rs, out.cs};
    scalar_t* const tau = array_of(TAU, steps, b);
    scalar_t* const T = array_of(TS, ts_next, b);
    scalar_t* const C = reinterpret_cast<scalar_t*>(dynamic_shared);
    if (thread() == 0) s.parts = C + 8 * tiles * LD;

    #pragma unroll 1
    for (int k = 0; k < n; k += NB) {
        const int width = n - k < NB ? n - k : NB, before = k < steps ? k : steps;
        const auto earlier = [=](int j) {
            return Reflectors<K>({out.p + j * (out.rs + out.cs), out.rs, out.cs}, j, m);
        };
        bool unusual = false;
        moved<NB>(8 * tiles, NB, in.cs == 1,
            [=](int i, int j) { return i < m && j < width ? in(i, k + j) : scalar_t{}; },
            [&](int i, int j, scalar_t x) {
                if (!is_usual(larger(0, x))) unusual = true;
                C[i * LD + j] = x;
            });
        const bool scaled = scale_columns(C, s, unusual, m);
        scalar_t v[2][K];
        if (before) earlier(0).ask<true>(v, own_tile(0));
        #pragma unroll 1
        for (int j = 0; j < before; j += NB) {
            const auto V = earlier(j);
            if (j + NB < before) bring(result, j + NB, j + NB, m, n);
            const int tile = own_tile(j / 8);
            Product<K, I> w;
            project<false, K, I>(w, V, v, C, tile, tiles);
            V.ask<false>(v, tile);
            times_t<K, I>(w, s, T + j * NB);
            scalar_t next[2][K] = {};
            if (j + NB < before) earlier(j + NB).ask<true>(next, own_tile(j / 8 + K));
            subtract<K, I>(w, V, v, C, tile, tiles);
            copy(v, next);
        }
        if (k + NB < n) bring(in, 0, k + NB, m, n);
        if (k) bring(result, 0, 0, m, n);
        __syncthreads();
        if (k < steps) {
            const int count = steps - k < NB ? steps - k : NB;
            factor(C, s, T + k * NB, m, k, count, k + NB < n);
            if (thread() < count) tau[k + thread()] = s.tau[thread()];
        }
        if (scaled) {
            __syncthreads();
            for_each(k + NB < m ? k + NB : m, NB, true, [=](int i, int j) {
                if (i <= k + j && !is_usual(s.sizes[j]))
                    C[i * LD + j] = to_one(s.sizes[j]).inverse().times(C[i * LD + j]);
            });
            __syncthreads();
        }
        moved<NB>(m, width, out.cs == 1, [=](int i, int j) { return C[i * LD + j]; },
                  [=](int i, int j, scalar_t x) { out(i, k + j) = x; });
        __syncthreads();
    }
}
