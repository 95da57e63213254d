// qr_panels.cuh: QR by panels, one block to a matrix in global memory.
//
// The reflectors V of a panel (qr_columns.cuh) lie in shared memory, unit trapezoidal, and with
// H_1 ... H_NB = I - V T V^H every warp updates strips of columns for itself:
//
//     W = V^H C, C -= V (T^H W)        Q^H C; with T for T^H Q C
//
// Double precision is multiplied by the tensor cores, single precision has a column to a lane, or
// two: what it waits for is shared memory, which gives all lanes the same 4 bytes a cycle.
#pragma once
#include "scalar.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int NB = 16;      // columns of a panel
constexpr int ROWS = 2;     // of a panel to a thread
#endif
constexpr int LD = NB + (sizeof(scalar_t) == 16 ? 2 : 4);  // tensor operands meet no bank twice
constexpr bool TENSOR = sizeof(real_t) == 8;
constexpr int STRIP = TENSOR ? sizeof(scalar_t) == 16 ? 8 : 16 : 32;  // columns
// Strips that a warp takes at once: two where registers hold them, as a row of V then serves both
constexpr int EACH = sizeof(scalar_t) == 4 && NB <= 16 ? 2 : 1;
static_assert(NB == 8 || NB == 16 || NB == 32);
#include "qr_columns.cuh"
#include "tensor.cuh"

// What a block keeps beside V
struct Shared {
    scalar_t t[NB][LD];              // T
    scalar_t z[NB][LD];              // V^H V above the diagonal
    scalar_t tau[NB];
    scalar_t row[2][PB];             // the row in which a step finds alpha
    scalar_t sums[2][WARPS][PB];
    real_t most[WARPS];
    alignas(16) scalar_t f[WARPS][PB];
    scalar_t* w;                     // ROOM numbers in dynamic shared memory for each warp
};
constexpr int ACROSS = STRIP + 4, ROOM = TENSOR ? NB * ACROSS : 0;

template <int K> __device__ void form_t(Shared& s)
{
    form_t<K>(s, [&](int c, int l, scalar_t t) { s.t[c][l] = t; });
}

// -- W = V^H C and C -= V op(T) W for a strip of C's columns, by a warp

// The column of an 8 x 8 tile that is the tensor cores' number g: lanes then have t and t + 4
__device__ inline int tile_column(int g) { return g / 2 + g % 2 * 4; }

