// softmax_chunks.cu: softmax of every row, or its logarithm, as softmax_rows.cu has it, of rows that
// go through shared memory (chunks.cuh): each is looked at twice, once for the largest x and the
// sum of powers (powers.cuh), once for the answer.
//
// Floor: X read, Y written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;   // of a block
constexpr int PACKS = 8;    // of 16 bytes, of a chunk in a lane
constexpr int SLOTS = 3;    // chunks that a warp has room for
constexpr int BLOCKS = 1;   // on a multiprocessor
constexpr int CLUSTER = 1;  // blocks of a row
#endif
#include "launch.cuh"
#include "powers.cuh"

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS)
softmax_chunks(const scalar_t* X, scalar_t* Y, size log_of, size m, size n)
{
    wait_for_stream();
    Chunks<1> rows({X}, m, n);
    for (size i = rows.first(); i < m; i += rows.step()) {
        Powers<0> powers;
        rows.read(i, LEAST, [&](Part<1>& x) { powers.take(x); });
        powers.join(rows);
        const real_t top = log_of ? powers.top : powers.base(), less = log(powers.total);
        const real_t share = 1 / (powers.total == 0 ? real_t(1) : powers.total);
        rows.write(i, Y, [&](Held<1>& x, int) {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                x[0][e] = log_of ? x[0][e] - top - less : power(x[0][e] - top) * share;
        });
    }
    rows.leave();
}
