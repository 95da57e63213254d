// geqrf_left.cu: QR factorization of a batch of m x n matrices, panel by panel from the left.
//
// A block has a matrix. A panel of NB columns, all of its rows, comes to shared memory, where the
// reflectors of every panel before it are applied to it (qr_left.cuh); then it is factored, and goes
// out once. (m n^2 - n^3 / 3) / (2 NB) numbers of a matrix come from memory so, where L2 does not
// hold all matrices. The floor is 2 m n; every column waits for a barrier. Where rows of the result
// do not begin with a line, so that those of a panel lie in two, its reflectors are read from a
// copy that has them one after the other.
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int NB = 16;      // columns of a panel
constexpr int ROWS = 2;     // of a panel to a thread
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int WIDTH = NB;
// Rows 2 t and columns g of a tile meet no bank twice
constexpr int LD = WIDTH + (sizeof(scalar_t) == 4 ? 4 : sizeof(scalar_t) == 8 ? 2 : 1);
#include "qr_left.cuh"
constexpr bool REAL = sizeof(scalar_t) == sizeof(real_t);
static_assert(WARPS > 1);

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

// Factors the panel at C, `rows` from row k on, `count` of its columns with a reflector; T: its T, if
// it is `wanted`
__device__ inline void factor(scalar_t* C, Shared& s, scalar_t* T, int m, int k, int count,
                              bool wanted)
{
    scalar_t* const V = C + k * LD;
    if constexpr (NB == PB) {
        factor_panel<REAL>(V, s, m - k, count, 0);
        __syncthreads();
    } else {
        const int tiles = (m + 7) / 8;
        const Reflectors<2> first({V, LD, 1}, k, m);
        Product<2, 1> w;
        scalar_t v[2][2];
        int tile = own_tile(k / 8);
        #pragma unroll 1
        for (int p = 0; p < NB; p += PB) {
            if (p) {
                if (warp() == 0)
                    form_t<PB>(s, [=](int c, int l, scalar_t x) { T[place<2>(c, l)] = conj(x); });
                __syncthreads();
                first.ask<true>(v, tile);
                project<false, 2, 1>(w, first, v, C + PB, tile, tiles);
                first.ask<false>(v, tile);
                times_t<2, 1>(w, s.parts, T);
                subtract<2, 1>(w, first, v, C + PB, tile, tiles);
                __syncthreads();
            }
            factor_panel<REAL>(V + p * LD + p, s, m - k - p, count - p, p);
            __syncthreads();
        }
        if (wanted) {
            tile = own_tile((k + PB) / 8);
            first.ask<true>(v, tile);
            project<true, 2, 1>(w, first, v, C + PB, tile, tiles, k + PB);
            sum_up<2, 1>(w, s.parts, [&](int tile, const scalar_t (&x)[4]) {
                #pragma unroll
                for (int e = 0; e < 4; ++e)
                    s.z[2 * (2 * t() + e % 2) + tile][PB + g() + 8 * (e / 2)] = x[e];
            });
            __syncthreads();
        }
    }
    if (wanted && warp() == 0)
        form_t<NB>(s, [=](int c, int l, scalar_t x) { T[place<NB / 8>(c, l)] = conj(x); });
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_left(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
           size q_col, size q_next, scalar_t* TAU, scalar_t* TS, size ts_next, size ms, size ns,
           size copied)
{
    wait_for_stream();
    constexpr int K = NB / 8, I = (NB + 15) / 16;
    __shared__ Shared s;
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b), steps = m < n ? m : n, tiles = (m + 7) / 8;
    const Strided<const scalar_t> in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(QR, q_row, q_col, q_next, b);
    scalar_t* const tau = array_of(TAU, steps, b);
    scalar_t* const T = array_of(TS, ts_next, b);
    scalar_t* const C = reinterpret_cast<scalar_t*>(dynamic_shared);
    // The panel of reflectors at column j begins at stored.p + j step
    scalar_t* const copies = T + (steps + NB - 1) / NB * NB * NB;
    const Strided<const scalar_t> stored = copied ? Strided<const scalar_t>{copies, NB, 1}
                                                  : Strided<const scalar_t>{out.p, out.rs, out.cs};
    const size step = copied ? 8 * tiles : out.rs + out.cs;
    const auto panel = [=](int j) {
        return Strided<const scalar_t>{stored.p + j * step, stored.rs, stored.cs};
    };
    if (thread() == 0) s.parts = C + 8 * tiles * LD;

    #pragma unroll 1
    for (int k = 0; k < n; k += NB) {
        const int width = n - k < NB ? n - k : NB, before = k < steps ? k : steps;
        const auto earlier = [=](int j) { return Reflectors<K>(panel(j), j, m); };
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
            if (j + NB < before) bring(panel(j + NB), m - j - NB, NB);
            const int tile = own_tile(j / 8);
            Product<K, I> w;
            project<false, K, I>(w, V, v, C, tile, tiles);
            V.ask<false>(v, tile);
            times_t<K, I>(w, s.parts, T + j * NB);
            scalar_t next[2][K] = {};
            if (j + NB < before) earlier(j + NB).ask<true>(next, own_tile(j / 8 + K));
            subtract<K, I>(w, V, v, C, tile, tiles);
            copy(v, next);
        }
        if (k + NB < n) bring({&in(0, k + NB), in.rs, in.cs}, m, n - k - NB);
        if (k) bring(panel(0), m, NB);
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
        if (copied && k < steps && k + NB < n) {
            constexpr int FEW = 16 / sizeof(scalar_t), EACH = NB / FEW;
            scalar_t* const to = copies + k * step;
            for (int e = thread(); e < (m - k) * EACH; e += THREADS)
                reinterpret_cast<Vector*>(to)[e] = *reinterpret_cast<const Vector*>(
                    C + (k + e / EACH) * LD + e % EACH * FEW);
        }
        __syncthreads();
    }
}
