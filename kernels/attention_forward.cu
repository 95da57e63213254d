// attention_forward.cu: Y = softmax(scale Q K^T) V by one walk along the keys (attention.cuh), and L,
// of which the gradients have the softmax again. A query that looks nowhere gets 0.
//
// A block has ROWS queries of a member, its warps TILES times 16 each, and goes through the keys
// and values in tiles of KEYS.
//
// Floor: 4 m n WIDTH operations a member (half of them if causal), 3 times as many of single
// precision, on the tensor cores: 990 Tflop/s on Hopper, of which this instruction is said to reach
// 0.62. m n powers, 16 a clock of a multiprocessor: then as long as the products of WIDTH 40 of two
// bytes. Memory: Q, K, V and Y once. Expected of 8 x 16 x 2048 x 64: 1.2 ms in single precision
// (0.67 at the instruction's rate), 0.4 in bfloat16.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TILES = 2;    // of 16 queries, of a warp
constexpr int KEYS = 64;    // of a tile
constexpr int STAGES = 2;   // of tiles in shared memory
constexpr int BLOCKS = 1;   // on a multiprocessor
constexpr int WIDTH = 64;   // numbers of a line, or more
#endif
#include "attention.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
attention_forward(const number_t* Q, size q_batch, size q_head, size q_next, const number_t* K,
                  size k_batch, size k_head, size k_next, const number_t* V, size v_batch,
                  size v_head, size v_next, scalar_t* Y, size y_batch, size y_head, size y_next,
                  float* L, const int* scales_at, const unsigned char* mask, size mask_batch,
                  size mask_head, size mask_query, size mask_key, size heads_of, size m_of,
                  size n_of, size width_of, size scale_bits, size causal)
{
    wait_for_stream();
    const int m = int(m_of), n = int(n_of), width = int(width_of), heads = int(heads_of);
    const int blocks = (m + ROWS - 1) / ROWS, member = int(blockIdx.x) / blocks;
    const int first = (blocks - 1 - int(blockIdx.x) % blocks) * ROWS;  // the longest rows first
    const int mine = first + 16 * TILES * warp();
    const Scales scales(scales_at, m, n, member, int(gridDim.x) / blocks);
    const float scale = float(__longlong_as_double(scale_bits));
    const Looks looks{mask ? mask + member / heads * mask_batch + member % heads * mask_head : mask,
                      mask_query, mask_key, m, n, int(causal)};
    const int tiles = (looks.keys(first + ROWS - 1) + KEYS - 1) / KEYS;

    using Ring = Lines<KEYS>;
    const Lines<ROWS> queries{0};
    const auto stage = [=](int tile) {
        return Ring{unsigned(queries.BYTES + tile % STAGES * (2 * Ring::BYTES))};
    };
    const Operand keys = operand(K, k_batch, k_head, k_next, member, heads);
    const Operand values = operand(V, v_batch, v_head, v_next, member, heads);
    const auto fetch = [=](int tile) {
        if (tile < tiles) {
            const Ring to = stage(tile);
            to.fetch(keys, tile * KEYS, n, PLANES == 2 ? WIDTH : width);
            Ring{to.at + Ring::BYTES}.fetch(values, tile * KEYS, n, PLANES == 2 ? WIDTH : width);
        }
        end_group();
    };
    queries.fetch(operand(Q, q_batch, q_head, q_next, member, heads), first, m,
                  PLANES == 2 ? WIDTH : width);
    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) fetch(s);

    float y[TILES][WIDTH / 8][4] = {};
    Softmax<TILES> softmax;
    const int lift_q = mine < m ? scales.q(mine) : 0;
    #pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        await_groups<STAGES - 2>();
        __syncthreads();
        fetch(tile + STAGES - 1);
        const Ring k = stage(tile), v{k.at + Ring::BYTES};
        const int key = tile * KEYS;
        float s[TILES][KEYS / 8][4] = {};
        const auto score = [&](int i, int j, int e) -> float& { return s[i][j][e]; };
        multiply(s, queries, k);
        const float c = power_factor(scale, -lift_q - scales.k(key));
        if (!looks.all(mine, key + KEYS - 1)) looks.hide<false, TILES, KEYS / 8>(score, mine, key);
        softmax.weigh<KEYS / 8>(score, c);
        const float down = near_power(-scales.v(key));
        multiply_across(y, Weights<KEYS>(s), v, [&](float sum, float part, int i, int h) {
            return PLANES == 1 ? fmaf(sum, softmax.shrink[i][h], part)
                               : fmaf(part, down, sum * softmax.shrink[i][h]);
        });
    }

    softmax.finish(L + member * m_of, mine, m);
    put_lines<TILES, WIDTH / 8>(
        Y + member / heads * y_batch + member % heads * y_head, y_next,
        [&](int i, int j, int e) { return y[i][j][e]; }, mine, m, width,
        [&](int i, int h) { return softmax.total[i][h]; });
}
