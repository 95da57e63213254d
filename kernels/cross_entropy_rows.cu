// cross_entropy_rows.cu: of every row x of scores and its label k
//
//     loss = -sum_j q_j log p_j,     dx = (p - q) scale / count,     p = softmax(x),
//
// where q is 1 - smoothing at k and smoothing / n more everywhere. Rows with the label `ignored`
// have none, whatever their scores; a label that is no column makes the row's loss and gradient nan.
// `counts` has count, of the labels that are not ignored, and scale / count (cross_entropy_mean.cu);
// null if none is, and scale / count is `all`.
//
// A team has a row (rows.cuh). With top the largest x and s = sum e^(x - top)
//
//     loss = log s - (1 - smoothing) (x_k - top) - smoothing / n sum_j (x_j - top).
//
// Floor: X read, dX written, once.
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
cross_entropy_rows(const scalar_t* X, const size* labels, const real_t* counts, size all, size smooth,
                   size ignored, real_t* losses, scalar_t* dX, size m, size n)
{
    wait_for_stream();
    Team<> team;
    const size i = team.row(), label = i < m ? labels[i] : 0;
    Row<1> row({X}, i * n, i < m ? int(n) : 0, LEAST);
    const bool ignore = counts && label == ignored, known = label >= 0 && label < n;
    const int at = known && !ignore ? int(label) : -V;
    const real_t lost = real_t(__int_as_float(0x7fc00000));
    const real_t score = i < m && at >= 0 ? real_t(X[i * n + at]) : lost;
    const real_t each = counts ? counts[1] : number(all);
    const real_t smoothing = number(smooth), even = smoothing / real_t(n);
    real_t top = LEAST, total = 0, apart = 0;
    row.packs([&](Held<1>& x, int, int) {
        #pragma unroll
        for (int e = 0; e < V; ++e) top = larger(top, x[0][e]);
    });
    top = team.largest(top);
    row.packs([&](Held<1>& x, int first, int c) {
        real_t d[V], one[V];
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            d[e] = x[0][e] - top, one[e] = power(d[e]);
            if (row.held()) x[0][e] = one[e];
            if (!row.in.has(first, c, e)) d[e] = 0;
        }
        total += pack_sum(one);
        apart += pack_sum(d);
    });
    total = team.sum(total);
    if (smoothing != 0) apart = team.sum(apart);
    const real_t share = at < 0 ? lost : each / total, less = even * each;
    const real_t missed = (1 - smoothing) * each;
    row.packs([&](Held<1>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            const real_t p = fma(row.held() ? x[0][e] : power(x[0][e] - top), share, -less);
            x[0][e] = ignore ? real_t(0) : p;
        }
        if (SINGLY || unsigned(at - row.in.at(first, c, 0)) < unsigned(V))
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (row.in.at(first, c, e) == at) x[0][e] -= missed;
        row.in.put(dX + i * n, x[0], first, c);
    });
    if (i < m && team.first()) {
        real_t loss = log(total) - (1 - smoothing) * (score - top);
        if (smoothing != 0) loss -= even * apart;
        losses[i] = ignore ? real_t(0) : loss;
    }
}
