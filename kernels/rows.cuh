// rows.cuh: rows of an m x n matrix that lies by rows, a team of TEAM threads to a row.
//
// A thread holds PACKS times 16 bytes of its row in registers: packs of neighbours, or SINGLY, where n
// is no multiple of them, numbers that those of neighbouring threads are beside. That is
// the row, if RESIDENT; else rows longer than the SPAN that a team holds are read again whenever
// they are gone through, from the cache. What is summed by whom follows from n alone. Addresses are
// multiples of 16 bytes. Numbers of half precision are single ones in registers.
#pragma once
#include "packs.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int SINGLY = 0;
#endif
constexpr int SPAN = TEAM * PACKS * V, TEAMS = THREADS / TEAM;
static_assert((TEAM & (TEAM - 1)) == 0 && TEAM <= THREADS && sizeof(scalar_t) <= 8);

#define LEAST real_t(__int_as_float(0xff800000))  // -inf

// The threads of a row. All teams of a block call `all` equally often.
struct Team {
    int turn = 0;

    __device__ static int lane() { return thread() % TEAM; }
    __device__ static size row() { return size(blockIdx.x) * TEAMS + thread() / TEAM; }

    // f of what all threads have, by one tree
    template <class F> __device__ real_t all(real_t x, F f)
    {
        #pragma unroll
        for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2) x = f(x, across(x, d));
        if (TEAM <= 32) return x;
        constexpr int WIDE = TEAM < 32 ? 1 : TEAM / 32;
        __shared__ real_t parts[2][WARPS];  // by turns: nobody is two calls ahead
        turn ^= 1;
        parts[turn][warp()] = x;
        __syncthreads();
        const real_t* const mine = parts[turn] + warp() / WIDE * WIDE;
        x = mine[0];
        #pragma unroll
        for (int w = 1; w < WIDE; ++w) x = f(x, mine[w]);
        return x;
    }
    __device__ real_t sum(real_t x)
    {
        return all(x, [](real_t a, real_t b) { return a + b; });
    }
    __device__ real_t largest(real_t x)
    {
        return all(x, [](real_t a, real_t b) { return a > b ? a : b; });
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
    template <class T> __device__ void get(real_t (&x)[V], const T* row, int first, int c) const
    {
        #pragma unroll
        for (int e = 0; e < V; ++e) x[e] = 0;
        if (!SINGLY) {
            if (const int j = at(first, c, 0); j < n) load(x, row + j);
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (const int j = at(first, c, e); j < n) x[e] = real_t(row[j]);
        }
    }
    template <class T> __device__ void put(T* row, const real_t (&x)[V], int first, int c) const
    {
        if (!SINGLY) {
            if (const int j = at(first, c, 0); j < n) store(row + j, x);
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (const int j = at(first, c, e); j < n) row[j] = T(x[e]);
        }
    }
};

// A pack of a row of each of K matrices
template <int K> using Held = real_t[K][V];

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
