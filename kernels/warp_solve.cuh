// warp_solve.cuh: solve with triangles of order n <= N for right-hand sides, by a warp.
//
// The factor lies by rows in shared memory, an odd number of scalars from one to the next, so that
// lanes read a row or a column of it from different banks, or by twos from one where n is even and
// no multiple of four. Of the right-hand sides lane l holds the rows l, l + 32, ... in registers. A
// step is a column of the triangle: one number of the solution goes to all lanes, which take its
// product with their rows' numbers off what they hold; no step waits for memory. A warp is a block:
// as many are on their way as their factors find room.
//
// Rows of such lengths that follow each other in memory lie there as they do here: they come as one
// line, 16 bytes at a time from the last multiple of 16 before it on, which is less work than a
// number at a time even with two reads of a bank. Other real factors come so, all of their numbers
// under way at once; a triangle in packs of 16 bytes, and complex numbers, which may be conjugated,
// by registers.
#pragma once
#include "async.cuh"
#include "block.cuh"
#include "reciprocals.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int N = 64;       // the largest order
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int ROWS = (N + 31) / 32;  // of a lane
static_assert(WARPS == 1);

constexpr bool REAL = sizeof(scalar_t) == sizeof(real_t);
// A pack that is loaded at once
constexpr int PACK = sizeof(scalar_t) < 16 ? 16 / sizeof(scalar_t) : 1;
template <int V> struct alignas(V * sizeof(scalar_t)) Pack { scalar_t x[V]; };

__device__ inline int lane() { return threadIdx.x; }
__device__ inline int row(int e) { return lane() + 32 * e; }

// Rows of an n x n factor in shared memory
struct Square {
    scalar_t* p;
    int ld;
};

// `to` := `from`, or its conjugate, n x n, V neighbours of a line at once; LOWER: nothing above the
// diagonal is wanted.
template <int V, bool LOWER>
__device__ void fetch(Square to, const Strided<const scalar_t>& from, int n, bool conjugated)
{
    constexpr int TOGETHER = 8;  // loads under way
    const bool across = from.cs == 1;
    const int few = n / V, down = 32 / few, over = (32 - down * few) * V;
    const size step = across ? from.cs : from.rs, next = across ? from.rs : from.cs;
    const int to_step = across ? 1 : to.ld, to_next = across ? to.ld : 1;
    int o = lane() / few, f = (lane() - o * few) * V;
    const scalar_t* p = from.p + o * next + f * step;
    while (o < n) {
        Pack<V> got[TOGETHER];
        int place[TOGETHER];
        #pragma unroll
        for (int u = 0; u < TOGETHER; ++u) {
            const bool wanted = o < n && (!LOWER || (across ? f <= o : f + V > o));
            place[u] = wanted ? f * to_step + o * to_next : -1;
            if (wanted) got[u] = *reinterpret_cast<const Pack<V>*>(p);
            o += down, f += over, p += down * next + over * step;
            if (f >= n) f -= n, ++o, p += next - n * step;
        }
        #pragma unroll
        for (int u = 0; u < TOGETHER; ++u)
            if (place[u] >= 0)
                #pragma unroll
                for (int v = 0; v < V; ++v)
                    to.p[place[u] + v * to_step] = conjugated ? conj(got[u].x[v]) : got[u].x[v];
    }
}
// The same number by number, without registers in between; LOWER: zeros above the diagonal
template <bool LOWER>
__device__ void fetch_numbers(Square to, const Strided<const scalar_t>& from, int n)
{
    constexpr int bytes = sizeof(scalar_t);
    const bool across = from.cs == 1;
    const int down = 32 / n, over = 32 - down * n;
    const size step = across ? from.cs : from.rs, next = across ? from.rs : from.cs;
    const int to_step = across ? 1 : to.ld, to_next = across ? to.ld : 1;
    int o = lane() / n, f = lane() - o * n;
    const scalar_t* p = from.p + o * next + f * step;
    scalar_t* q = to.p + o * to_next + f * to_step;
    #pragma unroll 4
    while (o < n) {
        copy_async<bytes, bytes == 16>(q, p, !LOWER || (across ? f <= o : f >= o) ? bytes : 0);
        o += down, f += over;
        p += down * next + over * step, q += down * to_next + over * to_step;
        if (f >= n) f -= n, ++o, p += next - n * step, q += to_next - n * to_step;
    }
}
// The same of rows that follow each other, at `from`, which `to` begins as far past a multiple of 16
// bytes as
template <bool LOWER> __device__ void fetch_line(Square to, const scalar_t* from, int n)
{
    constexpr int bytes = sizeof(scalar_t);
    const int before = int(size(from) % 16) / bytes, end = n * n + before;
    const int down = 32 * PACK / n, over = 32 * PACK - down * n;
    int o = 0, f = lane() * PACK - before;
    while (f >= n) f -= n, ++o;
    for (int e = lane() * PACK; e < end; e += 32 * PACK) {
        if (!LOWER || f <= o || f + PACK > n)
            copy_async<16, true>(to.p - before + e, from - before + e,
                                 min(PACK, end - e) * bytes);
        o += down, f += over;
        if (f >= n) f -= n, ++o;
    }
}
// The factor in shared memory (as `square_bytes` says)
template <bool LOWER>
__device__ Square fetched(const Strided<const scalar_t>& from, int n, bool conjugated)
{
    const bool line = PACK > 1 && n % 4 && from.cs == 1 && from.rs == n && !conjugated;
    Square to{reinterpret_cast<scalar_t*>(dynamic_shared), line ? n : n | 1};
    const size next = from.cs == 1 ? from.rs : from.cs;
    const bool packs = (from.cs == 1 || from.rs == 1) && n % PACK == 0
                       && (size(from.p) | next * size(sizeof(scalar_t))) % 16 == 0;
    if (line) {
        to.p += size(from.p) % 16 / sizeof(scalar_t);
        fetch_line<LOWER>(to, from.p, n);
    } else if (packs && (LOWER || !REAL)) {
        fetch<PACK, LOWER>(to, from, n, conjugated);
    } else if (!REAL) {
        fetch<1, LOWER>(to, from, n, conjugated);
    } else {
        fetch_numbers<LOWER>(to, from, n);
    }
    end_group();
    await_groups<0>();
    __syncwarp();
    return to;
}

