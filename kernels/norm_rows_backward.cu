// norm_rows_backward.cu: the gradients of norm_rows. With x^ = (x - mean) r and dx^ = gain dy,
//
//     dx = (dx^ - mean(dx^) - x^ mean(dx^ x^)) r,     dgain = sum dy x^,     dbias = sum dy
//
// (not centred: without mean(dx^)), the means over a row, the sums over all rows. What goes past the
// norm in a residual, `plus`, is added to dx, or null.
//
// A team goes through every `gridDim TEAMS`-th row, and adds up its columns' parts of dgain and
// dbias in registers: one line of `parts` a team, (dgain, dbias), for column_sums. A row is held.
//
// Floor: X, dY and `plus` read, dX written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TEAM = 128;   // threads of a row
constexpr int PACKS = 2;    // of 16 bytes, of a row in a thread
constexpr int RESIDENT = 1; // rows are held
constexpr int BLOCKS = 4;   // on a multiprocessor
#endif
#include "launch.cuh"
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
norm_rows_backward(const scalar_t* X, const scalar_t* dY, const scalar_t* gain,
                   const real_t* about, const scalar_t* plus, scalar_t* dX, real_t* parts,
                   size centred, size m, size ns)
{
    wait_for_stream();
    Team<> team;
    const int n = int(ns);
    const Places in{n};
    real_t g[PACKS][V], dgain[PACKS][V] = {}, dbias[PACKS][V] = {};
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) in.get(g[c], gain, 0, c);
    for (size base = 0; base < m; base += size(gridDim.x) * TEAMS) {
        const size i = base + team.row();
        const bool there = i < m;
        Row<2> row({X, dY}, i * n, there ? n : 0);
        const real_t mean = there ? about[2 * i] : 0, r = there ? about[2 * i + 1] : 0;
        real_t shift = 0, stretch = 0;
        #pragma unroll
        for (int c = 0; c < PACKS; ++c)
            #pragma unroll
            for (int e = 0; e < V; ++e) {  // past the row dy and gain are 0
                real_t& x = row.x[c][0][e];
                real_t& dy = row.x[c][1][e];
                x = (x - mean) * r;
                dgain[c][e] += dy * x;
                dbias[c][e] += dy;
                dy *= g[c][e];
                shift += dy;
                stretch += dy * x;
            }
        stretch = team.sum(stretch) / real_t(n);
        shift = centred ? team.sum(shift) / real_t(n) : real_t(0);
        row.packs([&](Held<2>& x, int first, int c) {
            #pragma unroll
            for (int e = 0; e < V; ++e) x[1][e] = (x[1][e] - shift - x[0][e] * stretch) * r;
            if (plus) {
                row.in.get(x[0], plus + i * n, first, c);
                #pragma unroll
                for (int e = 0; e < V; ++e) x[1][e] += x[0][e];
            }
            row.in.put(dX + i * n, x[1], first, c);
        });
    }
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        in.put(parts + 2 * team.row() * n, dgain[c], 0, c);
        in.put(parts + (2 * team.row() + 1) * n, dbias[c], 0, c);
    }
}
