// product_tiles.cuh: the tile of C of a warp, in registers, and how it takes slices of A and B from
// shared memory.
//
// A slice lies there as its operand does in memory, by rows or by columns, in lines of pitch(n)
// numbers. There is room for whole tiles: what lies past the edge of a matrix may hold anything
// but along k, where it is zero on both sides, and spoils only elements of C that are not kept.
//
//     VectorTile   single precision and complex, by the vector units: 4 x 8 lanes, each
//                  TM / 4 x TN / 8 elements, two operands of 16 bytes a load
//     TensorTile   double precision and complex, by the tensor cores in 16 x 8 tiles; single
//                  precision and complex if SPLIT, where elements that are not finite are summed
//                  again
//     HalfTile     half precision and bfloat16, likewise, summed in single precision
//
//     tile.step<ROWS, LD>(a, b, conj_a, conj_b)
//                                         C += A B over STEP of k from where a and b point; A's
//                                         slice lies by rows or by columns, in lines of LD
//     tile.step_folded(a, i, k, b, conj_b)
//                                         the same of rows i and columns k on of a folded slice
//     tile.end()                          after the last, where SPLIT
//     tile.runs(g, f(i, j, x))            f for what a lane has of rows g ROWS to (g + 1) ROWS:
//                                         RUN neighbours in a row, the first (i, j) of the tile
//
// Shared memory answers 128 bytes a clock, and what several lanes want is counted once (measured):
// 8 x 8 elements a lane read for 8 clocks of the 64 in which they are multiplied. The tensor cores
// of Hopper multiply 16 x 8 tiles of double precision twice as fast as 8 x 8 (measured).
#pragma once
#include "half.cuh"  // before the type is chosen
#include "block.cuh"
#include "operands.cuh"
#include "tensor.cuh"

using sum_t = sum_of<scalar_t>::type;

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BORDER = 0;   // rows and columns of a team beside its warps' tiles
#endif
constexpr int HIGH = BM + BORDER, WIDE = BN + BORDER;

constexpr int VECTOR_OF_16 = 16 / sizeof(scalar_t);  // numbers to 16 bytes

#ifndef SPLIT  // single precision on the tensor cores
#define SPLIT false
#endif

// Numbers to a line of n in shared memory: what is read together, along k or across, then lies in
// different banks.
__host__ __device__ constexpr int pitch(int n, bool along_k)
{
    constexpr int V = VECTOR_OF_16;
    constexpr bool words = SPLIT && V == 4;
    if (words && !along_k) return (n - 8 + 31) / 32 * 32 + 8;  // four lines, 8 numbers of each
    if (sizeof(real_t) < 8 && (words || !SPLIT)) return ((n + V - 1) / V | 1) * V;  // an odd number of vectors
    const int line = 128 / int(sizeof(scalar_t));
    const int past = sizeof(scalar_t) == 16 && !along_k ? 2 : 4;
    return (n - past + line - 1) / line * line + past;
}

// A square slice of which the lower triangle is there, the upper being its mirror image
struct Folded {
    const scalar_t* p;
    int down, along;  // strides
    bool conjugated, hermitian;

    __device__ scalar_t operator()(int i, int k) const
    {
        const bool lower = i >= k;
        const scalar_t x = p[(lower ? i : k) * down + (lower ? k : i) * along];
        return hermitian && i == k ? real_part(x) : turned(x, conjugated != (hermitian && !lower));
    }
};

