// softmax_rows.cu: softmax of every row, or its logarithm:
//
//     y = e^(x - top) / sum e^(x - top)        y = x - top - log sum e^(x - top)
//
// top is the largest x. A softmax of nothing but -inf is 0: nothing was there to choose.
//
// A team has a row (rows.cuh). Floor: X read, Y written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TEAM = 128;   // threads of a row
constexpr int PACKS = 2;    // of 16 bytes, of a row in a thread
constexpr int RESIDENT = 0; // whether that is always a whole row
constexpr int BLOCKS = 4;   // on a multiprocessor
#endif
#include "exponential.cuh"
#include "launch.cuh"
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
softmax_rows(const scalar_t* X, scalar_t* Y, size log_of, size m, size n)
{
    wait_for_stream();
    Team<> team;
    const size i = team.row();
    Row<1> row({X}, i * n, i < m ? int(n) : 0, LEAST);
    real_t top = LEAST;
    row.packs([&](Held<1>& x, int, int) {
        #pragma unroll
        for (int e = 0; e < V; ++e) top = larger(top, x[0][e]);
    });
    top = team.largest(top);
    if (!log_of && top == LEAST) top = 0;
    const real_t total = team.sum(row.sum([&](Held<1>& x, int e) {
        const real_t one = power(x[0][e] - top);
        if (!log_of && row.held()) x[0][e] = one;
        return one;
    }));
    const real_t less = log(total), share = 1 / (total == 0 ? real_t(1) : total);
    row.packs([&](Held<1>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            if (log_of) x[0][e] = x[0][e] - top - less;
            else x[0][e] = (row.held() ? x[0][e] : power(x[0][e] - top)) * share;
        }
        row.in.put(Y + i * n, x[0], first, c);
    });
}
