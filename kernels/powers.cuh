// powers.cuh: the largest of the numbers of a row that comes in chunks, and the sum
//
//     total = sum e^(x - base)        base = top, or 0 if that is -inf
//
// of those that have come so far, and, APART, sum (x - mark), mark any number. Where a larger top comes
// total goes over to it: it is multiplied by e^(old - new).
#pragma once
#include "chunks.cuh"
#include "exponential.cuh"

template <int APART> struct alignas(16) Powers {
    real_t top = LEAST, total = 0, apart = 0, room = 0;

    __device__ real_t base() const { return top == LEAST ? real_t(0) : top; }
    __device__ void rise(real_t to)
    {
        const real_t old = top;
        top = to;
        total *= power(old - base());  // nothing yet: 0 times 0
    }
    // Numbers that are not the row's are -inf.
    __device__ void take(const Part<1>& x, real_t mark = 0)
    {
        real_t most = top;
        x.packs([&](Held<1>& of, int) {
            #pragma unroll
            for (int e = 0; e < V; ++e) most = larger(most, of[0][e]);
        });
        rise(most);
        const real_t from = base();
        total += x.sum([=](Held<1>& of, int e, int) { return summand(of[0][e] - from); });
        if (!APART) return;
        const real_t more = x.whole
            ? x.sum([=](Held<1>& of, int e, int) { return of[0][e] - from; })
            : x.sum([&](Held<1>& of, int e, int j) {
                  return x.has(j) ? of[0][e] - from : real_t(0);
              });
        apart += fma(real_t(x.count()), from - mark, more);
    }
    __device__ void join_lanes()
    {
        rise(of_lanes(top, [](real_t a, real_t b) { return larger(a, b); }));
        total = sum_of_lanes(total);
        if (APART) apart = sum_of_lanes(apart);
    }
    // What all of the team have
    __device__ void join(Chunks<1>& rows)
    {
        join_lanes();
        if (TEAM > 1) {
            *this = rows.exchange(*this);
            join_lanes();
        }
    }
};
