// adam_step.cu: a step of Adam over parameters w with the gradients g:
//
//     d := factor g + lean w
//     m := beta1 m + (1 - beta1) d        v := beta2 v + (1 - beta2) d^2
//     w := keep w - rate m / (root sqrt v + eps)
//
// where rate holds 1 / (1 - beta1^t), root 1 / sqrt(1 - beta2^t), keep what AdamW's decay leaves, and
// lean is Adam's. Of a parameter in half precision w is the master, in single, and
// `rounded`, else null, what layers see. Every operation is rounded as NumPy rounds it.
//
// A table has a line for each parameter; a block has a part of one, the last that begins with it or
// with a block before.
//
// Floor: four arrays read, three written, once, and `rounded` written.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 1;    // of 16 bytes, of each array in a thread
#endif
#include "elements.cuh"
#include "launch.cuh"

struct Line {
    real_t* w;
    scalar_t* rounded;
    const scalar_t* g;
    real_t *m, *v;
    size count, block;  // numbers; its first block
};

extern "C" __global__ void __launch_bounds__(THREADS)
adam_step(const Line* lines, size lines_of, size beta1, size rest1, size beta2, size rest2,
          size root, size eps, size rate, size keep, size lean, size factor)
{
    wait_for_stream();
    int which = 0, beyond = int(lines_of);
    while (beyond - which > 1) {
        const int middle = (which + beyond) / 2;
        if (lines[middle].block <= blockIdx.x) which = middle;
        else beyond = middle;
    }
    const Line line = lines[which];
    const size count = line.count;
    const auto begin_of = [=](int c) {
        return ((blockIdx.x - line.block) * PACKS + c) * (THREADS * V) + thread() * V;
    };
    const real_t b1 = number(beta1), r1 = number(rest1), b2 = number(beta2), r2 = number(rest2);
    const real_t by = number(root), more = number(eps), far = number(rate), kept = number(keep);
    const real_t decay = number(lean), scaled = number(factor);
    real_t w[PACKS][V], g[PACKS][V], m[PACKS][V], v[PACKS][V];
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        get(w[c], line.w, begin_of(c), count);
        get(g[c], line.g, begin_of(c), count);
        get(m[c], line.m, begin_of(c), count);
        get(v[c], line.v, begin_of(c), count);
    }
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            real_t &mean = m[c][e], &square = v[c][e], &x = w[c][e];
            real_t d = g[c][e] * scaled;
            if (decay != 0) d += decay * x;
            mean = mean * b1 + r1 * d;
            square = square * b2 + r2 * (d * d);
            x = x * kept - far * mean / (sqrt(square) * by + more);
        }
        put(line.w, w[c], begin_of(c), count);
        put(line.m, m[c], begin_of(c), count);
        put(line.v, v[c], begin_of(c), count);
        if (line.rounded) put(line.rounded, w[c], begin_of(c), count);
    }
}
