// getrf_columns.cu: columns of a large matrix whose rows are put in order, in place: those of L to the
// left of later interchanges, once, at the end of the factorization, or those to the right of a block
// that is so wide that most of what lies between its interchanges moves anyway.
//
// A column is a cluster's, and each of its blocks has the same share of the rows. It takes what comes
// to them, from wherever it is, into its shared memory, and when all have, writes it: where nearly all
// rows move, memory is read and written once, and the L2 cache serves what is out of line. Where few
// do, getrf_rows.cu has less to read.
//
// The floor: m numbers of a column each way.
#include "block.cuh"
#include "cluster.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int CLUSTER = 1;  // blocks to a column
#endif
constexpr int TURN = 8;     // rows of a thread that are under way together

// Where a block's rows come from, in order: `order` says it of each, or, with `place`, of which row it
// is that is there in the end, and that where it was when the column's own block was done.
struct Sources {
    const int *order, *place;
    int begin, mine;  // rows of this block, from the first on

    // Of row e of the block, and every THREADS-th after it; -1: it stays, or there is none
    __device__ void operator()(int (&from)[TURN], int e) const
    {
        #pragma unroll
        for (int t = 0; t < TURN; ++t)
            from[t] = e + t * THREADS < mine ? order[begin + e + t * THREADS] : -1;
        #pragma unroll
        for (int t = 0; t < TURN; ++t) {
            if (place && from[t] >= 0) from[t] = place[from[t]];
            if (from[t] == begin + e + t * THREADS) from[t] = -1;
        }
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS)
getrf_columns(scalar_t* A, size lda, size ms, size first, const int* order, const int* places,
              const int* columns)
{
    wait_for_stream();
    scalar_t* const held = reinterpret_cast<scalar_t*>(dynamic_shared);
    const int column = int(blockIdx.x) / CLUSTER, rank = int(blockIdx.x) % CLUSTER, m = int(ms);
    const int top = columns ? columns[2 * column + 1] : int(first);
    const int share = (m - top + CLUSTER - 1) / CLUSTER, begin = top + rank * share;
    const Sources sources{order, places ? places + columns[2 * column] * ms : nullptr, begin,
                          min(share, m - begin)};
    scalar_t* const p = A + column * lda;
    int from[TURN];
    for (int e = thread(); e < sources.mine; e += TURN * THREADS) {
        scalar_t x[TURN];
        sources(from, e);
        #pragma unroll
        for (int t = 0; t < TURN; ++t) x[t] = from[t] >= 0 ? p[from[t]] : scalar_t{};
        #pragma unroll
        for (int t = 0; t < TURN; ++t)
            if (from[t] >= 0) held[e + t * THREADS] = x[t];
    }
    meet_cluster<CLUSTER>();
    for (int e = thread(); e < sources.mine; e += TURN * THREADS) {
        sources(from, e);
        #pragma unroll
        for (int t = 0; t < TURN; ++t)
            if (from[t] >= 0) p[begin + e + t * THREADS] = held[e + t * THREADS];
    }
}
