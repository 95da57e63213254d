// column_strips.cuh: R columns of N rows of X in the registers of a warp, a strip.
//
// In double precision, and where single precision is SPLIT, a strip lies as the tensor cores leave a
// product: lane (g, t) = (lane / 4, lane % 4) has rows 2 t, 2 t + 1 of every 8 and columns g + 8 h,
// so that X^T is both the result of one product and, k in another order, the left operand of the
// next, and the 8 x 8 tiles that it is multiplied by are read two numbers of a row at a time. Else
// lanes (u, v) lie 4 x 8, or 8 x 4 where R is that few; a lane has every fourth or eighth row and
// packs of 16 bytes in them, and 8 rows that are an operand pass through shared memory.
#pragma once
#include "triangular_operands.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int N = 64;       // rows of a strip
constexpr int R = 16;       // its columns
constexpr int GROUP = 4;    // tiles that are read together
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
#ifndef SPLIT               // single precision on the tensor cores, in parts (tensor.cuh)
#define SPLIT false
#endif
constexpr bool TENSOR = SPLIT || sizeof(real_t) == 8;
constexpr int NT = N / 8;
constexpr int FEW = VECTOR < 2 ? VECTOR : 2;       // numbers of a row that a lane reads at once
struct alignas(FEW * sizeof(scalar_t)) Few { scalar_t x[FEW]; };
constexpr int ROW = 8 + VECTOR;                    // of X^T in shared memory: no bank twice
constexpr int BLOCK = TENSOR ? R * ROW : R * 8;    // numbers of 8 rows of a strip there
static_assert(R <= 32 && R % (TENSOR ? 16 : 4 * VECTOR) == 0);

__device__ inline int lane() { return threadIdx.x % 32; }

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
    struct Rows { Real v[R / 16][PARTS][4]; };  // 8 of them
    struct Operand { Real a[R / 16][PARTS][4]; };

    Rows x[NT];

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
                    for (int e = 0; e < 4; ++e) x[I].v[h][p][e] = 0;
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
        for (int p = 0; p < PARTS; ++p) x[I].v[h / 2][p][h % 2 * 2 + e] = part_of(v, p);
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
    // To shared memory
    static __device__ void give(const Rows& rows, scalar_t* block)
    {
        #pragma unroll
        for (int h = 0; h < R / 8; ++h)
            #pragma unroll
            for (int k = 0; k < 2; k += VECTOR) {
                Vector v;
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    v.x[e] = number(rows.v, h, h % 2 * 2 + k + e);
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
    // SIGN times rows of a strip as they are
    template <int SIGN> static __device__ void operand_of(Operand& o, const Rows& rows)
    {
        #pragma unroll
        for (int h = 0; h < R / 16; ++h)
            #pragma unroll
            for (int p = 0; p < PARTS; ++p)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const Real v = rows.v[h][p][e % 2 * 2 + e / 2];
                    o.a[h][p][e] = SIGN < 0 ? -v : v;
                }
    }
    // A lane's numbers of 8 rows, each := f(k, c, it)
    template <class F> __device__ void each(int I, F f)
    {
        #pragma unroll
        for (int h = 0; h < R / 8; ++h)
            #pragma unroll
            for (int e = 0; e < 2; ++e)
                set(I, h, e, f(2 * t() + e, 8 * h + g(), number(x[I].v, h, h % 2 * 2 + e)));
    }
    struct Tile { Real l[PARTS][2]; };  // what a lane needs of a tile of L

    // from(r, c): FEW numbers of row r of the tile from column c on
    template <class From> static __device__ void read(Tile& tile, From from)
    {
        #pragma unroll
        for (int k = 0; k < 2; k += FEW) {
            const auto v = from(g(), 2 * t() + k);
            #pragma unroll
            for (int e = 0; e < FEW; ++e)
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
    // to := from + tile o
    static __device__ void add(Rows& to, const Rows& from, const Operand& o, const Tile& tile)
    {
        #pragma unroll
        for (int h = 0; h < R / 16; ++h) {
            #pragma unroll
            for (int p = 0; p < PARTS; ++p)
                #pragma unroll
                for (int e = 0; e < 4; ++e) to.v[h][p][e] = from.v[h][p][e];
            if constexpr (PARTS == 2)
                parts_product(to.v[h][0], to.v[h][1], o.a[h][0], o.a[h][1], tile.l[0], tile.l[1]);
            else tensor_product(to.v[h][0], o.a[h][0], tile.l[0]);
        }
    }
};

struct VectorStrip {
    static constexpr int ACROSS = R % (8 * VECTOR) ? 4 : 8, DOWN = 32 / ACROSS;
    static constexpr int RM = 8 / DOWN, RN = R / ACROSS;

    struct Rows { scalar_t v[RM][RN]; };
    struct Operand { scalar_t b[8][RN]; };

    Rows x[NT];

    static __device__ int row(int i) { return DOWN * i + lane() / ACROSS; }
    static __device__ int column(int j)
    {
        return VECTOR * (lane() % ACROSS + ACROSS * (j / VECTOR)) + j % VECTOR;
    }

    __device__ void clear()
    {
        #pragma unroll
        for (int I = 0; I < NT; ++I)
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int j = 0; j < RN; ++j) x[I].v[i][j] = scalar_t{};
    }
    static __device__ void give(const Rows& rows, scalar_t* block)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; j += VECTOR) {
                Vector v;
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e) v.x[e] = rows.v[i][j + e];
                *reinterpret_cast<Vector*>(block + in_block(row(i), column(j))) = v;
            }
    }
    static __device__ void take_row(scalar_t (&to)[RN], const scalar_t* block, int k)
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
        for (int i = 0; i < RM; ++i) take_row(x[I].v[i], block, row(i));
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
            take_row(o.b[k], block, k);
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

    struct Tile { scalar_t l[RM][8]; };

    template <class From> static __device__ void read(Tile& tile, From from)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int k = 0; k < 8; k += VECTOR) {
                const Vector v = from(row(i), k);
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e) tile.l[i][k + e] = v.x[e];
            }
    }
    static __device__ void add(Rows& to, const Rows& from, const Operand& o, const Tile& tile)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) {
                to.v[i][j] = from.v[i][j];
                #pragma unroll
                for (int k = 0; k < 8; ++k)
                    to.v[i][j] = minus_product(to.v[i][j], tile.l[i][k], o.b[k][j]);
            }
    }
};

template <bool> struct strip_of { using type = TensorStrip<real_t>; };
template <> struct strip_of<false> { using type = VectorStrip; };
using Strip = strip_of<TENSOR>::type;
