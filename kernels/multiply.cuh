// multiply.cuh: C += A B and C -= A B by the warps of a block, the operands in shared memory.
//
// A warp holds a TM x TN tile of C in registers and goes once through k. Double and complex double
// are multiplied by the tensor cores in 8 x 8 tiles, the others by the vector units, a lane having
// TM / 4 rows and TN / 8 columns.
//
//     ByRows<T> {p, ld}        element (i, j) is p[i ld + j]
//     ByColumns<T> {p, ld}                       p[i + j ld]
//     ByStrides<T> {p, rs, cs}                   p[i rs + j cs]
//     transposed(x), adjoint(x), conjugate(x), part(x, i, j): views, at no cost
//
// ByRows and ByColumns promise that p and ld are multiples of 16 bytes: single precision then
// moves 16 bytes at a time, of which those past the edge of the matrix lie before the next row.
// Any other callable (i, j) -> scalar_t is an operand, too: a masked triangle, say.
//
//     multiply(c, a, b, m, n, k)           C += A B by all warps of the block
//     multiply<-1>(c, a, b, m, n, k)       C -= A B
//     multiply<-1, 16, 16>(...)            in tiles of 16 x 16
//     multiply_half(c, a, b, n, k)         only the elements i >= j of C, n x n
//     multiply(c, a, b, m, n, k, 0, 1)     by one warp: tiles 0, 1, 2 ...
//     Tile<TM, TN, A, B> x; x.clear(); x.add(a, b, m, n, k); x.each(m, n, f(i, j, value))
//                                          for a C that stays in registers, one tile of a warp
//
// C is any view of scalar_t, in shared or global memory; nothing outside m x n is read or written,
// nor a row or column of A and B that C lacks. The sum over k goes upwards from the C that was
// there, so an element's bits depend on nothing but its row and column. Nothing synchronises: the
// caller does, before and after.
//
// Shared memory gives a multiprocessor 128 bytes a clock, the tensor cores take 256 operations of
// double precision: 0.5 bytes a flop. A tile reads 4 (TM + TN) / (TM TN) bytes a flop: 8 x 8 1.0,
// 16 x 16 0.5, 16 x 32 0.375, 32 x 32 0.25 (complex: half of that); so tiles of 16 x 16 are the
// least that can keep the tensor cores busy, 32 x 32 leave room for C. Single precision has 256
// operations a clock as well, and packs serve 4 (s) or 2 (c) numbers a load: 32 x 32 is enough.
// Every 32 x 32 tile has 64 registers of C in double precision, 32 in single.
//
// Rows of leading(n) numbers, the next from n that is 16 bytes (s c) or 32 bytes (d z) past a
// multiple of 128, meet no bank twice in d, s and c, whichever way an operand is read.
#pragma once
#include "block.cuh"
#include "tensor.cuh"

constexpr int VECTOR = 16 / sizeof(scalar_t);  // numbers to 16 bytes

__host__ __device__ constexpr int leading(int n)
{
    constexpr int line = 128 / sizeof(scalar_t), past = (sizeof(real_t) == 8 ? 32 : 16)
                                                        / sizeof(scalar_t);
    return (n - past + line - 1) / line * line + past;
}

// -- views

template <class T> struct ByRows {
    T* p;
    int ld;
    __device__ T& operator()(int i, int j) const { return p[i * ld + j]; }
};
template <class T> struct ByColumns {
    T* p;
    int ld;
    __device__ T& operator()(int i, int j) const { return p[i + j * ld]; }
};
template <class T> struct ByStrides {
    T* p;
    int rs, cs;
    __device__ T& operator()(int i, int j) const { return p[i * rs + j * cs]; }
};
template <class X> struct Conjugate {
    X x;
    __device__ scalar_t operator()(int i, int j) const { return conj(x(i, j)); }
};

template <class T> __device__ ByColumns<T> transposed(ByRows<T> x) { return {x.p, x.ld}; }
template <class T> __device__ ByRows<T> transposed(ByColumns<T> x) { return {x.p, x.ld}; }
template <class T> __device__ ByStrides<T> transposed(ByStrides<T> x)
{
    return {x.p, x.cs, x.rs};
}
template <class X> __device__ Conjugate<X> conjugate(X x) { return {x}; }
template <class X> __device__ auto transposed(Conjugate<X> c) { return conjugate(transposed(c.x)); }
template <class X> __device__ auto adjoint(X x) { return conjugate(transposed(x)); }

