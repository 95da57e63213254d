// dealt_columns.cuh: columns of order n <= N dealt to the lanes of a block as one line: teams of
// lanes that have a member each, and what a team knows of the diagonal in its shared memory.
#pragma once
#include "small_columns.cuh"

// A thread's team, `number` of so many of the launch; a lane that no team has is not `here`, and
// none of its columns is of a matrix.
struct Team {
    int lanes, place, t;
    size number;
    bool here, in_warp;  // in_warp: no team crosses a warp's end

    __device__ Team(int lanes, size teams)
        : lanes(lanes), place(thread() / lanes), in_warp(WARPS == 1 || 32 % lanes == 0)
    {
        const int places = THREADS / lanes;
        number = size(blockIdx.x) * places + place;
        here = place < places && number < teams;
        t = here ? thread() - place * lanes : N;
        if (place >= places) place = 0;  // it reads what is another's
    }
    __device__ void sync() const
    {
        if (in_warp) __syncwarp();
        else __syncthreads();
    }
    __device__ int column(int c) const { return t + lanes * c; }
    __device__ scalar_t* square() const
    {
        return reinterpret_cast<scalar_t*>(dynamic_shared) + place * TRIANGLE;
    }
};

// What a team knows of its diagonal, behind its square: which numbers are tiny, so that the
// reciprocal may overflow and they are lifted first, and the first that is zero, counted from 1.
// All know it after `look` and a barrier; a barrier stands between the constructor and `look`, too.
struct Diagonal {
    struct About {
        unsigned tiny[3];
        int zero;
    };
    static_assert(sizeof(About) == VECTOR * sizeof(scalar_t));
    scalar_t* square;
    About* about;
    const Team& team;

    __device__ Diagonal(scalar_t* square, const Team& team)
        : square(square), about(reinterpret_cast<About*>(square + N * DOWN)), team(team)
    {
        if (team.t == 0) *about = {{0, 0, 0}, N + 1};
    }
    __device__ void look(int n)
    {
        for (int i = team.t; i < n; i += team.lanes) {
            const real_t some = abs1(square[i * (DOWN + 1)]);
            if (some < TINY) atomicOr(&about->tiny[i / 32], 1u << i % 32);
            if (some == 0) atomicMin(&about->zero, i + 1);
        }
    }
    __device__ Bits tiny() const
    {
        Bits found{};
        #pragma unroll
        for (int e = 0; e < N; e += 32) add_bits(found, team.here ? about->tiny[e / 32] : 0, e);
        return found;
    }
    __device__ int zero() const { return team.here && about->zero <= N ? about->zero : 0; }
};
