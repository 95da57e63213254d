// triangular.cuh: solves and products with a lower triangular matrix from the left.
//
// All cases of trsm and trmm are this one through strides: a transposed A swaps them, an upper one
// is the lower one of reversed rows and columns (negative strides), and X op(A) = B is
// op(A)^T X^T = B^T. What strides cannot do is the conjugate: conj(L) X = B is L conj(X) = conj(B).
//
// A warp holds R columns of N rows of X in registers, a strip, and waits for no other warp: L is in
// shared memory, in tiles of 8 x 8, and so is, on its way, one block of 8 rows of the strip. In
// double precision a strip lies as the tensor cores leave a product: lane (g, t) = (lane / 4,
// lane % 4) has rows 2 t, 2 t + 1 of every 8 and columns g + 8 h, so that X^T is both the result of
// one product and, k in another order, the left operand of the next, and L is read 16 bytes at a
// time. In single precision lane (u, v) = (lane / 8, lane % 8) has rows u, u + 4 of every 8 and
// R / 8 columns.
#pragma once
#include "triangular_operands.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int N = 64;       // rows of a strip
constexpr int R = 16;       // its columns
constexpr int GROUP = 4;    // tiles of L read together
constexpr int DEEP = 2;     // tiles across a slice of L that is on its way
constexpr int STAGES = 2;   // slices in shared memory
constexpr int RESIDENT = 0; // 1: no matrix has more than N rows
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
#ifndef SPLIT               // single precision on the tensor cores, in parts (tensor.cuh)
#define SPLIT false
#endif
constexpr bool TENSOR = SPLIT || sizeof(real_t) == 8;
constexpr int NT = N / 8, TILE = 64;
constexpr int ROW = 8 + VECTOR;                    // of X^T in shared memory: no bank twice
constexpr int BLOCK = TENSOR ? R * ROW : R * 8;    // numbers of 8 rows of a strip there
constexpr int SLICE = DEEP * (NT * TILE + WARPS * BLOCK);
static_assert(N % (8 * DEEP) == 0 && R <= 32 && R % (TENSOR ? 16 : 8 * VECTOR) == 0);

__device__ inline int lane() { return threadIdx.x % 32; }

// Where a tile has its element (r, c): a row's 16 bytes change places from row to row, so that
// columns, too, meet few banks twice
__device__ inline int in_tile(int r, int c)
{
    constexpr int packs = 8 / VECTOR, bend = 8 / packs;
    return 8 * r + ((c / VECTOR) ^ (r / bend % packs)) * VECTOR + c % VECTOR;
}
__device__ inline Vector in_tile_from(const scalar_t* tile, int r, int c)
{
    return *reinterpret_cast<const Vector*>(tile + in_tile(r, c));
}

// L, n x n, with ones on its diagonal if `unit`, as a warp copies it: of a tile a lane has two
// elements, 4 rows or columns apart, its neighbours those that lie next to them.
struct Lower {
    Strided<const scalar_t> a;
    int n;
    bool unit, across;
    int r, c;

    __device__ Lower(Strided<const scalar_t> a, int n, bool unit) : a(a), n(n), unit(unit)
    {
        across = by_rows(a);
        r = across ? lane() / 8 : lane() % 8;
        c = across ? lane() % 8 : lane() / 8;
    }
    // to := the tile from (i, j) on, without waiting, but not what is above the diagonal of L or
    // past its end; ZERO: zeros there, and the ones of a unit diagonal
    template <bool ZERO> __device__ void fetch(scalar_t* to, int i, int j) const
    {
        const scalar_t* from = &a(i + r, j + c);
        #pragma unroll
        for (int q = 0; q < 2; ++q, from += 4 * (across ? a.rs : a.cs)) {
            const int down = across ? r + 4 * q : r, right = across ? c : c + 4 * q;
            scalar_t* const at = to + in_tile(down, right);
            const bool there = i + down < n && j + right <= i + down - unit;
            if (ZERO && unit && i + down == j + right) *at = scalar_t{1};
            else if (there) copy_async<sizeof(scalar_t)>(at, from, sizeof(scalar_t));
            else if (ZERO) *at = scalar_t{};
        }
    }
};