// What begins at (i, j): a multiple of 16 bytes along the rows or columns that promise it
template <class T> __device__ ByRows<T> part(ByRows<T> x, int i, int j) { return {&x(i, j), x.ld}; }
template <class T> __device__ ByColumns<T> part(ByColumns<T> x, int i, int j)
{
    return {&x(i, j), x.ld};
}
template <class T> __device__ ByStrides<T> part(ByStrides<T> x, int i, int j)
{
    return {&x(i, j), x.rs, x.cs};
}
template <class T> __device__ Strided<T> part(Strided<T> x, int i, int j)
{
    return {&x(i, j), x.rs, x.cs};
}
template <class X> __device__ Conjugate<X> part(Conjugate<X> x, int i, int j)
{
    return {part(x.x, i, j)};
}
template <class X> struct Part {
    X x;
    int i, j;
    __device__ scalar_t operator()(int r, int c) const { return x(i + r, j + c); }
};
template <class X> __device__ Part<X> part(X x, int i, int j) { return {x, i, j}; }

// The index along which neighbours fill 16 bytes: 0 rows, 1 columns, -1 neither
template <class X> constexpr int along = -1;
template <class T> constexpr int along<ByColumns<T>> = 0;
template <class T> constexpr int along<ByRows<T>> = 1;
template <class X> constexpr int along<Conjugate<X>> = along<X>;

struct alignas(16) Vector { scalar_t x[VECTOR]; };

template <class X> __device__ Vector vector_of(const X& x, int i, int j)
{
    if constexpr (along<X> < 0) return Vector{};  // never asked for
    else return *reinterpret_cast<const Vector*>(&x(i, j));
}
template <class X> __device__ Vector vector_of(const Conjugate<X>& c, int i, int j)
{
    Vector v = vector_of(c.x, i, j);
    #pragma unroll
    for (int e = 0; e < VECTOR; ++e) v.x[e] = conj(v.x[e]);
    return v;
}

// -- the tile of a warp

template <int TM, int TN, class A, class B> struct Tile {
    static constexpr bool ON_TENSORS = sizeof(real_t) == 8;
    static constexpr int DOWN = ON_TENSORS ? 8 : 4, ACROSS = 32 / DOWN;  // lanes
    static constexpr int RM = TM / DOWN, RN = TN / ACROSS;               // a lane's part
    // Neighbours among a lane's rows and columns
    static constexpr int VM = !ON_TENSORS && along<A> == 0 && RM % VECTOR == 0 ? VECTOR : 1;
    static constexpr int VN = ON_TENSORS ? 2 : along<B> == 1 && RN % VECTOR == 0 ? VECTOR : 1;
    static_assert(TM % (DOWN * VM) == 0 && TN % (ACROSS * VN) == 0);

    scalar_t c[RM][RN];

    static __device__ int down() { return threadIdx.x % 32 / ACROSS; }
    static __device__ int across() { return threadIdx.x % ACROSS; }
    static __device__ int row(int i) { return VM * (down() + DOWN * (i / VM)) + i % VM; }
    static __device__ int col(int j) { return VN * (across() + ACROSS * (j / VN)) + j % VN; }

    __device__ void clear()
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) c[i][j] = scalar_t{};
    }

    // f(i, j, value&) for all elements of the tile in an m x n matrix
    template <class F> __device__ void each(int m, int n, F f)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j)
                if (row(i) < m && col(j) < n) f(row(i), col(j), c[i][j]);
    }

    template <class C> __device__ void load(const C& from, int m, int n)
    {
        clear();
        moved<false>(from, m, n);
    }
    template <class C> __device__ void store(const C& to, int m, int n)
    {
        moved<true>(to, m, n);
    }

    // This tile += A B, A being m x k, B k x n; -= if SIGN is -1
    __device__ void add(const A& a, const B& b, int m, int n, int k) { product<1>(a, b, m, n, k); }
    __device__ void subtract(const A& a, const B& b, int m, int n, int k)
    {
        product<-1>(a, b, m, n, k);
    }

    template <int SIGN> __device__ void product(const A& a, const B& b, int m, int n, int k)
    {
        if (m <= 0 || n <= 0) return;
        int p = 0;
        if constexpr (ON_TENSORS) {
            for (; p + 4 <= k; p += 4) tensor_step<SIGN>(a, b, m, n, p, 4);
            if (p < k) tensor_step<SIGN>(a, b, m, n, p, k - p);
        } else {
            if constexpr (along<A> >= 0 || along<B> >= 0)
                for (; p + VECTOR <= k; p += VECTOR) vector_step<SIGN, VECTOR>(a, b, m, n, p);
            for (; p < k; ++p) vector_step<SIGN, 1>(a, b, m, n, p);
        }
    }

    // The same with operands in global memory, DEPTH of k at a time: their loads are under way
    // together. Every element of A and B is loaded once, by one lane or for several.
    template <int DEPTH> __device__ void stream(const A& a, const B& b, int m, int n, int k)
    {
        if (m <= 0 || n <= 0) return;
        if constexpr (ON_TENSORS) {
            for (int p = 0; p < k; p += DEPTH) {
                scalar_t x[DEPTH / 4][RM] = {}, y[DEPTH / 4][TN / 8] = {};
                #pragma unroll
                for (int s = 0; s < DEPTH / 4; ++s)
                    if (p + 4 * s + across() < k) fragments(x[s], y[s], a, b, m, n, p + 4 * s);
                #pragma unroll
                for (int s = 0; s < DEPTH / 4; ++s)
                    if (p + 4 * s < k) tensor_products(x[s], y[s], m);
            }
        } else {
            int p = 0;
            constexpr int V = along<A> >= 0 || along<B> >= 0 ? VECTOR : 1, TURNS = DEPTH / V;
            #pragma unroll TURNS
            for (; p + V <= k; p += V) vector_step<1, V>(a, b, m, n, p);
            if constexpr (V > 1)
                for (; p < k; ++p) vector_step<1, 1>(a, b, m, n, p);
        }
    }

