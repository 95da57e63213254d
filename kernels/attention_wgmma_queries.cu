// attention_wgmma_queries.cu: dQ of attention in half precision or bfloat16 on Hopper's tensor cores
// (attention_gradients.cuh): a block has ROWS queries, and goes through the keys and values in tiles
// of LINES.
//
// Floor: 6 m n WIDTH operations a member (half of them if causal) at 990 Tflop/s, or what 700 W
// allow, and m n powers, 16 a clock of a multiprocessor: 2/3 of the time of the products of WIDTH 64.
// Expected of 8 x 16 x 2048 x 64: 0.35 ms (600 Tflop/s).
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int LINES = 64;   // keys of a tile
constexpr int STAGES = 3;   // of tiles in shared memory
constexpr int WIDTH = 128;  // numbers of a line, or more
constexpr int BLOCKS = 1;   // of a multiprocessor
#endif
constexpr int WARPS = 4 * (GROUPS + 1), LEAST = 24;
#include "attention_gradients.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
attention_wgmma_queries(const __grid_constant__ TensorMap Q, const __grid_constant__ TensorMap K,
                        const __grid_constant__ TensorMap V, const __grid_constant__ TensorMap dY,
                        scalar_t* dQ, size dq_batch, size dq_head, size dq_next, const float* L,
                        const float* D, const unsigned char* mask, size mask_batch, size mask_head,
                        size mask_query, size mask_key, size heads_of, size m_of, size n_of,
                        size width_of, size scale_bits, size causal)
{
    wait_for_stream();
    const int m = int(m_of), n = int(n_of), heads = int(heads_of);
    const int blocks = (m + ROWS - 1) / ROWS, member = int(blockIdx.x) / blocks;
    const int first = (blocks - 1 - int(blockIdx.x) % blocks) * ROWS;  // the longest rows first
    const int head = member % heads, batch = member / heads;
    const float scale = float(__longlong_as_double(scale_bits));
    const Looks looks{mask ? mask + batch * mask_batch + head * mask_head : mask, mask_query,
                      mask_key, m, n, int(causal)};
    const Walk<false> walk{looks, L + member * m_of, D + member * m_of, first, head, batch};
    walk.make();
    if (group() == GROUPS) return walk.produce(Q, dY, K, V);
    Sums dq = {}, none;
    const int e = walk.multiply(none, dq, power_factor(scale, 0));
    put_gradient(dQ + batch * dq_batch + head * dq_head, dq_next, dq, first, m, int(width_of),
                 scale * near_power(-UP - e));
}
