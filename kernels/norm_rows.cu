// norm_rows.cu: y = gain (x - mean) / sqrt(variance + eps) + bias for every row x (layer norm), or,
// without a bias and not centred, y = gain x / sqrt(mean x^2 + eps) (RMS norm).
//
// A team has a row (rows.cuh), which it holds: mean and variance are two passes over registers.
// They go to `about`, (mean, 1 / sqrt(variance + eps)) of each row, for norm_rows_backward.
//
// Floor: X read, Y written, once.
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
norm_rows(const scalar_t* X, const scalar_t* gain, const scalar_t* bias, scalar_t* Y,
          real_t* about, size eps, size m, size n)
{
    wait_for_stream();
    Team<> team;
    const size i = team.row();
    Row<1> row({X}, i * n, i < m ? int(n) : 0);
    real_t mean = 0, squares = 0;
    if (bias) mean = team.sum(row.sum([](Held<1>& x, int e) { return x[0][e]; })) / real_t(n);
    row.packs([&](Held<1>& x, int first, int c) {
        real_t of[V];
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            const real_t d = row.in.has(first, c, e) ? x[0][e] - mean : real_t(0);
            of[e] = d * d;
        }
        squares += pack_sum(of);
    });
    const real_t r = 1 / sqrt(team.sum(squares) / real_t(n) + number(eps));
    row.packs([&](Held<1>& x, int first, int c) {
        real_t g[V], b[V] = {}, y[V];
        row.in.get(g, gain, first, c);
        if (bias) row.in.get(b, bias, first, c);
        #pragma unroll
        for (int e = 0; e < V; ++e) y[e] = fma((x[0][e] - mean) * r, g[e], b[e]);
        row.in.put(Y + i * n, y, first, c);
    });
    if (i < m && lane_of_team() == 0) {
        about[2 * i] = mean;
        about[2 * i + 1] = r;
    }
}
