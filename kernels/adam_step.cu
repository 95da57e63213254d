// adam_step.cu: a step of Adam over a parameter w with the gradient g:
//
//     m := beta1 m + (1 - beta1) g        v := beta2 v + (1 - beta2) g^2
//     w := keep w - rate m / (root sqrt v + eps)
//
// rate holds 1 / (1 - beta1^t), root 1 / sqrt(1 - beta2^t), keep what AdamW's decay leaves. Every
// operation is rounded as NumPy rounds it.
//
// Floor: four arrays read, three written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 1;    // of 16 bytes, of each array in a thread
#endif
#include "elements.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
adam_step(scalar_t* W, const scalar_t* G, scalar_t* M, scalar_t* S, size beta1, size rest1,
          size beta2, size rest2, size root, size eps, size rate, size keep, size count)
{
    wait_for_stream();
    const scalar_t b1 = number(beta1), r1 = number(rest1), b2 = number(beta2), r2 = number(rest2);
    const scalar_t by = number(root), more = number(eps), far = number(rate), kept = number(keep);
    Pack w[PACKS], g[PACKS], m[PACKS], v[PACKS];
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        w[c] = get(W, begin_of(c), count);
        g[c] = get(G, begin_of(c), count);
        m[c] = get(M, begin_of(c), count);
        v[c] = get(S, begin_of(c), count);
    }
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            const scalar_t d = g[c].x[e];
            scalar_t &mean = m[c].x[e], &square = v[c].x[e], &x = w[c].x[e];
            mean = mean * b1 + r1 * d;
            square = square * b2 + r2 * (d * d);
            x = x * kept - far * mean / (sqrt(square) * by + more);
        }
        put(W, w[c], begin_of(c), count);
        put(M, m[c], begin_of(c), count);
        put(S, v[c], begin_of(c), count);
    }
}
