// qr_left.cuh: reflectors of geqrf, where they lie, times columns in shared memory.
//
// With H_1 ... H_NB = I - V T V^H of a panel and W = V^H C,
//
//     C^T := C^T - ((C^T conj V) conj T) V^T
//
// by the tensor cores, for Q^H C; for Q C T^T has the place of conj T. Every warp has each WARPS-th
// tile of eight rows of C, and of all V: it sums its part of W^T, the block adds the parts up and
// multiplies by T, at three barriers, and the warp subtracts from its rows. V is read as it lies, a
// tile ahead, twice. C is a WIDTH of columns, rows LD numbers apart. T of all panels lies in global
// memory, in the order in which lanes read it.
#pragma once
#include "async.cuh"
#include "qr_columns.cuh"
#include "tensor.cuh"

static_assert(NB == 8 || NB == 16 || NB == 32);
constexpr int E = WIDTH == 8 ? 2 : 4;   // numbers of a lane in a tile of WIDTH, or 16, times 8
constexpr int PART = WIDTH * NB;        // numbers of a warp's part of W^T

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
    int top, rows, count;     // memory has so many of them
    bool packs;               // K neighbours can be read at once

    __device__ Reflectors(Strided<const scalar_t> of, int top, int rows, int count = 8 * K)
        : V(of), top(top), rows(rows), count(count),
          packs(count >= 8 * K && of.cs == 1 && (size(of.p) | size(of.rs * sizeof(scalar_t)))
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
                for (int l = 0; l < K; ++l)
                    if (count >= 8 * K || column<ACROSS>(e) + l < count) v[e][l] = p[l * V.cs];
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

// Asks for m rows of a panel, or what it has of n columns: it comes to L2, a line to a thread
__device__ inline void bring(Strided<const scalar_t> of, int m, int n)
{
    constexpr int LINE = 128 / sizeof(scalar_t), LINES = (NB + LINE - 1) / LINE;
    const int width = n < NB ? n : NB;
    if (of.cs == 1)
        for (int e = thread(); e < m * LINES; e += THREADS) {
            const int j = e % LINES * LINE;
            if (j < width) prefetch(&of(e / LINES, j));
        }
    else
        for (int j = warp(); j < width; j += WARPS)
            for (int r = lane() * LINE; r < m; r += 32 * LINE) prefetch(&of(r, j));
}

// What a lane has of the 4 E I columns times 8 K reflectors of W^T
template <int K, int I> using Product = scalar_t[I][K][E];

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
            for (int e = 0; e < E; ++e) w[i][l][e] = scalar_t{};
    #pragma unroll 1
    for (; tile < tiles; tile += WARPS) {
        scalar_t next[2][K], c[I][E];
        V.template ask<true>(next, tile + WARPS);
        V.template trim<true>(v, tile);
        #pragma unroll
        for (int i = 0; i < I; ++i)
            #pragma unroll
            for (int e = 0; e < E; ++e) {
                const int row = 8 * tile + 2 * t() + e / (E / 2);
                const int column = 16 * i + 8 * (e % (E / 2)) + g();
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
        scalar_t next[2][K], c[I][E];
        V.template ask<false>(next, tile + WARPS);
        V.template trim<false>(v, tile);
        scalar_t* const at = C + (8 * tile + 2 * t()) * LD + g();
        #pragma unroll
        for (int i = 0; i < I; ++i)
            #pragma unroll
            for (int e = 0; e < E; ++e) c[i][e] = at[e % 2 * LD + 16 * i + 8 * (e / 2)];
        #pragma unroll
        for (int l = 0; l < K; ++l)
            #pragma unroll
            for (int i = 0; i < I; ++i)
                tensor_product(c[i], w[i][l], {v[0][l], v[1][l]});
        #pragma unroll
        for (int i = 0; i < I; ++i)
            #pragma unroll
            for (int e = 0; e < E; ++e) at[e % 2 * LD + 16 * i + 8 * (e / 2)] = c[i][e];
        copy(v, next);
    }
}

// -- Parts of W^T in shared memory, 16 bytes a lane at a time

__device__ inline void keep(scalar_t* part, int tile, const scalar_t (&x)[E])
{
    constexpr int few = 16 / sizeof(scalar_t);
    #pragma unroll
    for (int e = 0; e < E; e += few) {
        Vector v;
        #pragma unroll
        for (int d = 0; d < few; ++d) v.x[d] = x[e + d];
        *reinterpret_cast<Vector*>(part + 32 * (E * tile + e) + few * lane()) = v;
    }
}
__device__ inline void kept(scalar_t (&x)[E], const scalar_t* part, int tile)
{
    constexpr int few = 16 / sizeof(scalar_t);
    #pragma unroll
    for (int e = 0; e < E; e += few) {
        const Vector v = *reinterpret_cast<const Vector*>(part + 32 * (E * tile + e) + few * lane());
        #pragma unroll
        for (int d = 0; d < few; ++d) x[e + d] = v.x[d];
    }
}

// Adds the parts of all warps up: f(tile, sum) by the warp that has the tile. One barrier, before.
template <int K, int I, class F>
__device__ void sum_up(const Product<K, I>& w, scalar_t* parts, F f)
{
    #pragma unroll
    for (int i = 0; i < I; ++i)
        #pragma unroll
        for (int l = 0; l < K; ++l) keep(parts + warp() * PART, i * K + l, w[i][l]);
    __syncthreads();
    #pragma unroll 1
    for (int tile = warp(); tile < I * K; tile += WARPS) {
        scalar_t x[WARPS][E];
        #pragma unroll
        for (int v = 0; v < WARPS; ++v) kept(x[v], parts + v * PART, tile);
        #pragma unroll
        for (int v = 1; v < WARPS; ++v)
            #pragma unroll
            for (int e = 0; e < E; ++e) x[0][e] = add(x[0][e], x[v][e]);
        f(tile, x[0]);
    }
}

// Where T(c, l) of 8 K reflectors is: the pairs of numbers that a lane has of 8 x 8 tiles
template <int K> __device__ int place(int c, int l)
{
    return ((c % K * K + l % K) * 32 + l / K * 4 + c / K / 2) * 2 + c / K % 2;
}

// What the tensor cores gave for a tile, as what they take
__device__ inline void as_operand(scalar_t (&a)[E], const scalar_t (&x)[E])
{
    #pragma unroll
    for (int e = 0; e < E; ++e) a[e] = x[E == 4 ? e / 2 + e % 2 * 2 : e];
}

// w := -(sum of the warps' parts w) conj T, as an operand of products; T: as `place` says, conjugated, or
// transposed.
// Three barriers; the caller synchronises before parts are written again by another function than
// this.
template <int K, int I>
__device__ void times_t(Product<K, I>& w, scalar_t* parts, const scalar_t* T)
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
    sum_up<K, I>(w, parts, [&](int tile, const scalar_t (&x)[E]) { keep(parts, tile, x); });
    __syncthreads();
    scalar_t* const last = parts + WARPS * PART;
    #pragma unroll
    for (int d = 0; d < EACH; ++d) {
        const int tile = warp() + d * WARPS;
        if (tile >= I * K) break;
        scalar_t x[E] = {};
        #pragma unroll
        for (int l = 0; l < K; ++l) {
            scalar_t part[E], a[E];
            kept(part, parts, tile / K * K + l);
            as_operand(a, part);
            tensor_product(x, a, of_t[d][l]);
        }
        scalar_t minus[E], a[E];
        #pragma unroll
        for (int e = 0; e < E; ++e) minus[e] = mul(x[e], real_t(-1));
        as_operand(a, minus);
        keep(last, tile, a);
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < I; ++i)
        #pragma unroll
        for (int l = 0; l < K; ++l) kept(w[i][l], last, i * K + l);
}

// Scales the columns of C whose squares might over- or underflow; true if there are, by whether any
// number of the thread's was `unusual`. In `s` are `most` of every warp and `sizes` of the columns.
template <class S> __device__ bool scale_columns(scalar_t* C, S& s, bool unusual, int m)
{
    if (block_most(unusual, s) == 0) return false;
    if (thread() < WIDTH) {
        real_t most = 0;
        for (int i = 0; i < m; ++i) most = larger(most, C[i * LD + thread()]);
        s.sizes[thread()] = most;
    }
    __syncthreads();
    for_each(m, WIDTH, true, [=, &s](int i, int j) {
        if (!is_usual(s.sizes[j])) C[i * LD + j] = to_one(s.sizes[j]).times(C[i * LD + j]);
    });
    __syncthreads();
    return true;
}
