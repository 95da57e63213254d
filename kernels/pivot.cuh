// pivot.cuh: the choice of a pivot by the lanes of a warp, LAPACK's: the largest |re| + |im|, of equals
// the one in the lowest place; and its reciprocal.
#pragma once
#include "reciprocal.cuh"

constexpr unsigned EVERY = ~0u;
__device__ inline int lane_id() { return threadIdx.x % 32; }

// A number's size in two words, of which the first decides first; 0 is for rows that take no part.
__device__ inline unsigned upper_word(float x) { return 2 * __float_as_uint(x) + 1; }
__device__ inline unsigned upper_word(double x) { return 2 * unsigned(__double2hiint(x)) + 1; }
template <class R> __device__ unsigned upper_word(complex<R> x) { return upper_word(abs1(x)); }
__device__ inline unsigned lower_word(float) { return 0; }
__device__ inline unsigned lower_word(double x) { return unsigned(__double2loint(x)); }

// The lane of the largest (hi, lo), of equals that of the lowest place
__device__ inline int winner(unsigned hi, unsigned lo, int place)
{
    const unsigned most = __reduce_max_sync(EVERY, hi);
    bool it = hi == most;
    unsigned who = __ballot_sync(EVERY, it);
    if (who & (who - 1)) {
        const unsigned second = __reduce_max_sync(EVERY, it ? lo : 0);
        it = it && lo == second;
        const unsigned first = __reduce_min_sync(EVERY, it ? unsigned(place) : EVERY);
        who = __ballot_sync(EVERY, it && unsigned(place) == first);
    }
    return __ffs(who) - 1;
}

// 1 / pivot, or 1 / (LIFT pivot) of a tiny one; 0 of zero, whose column is zero, too
__device__ inline scalar_t inverse_of(scalar_t pivot)
{
    const real_t a = abs1(pivot);
    if (a >= TINY && a < HUGE) return near_reciprocal(pivot);
    return a == 0 ? scalar_t{} : reciprocal(a < TINY ? mul(pivot, LIFT) : pivot);
}