// The tiles (I, J), J <= I, of m rows and columns of L from (first, first) on, row after row,
// number I (I + 1) / 2 + J
__device__ inline void fetch_triangle(scalar_t* tiles, const Lower& L, int first, int m)
{
    int I = 0, J = warp();
    for (int number = warp();; number += WARPS, J += WARPS) {
        while (J > I) J -= ++I;
        if (8 * I >= m) break;
        L.fetch<false>(tiles + number * TILE, first + 8 * I, first + 8 * J);
    }
}

// DEEP tiles across and N rows down of L from (first, k) on: tile (I, d) is number d NT + I.
template <bool ZERO>
__device__ void fetch_panel(scalar_t* tiles, const Lower& L, int first, int k)
{
    #pragma unroll
    for (int number = 0; number < DEEP * NT; number += WARPS) {
        const int mine = number + warp();
        if (mine < DEEP * NT)
            L.fetch<ZERO>(tiles + mine * TILE, first + mine % NT * 8, k + mine / NT * 8);
    }
}

// Where 8 rows of a strip have element (k, c) in shared memory
__device__ inline int in_block(int k, int c) { return TENSOR ? c * ROW + k : k * R + c; }

// R columns of X (or B) in memory. Of every 8 rows a lane moves R / 4 numbers, in one or several
// rows or in columns of 8, as they lie next to each other.
template <class T> struct Columns {
    Strided<T> x;
    int m, n, k, c, down, right;
    bool across;

    __device__ Columns(Strided<T> x, int m, int n) : x(x), m(m), n(n)
    {
        across = by_rows(x);
        k = across ? lane() / R : lane() % 8;
        c = across ? lane() % R : lane() / 8;
        down = across ? 32 / R : 0;
        right = across ? 0 : 4;
    }
    // The lane's first number of the rows from `first` on
    __device__ T* from(int first) const { return x.p + (first + k) * x.rs + c * x.cs; }
    // f(q, k, c, element, true if it is there) for the lane's numbers of the 8 rows from `first`
    // on, where p is; p goes to the next 8
    template <class F> __device__ void each(T*& p, int first, F f) const
    {
        const size step = down * x.rs + right * x.cs;
        T* at = p;
        #pragma unroll
        for (int q = 0; q < R / 4; ++q, at += step) {
            const int i = k + q * down, j = c + q * right;
            f(q, i, j, at, first + i < m && j < n);
        }
        p += 8 * x.rs;
    }
};

// 8 rows of X from `first` on, where p is, to shared memory, without waiting; p goes to the next
// 8. What is not there stays what it is; ZERO: zeros.
template <bool ZERO>
__device__ void fetch_block(scalar_t* block, const Columns<const scalar_t>& x, const scalar_t*& p,
                            int first)
{
    x.each(p, first, [=](int, int k, int c, const scalar_t* from, bool there) {
        if (there) copy_async<sizeof(scalar_t)>(block + in_block(k, c), from, sizeof(scalar_t));
        else if (ZERO) block[in_block(k, c)] = scalar_t{};
    });
}

// The parts of real numbers that the tensor cores know
template <class R> __device__ R part_of(R x, int) { return x; }
template <class R> __device__ R part_of(complex<R> x, int p) { return p ? x.im : x.re; }
constexpr int PARTS = sizeof(scalar_t) / sizeof(real_t);
template <class T> struct of_parts {
    static __device__ T made(const real_t* x) { return x[0]; }
};
template <class T> struct of_parts<complex<T>> {
    static __device__ complex<T> made(const real_t* x) { return {x[0], x[1]}; }
};