// The reciprocals of the diagonal
struct Diagonal : Reciprocals<ROWS> {
    __device__ Diagonal(const Square& a, int n)
        : Reciprocals([&](int e) { return row(e) < n ? a.p[row(e) * (a.ld + 1)] : scalar_t{1}; })
    {
    }
};

// x := op(T)^-1 x for R right-hand sides, T a triangle of `a` with or without UNIT diagonal; op(T)
// is LOWER or not, and T's ADJOINT or T.
template <bool LOWER, bool UNIT, bool ADJOINT, int R>
__device__ void substitute(const Square& a, const Diagonal& d, int n, scalar_t (&x)[R][ROWS])
{
    const scalar_t* of[ROWS];
    #pragma unroll
    for (int e = 0; e < ROWS; ++e)  // past the end the last row, for nothing
        of[e] = a.p + (row(e) < n ? row(e) : n - 1) * (ADJOINT ? 1 : a.ld);
    #pragma unroll
    for (int turn = 0; turn < ROWS; ++turn) {
        const int q = LOWER ? turn : ROWS - 1 - turn, steps = n - 32 * q < 32 ? n - 32 * q : 32;
        #pragma unroll 4
        for (int s = 0; s < steps; ++s) {
            const int p = LOWER ? s : steps - 1 - s, k = 32 * q + p;
            scalar_t l[ROWS];
            #pragma unroll
            for (int e = LOWER ? q : 0; e <= (LOWER ? ROWS - 1 : q); ++e)
                l[e] = ADJOINT ? conj(of[e][k * a.ld]) : of[e][k];
            #pragma unroll
            for (int r = 0; r < R; ++r) {
                const scalar_t y = of_lane(UNIT ? x[r][q] : d.under(x[r][q], q), p);
                #pragma unroll
                for (int e = LOWER ? q : 0; e <= (LOWER ? ROWS - 1 : q); ++e)
                    if (e != q || (LOWER ? lane() > p : lane() < p))
                        x[r][e] = minus_product(x[r][e], l[e], y);
            }
        }
        if (!UNIT)
            #pragma unroll
            for (int r = 0; r < R; ++r) x[r][q] = d.under(x[r][q], q);
    }
}
