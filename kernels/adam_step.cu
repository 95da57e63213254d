// adam_step.cu: a step of Adam over a parameter w with the gradient g:
//
//     d := factor g + lean w
//     m := beta1 m + (1 - beta1) d        v := beta2 v + (1 - beta2) d^2
//     w := keep w - rate m / (root sqrt v + eps)
//
// where rate holds 1 / (1 - beta1^t), root 1 / sqrt(1 - beta2^t), keep what AdamW's decay leaves, and
// lean is Adam's. Of a parameter in half precision w is the master, in single, and
// `rounded`, else null, what layers see. Every operation is rounded as NumPy rounds it.
//
// Floor: four arrays read, three written, once, and `rounded` written.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 1;    // of 16 bytes, of each array in a thread
#endif
#include "elements.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
adam_step(real_t* W, scalar_t* rounded, const scalar_t* G, real_t* M, real_t* S, size beta1,
          size rest1, size beta2, size rest2, size root, size eps, size rate, size keep,
          size lean, size factor, size count)
{
    wait_for_stream();
    const real_t b1 = number(beta1), r1 = number(rest1), b2 = number(beta2), r2 = number(rest2);
    const real_t by = number(root), more = number(eps), far = number(rate), kept = number(keep);
    const real_t decay = number(lean), scaled = number(factor);
    real_t w[PACKS][V], g[PACKS][V], m[PACKS][V], v[PACKS][V];
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        get(w[c], W, begin_of(c), count);
        get(g[c], G, begin_of(c), count);
        get(m[c], M, begin_of(c), count);
        get(v[c], S, begin_of(c), count);
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
        put(W, w[c], begin_of(c), count);
        put(M, m[c], begin_of(c), count);
        put(S, v[c], begin_of(c), count);
        if (rounded) put(rounded, w[c], begin_of(c), count);
    }
}