// SIGN times 8 rows of X as the lanes need them, and a strip to which products are added
template <class Real> struct TensorStrip {
    Real x[NT][R / 16][PARTS][4];

    struct Operand { Real a[R / 16][PARTS][4]; };

    static __device__ int g() { return lane() / 4; }
    static __device__ int t() { return lane() % 4; }

    __device__ void clear()
    {
        #pragma unroll
        for (int I = 0; I < NT; ++I)
            #pragma unroll
            for (int h = 0; h < R / 16; ++h)
                #pragma unroll
                for (int p = 0; p < PARTS; ++p)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) x[I][h][p][e] = 0;
    }
    // f(h, e, element, true if it is there) for a lane's numbers of the 8 rows of X from `first` on
    template <class T, class F> static __device__ void each(const Columns<T>& X, int first, F f)
    {
        T* const p = X.x.p + (first + 2 * t()) * X.x.rs + g() * X.x.cs;
        #pragma unroll
        for (int h = 0; h < R / 8; ++h)
            #pragma unroll
            for (int e = 0; e < 2; ++e)
                f(h, e, p + e * X.x.rs + 8 * h * X.x.cs,
                  first + 2 * t() + e < X.m && 8 * h + g() < X.n);
    }
    __device__ void set(int I, int h, int e, scalar_t v)
    {
        #pragma unroll
        for (int p = 0; p < PARTS; ++p) x[I][h / 2][p][h % 2 * 2 + e] = part_of(v, p);
    }
    // The rows of B from `first` on, times alpha
    __device__ void load(const Columns<const scalar_t>& B, int first, scalar_t alpha,
                         bool conjugated, scalar_t*)
    {
        #pragma unroll
        for (int I = 0; I < NT; ++I)
            each(B, first + 8 * I, [&](int h, int e, const scalar_t* p, bool there) {
                const scalar_t v = scaled(alpha, there ? *p : scalar_t{});
                set(I, h, e, conjugated ? conj(v) : v);
            });
    }
    static __device__ scalar_t number(const Real (&x)[R / 16][PARTS][4], int h, int i)
    {
        Real parts[2] = {};
        #pragma unroll
        for (int p = 0; p < PARTS; ++p) parts[p] = x[h / 2][p][i];
        return of_parts<scalar_t>::made(parts);
    }
    // Rows 8 I and the next to shared memory
    __device__ void give(int I, scalar_t* block) const
    {
        #pragma unroll
        for (int h = 0; h < R / 8; ++h)
            #pragma unroll
            for (int k = 0; k < 2; k += VECTOR) {
                Vector v;
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    v.x[e] = number(x[I], h, h % 2 * 2 + k + e);
                *reinterpret_cast<Vector*>(block + in_block(2 * t() + k, 8 * h + g())) = v;
            }
    }
    // f(h, p, e, value) for a lane's numbers of a block
    template <class F> static __device__ void take(const scalar_t* block, F f)
    {
        #pragma unroll
        for (int h = 0; h < R / 8; ++h)
            #pragma unroll
            for (int k = 0; k < 2; k += VECTOR) {
                const Vector v = *reinterpret_cast<const Vector*>(
                    block + in_block(2 * t() + k, 8 * h + g()));
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    #pragma unroll
                    for (int p = 0; p < PARTS; ++p) f(h, p, k + e, part_of(v.x[e], p));
            }
    }
    template <int SIGN>
    static __device__ void operand(Operand& o, const scalar_t* block, bool conjugated)
    {
        take(block, [&](int h, int p, int e, real_t v) {
            o.a[h / 2][p][h % 2 + 2 * e] = (SIGN < 0) != (p && conjugated) ? -v : v;
        });
    }
    struct Tile { Real l[PARTS][2]; };  // what a lane needs of a tile of L

    static __device__ void read(Tile& tile, const scalar_t* from)
    {
        #pragma unroll
        for (int k = 0; k < 2; k += VECTOR) {
            const Vector v = in_tile_from(from, g(), 2 * t() + k);
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e)
                #pragma unroll
                for (int p = 0; p < PARTS; ++p) tile.l[p][k + e] = part_of(v.x[e], p);
        }
    }
    // The rows of X that an operand, -1 times them, was made of, where a warp fills sectors with
    // them; false where it does not
    static __device__ bool store(const Operand& o, const Columns<scalar_t>& X, int first,
                                 bool conjugated)
    {
        if (!X.across) return false;
        each(X, first, [&](int h, int e, scalar_t* to, bool there) {
            const scalar_t v = mul(number(o.a, h, h % 2 + 2 * e), Real(-1));
            if (there) *to = conjugated ? conj(v) : v;
        });
        return true;
    }
    // Rows 8 I and the next := rows 8 from and the next + tile o
    __device__ void add(int I, int from, const Operand& o, const Tile& tile)
    {
        #pragma unroll
        for (int h = 0; h < R / 16; ++h) {
            #pragma unroll
            for (int p = 0; p < PARTS; ++p)
                #pragma unroll
                for (int e = 0; e < 4; ++e) x[I][h][p][e] = x[from][h][p][e];
            tensor_product(x[I][h][0], o.a[h][0], tile.l[0]);
            if constexpr (PARTS == 2) {
                Real turned[4];
                #pragma unroll
                for (int e = 0; e < 4; ++e) turned[e] = -o.a[h][1][e];
                tensor_product(x[I][h][1], o.a[h][0], tile.l[1]);
                tensor_product(x[I][h][0], turned, tile.l[1]);
                tensor_product(x[I][h][1], o.a[h][1], tile.l[0]);
            }
        }
    }
};

