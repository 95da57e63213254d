// split_panel.cu: what split_lines makes of an operand whose lines lie side by side, read once: all
// of SIDE lines fit into shared memory.
//
// A block reads SIDE lines, a thread four neighbours at a step along k, of every ROWS-th; then a
// lane makes eight neighbours along k of one line, a warp 32 of 8 lines, without bank conflicts.
//
// Floor: 8 bytes an entry, read and written once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;   // of a block
constexpr int SIDE = 16;    // lines of a block
#endif
#include "block.cuh"
#include "launch.cuh"
#include "operand_lines.cuh"
#include "shuffle.cuh"

static_assert(SIDE % 8 == 0 && WARPS % (SIDE / 8) == 0 && SIDE <= 32);

__device__ inline void split_panel_of(const Operand& of, unsigned block)
{
    __shared__ unsigned most[SIDE];
    __shared__ int gone[SIDE];
    float* const panel = reinterpret_cast<float*>(dynamic_shared);  // [k][SIDE + 1]
    constexpr int QUADS = SIDE / 4, ROWS = 32 * WARPS / QUADS;
    const size line = size(block) * SIDE;
    const int thread = threadIdx.x, lane = thread % 32, quad = 4 * (thread % QUADS);
    const bool whole = of.in_fours(of.next, of.step);
    if (thread < SIDE) most[thread] = 0, gone[thread] = 0;
    __syncthreads();
    unsigned largest[4] = {};
    #pragma unroll 8
    for (size p = thread / QUADS; p < of.k; p += ROWS) {
        float x[4];
        read_four(x, of.X + (line + quad) * of.next + p * of.step, of.next,
                  of.lines - line - quad, whole);
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            panel[p * (SIDE + 1) + quad + e] = x[e];
            largest[e] = largest[e] < pattern(x[e]) ? pattern(x[e]) : largest[e];
        }
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        for (int step = 16; step >= QUADS; step /= 2) {
            const unsigned other = across(largest[e], step);
            largest[e] = largest[e] < other ? other : largest[e];
        }
        if (lane < QUADS) atomicMax(&most[quad + e], largest[e]);
    }
    __syncthreads();

    const int warp = thread / 32, mine = lane % 8 + 8 * (warp % (SIDE / 8));
    const bool finite = most[mine] < 0x7f800000, inside = line + mine < of.lines;
    const int exponent = scale_of(most[mine]);
    const Scale scale(exponent);
    unsigned short* const to = of.pairs + (line + mine) * of.room;
    int lost = 0;
    for (size p = 8 * (lane / 8 + 4 * (warp / (SIDE / 8))); p < of.k; p += 32 * WARPS / (SIDE / 8)) {
        unsigned pair[8];
        #pragma unroll
        for (int e = 0; e < 8; ++e) {
            pair[e] = 0;
            if (finite && p + e < of.k)
                pair[e] = pair_of(panel[(p + e) * (SIDE + 1) + mine], scale, lost);
        }
        if (inside) store_eight(to + p, of.lines * of.room, pair);
    }
    for (int step = 8; step < 32; step *= 2) lost += across(lost, step);
    if (lane < 8 && lost) atomicAdd(&gone[mine], lost);
    __syncthreads();
    if (thread < SIDE && line + thread < of.lines) {
        Line about = line_of(scale_of(most[thread]));
        about.lost = most[thread] < 0x7f800000 ? gone[thread] : NOT_FINITE;
        of.about[line + thread] = about;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
split_panel(size blocks, const float* A, size m, size k, size a_next, size a_step,
            unsigned short* a_pairs, size room, Line* a_about, const float* B, size n, size b_next,
            size b_step, unsigned short* b_pairs, Line* b_about)
{
    wait_for_stream();
    if (blockIdx.x < blocks)
        split_panel_of({A, m, k, a_next, a_step, a_pairs, room, a_about, nullptr, 0}, blockIdx.x);
    else
        split_panel_of({B, n, k, b_next, b_step, b_pairs, room, b_about, nullptr, 0},
                       blockIdx.x - unsigned(blocks));
}