constexpr int TN = STRIP / 8;              // tiles
template <class T, int K> struct OnTensors {
    static constexpr int M = K / 8;
    using Product = T[M][TN][2];           // a lane's part of a K x STRIP matrix

    static __device__ void clear(Product& w)
    {
        #pragma unroll
        for (int i = 0; i < M; ++i)
            #pragma unroll
            for (int j = 0; j < TN; ++j) w[i][j][0] = w[i][j][1] = T{};
    }

    // w = V^H C
    static __device__ void project(Product& w, const T* V, Strided<T> C, int rows, int columns)
    {
        const int g = lane() / 4, t = lane() % 4;
        clear(w);
        #pragma unroll 1
        for (int p = 0; p < rows; p += 4 * DEEP) {
            T y[DEEP][TN];
            #pragma unroll
            for (int d = 0; d < DEEP; ++d)
                #pragma unroll
                for (int j = 0; j < TN; ++j) {
                    const int r = p + 4 * d + t, column = 8 * j + tile_column(g);
                    y[d][j] = T{};
                    if (r < rows && column < columns) y[d][j] = C(r, column);
                }
            #pragma unroll
            for (int d = 0; d < DEEP; ++d) {
                const int r = p + 4 * d + t, inside = r < rows ? r : rows - 1;
                #pragma unroll
                for (int i = 0; i < M; ++i) {
                    const T x = conj(V[inside * LD + 8 * i + g]);
                    #pragma unroll
                    for (int j = 0; j < TN; ++j)
                        tensor_product(w[i][j][0], w[i][j][1], x, y[d][j]);
                }
            }
        }
    }

    // f(i, j, value) for the lane's elements
    template <class F> static __device__ void each(const Product& w, F f)
    {
        const int g = lane() / 4, t = lane() % 4;
        #pragma unroll
        for (int i = 0; i < M; ++i)
            #pragma unroll
            for (int j = 0; j < TN; ++j)
                #pragma unroll
                for (int e = 0; e < 2; ++e) f(8 * i + g, 8 * j + 4 * e + t, w[i][j][e]);
    }

    // C -= V op(T) w
    template <bool ADJOINT>
    static __device__ void subtract(Product& w, const T* V, Shared& s, Strided<T> C, int rows,
                                    int columns)
    {
        const int g = lane() / 4, t = lane() % 4, own = tile_column(g);
        T* const kept = s.w + warp() * ROOM;
        const auto keep = [&] {
            __syncwarp();
            each(w, [&](int i, int j, T x) { kept[i * ACROSS + j] = x; });
            __syncwarp();
        };
        keep();
        clear(w);
        #pragma unroll
        for (int p = 0; p < K; p += 4)
            #pragma unroll
            for (int i = 0; i < M; ++i) {
                const T x = ADJOINT ? conj(s.t[p + t][8 * i + g]) : s.t[8 * i + g][p + t];
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    tensor_product(w[i][j][0], w[i][j][1], x, kept[(p + t) * ACROSS + 8 * j + own]);
            }
        keep();
        T y[K / 4][TN];
        #pragma unroll
        for (int q = 0; q < K / 4; ++q)
            #pragma unroll
            for (int j = 0; j < TN; ++j)
                y[q][j] = mul(kept[(4 * q + t) * ACROSS + 8 * j + own], real_t(-1));
        constexpr int few = DEEP / 2;
        #pragma unroll 1
        for (int p = 0; p < rows; p += 8 * few) {
            T c[few][TN][2];
            #pragma unroll
            for (int d = 0; d < few; ++d)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int r = p + 8 * d + g, column = 8 * j + 4 * e + t;
                        c[d][j][e] = T{};
                        if (r < rows && column < columns) c[d][j][e] = C(r, column);
                    }
            #pragma unroll
            for (int d = 0; d < few; ++d) {
                const int r = p + 8 * d + g, inside = r < rows ? r : rows - 1;
                #pragma unroll
                for (int q = 0; q < K / 4; ++q) {
                    const T x = V[inside * LD + 4 * q + t];
                    #pragma unroll
                    for (int j = 0; j < TN; ++j)
                        tensor_product(c[d][j][0], c[d][j][1], x, y[q][j]);
                }
                #pragma unroll
                for (int j = 0; j < TN; ++j)
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const int column = 8 * j + 4 * e + t;
                        if (r < rows && column < columns) C(r, column) = c[d][j][e];
                    }
            }
        }
    }
};