struct VectorStrip {
    static constexpr int RN = R / 8;
    scalar_t x[2 * NT][RN];

    struct Operand { scalar_t b[8][RN]; };

    static __device__ int u() { return lane() / 8; }
    static __device__ int column(int j)
    {
        return VECTOR * (lane() % 8) + 8 * VECTOR * (j / VECTOR) + j % VECTOR;
    }

    __device__ void clear()
    {
        #pragma unroll
        for (int i = 0; i < 2 * NT; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) x[i][j] = scalar_t{};
    }
    __device__ void give(int I, scalar_t* block) const
    {
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            #pragma unroll
            for (int j = 0; j < RN; j += VECTOR) {
                Vector v;
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e) v.x[e] = x[2 * I + i][j + e];
                *reinterpret_cast<Vector*>(block + in_block(4 * i + u(), column(j))) = v;
            }
    }
    static __device__ void row(scalar_t (&to)[RN], const scalar_t* block, int k)
    {
        #pragma unroll
        for (int j = 0; j < RN; j += VECTOR) {
            const Vector v = *reinterpret_cast<const Vector*>(block + in_block(k, column(j)));
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e) to[j + e] = v.x[e];
        }
    }
    __device__ void take(int I, const scalar_t* block)
    {
        #pragma unroll
        for (int i = 0; i < 2; ++i) row(x[2 * I + i], block, 4 * i + u());
    }
    __device__ void load(const Columns<const scalar_t>& B, int first, scalar_t alpha,
                         bool conjugated, scalar_t* block)
    {
        scalar_t raw[NT][R / 4];
        const scalar_t* p = B.from(first);
        #pragma unroll
        for (int I = 0; I < NT; ++I)
            B.each(p, first + 8 * I, [&](int q, int, int, const scalar_t* at, bool there) {
                raw[I][q] = there ? *at : scalar_t{};
            });
        #pragma unroll
        for (int I = 0; I < NT; ++I) {
            B.each(p, first + 8 * I, [&](int q, int k, int c, const scalar_t*, bool) {
                const scalar_t v = scaled(alpha, raw[I][q]);
                block[in_block(k, c)] = conjugated ? conj(v) : v;
            });
            __syncwarp();
            take(I, block);
            __syncwarp();
        }
    }
    template <int SIGN>
    static __device__ void operand(Operand& o, const scalar_t* block, bool conjugated)
    {
        #pragma unroll
        for (int k = 0; k < 8; ++k) {
            row(o.b[k], block, k);
            #pragma unroll
            for (int j = 0; j < RN; ++j) {
                if (conjugated) o.b[k][j] = conj(o.b[k][j]);
                o.b[k][j] = mul(o.b[k][j], real_t(-SIGN));
            }
        }
    }
    static __device__ bool store(const Operand&, const Columns<scalar_t>&, int, bool)
    {
        return false;
    }

    struct Tile { scalar_t l[2][8]; };

    static __device__ void read(Tile& tile, const scalar_t* from)
    {
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            #pragma unroll
            for (int k = 0; k < 8; k += VECTOR) {
                const Vector v = in_tile_from(from, 4 * i + u(), k);
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e) tile.l[i][k + e] = v.x[e];
            }
    }
    __device__ void add(int I, int from, const Operand& o, const Tile& tile)
    {
        #pragma unroll
        for (int i = 0; i < 2; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) {
                x[2 * I + i][j] = x[2 * from + i][j];
                #pragma unroll
                for (int k = 0; k < 8; ++k)
                    x[2 * I + i][j] = minus_product(x[2 * I + i][j], tile.l[i][k], o.b[k][j]);
            }
    }
};