// What a tile keeps does not depend on how A's slices lie, but that a lane's rows are neighbours if
// all of them lie by columns.
template <int TM, int TN, bool A_BY_COLUMNS, bool B_BY_ROWS> struct VectorTile {
    static constexpr int RM = TM / 4, RN = TN / 8, V = VECTOR_OF_16, STEP = V;
    // Neighbours among a lane's rows and columns
    static constexpr int VM = A_BY_COLUMNS && RM % V == 0 ? V : 1;
    static constexpr int VN = B_BY_ROWS && RN % V == 0 ? V : 1;
    static constexpr int RUN = VN, ROWS = 4 * VM, GROUPS = TM / ROWS;
    static constexpr int LDB = B_BY_ROWS ? pitch(WIDE, false) : pitch(BK, true);
    static_assert(TM % ROWS == 0 && TN % (8 * VN) == 0);

    scalar_t c[RM][RN];

    static __device__ int down() { return threadIdx.x % 32 / 8; }
    static __device__ int across() { return threadIdx.x % 8; }
    // From VM down() on, and from VN across() on
    static __device__ constexpr int row(int i) { return 4 * VM * (i / VM) + i % VM; }
    static __device__ constexpr int col(int j) { return 8 * VN * (j / VN) + j % VN; }

    template <bool A_BY_ROWS, int LDA>
    __device__ void step(const scalar_t* a, const scalar_t* b, bool conj_a, bool conj_b)
    {
        a += (A_BY_ROWS ? LDA : VM) * down();
        scalar_t x[RM][V];
        if (A_BY_ROWS) {
            #pragma unroll
            for (int i = 0; i < RM; ++i) read<V>(x[i], a + row(i) * LDA, conj_a);
        }
        multiply(x, b, conj_b, [&](int k) {
            if (!A_BY_ROWS) {
                #pragma unroll
                for (int i = 0; i < RM; i += VM)
                    across_k<VM>(x, i, k, a + k * LDA + row(i), conj_a);
            }
        });
    }

    __device__ void step_folded(const Folded& a, int r, int k, const scalar_t* b, bool conj_b)
    {
        scalar_t x[RM][V];
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int e = 0; e < V; ++e) x[i][e] = a(r + VM * down() + row(i), k + e);
        multiply(x, b, conj_b, [](int) {});
    }

    template <class F> __device__ void runs(int g, F f)
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; j += VN)
                if (i / VM == g)
                    f(VM * down() + i % VM, VN * across() + col(j),
                      reinterpret_cast<scalar_t (&)[VN]>(c[i][j]));
    }

private:
    // C += x B; `more(k)` before k of x is used
    template <class F>
    __device__ void multiply(scalar_t (&x)[RM][V], const scalar_t* b, bool conj_b, F more)
    {
        b += (B_BY_ROWS ? VN : LDB) * across();
        scalar_t y[RN][V];
        if (!B_BY_ROWS) {
            #pragma unroll
            for (int j = 0; j < RN; ++j) read<V>(y[j], b + col(j) * LDB, conj_b);
        }
        #pragma unroll
        for (int k = 0; k < V; ++k) {
            more(k);
            if (B_BY_ROWS) {
                #pragma unroll
                for (int j = 0; j < RN; j += VN)
                    across_k<VN>(y, j, k, b + k * LDB + col(j), conj_b);
            }
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int j = 0; j < RN; ++j) c[i][j] = plus_product(c[i][j], x[i][k], y[j][k]);
        }
    }

    template <int W>
    static __device__ void read(scalar_t (&x)[W], const scalar_t* p, bool conjugated)
    {
        struct alignas(W * sizeof(scalar_t)) Few { scalar_t x[W]; };
        const Few few = *reinterpret_cast<const Few*>(p);
        #pragma unroll
        for (int e = 0; e < W; ++e) x[e] = turned(few.x[e], conjugated);
    }
    // x[first ...][k] := W neighbours
    template <int W, int R>
    static __device__ void across_k(scalar_t (&x)[R][V], int first, int k, const scalar_t* p,
                                    bool conjugated)
    {
        scalar_t few[W];
        read<W>(few, p, conjugated);
        #pragma unroll
        for (int e = 0; e < W; ++e) x[first + e][k] = few[e];
    }
};

template <int TM, int TN, bool, bool B_BY_ROWS> struct TensorTile {
    static constexpr int RM = TM / 16, RN = TN / 8, STEP = 8, RUN = 2, ROWS = 16, GROUPS = RM;
    static constexpr int LDB = B_BY_ROWS ? pitch(WIDE, false) : pitch(BK, true);
    static_assert(TM % 16 == 0 && TN % 8 == 0);

    scalar_t c[RM][RN][4];

    template <bool A_BY_ROWS, int LDA>
    __device__ void step(const scalar_t* a, const scalar_t* b, bool conj_a, bool conj_b)
    {
        constexpr int ai = A_BY_ROWS ? LDA : 1, ak = A_BY_ROWS ? 1 : LDA;
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        a += g * ai + t * ak;
        scalar_t x[RM][4];
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                x[i][e] = raised(turned(a[(16 * i + e % 2 * 8) * ai + e / 2 * 4 * ak], conj_a));
        multiply(x, b, conj_b);
    }

    __device__ void step_folded(const Folded& a, int r, int k, const scalar_t* b, bool conj_b)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        scalar_t x[RM][4];
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                x[i][e] = raised(a(r + g + 16 * i + e % 2 * 8, k + t + e / 2 * 4));
        multiply(x, b, conj_b);
    }

    __device__ void end() { lower(c); }

    template <class F> __device__ void runs(int group, F f)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j)
                #pragma unroll
                for (int half = 0; half < 2; ++half)
                    if (i == group)
                        f(g + 8 * half, 8 * j + 2 * t,
                          reinterpret_cast<scalar_t (&)[2]>(c[i][j][2 * half]));
    }

