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
#include "launch.cuh"
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
cross_entropy_rows(const scalar_t* X, const size* labels, const size* count, real_t* losses,
                   scalar_t* dX, size smooth, size times, size ignoring, size ignored, size m,
                   size n)
{
    wait_for_stream();
    Team<> team;
    const size i = team.row(), of = i < m ? labels[i] : 0;
    Row<1> row({X}, i * n, i < m ? int(n) : 0);
    const bool counts = !(ignoring && of == ignored), known = of >= 0 && of < n;
    const int label = known ? int(of) : -1;
    real_t top = LEAST, total = 0, apart = 0;
    row.each([&](Held<1>& x, int e, int) { top = x[0][e] > top ? x[0][e] : top; });
    top = team.largest(top);
    row.each([&](Held<1>& x, int e, int) {
        const real_t d = x[0][e] - top, power = exp(d);
        total += power;
        apart += d;
        if (row.held()) x[0][e] = power;
    });
    total = team.sum(total);
    apart = team.sum(apart);
    const real_t smoothing = number(smooth), even = smoothing / real_t(n);
    const size counted = count ? *count : m;
    const real_t all = real_t(counted > 1 ? counted : 1) / number(times);
    const real_t share = 1 / (total * all);
    const real_t lost = real_t(__int_as_float(0x7fc00000));
    row.packs([&](Held<1>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            const real_t power = row.held() ? x[0][e] : exp(x[0][e] - top);
            const real_t q = row.in.at(first, c, e) == label ? 1 - smoothing + even : even;
            x[0][e] = !counts ? real_t(0) : known ? power * share - q / all : lost;
        }
        row.in.put(dX + i * n, x[0], first, c);
    });
    if (i < m && team.first()) {
        real_t loss = counts ? lost : real_t(0);
        if (counts && known) {
            loss = log(total) - (1 - smoothing) * (real_t(X[i * n + label]) - top);
            if (smoothing != 0) loss -= even * apart;
        }
        losses[i] = loss;
    }
}