private:
    template <bool OUT, class T> static __device__ void move(T& mine, T& its)
    {
        if (OUT) its = mine;
        else mine = its;
    }

    // Neighbours in a row go together where both sides have them so.
    template <bool OUT, class C> __device__ void moved(const C& other, int m, int n)
    {
        constexpr int V = along<C> == 1 && VN % VECTOR == 0 ? VECTOR : 1;
        struct alignas(V * sizeof(scalar_t)) Few { scalar_t x[V]; };
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; j += V) {
                if (row(i) < m && col(j) + V <= n) {
                    Few few;
                    #pragma unroll
                    for (int e = 0; e < V; ++e) few.x[e] = c[i][j + e];
                    move<OUT>(few, reinterpret_cast<Few&>(other(row(i), col(j))));
                    #pragma unroll
                    for (int e = 0; e < V; ++e) c[i][j + e] = few.x[e];
                } else if (V > 1) {
                    #pragma unroll
                    for (int e = 0; e < V; ++e)
                        if (row(i) < m && col(j + e) < n)
                            move<OUT>(c[i][j + e], other(row(i), col(j + e)));
                }
            }
    }

    // A row or column that exists in place of one that does not: its products are dropped.
    static __device__ int inside(int i, int m) { return i < m ? i : m - 1; }

    // What a lane has of the 4 of k from p on
    static __device__ void fragments(scalar_t (&x)[RM], scalar_t (&y)[TN / 8], const A& a,
                                     const B& b, int m, int n, int p)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        #pragma unroll
        for (int i = 0; i < RM; ++i) x[i] = a(inside(g + 8 * i, m), p + t);
        #pragma unroll
        for (int j = 0; j < TN / 8; ++j) y[j] = b(p + t, inside(g + 8 * j, n));
    }

    __device__ void tensor_products(const scalar_t (&x)[RM], const scalar_t (&y)[TN / 8], int m)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i) {
            if (8 * i >= m) break;
            #pragma unroll
            for (int j = 0; j < TN / 8; ++j)
                tensor_product(c[i][2 * j], c[i][2 * j + 1], x[i], y[j]);
        }
    }

    // k from p on: `depth` of 4. What is not there is zero on both sides.
    template <int SIGN>
    __device__ void tensor_step(const A& a, const B& b, int m, int n, int p, int depth)
    {
        scalar_t x[RM] = {}, y[TN / 8] = {};
        if (across() < depth) fragments(x, y, a, b, m, n, p);
        #pragma unroll
        for (int i = 0; i < RM; ++i) x[i] = mul(x[i], real_t(SIGN));
        tensor_products(x, y, m);
    }

    // V of k from p on
    template <int SIGN, int V>
    __device__ void vector_step(const A& a, const B& b, int m, int n, int p)
    {
        scalar_t x[RM][V], y[RN][V];
        operand<V, VM, along<A>, RM>(x, [=](int i) { return row(i); }, m,
            [&](int i, int k) { return a(i, p + k); },
            [&](int i, int k) { return vector_of(a, i, p + k); });
        operand<V, VN, 1 - along<B>, RN>(y, [=](int j) { return col(j); }, n,
            [&](int j, int k) { return b(p + k, j); },
            [&](int j, int k) { return vector_of(b, p + k, j); });
        #pragma unroll
        for (int q = 0; q < V; ++q)
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int j = 0; j < RN; ++j)
                    c[i][j] = minus_product(c[i][j], mul(x[i][q], real_t(-SIGN)), y[j][q]);
    }

    // x[i][k] := at(index(i), k): 16 bytes at a time along k (ALONG 1) or along the index (0)
    template <int V, int NEXT, int ALONG, int R, class Index, class At, class Pack>
    static __device__ void operand(scalar_t (&x)[R][V], Index index, int m, At at, Pack pack)
    {
        if constexpr (V > 1 && ALONG == 1) {
            #pragma unroll
            for (int i = 0; i < R; ++i) {
                const Vector v = pack(inside(index(i), m), 0);
                #pragma unroll
                for (int q = 0; q < V; ++q) x[i][q] = v.x[q];
            }
        } else if constexpr (V > 1 && ALONG == 0 && NEXT == V) {
            #pragma unroll
            for (int i = 0; i < R; i += V)
                #pragma unroll
                for (int q = 0; q < V; ++q) {
                    const int first = index(i) < m ? index(i) : (m - 1) / V * V;
                    const Vector v = pack(first, q);
                    #pragma unroll
                    for (int e = 0; e < V; ++e) x[i + e][q] = v.x[e];
                }
        } else {
            #pragma unroll
            for (int i = 0; i < R; ++i)
                #pragma unroll
                for (int q = 0; q < V; ++q) x[i][q] = at(inside(index(i), m), q);
        }
    }
};

