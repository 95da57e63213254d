// line_maxima.cu: the largest number of each line of an operand whose lines lie side by side, by
// chunks of k, before split_lines scales them; one launch for both operands of a product.
//
// A lane has four lines, a warp of the block every eighth step along k, of one chunk; the first
// chunk's blocks clear the counts of lost numbers, which split_lines adds to.
//
// Floor: one read of the operand.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
#endif
#include "launch.cuh"
#include "operand_lines.cuh"

constexpr int WIDTH = 128;  // lines of a block

__device__ inline void maxima(const Operand& of, unsigned block)
{
    __shared__ unsigned found[WARPS][WIDTH];
    const unsigned across = (of.lines + WIDTH - 1) / WIDTH, chunk = block / across;
    const size first = size(block % across) * WIDTH + 4 * (threadIdx.x % 32);
    const size part = (of.k + of.chunks - 1) / of.chunks, from = chunk * part;
    const size to = from + part < of.k ? from + part : of.k;
    const bool whole = of.in_fours(of.next, of.step);
    const int warp = threadIdx.x / 32;
    unsigned most[4] = {};
    #pragma unroll 4
    for (size p = from + warp; p < to; p += WARPS) {
        float x[4];
        read_four(x, of.X + first * of.next + p * of.step, of.next, of.lines - first, whole);
        #pragma unroll
        for (int e = 0; e < 4; ++e) most[e] = most[e] < pattern(x[e]) ? pattern(x[e]) : most[e];
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e) found[warp][4 * (threadIdx.x % 32) + e] = most[e];
    __syncthreads();
    for (int i = threadIdx.x; i < WIDTH; i += 32 * WARPS) {
        const size line = first - 4 * (threadIdx.x % 32) + i;
        if (line >= of.lines) continue;
        unsigned largest = 0;
        #pragma unroll
        for (int w = 0; w < WARPS; ++w) largest = largest < found[w][i] ? found[w][i] : largest;
        of.largest[chunk * of.lines + line] = largest;
        if (chunk == 0) of.about[line].lost = 0;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
line_maxima(size blocks, const float* A, size m, size k, size a_next, size a_step, Line* a_about,
            unsigned* a_largest, size a_chunks, const float* B, size n, size b_next, size b_step,
            Line* b_about, unsigned* b_largest, size b_chunks)
{
    wait_for_stream();
    if (blockIdx.x < blocks)
        maxima({A, m, k, a_next, a_step, nullptr, 0, a_about, a_largest, a_chunks}, blockIdx.x);
    else
        maxima({B, n, k, b_next, b_step, nullptr, 0, b_about, b_largest, b_chunks},
               blockIdx.x - unsigned(blocks));
}
