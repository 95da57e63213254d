// attention_queries.cu: dQ of attention (attention_backward.cuh): a block has ROWS queries, and
// goes through the keys and values in tiles of LINES.
//
// Floor: 6 m n WIDTH operations a member (half of them if causal), 3 times as many of single
// precision, and m n powers, at the rates of attention_forward.cu.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TILES = 1;    // of 16 queries, of a warp
constexpr int LINES = 64;   // keys of a tile
constexpr int STAGES = 2;   // of tiles in shared memory
constexpr int BLOCKS = 2;   // on a multiprocessor
constexpr int WIDTH = 64;   // numbers of a line, or more
#endif
#include "attention_backward.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
attention_queries(const number_t* Q, size q_batch, size q_head, size q_next, const number_t* K,
                  size k_batch, size k_head, size k_next, const number_t* V, size v_batch,
                  size v_head, size v_next, const number_t* dY, size dy_batch, size dy_head,
                  size dy_next, scalar_t* dQ, size dq_batch, size dq_head, size dq_next,
                  const float* L, const float* D, const int* scales_at, const unsigned char* mask,
                  size mask_batch, size mask_head, size mask_query, size mask_key, size heads_of,
                  size m_of, size n_of, size width_of, size scale_bits, size causal)
{
    wait_for_stream();
    const int m = int(m_of), n = int(n_of), heads = int(heads_of);
    const int blocks = (m + ROWS - 1) / ROWS, member = int(blockIdx.x) / blocks;
    const int first = (blocks - 1 - int(blockIdx.x) % blocks) * ROWS;  // the longest rows first
    const Scales scales(scales_at, m, n, member, int(gridDim.x) / blocks);
    const float scale = float(__longlong_as_double(scale_bits));
    const Looks looks{mask ? mask + member / heads * mask_batch + member % heads * mask_head : mask,
                      mask_query, mask_key, m, n, int(causal)};
    const Given given{operand(Q, q_batch, q_head, q_next, member, heads),
                      operand(dY, dy_batch, dy_head, dy_next, member, heads),
                      operand(K, k_batch, k_head, k_next, member, heads),
                      operand(V, v_batch, v_head, v_next, member, heads),
                      L + member * m_of, D + member * m_of, m, n, int(width_of)};
    const Walk<false> walk{given, looks, first};
    const int line = walk.mine < m ? walk.mine : first, lift_q = scales.q(line);
    const int lift_dy = scales.dy(line);
    Sums dq = {};
    walk.through(0, (looks.keys(first + ROWS - 1) + LINES - 1) / LINES,
        [&](int key, float& c, float& down) {
            c = power_factor(scale, -lift_q - scales.k(key));
            down = near_power(-lift_dy - scales.v(key));
        },
        [&](Products&, Products& ds, unsigned most, int tile) {
            add_gradient(dq, ds, most, walk.u(tile), scale, scales.k(tile * LINES));
        });
    put_gradient(dQ + member / heads * dq_batch + member % heads * dq_head, dq_next, dq, walk.mine, m,
                 given.width);
}
