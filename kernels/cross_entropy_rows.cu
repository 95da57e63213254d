// cross_entropy_rows.cu: of every row x of scores and its label k
//
//     loss = -sum_j q_j log p_j,     dx = (p - q) scale / count,     p = softmax(x),
//
// where q is 1 - smoothing at k and smoothing / n more everywhere. Rows with the label `ignored`
// have none; a label that is no column makes the row's loss and gradient nan. `count` is a number
// on the device, m if null; at least 1 is divided by.
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
cross_entropy_rows(const scalar_t* X, const size* labels, const size* count, real_t* losses,
                   scalar_t* dX, size smooth, size times, size ignoring, size ignored, size m,
                   size n)
{
    wait_for_stream();
    let_next_come();
    Team<> team;
    const size i = team.row(), of = i < m ? labels[i] : 0;
    Row<1> row({X}, i * n, i < m ? int(n) : 0);
    const bool counts = !(ignoring && of == ignored), known = of >= 0 && of < n;
    const int label = known ? int(of) : -1;
    const real_t lost = real_t(__int_as_float(0x7fc00000));
    const real_t score = i < m && known ? real_t(X[i * n + label]) : lost;
    const size counted = count ? *count : m;
    real_t top = LEAST, total = 0, apart = 0;
    row.each([&](Held<1>& x, int e, int) { top = larger(top, x[0][e]); });
    top = team.largest(top);
    row.each([&](Held<1>& x, int e, int) {
        const real_t d = x[0][e] - top, one = power(d);
        total += one;
        apart += d;
        if (row.held()) x[0][e] = one;
    });
    total = team.sum(total);
    const real_t smoothing = number(smooth), even = smoothing / real_t(n);
    if (smoothing != 0) apart = team.sum(apart);
    const real_t each = number(times) / real_t(counted > 1 ? counted : 1);
    const real_t share = known ? each / total : lost;
    row.packs([&](Held<1>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            const real_t one = row.held() ? x[0][e] : power(x[0][e] - top);
            x[0][e] = counts ? fma(one, share, -(even * each)) : real_t(0);
            if (counts && row.in.at(first, c, e) == label) x[0][e] -= (1 - smoothing) * each;
        }
        row.in.put(dX + i * n, x[0], first, c);
    });
    if (i < m && team.first()) {
        real_t loss = log(total) - (1 - smoothing) * (score - top);
        if (smoothing != 0) loss -= even * apart;
        losses[i] = counts ? loss : real_t(0);
    }
}
