// softmax_rows_backward.cu: the gradient in x of y = softmax(x), or of its logarithm, for every row:
//
//     dx = y (dy - sum dy y)        dx = dy - e^y sum dy
//
// A team has a row (rows.cuh). Floor: Y and dY read, dX written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TEAM = 128;   // threads of a row
constexpr int PACKS = 2;    // of 16 bytes, of a row in a thread
constexpr int RESIDENT = 0; // whether that is always a whole row
constexpr int BLOCKS = 4;   // on a multiprocessor
constexpr int CLUSTER = 1;  // blocks of a row
#endif
#include "launch.cuh"
#include "rows.cuh"

extern "C" __global__ void BY_CLUSTERS __launch_bounds__(THREADS, BLOCKS)
softmax_rows_backward(const scalar_t* Y, const scalar_t* dY, scalar_t* dX, size log_of, size m,
                      size n)
{
    wait_for_stream();
    Team<CLUSTER> team;
    const Part mine = team.part(m, n);
    Row<2> row({Y, dY}, mine.at, mine.n);
    const real_t sum = team.sum(row.sum([=](Held<2>& x, int e) {
        return log_of ? x[1][e] : x[1][e] * x[0][e];
    }));
    team.has_read();
    row.packs([&](Held<2>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e)
            x[1][e] = log_of ? x[1][e] - exp(x[0][e]) * sum : x[0][e] * (x[1][e] - sum);
        row.in.put(dX + mine.at, x[1], first, c);
    });
    team.leave();
}
