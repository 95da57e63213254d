// rows.cuh: rows of an m x n matrix that lies by rows, a team of TEAM threads to a row.
//
// A thread holds PACKS times 16 bytes of its row in registers: packs of neighbours, or SINGLY, where n
// is no multiple of them, numbers that those of neighbouring threads are beside. That is
// the row, if RESIDENT; else rows longer than the SPAN that a team holds are read again whenever
// they are gone through, from the cache. What is summed by whom follows from n alone. Addresses are
// multiples of 16 bytes.
#pragma once
#include "block.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int SINGLY = 0;
#endif
constexpr int V = 16 / sizeof(scalar_t), SPAN = TEAM * PACKS * V, TEAMS = THREADS / TEAM;
static_assert((TEAM & (TEAM - 1)) == 0 && TEAM <= THREADS && sizeof(scalar_t) <= 8);

struct alignas(16) Pack {
    scalar_t x[V];
};

#define LEAST scalar_t(__int_as_float(0xff800000))  // -inf

__device__ inline scalar_t number(size bits) { return scalar_t(__longlong_as_double(bits)); }

// The threads of a row. All teams of a block call `all` equally often.
struct Team {
    int turn = 0;

    __device__ static int lane() { return thread() % TEAM; }
    __device__ static size row() { return size(blockIdx.x) * TEAMS + thread() / TEAM; }

    // f of what all threads have, by one tree
    template <class F> __device__ scalar_t all(scalar_t x, F f)
    {
        #pragma unroll
        for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2) x = f(x, across(x, d));
        if (TEAM <= 32) return x;
        constexpr int WIDE = TEAM < 32 ? 1 : TEAM / 32;
        __shared__ scalar_t parts[2][WARPS];  // by turns: nobody is two calls ahead
        turn ^= 1;
        parts[turn][warp()] = x;
        __syncthreads();
        const scalar_t* const mine = parts[turn] + warp() / WIDE * WIDE;
        x = mine[0];
        #pragma unroll
        for (int w = 1; w < WIDE; ++w) x = f(x, mine[w]);
        return x;
    }
    __device__ scalar_t sum(scalar_t x)
    {
        return all(x, [](scalar_t a, scalar_t b) { return a + b; });
    }
    __device__ scalar_t largest(scalar_t x)
    {
        return all(x, [](scalar_t a, scalar_t b) { return a > b ? a : b; });
    }
};

// Where a thread's numbers are in a row of n: x[e] of pack c, of the SPAN that begins at `first`
struct Places {
    int n;

    __device__ int at(int first, int c, int e) const
    {
        return first + (!SINGLY ? (c * TEAM + Team::lane()) * V + e
                               : (c * V + e) * TEAM + Team::lane());
    }
    __device__ void get(scalar_t (&x)[V], const scalar_t* row, int first, int c) const
    {
        if (!SINGLY) {
            const int j = at(first, c, 0);
            const Pack p = j < n ? *reinterpret_cast<const Pack*>(row + j) : Pack{};
            #pragma unroll
            for (int e = 0; e < V; ++e) x[e] = p.x[e];
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e) {
                const int j = at(first, c, e);
                x[e] = j < n ? row[j] : scalar_t(0);
            }
        }
    }
    __device__ void put(scalar_t* row, const scalar_t (&x)[V], int first, int c) const
    {
        if (!SINGLY) {
            const int j = at(first, c, 0);
            Pack p;
            #pragma unroll
            for (int e = 0; e < V; ++e) p.x[e] = x[e];
            if (j < n) *reinterpret_cast<Pack*>(row + j) = p;
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (const int j = at(first, c, e); j < n) row[j] = x[e];
        }
    }
};

// A pack of a row of each of K matrices
template <int K> using Held = scalar_t[K][V];

// A row of each of K matrices, held together
template <int K> struct Row {
    const scalar_t* p[K];
    Places in;
    Held<K> x[PACKS];

    // Nothing is read, and nothing gone through, of a row that is not there.
    __device__ Row(const scalar_t* const (&from)[K], size row, int n, bool there)
        : in{there ? n : 0}
    {
        #pragma unroll
        for (int k = 0; k < K; ++k) p[k] = from[k] + row * n;
        if (held()) read(0);
    }
    __device__ bool held() const { return RESIDENT || in.n <= SPAN; }
    __device__ void read(int first)
    {
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int k = 0; k < K; ++k) in.get(x[c][k], p[k], first, c);
    }
    // f(x[c], first, c) for every pack
    template <class F> __device__ void packs(F f)
    {
        for (int first = 0; first < (RESIDENT ? 1 : in.n); first += SPAN) {
            if (!held()) read(first);
            #pragma unroll
            for (int c = 0; c < PACKS; ++c) f(x[c], first, c);
        }
    }
    // f(x[c], e, j) for every number, the j-th of the row
    template <class F> __device__ void each(F f)
    {
        packs([&](Held<K>& of, int first, int c) {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (const int j = in.at(first, c, SINGLY ? e : 0); j < in.n) f(of, e, j);
        });
    }
};
