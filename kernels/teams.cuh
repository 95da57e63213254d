// teams.cuh: teams of TEAM lanes, which who includes this has said: any number of lanes of a warp,
// and as many teams as it has room for, or all warps of a block.
//
// Lanes that are left over in a warp look at the last team's member, and their number is NOWHERE:
// past every row, column and element, so that they load, sum and store nothing.
#pragma once
#include "block.cuh"
#include "shuffle.cuh"

constexpr int OF_WARP = TEAM > 32 ? 1 : 32 / TEAM;                    // teams
constexpr int TEAMS = TEAM > 32 ? 1 : WARPS * OF_WARP;                // of a block
constexpr bool FULL = TEAM > 32 || OF_WARP * TEAM == 32;              // no lanes are left over
static_assert(TEAM <= 32 || THREADS == TEAM, "a team is in a warp or is a block");
constexpr int NOWHERE = 1 << 20;

__device__ inline bool left_over() { return !FULL && threadIdx.x % 32 >= OF_WARP * TEAM; }
// The number of the team in the block, and of the lane in the team
__device__ inline int team()
{
    if (FULL) return threadIdx.x / TEAM;
    return warp() * OF_WARP + (left_over() ? OF_WARP - 1 : threadIdx.x % 32 / TEAM);
}
__device__ inline int member()
{
    if (FULL) return threadIdx.x % TEAM;
    return left_over() ? NOWHERE : threadIdx.x % 32 % TEAM;
}

// What a member of the team, of one warp, has
template <class T> __device__ T of_member(T x, int source)
{
    if constexpr (FULL) return of_lane<TEAM>(x, source);
    else return of_lane(x, team() % OF_WARP * TEAM + source);
}

// f over the team where teams are not FULL, the same for all of it: what is past the half comes down
// to it, and again, and from the first member to all
template <class T, class F> __device__ T brought_together(T x, F f)
{
    const int lane = threadIdx.x % 32;
    int size = TEAM;
    #pragma unroll
    for (int half = 16; half; half /= 2) {
        if (half >= TEAM) continue;
        const T y = of_lane(x, lane + half < 32 ? lane + half : lane);
        if (member() < half && member() + half < size) x = f(x, y);
        size = half;
    }
    return of_member(x, 0);
}
