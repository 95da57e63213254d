// small_columns.cuh: columns of order n <= N in the registers of lanes, C to each, and what they
// share: a triangle or LU's factors in shared memory, by columns, which all lanes of a team read at
// once, a pack of 16 bytes at a time.
#pragma once
#include "triangular_operands.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest order
constexpr int C = 1;        // columns to a lane
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
// A column in shared memory: an odd number of packs, so that lanes which write a row meet a bank as
// seldom as can be
constexpr int DOWN = N / VECTOR % 2 ? N : N + VECTOR;
constexpr int TRIANGLE = N * DOWN + VECTOR;          // teams begin in different banks
static_assert(N % VECTOR == 0 && N <= 96);

// A bit for each i < N, the same for all of a team
struct Words { unsigned word[(N + 31) / 32]; };
template <int WORDS> struct bits { using type = Words; };
template <> struct bits<1> { using type = unsigned; };
template <> struct bits<2> { using type = unsigned long long; };
using Bits = bits<(N + 31) / 32>::type;

template <class T> __device__ void add_bits(T& x, unsigned some, int from) { x |= T(some) << from; }
__device__ inline void add_bits(Words& x, unsigned some, int from) { x.word[from / 32] |= some; }
template <class T> __device__ bool has(T x, int i) { return x >> i & 1; }
__device__ inline bool has(const Words& x, int i) { return x.word[i / 32] >> i % 32 & 1; }

// f(element of X, its place in the strip, row, column) for n x m elements, lanes t of `lanes` at
// neighbours; in the strip they lie by columns, LD numbers to each
template <int LD, class T, class F>
__device__ void each_at_of_team(Strided<T> x, scalar_t* strip, int n, int m, int t, int lanes, F f)
{
    const bool across = by_rows(x);
    const int inner = across ? m : n, outer = across ? n : m;
    const size along = across ? x.cs : x.rs, next = across ? x.rs : x.cs;
    const int to_along = across ? LD : 1, to_next = across ? 1 : LD;
    #pragma unroll
    for (int e = 0; e < (N > lanes * C ? N : lanes * C); e += lanes) {
        T* p = x.p + (e + t) * along;
        scalar_t* to = strip + (e + t) * to_along;
        if (e + t < inner)
            #pragma unroll 8
            for (int o = 0; o < outer; ++o, p += next, to += to_next)
                f(*p, *to, across ? o : e + t, across ? e + t : o);
    }
}
// The same for f(element of X, its place in the strip)
template <int LD, class T, class F>
__device__ void each_of_team(Strided<T> x, scalar_t* strip, int n, int m, int t, int lanes, F f)
{
    each_at_of_team<LD>(x, strip, n, m, t, lanes,
                        [=](T& p, scalar_t& to, int, int) { f(p, to); });
}

// out := n x m elements of x, each lane its columns
__device__ inline void store_columns(Strided<scalar_t> out, const scalar_t (&x)[C][N], int n,
                                     int m, int t, int lanes)
{
    #pragma unroll
    for (int c = 0; c < C; ++c) {
        const int j = t + lanes * c;
        scalar_t* p = &out(0, j);
        #pragma unroll
        for (int i = 0; i < N; ++i, p += out.rs)
            if (i < n && j < m) *p = x[c][i];
    }
}
