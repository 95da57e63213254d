// grid.cuh: the blocks of a grid, all on the GPU at the same time, meet and tell each other a few
// words.
//
// A word travels with the number of its meeting, so that it says by itself that it is there, and one
// write and one read is the way from a block to all others. There are two places for it, used in
// turn: nobody gets to a meeting after the next before all have heard what is told at this one.
#pragma once
#include "block.cuh"
#include "sums.cuh"

using word = unsigned long long;

constexpr int MOST_BLOCKS = 192, EARS = MOST_BLOCKS / 32;  // EARS: blocks that a lane listens to

// What was written, by this thread or by others that it has met, is seen by all of the GPU before
// what this one writes from here on; what others wrote before what this one has read is seen here.
__device__ inline void fence()
{
#ifndef BLASX_SIM
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

template <int WORDS> struct Meeting {
    word* places;              // 2 WORDS for each block, none of them with a number to come
    unsigned number;           // of this meeting; every one has its own

    __device__ word* place(int i, int block) const
    {
        return places + (size(number % 2) * WORDS + i) * gridDim.x + block;
    }

    // By one thread, after a barrier of its block: what the block wrote before that is there for all.
    __device__ void tell(const unsigned (&words)[WORDS]) const
    {
        fence();
        #pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            const word whole = word(number) << 32 | words[i];
#ifndef BLASX_SIM
            asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                         :: "l"(place(i, blockIdx.x)), "l"(whole) : "memory");
#else
            *place(i, blockIdx.x) = whole;
#endif
        }
    }

    // By a warp: f(words) for those of each of the first `blocks`; a barrier of the block has to
    // follow.
    template <class F> __device__ void hear(int blocks, F f) const
    {
        unsigned words[EARS][WORDS];
        bool missing;
        do {
            missing = false;
            #pragma unroll
            for (int e = 0; e < EARS; ++e)
                #pragma unroll
                for (int i = 0; i < WORDS; ++i) {
                    if (32 * e + lane() >= blocks) continue;
                    word whole;
#ifndef BLASX_SIM
                    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                                 : "=l"(whole) : "l"(place(i, 32 * e + lane())) : "memory");
#else
                    whole = *place(i, 32 * e + lane());
                    if (whole >> 32 != number) sim::give_way();
#endif
                    words[e][i] = unsigned(whole);
                    missing |= whole >> 32 != number;
                }
        } while (__any_sync(ALL, missing));
        fence();
        #pragma unroll
        for (int e = 0; e < EARS; ++e)
            if (32 * e + lane() < blocks) f(words[e]);
    }
};

// -- a pivot, chosen by all

constexpr int NOWHERE = 0x7fffffff, BITS = sizeof(real_t) / 4;
constexpr real_t NONE = -1;
using Choice = Meeting<BITS + 1>;

struct Candidate {
    real_t norm;
    int place;

    // LAPACK's i_amax: nan counts where it comes first
    static __device__ Candidate of(real_t norm, int place, bool is_first)
    {
        if (norm != norm) norm = is_first ? real_t(__int_as_float(0x7f800000)) : NONE;
        return {norm, place};
    }
    __device__ void meet(const Candidate& other)
    {
        if (other.norm > norm || (other.norm == norm && other.place < place)) *this = other;
    }
    __device__ void meet_warp()
    {
        #pragma unroll
        for (int mask = 1; mask < 32; mask *= 2) meet({across(norm, mask), across(place, mask)});
    }
};

// The best of the candidates of all threads of the grid, of equals that of the lowest place; a
// meeting. `best`: room in shared memory; its last is read until the first barrier of the next time.
__device__ inline Candidate best_of_grid(Candidate mine, const Choice& meeting,
                                         Candidate (&best)[WARPS + 1])
{
    mine.meet_warp();
    if (lane() == 0) best[warp()] = mine;
    __syncthreads();
    if (warp() == 0) {
        mine = lane() < WARPS ? best[lane()] : Candidate{NONE, NOWHERE};
        mine.meet_warp();
        unsigned words[BITS + 1];
        memcpy(words, &mine.norm, sizeof mine.norm);
        words[BITS] = mine.place;
        if (lane() == 0) meeting.tell(words);
        mine = {NONE, NOWHERE};
        meeting.hear(gridDim.x, [&](const unsigned (&words)[BITS + 1]) {
            Candidate other;
            memcpy(&other.norm, words, sizeof other.norm);
            other.place = words[BITS];
            mine.meet(other);
        });
        mine.meet_warp();
        if (lane() == 0) best[WARPS] = mine;
    }
    __syncthreads();
    return best[WARPS];
}