template <class T, int K, int EACH> struct OnLanes {
    using Product = T[EACH][K];           // a lane's columns, 32 apart
    static constexpr int FEW = 8;         // of its rows are asked for together

    // f(i, number i of V's row, e, c) for all i and the numbers c of column e of the lane's, going down
    template <class F>
    static __device__ void sweep(const T* V, Strided<T> C, int rows, int columns, bool out, F f)
    {
        bool mine[EACH];
        T* column[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            mine[e] = lane() + 32 * e < columns;
            column[e] = &C(0, mine[e] ? lane() + 32 * e : 0);
        }
        const size step = C.rs;
        const auto ask = [&](T (&c)[FEW][EACH], int p) {
            #pragma unroll
            for (int d = 0; d < FEW; ++d)
                #pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    c[d][e] = T{};
                    if (mine[e] && p + d < rows) c[d][e] = column[e][(p + d) * step];
                }
        };
        T c[FEW][EACH], next[FEW][EACH];
        ask(next, 0);
        #pragma unroll 1
        for (int p = 0; p < rows; p += FEW) {
            #pragma unroll
            for (int d = 0; d < FEW; ++d)
                #pragma unroll
                for (int e = 0; e < EACH; ++e) c[d][e] = next[d][e];
            ask(next, p + FEW);           // comes while these are worked on
            #pragma unroll
            for (int d = 0; d < FEW; ++d) {
                T v[K];
                row_of(v, V, p + d < rows ? p + d : rows - 1);
                #pragma unroll
                for (int i = 0; i < K; ++i)
                    #pragma unroll
                    for (int e = 0; e < EACH; ++e) f(i, v[i], e, c[d][e]);
                #pragma unroll
                for (int e = 0; e < EACH; ++e)
                    if (out && mine[e] && p + d < rows) column[e][(p + d) * step] = c[d][e];
            }
        }
    }

    static __device__ void project(Product& w, const T* V, Strided<T> C, int rows, int columns)
    {
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            #pragma unroll
            for (int i = 0; i < K; ++i) w[e][i] = T{};
        sweep(V, C, rows, columns, false,
              [&](int i, T v, int e, T& c) { w[e][i] = plus_inner(w[e][i], v, c); });
    }

    template <class F> static __device__ void each(const Product& w, F f)
    {
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            #pragma unroll
            for (int i = 0; i < K; ++i) f(i, lane() + 32 * e, w[e][i]);
    }

    template <bool ADJOINT>
    static __device__ void subtract(Product& w, const T* V, Shared& s, Strided<T> C, int rows,
                                    int columns)
    {
        #pragma unroll
        for (int k = 0; k < K; ++k) {     // op(T) w in its place, by rows of T
            const int i = ADJOINT ? K - 1 - k : k;
            T t[K];
            look_no_further_back();
            row_of(t, s.t[0], i);
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const T x = w[e][i];
                w[e][i] = plus_inner(T{}, ADJOINT ? t[i] : conj(t[i]), x);
                #pragma unroll
                for (int l = i + 1; l < K; ++l)
                    if (ADJOINT) w[e][l] = plus_inner(w[e][l], t[l], x);
                    else w[e][i] = plus_inner(w[e][i], conj(t[l]), w[e][l]);
            }
        }
        sweep(V, C, rows, columns, true,
              [&](int i, T v, int e, T& c) { c = minus_product(c, v, w[e][i]); });
    }
};

template <bool TENSOR, class T, int K, int EACH> struct Way { using type = OnLanes<T, K, EACH>; };
template <class T, int K, int EACH> struct Way<true, T, K, EACH> { using type = OnTensors<T, K>; };
template <int K, int EACH = 1> using Products = typename Way<TENSOR, scalar_t, K, EACH>::type;

// C := (I - V op(T) V^H) C with K reflectors, rows x columns, its strips shared by the warps, AT_ONCE
// to each
template <bool ADJOINT, int K, int AT_ONCE>
__device__ void apply_to_strips(const scalar_t* V, Shared& s, Strided<scalar_t> C, int rows,
                                int columns)
{
    constexpr int wide = AT_ONCE * STRIP;
    for (int j = warp() * wide; j < columns; j += WARPS * wide) {
        const Strided<scalar_t> strip{C.p + j * C.cs, C.rs, C.cs};
        typename Products<K, AT_ONCE>::Product w;
        Products<K, AT_ONCE>::project(w, V, strip, rows, columns - j);
        Products<K, AT_ONCE>::template subtract<ADJOINT>(w, V, s, strip, rows, columns - j);
    }
}
template <bool ADJOINT>
__device__ void apply_panel(const scalar_t* V, Shared& s, Strided<scalar_t> C, int rows,
                            int columns)
{
    if (EACH > 1 && columns > STRIP) apply_to_strips<ADJOINT, NB, EACH>(V, s, C, rows, columns);
    else apply_to_strips<ADJOINT, NB, 1>(V, s, C, rows, columns);
}