private:
    __device__ void multiply(const scalar_t (&x)[RM][4], const scalar_t* b, bool conj_b)
    {
        constexpr int bk = B_BY_ROWS ? LDB : 1, bj = B_BY_ROWS ? 1 : LDB;
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        b += t * bk + g * bj;
        scalar_t y[RN][2];
        #pragma unroll
        for (int j = 0; j < RN; ++j)
            #pragma unroll
            for (int e = 0; e < 2; ++e)
                y[j][e] = raised(turned(b[4 * e * bk + 8 * j * bj], conj_b));
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) tensor_product(c[i][j], x[i], y[j]);
    }
};

template <int TM, int TN, bool, bool B_BY_ROWS> struct HalfTile {
    static constexpr int RM = TM / 16, RN = TN / 8, STEP = 16, RUN = 2, ROWS = 16, GROUPS = RM;
    static constexpr int LDB = B_BY_ROWS ? pitch(WIDE, false) : pitch(BK, true);
    static_assert(TM % 16 == 0 && TN % 16 == 0);

    float c[RM][RN][4];

    template <bool A_BY_ROWS, int LDA>
    __device__ void step(const scalar_t* a, const scalar_t* b, bool, bool)
    {
        // The row of a tile that this lane names: of four tiles, two down and two across
        const int r = threadIdx.x % 8, first = threadIdx.x / 8 % 2, second = threadIdx.x / 16 % 2;
        unsigned x[RM][4], y[RN][2];
        #pragma unroll
        for (int i = 0; i < RM; ++i) {
            if (A_BY_ROWS) load_tiles<false>(x[i], a + (16 * i + 8 * first + r) * LDA + 8 * second);
            else load_tiles<true>(x[i], a + (8 * second + r) * LDA + 16 * i + 8 * first);
        }
        #pragma unroll
        for (int j = 0; j < RN; j += 2) {
            unsigned four[4];
            if (B_BY_ROWS) load_tiles<true>(four, b + (8 * first + r) * LDB + 8 * j + 8 * second);
            else load_tiles<false>(four, b + (8 * j + 8 * second + r) * LDB + 8 * first);
            y[j][0] = four[0], y[j][1] = four[1], y[j + 1][0] = four[2], y[j + 1][1] = four[3];
        }
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) tensor_product(c[i][j], x[i], y[j], scalar_t{});
    }

    template <class F> __device__ void runs(int group, F f)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j)
                #pragma unroll
                for (int lower = 0; lower < 2; ++lower)
                    if (i == group)
                        f(g + 8 * lower, 8 * j + 2 * t,
                          reinterpret_cast<float (&)[2]>(c[i][j][2 * lower]));
    }
};

// The tile for the type
template <class T, int TM, int TN, bool A, bool B> struct Choice {
    using type = VectorTile<TM, TN, A, B>;
};
#if SPLIT
template <int TM, int TN, bool A, bool B> struct Choice<float, TM, TN, A, B> {
    using type = TensorTile<TM, TN, A, B>;
};
template <int TM, int TN, bool A, bool B> struct Choice<complex<float>, TM, TN, A, B> {
    using type = TensorTile<TM, TN, A, B>;
};
#endif
template <int TM, int TN, bool A, bool B> struct Choice<double, TM, TN, A, B> {
    using type = TensorTile<TM, TN, A, B>;
};
template <int TM, int TN, bool A, bool B> struct Choice<complex<double>, TM, TN, A, B> {
    using type = TensorTile<TM, TN, A, B>;
};
template <int TM, int TN, bool A, bool B> struct Choice<half, TM, TN, A, B> {
    using type = HalfTile<TM, TN, A, B>;
};
template <int TM, int TN, bool A, bool B> struct Choice<bfloat16, TM, TN, A, B> {
    using type = HalfTile<TM, TN, A, B>;
};