template <bool> struct strip_of { using type = TensorStrip<real_t>; };
template <> struct strip_of<false> { using type = VectorStrip; };
using Strip = strip_of<TENSOR>::type;

// Tile row I - UP of the strip := row I + its tile times o, for I from UP to `last`, and any number
// of rows after it. What a group of tiles wants of shared memory is on its way together, so all of
// at(I) must exist. EXACT: and no others, those from `begin` on.
template <int UP, bool EXACT, class At>
__device__ void add_tiles(Strip& strip, const Strip::Operand& o, int begin, int last, At at)
{
    #pragma unroll
    for (int first = UP; first < NT; first += GROUP) {
        if (first > last) break;
        Strip::Tile tile[GROUP];
        #pragma unroll
        for (int q = 0; q < GROUP && first + q < NT; ++q) Strip::read(tile[q], at(first + q));
        #pragma unroll
        for (int q = 0; q < GROUP && first + q < NT; ++q)
            if (!EXACT || (begin <= first + q && first + q <= last))
                strip.add(first + q - UP, first + q, o, tile[q]);
    }
}

// strip += SIGN L(m rows from `first` on, columns `begin` to `end`) X(rows `begin` to `end`), by
// all warps of the block, each with columns of its own if it has any. Slices of L and X pass
// through `ring`, which nobody must need any more. DIAGONAL: columns may be on the diagonal of L,
// or right of it.
template <int SIGN, bool DIAGONAL>
__device__ void add_product(Strip& strip, const Lower& L, int first, int m, int begin, int end,
                            const Columns<const scalar_t>& X, bool conjugated, scalar_t* ring)
{
    constexpr int width = 8 * DEEP;
    const int slices = (end - begin + width - 1) / width;
    const scalar_t* p = X.from(begin);
    const auto fetch = [&](int s) {
        if (s < slices) {
            const int k = begin + s * width;
            scalar_t* const at = ring + s % STAGES * SLICE;
            fetch_panel<DIAGONAL>(at, L, first, k);
            if (X.n > 0)
                #pragma unroll
                for (int d = 0; d < DEEP; ++d)
                    fetch_block<DIAGONAL>(at + DEEP * NT * TILE + (warp() * DEEP + d) * BLOCK, X,
                                          p, k + 8 * d);
        }
        end_group();
    };
    #pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) fetch(s);
    #pragma unroll 1
    for (int s = 0; s < slices; ++s) {
        await_groups<STAGES - 2>();
        __syncthreads();  // slice s is there, and nobody reads the one before any more
        fetch(s + STAGES - 1);
        if (X.n <= 0) continue;
        const scalar_t* const at = ring + s % STAGES * SLICE;
        #pragma unroll 1
        for (int d = 0; d < DEEP; ++d) {
            Strip::Operand o;
            Strip::operand<SIGN>(o, at + DEEP * NT * TILE + (warp() * DEEP + d) * BLOCK,
                                 conjugated);
            const int K = DIAGONAL ? (begin - first) / 8 + s * DEEP + d : 0;
            add_tiles<0, DIAGONAL>(strip, o, K, (m - 1) / 8, [=](int I) {
                return at + (d * NT + I) * TILE;
            });
        }
    }
}
