// softmax_chunks_backward.cu: the gradient in x of softmax, or of its logarithm, as
// softmax_rows_backward.cu has it, of rows that go through shared memory (chunks.cuh).
//
// Floor: Y and dY read, dX written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;   // of a block
constexpr int PACKS = 4;    // of 16 bytes, of a chunk in a lane
constexpr int SLOTS = 3;    // chunks that a warp has room for
constexpr int BLOCKS = 1;   // on a multiprocessor
constexpr int CLUSTER = 1;  // blocks of a row
#endif
#include "launch.cuh"
#include "powers.cuh"

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS)
softmax_chunks_backward(const scalar_t* Y, const scalar_t* dY, scalar_t* dX, size log_of, size m,
                        size n)
{
    wait_for_stream();
    Chunks<2> rows({Y, dY}, m, n);
    for (size i = rows.first(); i < m; i += rows.step()) {
        real_t sum = 0;
        rows.read(i, 0, [&](Part<2>& x) {
            sum += x.sum([=](Held<2>& of, int e, int) {
                return log_of ? of[1][e] : of[1][e] * of[0][e];
            });
        });
        sum = rows.sum(sum);
        rows.write(i, dX, [&](Held<2>& x, int) {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                x[0][e] = log_of ? x[1][e] - power(x[0][e]) * sum : x[0][e] * (x[1][e] - sum);
        });
    }
    rows.leave();
}
