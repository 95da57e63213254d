// cross_entropy_chunks.cu: the loss and its gradient of every row of scores, as cross_entropy_rows.cu
// has them, of rows that go through shared memory (chunks.cuh): each is looked at twice, once for
// the sums (powers.cuh), once for the gradient.
//
// Floor: X read, dX written, once.
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
cross_entropy_chunks(const scalar_t* X, const size* labels, const real_t* counts, size all, size smooth,
                     size ignored, real_t* losses, scalar_t* dX, size m, size n)
{
    wait_for_stream();
    Chunks<1> rows({X}, m, n);
    const real_t lost = real_t(__int_as_float(0x7fc00000));
    // Where a row's label is, and its number, are read while the row before it is worked on.
    constexpr int NOWHERE = -V, IGNORED = -2 * V;
    const auto place_of = [=](size i) {
        if (i >= m) return NOWHERE;
        const size label = labels[i];
        return counts && label == ignored ? IGNORED : label >= 0 && label < n ? int(label) : NOWHERE;
    };
    const auto score_of = [=](size i, int at) { return at < 0 ? lost : real_t(X[i * n + at]); };
    int at = place_of(rows.first());
    real_t score = score_of(rows.first(), at);
    const real_t each = counts ? counts[1] : number(all);
    const real_t smoothing = number(smooth), even = smoothing / real_t(n);
    for (size i = rows.first(); i < m; i += rows.step()) {
        const int at_of_next = place_of(i + rows.step());
        const real_t mark = score - score == 0 ? score : real_t(0);
        Powers<1> powers;
        rows.read(i, LEAST, [&](Part<1>& x) { powers.take(x, mark); });
        powers.join(rows);
        const real_t score_of_next = score_of(i + rows.step(), at_of_next);
        const bool ignore = at == IGNORED;
        const real_t top = powers.base();
        const real_t share = ignore ? real_t(0) : at < 0 ? lost : each / powers.total;
        const real_t less = ignore ? real_t(0) : even * each;
        rows.write(i, dX, [&](Held<1>& x, int j) {
            #pragma unroll
            for (int e = 0; e < V; ++e) {
                const real_t d = ignore ? real_t(0) : x[0][e] - top;  // not nan times 0
                x[0][e] = fma(power(d), share, -less);
            }
            if (unsigned(at - j) < unsigned(V))
                #pragma unroll
                for (int e = 0; e < V; ++e)
                    x[0][e] -= j + e == at ? (1 - smoothing) * each : real_t(0);
        });
        if (mine() == TEAM - 1 && lane() == 0) {  // whose warp has the fewest chunks
            real_t loss = log(powers.total) - (1 - smoothing) * (score - powers.top);
            if (smoothing != 0) loss -= even * powers.apart - smoothing * (top - mark);
            losses[i] = ignore ? real_t(0) : loss;
        }
        at = at_of_next, score = score_of_next;
    }
    rows.leave();
}
