// chunks.cuh: rows of an m x n matrix that lies by rows go through shared memory in chunks, which the
// hardware brings (Hopper's bulk copies).
//
// A cluster of blocks, a team of TEAM warps, goes through every so many-th row. Chunk k of a row is
// what it has in the k-th CHUNK bytes from a multiple of 128 bytes on, wherever it begins, and warp
// k mod TEAM's. A warp has room for SLOTS chunks, a row's at least, that are there or on their way, in
// the order in which it goes through them: `read` waits for those of a row as they come; what the
// warps found all of them know by `exchange`; `write` makes the answer, from registers to memory,
// and has what is next brought, of the next row, where it has done so. So one row is read while
// another is written, and a warp waits for others only to know what they found.
//
// Packs (packs.cuh) are those of the matrix. A row's first and last may be shared with its neighbours,
// whose numbers nobody looks at. What is summed by whom follows from n and where in 128 bytes a
// row begins. The matrices begin at multiples of 16 bytes.
//
// In shared memory: slots by warps; what warps found, by turns; two barriers for that; a barrier of
// each slot.
#pragma once
#include "async.cuh"
#include "cluster.cuh"
#include "packs.cuh"
#include "shuffle.cuh"

constexpr int TEAM = WARPS * CLUSTER;
constexpr int CHUNK = PACKS * 512, PER = CHUNK / sizeof(scalar_t), LINE = 128 / sizeof(scalar_t);
static_assert(TEAM <= 32 && (PACKS & (PACKS - 1)) == 0);

// This warp's place in the team, and its lane
__device__ inline int mine() { return blockIdx.x % CLUSTER * WARPS + warp(); }
__device__ inline int lane() { return thread() % 32; }

// f of what the lanes of a warp have; in all of them
template <class F> __device__ real_t of_lanes(real_t x, F f)
{
    #pragma unroll
    for (int d = 16; d > 0; d /= 2) x = f(x, across(x, d));
    return x;
}
__device__ inline real_t sum_of_lanes(real_t x)
{
    return of_lanes(x, [](real_t a, real_t b) { return a + b; });
}

// A pack to global memory in one instruction: of `store` the compiler makes four here.
__device__ inline void put(scalar_t* to, const real_t (&x)[V])
{
#ifndef BLASX_SIM
    Pack<scalar_t> pack;
    #pragma unroll
    for (int e = 0; e < V; ++e) pack.x[e] = scalar_t(x[e]);
    const uint4 all = reinterpret_cast<const uint4&>(pack);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                 :: "l"(__cvta_generic_to_global(to)), "r"(all.x), "r"(all.y), "r"(all.z), "r"(all.w));
#else
    store(to, x);
#endif
}

// A pack of each of K matrices, as it is worked on
template <int K> using Held = real_t[K][V];

// A lane's packs of a chunk of each, of columns of which the row has those from 0 to n; the first pack
// begins in column j.
template <int K> struct Part {
    Pack<scalar_t> x[PACKS][K];
    const char* at;  // in shared memory
    int j, n;
    bool whole;  // all of the chunk is the row's

    __device__ int column(int c) const { return j + c * 32 * V; }
    __device__ bool has(int j) const { return whole || unsigned(j) < unsigned(n); }
    // How many numbers the row has here
    __device__ int count() const
    {
        if (whole) return PACKS * V;
        int sum = 0;
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int e = 0; e < V; ++e) sum += has(column(c) + e);
        return sum;
    }
    __device__ const Pack<scalar_t>& there(int c, int k) const
    {
        return *reinterpret_cast<const Pack<scalar_t>*>(at + k * CHUNK + c * 512);
    }
    // From shared memory; `other` in place of what is not the row's
    __device__ void get(real_t other)
    {
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int k = 0; k < K; ++k) x[c][k] = there(c, k);
        if (whole) return;
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (!has(column(c) + e))
                    #pragma unroll
                    for (int k = 0; k < K; ++k) x[c][k].x[e] = scalar_t(other);
    }
    // f(pack, j) for every pack, which begins in column j
    template <class F> __device__ void packs(F f) const
    {
        #pragma unroll
        for (int c = 0; c < PACKS; ++c) {
            Held<K> one;
            #pragma unroll
            for (int k = 0; k < K; ++k) load(one[k], x[c][k].x);
            f(one, column(c));
        }
    }
    // The sum of f(pack, e, j) over the numbers, each in column j
    template <class F> __device__ real_t sum(F f) const
    {
        real_t all = 0;
        packs([&](Held<K>& pack, int j) {
            real_t of[V];
            #pragma unroll
            for (int e = 0; e < V; ++e) of[e] = f(pack, e, j + e);
            all += pack_sum(of);
        });
        return all;
    }
};

