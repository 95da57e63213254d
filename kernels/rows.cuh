// rows.cuh: rows of an m x n matrix that lies by rows, a team of TEAM threads to a row.
//
// A thread holds PACKS times 16 bytes of its row in registers: packs of neighbours, or SINGLY, where n
// is no multiple of them, numbers that those of neighbouring threads are beside. That is
// the row, if RESIDENT; else rows longer than the SPAN that a team holds are read again whenever
// they are gone through, from the cache. What is summed by whom follows from n alone. Addresses are
// multiples of 16 bytes. Numbers of half precision are single ones in registers.
//
// The blocks of a cluster can be a team: each has a part of the row, and reads what the others' warps
// found from their shared memory.
#pragma once
#include "cluster.cuh"
#include "packs.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int SINGLY = 0;
#endif
constexpr int SPAN = TEAM * PACKS * V, TEAMS = THREADS / TEAM;
static_assert((TEAM & (TEAM - 1)) == 0 && TEAM <= THREADS && sizeof(scalar_t) <= 8);

// The number of this thread in its block's part of a team
__device__ inline int lane_of_team() { return thread() % TEAM; }

// What a block has of a row: n numbers from `at` on, those of the columns from `from` on; none of a
// row that is not there
struct Part {
    size row, at;
    int from, n;
};

// The threads of a row: TEAM of each block of CLUSTER. All teams of a block call `all` equally often.
template <int CLUSTER = 1> struct Team {
    static_assert(CLUSTER == 1 || TEAM == THREADS);
    int turn = 0;

    __device__ static int block() { return CLUSTER > 1 ? blockIdx.x % CLUSTER : 0; }
    __device__ static bool first() { return lane_of_team() == 0 && block() == 0; }
    __device__ static size row()
    {
        return CLUSTER > 1 ? blockIdx.x / CLUSTER : size(blockIdx.x) * TEAMS + thread() / TEAM;
    }
    __device__ static Part part(size m, size n)
    {
        const int each = (int(n) + CLUSTER * V - 1) / (CLUSTER * V) * V, from = block() * each;
        const int rest = row() < m ? int(n) - from : 0;
        return {row(), row() * n + from, from, rest < each ? rest : each};
    }

    // f of what all threads have, by one tree
    template <class F> __device__ real_t all(real_t x, F f)
    {
        #pragma unroll
        for (int d = (TEAM < 32 ? TEAM : 32) / 2; d > 0; d /= 2) x = f(x, across(x, d));
        constexpr int WIDE = TEAM < 32 ? 1 : TEAM / 32, COUNT = WIDE * CLUSTER;
        if constexpr (COUNT == 1) return x;
        turn ^= 1;  // by turns: nobody is two calls ahead
        if constexpr (CLUSTER == 1) {
            __shared__ real_t parts[2][WARPS];
            parts[turn][warp()] = x;
            __syncthreads();
            const real_t* const mine = parts[turn] + warp() / WIDE * WIDE;
            x = mine[0];
            #pragma unroll
            for (int w = 1; w < WIDE; ++w) x = f(x, mine[w]);
        } else {
            real_t* const parts = reinterpret_cast<real_t*>(dynamic_shared) + turn * WARPS;
            parts[warp()] = x;
            meet_cluster();
            int e = thread() % 32 % COUNT;  // of the warps of all blocks, a few for each lane
            x = in_cluster<CLUSTER>(parts[e % WIDE], e / WIDE);
            #pragma unroll
            for (e += 32; e < COUNT; e += 32)
                x = f(x, in_cluster<CLUSTER>(parts[e % WIDE], e / WIDE));
            #pragma unroll
            for (int d = (COUNT < 32 ? COUNT : 32) / 2; d > 0; d /= 2) x = f(x, across(x, d));
        }
        return x;
    }
    // After the last call of `all`, and before the end: nobody ends while others may read from it.
    __device__ static void has_read()
    {
        if constexpr (CLUSTER > 1) arrive_at_cluster();
    }
    __device__ static void leave()
    {
        if constexpr (CLUSTER > 1) await_cluster();
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

    // So many past the thread's first
    __device__ static int past(int c, int e)
    {
        return !SINGLY ? c * TEAM * V + e : (c * V + e) * TEAM;
    }
    __device__ static int mine() { return lane_of_team() * (SINGLY ? 1 : V); }
    __device__ int at(int first, int c, int e) const { return first + mine() + past(c, e); }
    // Whether the row has it
    __device__ bool has(int first, int c, int e) const { return at(first, c, SINGLY ? e : 0) < n; }

    // `other` in place of what the row has not
    template <class T>
    __device__ void get(real_t (&x)[V], const T* row, int first, int c, real_t other = 0) const
    {
        const T* const from = row + first + mine();
        #pragma unroll
        for (int e = 0; e < V; ++e) x[e] = other;
        if (!SINGLY) {
            if (has(first, c, 0)) load(x, from + past(c, 0));
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (has(first, c, e)) x[e] = real_t(from[past(c, e)]);
        }
    }
    template <class T> __device__ void put(T* row, const real_t (&x)[V], int first, int c) const
    {
        T* const to = row + first + mine();
        if (!SINGLY) {
            if (has(first, c, 0)) store(to + past(c, 0), x);
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (has(first, c, e)) to[past(c, e)] = T(x[e]);
        }
    }
};

// A pack of a row of each of K matrices
template <int K> using Held = real_t[K][V];

// A row of each of K matrices, held together
template <int K> struct Row {
    const scalar_t* p[K];
    Places in;
    real_t other;
    Held<K> x[PACKS];

    // The n numbers from `at` on, and `other` in place of what a thread could hold more; nothing is
    // read where n is not above 0.
    __device__ Row(const scalar_t* const (&from)[K], size at, int n, real_t other = 0)
        : in{n}, other(other)
    {
        #pragma unroll
        for (int k = 0; k < K; ++k) p[k] = from[k] + at;
        if (held()) read(0);
    }
    __device__ bool held() const { return RESIDENT || in.n <= SPAN; }
    __device__ void read(int first)
    {
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int k = 0; k < K; ++k) in.get(x[c][k], p[k], first, c, other);
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
    // The sum of f(x[c], e) over the numbers, and over what is in place of them where the row ends
    template <class F> __device__ real_t sum(F f)
    {
        real_t all = 0;
        packs([&](Held<K>& of, int, int) {
            real_t one[V];
            #pragma unroll
            for (int e = 0; e < V; ++e) one[e] = f(of, e);
            all += pack_sum(one);
        });
        return all;
    }
};
