// attention_pairs.cu: lines of single precision as pairs of half precision (pairs.cuh), for the
// kernels of attention: Y, (member, line, high or low, WIDTH), zeros past the width, of X, any
// strides; and the exponent by which each 64 lines are scaled.
//
// The scale is by the largest finite number of the 64 lines: a number counts to 2^-22 of itself, or
// 2^-39 of that largest one. One that is not finite is nan in what it goes into.
//
// A block has 64 lines of a member, in registers. Floor: X read once, Y, as long, written.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int WIDTH = 64;   // numbers of a line of Y, a multiple of 16
#endif
#include "block.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "shuffle.cuh"

constexpr int LINES = 64, PACKS = WIDTH / 4, EACH = (LINES * PACKS + THREADS - 1) / THREADS;
constexpr int MOST = 100, LEAST = -113;  // exponents, so that powers of two of a few are numbers

struct alignas(16) Pack { float x[4]; };
struct alignas(8) Halves { unsigned first, second; };  // two and two

extern "C" __global__ void __launch_bounds__(THREADS)
attention_pairs(const float* X, size batch, size head, size next, Halves* Y, int* scales,
                size heads_of, size n_of, size width_of)
{
    wait_for_stream();
    __shared__ unsigned all[WARPS];
    const int n = int(n_of), width = int(width_of), heads = int(heads_of);
    const int blocks = (n + LINES - 1) / LINES, member = int(blockIdx.x) / blocks;
    const int first = int(blockIdx.x) % blocks * LINES;
    const float* const from = X + member / heads * batch + member % heads * head;
    Pack x[EACH];
    unsigned most = 0;
    #pragma unroll
    for (int c = 0; c < EACH; ++c) {
        const int i = thread() + c * THREADS, line = first + i / PACKS, at = i % PACKS * 4;
        const bool there = i < LINES * PACKS && line < n && at < width;
        x[c] = there ? *reinterpret_cast<const Pack*>(from + line * next + at) : Pack{};
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const unsigned bits = __float_as_uint(x[c].x[e]) & 0x7fffffff;
            most = bits > most && bits < 0x7f800000 ? bits : most;
        }
    }
    most = __reduce_max_sync(ALL, most);
    if (thread() % 32 == 0) all[warp()] = most;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) most = all[w] > most ? all[w] : most;
    int e = scale_of(most);
    e = e > MOST ? MOST : e < LEAST ? LEAST : e;
    if (thread() == 0) scales[blockIdx.x] = e;
    const Scale scale(e);
    #pragma unroll
    for (int c = 0; c < EACH; ++c) {
        const int i = thread() + c * THREADS, line = first + i / PACKS;
        if (i >= LINES * PACKS || line >= n) continue;
        const Pair a = pairs_of(scale.of(x[c].x[0]), scale.of(x[c].x[1]));
        const Pair b = pairs_of(scale.of(x[c].x[2]), scale.of(x[c].x[3]));
        Halves* const to = Y + (member * n_of + line) * 2 * PACKS + i % PACKS;
        to[0] = {a.high, b.high};
        to[PACKS] = {a.low, b.low};
    }
}