template <int K> struct Chunks {
    static constexpr int SLOT = K * CHUNK, FOUND = WARPS * SLOTS * SLOT, ENTRY = 4 * sizeof(real_t);
    static constexpr int INBOX = FOUND + 2 * TEAM * ENTRY, BARRIERS = INBOX + 16;

    const scalar_t* from[K];
    const size m;
    const int n;
    size row = first();     // of the chunk to be brought next
    int next = mine();      // and which it is
    int slot = 0, phase = 0;  // where the chunk to be read next is
    unsigned turn = 0;      // of exchanges

    __device__ Chunks(const scalar_t* const (&of)[K], size m, size n) : m(m), n(int(n))
    {
        #pragma unroll
        for (int k = 0; k < K; ++k) from[k] = of[k];
        if (lane() == 0) {
            for (int s = 0; s < SLOTS; ++s) make_barrier(barrier_of(s), 1);
            if (CLUSTER > 1 && warp() == 0)
                for (int t = 0; t < 2; ++t) make_barrier(at(INBOX + 8 * t), 1);
            show_barriers();
        }
        if constexpr (CLUSTER > 1) meet_cluster();
        else __syncwarp();
        to_a_chunk();
        for (int s = 0; s < SLOTS; ++s) ask(s);
    }

    // The team's rows: from `first` on, `step` apart
    __device__ static size first() { return blockIdx.x / CLUSTER; }
    __device__ static size step() { return gridDim.x / CLUSTER; }

    // f(part) for this warp's chunks of row i; `other` in place of what is not the row's
    template <class F> __device__ void read(size i, real_t other, F f)
    {
        const int slot_of_row = slot, phase_of_row = phase;
        go(i, [&](Part<K>& x) {
            x.get(other);
            f(x);
        });
        slot = slot_of_row, phase = phase_of_row;
    }
    // The same numbers again: f(pack, j), j the column it begins in, leaves the answer in pack[0].
    template <class F> __device__ void write(size i, scalar_t* to, F f)
    {
        scalar_t* const row = to + i * n;
        go(i, [&](Part<K>& x) {
            if (x.whole) {
                x.get(0);
                x.packs([&](Held<K>& pack, int j) {
                    f(pack, j);
                    put(row + j, pack[0]);
                });
            } else {
                #pragma unroll 1
                for (int c = 0; c < PACKS; ++c) {
                    const int j = x.column(c);
                    if (j <= -V || j >= n) continue;
                    Held<K> pack;
                    #pragma unroll
                    for (int k = 0; k < K; ++k) load(pack[k], x.there(c, k).x);
                    f(pack, j);
                    if (j >= 0 && j + V <= n) put(row + j, pack[0]);
                    else
                        #pragma unroll
                        for (int e = 0; e < V; ++e)
                            if (x.has(j + e)) row[j + e] = scalar_t(pack[0][e]);
                }
            }
            __syncwarp();
            ask(slot);
        });
    }

    // What the warps of the team found, each x in all of its lanes: lane e gets that of warp e, those
    // past the last T().
    template <class T> __device__ T exchange(T x)
    {
        static_assert(sizeof(T) == ENTRY);
        if constexpr (TEAM == 1) return x;
        // By turns: who is a turn ahead knows that all have had the last one.
        T* const found = reinterpret_cast<T*>(dynamic_shared + FOUND) + turn % 2 * TEAM;
        if constexpr (CLUSTER == 1) {
            if (lane() == 0) found[warp()] = x;
            __syncthreads();
        } else {
            const unsigned inbox = at(INBOX + turn % 2 * 8);
            if (thread() == 0) expect(inbox, TEAM * ENTRY);
            if (lane() < CLUSTER)
                #pragma unroll
                for (int c = 0; c < ENTRY / int(sizeof(Chunk)); ++c)
                    send(address_in(shared_address(found + mine()) + c * sizeof(Chunk), lane()),
                         reinterpret_cast<const Chunk*>(&x)[c], address_in(inbox, lane()));
            await(inbox, turn / 2 % 2);
        }
        ++turn;
        return lane() < TEAM ? found[lane()] : T();
    }
    // The sum of what all lanes of the team have
    __device__ real_t sum(real_t x)
    {
        struct alignas(16) Entry { real_t x = 0, room[3]; } entry;
        entry.x = sum_of_lanes(x);
        if constexpr (TEAM == 1) return entry.x;
        return sum_of_lanes(exchange(entry).x);
    }
    // Nobody ends while others may send something there.
    __device__ static void leave()
    {
        done_in_cluster<CLUSTER>();
        await_all_done<CLUSTER>();
    }

  private:
    __device__ static unsigned at(int place) { return shared_address(dynamic_shared) + place; }
    __device__ static unsigned barrier_of(int s)
    {
        return at(BARRIERS + 8 * (warp() * SLOTS + s));
    }
    __device__ static int place_of(int s, int k) { return (warp() * SLOTS + s) * SLOT + k * CHUNK; }
    // How far past a multiple of 128 bytes a row begins, and how many chunks that makes
    __device__ int skew_of(size i) const { return int(i * n % LINE); }
    __device__ int count_of(size i) const { return (skew_of(i) + n + PER - 1) / PER; }

    // f(part) for this warp's chunks of row i, each when it is in shared memory
    template <class F> __device__ void go(size i, F f)
    {
        const int skew = skew_of(i), count = count_of(i);
        for (int k = mine(); k < count; k += TEAM) {
            const int begin = k * PER - skew;
            Part<K> x;
            x.at = dynamic_shared + place_of(slot, 0) + lane() * 16;
            x.j = begin + lane() * V, x.n = n, x.whole = begin >= 0 && begin + PER <= n;
            await(barrier_of(slot), phase);
            f(x);
            if (++slot == SLOTS) slot = 0, phase ^= 1;
        }
    }

    // Goes on to the next chunk to be brought that there is.
    __device__ void to_a_chunk()
    {
        while (row < m && next >= count_of(row)) row += step(), next = mine();
    }
    // Has it brought to a slot that nobody looks at any more.
    __device__ void ask(int s)
    {
        if (row >= m) return;
        if (lane() == 0) {
            const size begins = row * n, ends = begins + n, last = m * n;
            const size from_here = begins - skew_of(row) + size(next) * PER, to_here = from_here + PER;
            const size begin = from_here > begins ? from_here : begins / V * V;
            const size end = to_here < ends ? to_here : (ends + V - 1) / V * V;
            const size whole = end <= last ? end : last / V * V;  // what the matrix has of the last pack
            const unsigned bytes = unsigned(whole - begin) * sizeof(scalar_t);
            #pragma unroll
            for (int k = 0; k < K; ++k)
                #pragma unroll 1
                for (size e = whole; e < end && e < last; ++e)
                    reinterpret_cast<scalar_t*>(dynamic_shared + place_of(s, k))[e - from_here]
                        = from[k][e];
            expect(barrier_of(s), K * bytes);
            #pragma unroll
            for (int k = 0; k < K; ++k)
                if (bytes)
                    copy_bytes(at(place_of(s, k)) + unsigned(begin - from_here) * sizeof(scalar_t),
                               from[k] + begin, bytes, barrier_of(s));
        }
        next += TEAM;
        to_a_chunk();
    }
};