// -- whole products, in tiles of TM x TN

constexpr int TILE_ROWS = sizeof(scalar_t) == 16 ? 16 : 32, TILE_COLUMNS = TILE_ROWS;

// One tile by this warp; `half`: only its elements with i >= j + diagonal
template <int SIGN, int TM, int TN, class C, class A, class B>
__device__ void multiply_tile(const C& c, const A& a, const B& b, int m, int n, int k,
                              bool half = false, int diagonal = 0)
{
    Tile<TM, TN, A, B> tile;
    const auto wanted = [=](int i, int j) { return i >= j + diagonal; };
    if (half) {
        tile.clear();
        tile.each(m, n, [&](int i, int j, scalar_t& x) { if (wanted(i, j)) x = c(i, j); });
    } else {
        tile.load(c, m, n);
    }
    tile.template product<SIGN>(a, b, m, n, k);
    if (half) tile.each(m, n, [&](int i, int j, scalar_t& x) { if (wanted(i, j)) c(i, j) = x; });
    else tile.store(c, m, n);
}

// C += SIGN A B, C being m x n: this warp does every `step`th tile from number `first` on.
template <int SIGN = 1, int TM = TILE_ROWS, int TN = TILE_COLUMNS, class C, class A, class B>
__device__ void multiply(const C& c, const A& a, const B& b, int m, int n, int k, int first,
                         int step)
{
    const int across = (n + TN - 1) / TN, tiles = (m + TM - 1) / TM * across;
    for (int tile = first; tile < tiles; tile += step) {
        const int i = tile / across * TM, j = tile % across * TN;
        multiply_tile<SIGN, TM, TN>(part(c, i, j), part(a, i, 0), part(b, 0, j), m - i, n - j, k);
    }
}
template <int SIGN = 1, int TM = TILE_ROWS, int TN = TILE_COLUMNS, class C, class A, class B>
__device__ void multiply(const C& c, const A& a, const B& b, int m, int n, int k)
{
    multiply<SIGN, TM, TN>(c, a, b, m, n, k, warp(), WARPS);
}

// The same where i >= j, C being n x n
template <int SIGN = 1, int TM = TILE_ROWS, int TN = TILE_COLUMNS, class C, class A, class B>
__device__ void multiply_half(const C& c, const A& a, const B& b, int n, int k, int first,
                              int step)
{
    int tile = 0;
    for (int i = 0; i < n; i += TM)
        for (int j = 0; j < n && j < i + TM; j += TN)
            if (tile++ % step == first)
                multiply_tile<SIGN, TM, TN>(part(c, i, j), part(a, i, 0), part(b, 0, j), n - i,
                                            n - j, k, i < j + TN - 1, j - i);
}
template <int SIGN = 1, int TM = TILE_ROWS, int TN = TILE_COLUMNS, class C, class A, class B>
__device__ void multiply_half(const C& c, const A& a, const B& b, int n, int k)
{
    multiply_half<SIGN, TM, TN>(c, a, b, n, k, warp(), WARPS);
}
