// attention_keys.cu: dK and dV of attention (attention_backward.cuh): a block has ROWS keys and
// values, and goes through the queries, and the gradients of their answers, in tiles of LINES.
//
// Floor: 8 m n WIDTH operations a member (half of them if causal), 3 times as many of single
// precision, and m n powers, at the rates of attention_forward.cu.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TILES = 1;    // of 16 keys, of a warp
constexpr int LINES = 64;   // queries of a tile
constexpr int STAGES = 2;   // of tiles in shared memory
constexpr int BLOCKS = 2;   // on a multiprocessor
constexpr int WIDTH = 64;   // numbers of a line, or more
#endif
#include "attention_backward.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
attention_keys(const number_t* Q, size q_batch, size q_head, size q_next, const number_t* K,
               size k_batch, size k_head, size k_next, const number_t* V, size v_batch,
               size v_head, size v_next, const number_t* dY, size dy_batch, size dy_head,
               size dy_next, scalar_t* dK, size dk_batch, size dk_head, size dk_next, scalar_t* dV,
               size dv_batch, size dv_head, size dv_next, const float* L, const float* D,
               const int* scales_at, const unsigned char* mask, size mask_batch, size mask_head,
               size mask_query, size mask_key, size heads_of, size m_of, size n_of, size width_of,
               size scale_bits, size causal)
{
    wait_for_stream();
    const int m = int(m_of), n = int(n_of), heads = int(heads_of);
    const int blocks = (n + ROWS - 1) / ROWS, member = int(blockIdx.x) / blocks;
    const int first = int(blockIdx.x) % blocks * ROWS;
    const Scales scales(scales_at, m, n, member, int(gridDim.x) / blocks);
    const float scale = float(__longlong_as_double(scale_bits));
    const Looks looks{mask ? mask + member / heads * mask_batch + member % heads * mask_head : mask,
                      mask_query, mask_key, m, n, int(causal)};
    const Given given{operand(K, k_batch, k_head, k_next, member, heads),
                      operand(V, v_batch, v_head, v_next, member, heads),
                      operand(Q, q_batch, q_head, q_next, member, heads),
                      operand(dY, dy_batch, dy_head, dy_next, member, heads),
                      L + member * m_of, D + member * m_of, n, m, int(width_of)};
    const Walk<true> walk{given, looks, first};
    const int line = walk.mine < n ? walk.mine : first, lift_k = scales.k(line);
    const int lift_v = scales.v(line);
    Sums dk = {}, dv = {};
    walk.through(looks.first_query(first) / LINES, (m + LINES - 1) / LINES,
        [&](int query, float& c, float& down) {
            c = power_factor(scale, -lift_k - scales.q(query));
            down = near_power(-lift_v - scales.dy(query));
        },
        [&](Products& s, Products& ds, unsigned most, int tile) {
            const float down = near_power(-UP - scales.dy(tile * LINES));
            multiply_across(dv, Weights<LINES>(s), walk.w(tile),
                            [=](float sum, float part, int, int) { return fmaf(part, down, sum); });
            add_gradient(dk, ds, most, walk.u(tile), scale, scales.q(tile * LINES));
        });
    put_gradient(dK + member / heads * dk_batch + member % heads * dk_head, dk_next, dk, walk.mine, n,
                 given.width);
    put_gradient(dV + member / heads * dv_batch + member % heads * dv_head, dv_next, dv, walk.mine, n,
                 given.width);
}