// The reflectors' zeros above their ones in the first K columns, over what the panel had there, R.
// The caller synchronises before, for another thread may still read R, and after.
template <int K> __device__ void make_trapezoid(scalar_t* V, int rows, int count)
{
    for (int e = thread(); e < K * K; e += THREADS) {
        const int r = e / K, c = e % K;
        if (r < rows && r <= c) V[r * LD + c] = scalar_t{real_t(r == c && c < count)};
    }
}

// V^H V above the diagonal for columns `first` and on, by one warp. Where reflectors are alike, as
// those of a matrix of ones, a sum is rounded to one side all the way down, and T carries that to
// every column of C: sums of a few rows are added.
__device__ inline void form_z(const scalar_t* V, Shared& s, int rows, int first)
{
    constexpr int CHAIN = 32;
    #pragma unroll 1
    for (int p = 0; p < rows; p += CHAIN) {
        scalar_t* const part = const_cast<scalar_t*>(V) + p * LD;
        #pragma unroll 1
        for (int j0 = first; j0 < NB; j0 += STRIP) {
            typename Products<NB>::Product w;
            Products<NB>::project(w, part, {part + j0, LD, 1}, min(rows - p, CHAIN), NB - j0);
            Products<NB>::each(w, [&](int i, int j, scalar_t x) {
                if (j0 + j < NB) s.z[i][j0 + j] = p ? add(s.z[i][j0 + j], x) : x;
            });
        }
    }
    __syncwarp();
}

// Reflectors k to k + NB of `count` from QR to V and `s`, conjugated if `conjugated`, and their T
__device__ inline void load_panel(scalar_t* V, Shared& s, Strided<const scalar_t> QR,
                                  const scalar_t* tau, bool conjugated, int m, int count, int k)
{
    const Strided<const scalar_t> panel{&QR(k, k), QR.rs, QR.cs};
    const auto read = [=](scalar_t x) { return conjugated ? conj(x) : x; };
    moved<PB>(m - k, NB, QR.cs == 1,
        [=](int i, int j) {
            if (k + j >= count) return scalar_t{};
            return i > j ? read(panel(i, j)) : scalar_t{real_t(i == j)};
        },
        [=](int i, int j, scalar_t x) { V[i * LD + j] = x; });
    if (thread() < NB) s.tau[thread()] = k + thread() < count ? read(tau[k + thread()]) : scalar_t{};
    __syncthreads();
    if (warp() == 0) {
        form_z(V, s, m - k, 0);
        form_t<NB>(s);
    }
    __syncthreads();
}

// C := Q C, or Q^H C if `adjoint`, m x n, of Q the first `count` reflectors; from the first column
// of a panel on if C began as the identity.
__device__ inline void apply_q(Strided<const scalar_t> QR, const scalar_t* tau, bool conjugated,
                               bool adjoint, Strided<scalar_t> C, scalar_t* V, Shared& s, int m,
                               int n, int count, bool identity)
{
    const int panels = (count + NB - 1) / NB;
    #pragma unroll 1
    for (int i = 0; i < panels; ++i) {
        const int k = (adjoint ? i : panels - 1 - i) * NB, first = identity ? k : 0;
        load_panel(V, s, QR, tau, conjugated, m, count, k);
        const Strided<scalar_t> part{C.p + k * C.rs + first * C.cs, C.rs, C.cs};
        if (adjoint) apply_panel<true>(V, s, part, m - k, n - first);
        else apply_panel<false>(V, s, part, m - k, n - first);
        __syncthreads();
    }
}

// Dynamic shared memory: V, `rows` of LD numbers, after the warps' W
__device__ inline scalar_t* panel_memory(Shared& s)
{
    scalar_t* const memory = reinterpret_cast<scalar_t*>(dynamic_shared);
    if (thread() == 0) s.w = memory;
    __syncthreads();
    return memory + WARPS * ROOM;
}
