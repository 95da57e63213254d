// attention_forward.cu: Y = softmax(scale Q K^T) V and what the gradients need of the softmax, by
// one walk along the keys (attention.cuh).
//
// A row's weights are 2^(c s - top), with the sum of them so far and the integer `top` above all of
// its c s so far: where that rises, what is summed is multiplied by a power of two. A query that
// looks nowhere gets 0.
//
// A block has ROWS queries of a member, its warps TILES times 16 each, and goes through the keys
// and values in tiles of KEYS. L gets 14 - log2 of each row's sum of 2^(c s): then P = 2^(c s + L)
// scaled as it is wanted.
//
// Floor: 4 m n WIDTH operations a member (half of them if causal), 3 times as many of single
// precision, on the tensor cores; mma.sync reaches 0.62 of the 990 Tflop/s of Hopper. m n powers, 16
// a clock of a multiprocessor: as long as the products of WIDTH 32 of two bytes. Memory: Q, K, V
// and Y once.
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
    const int mine = first + 16 * TILES * warp(), g = lane() / 4, t = lane() % 4;
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

    float y[TILES][WIDTH / 8][4] = {}, top[TILES][2], total[TILES][2] = {};
    #pragma unroll
    for (int i = 0; i < TILES; ++i) top[i][0] = top[i][1] = NOTHING;
    const int lift_q = mine < m ? scales.q(mine) : 0;
    #pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        await_groups<STAGES - 2>();
        __syncthreads();
        fetch(tile + STAGES - 1);
        const Ring k = stage(tile), v{k.at + Ring::BYTES};
        const int key = tile * KEYS;
        float s[TILES][KEYS / 8][4] = {}, shrink[TILES][2];
        multiply(s, queries, k);
        const float c = power_factor(scale, -lift_q - scales.k(key));
        if (!looks.all(mine, key + KEYS - 1)) looks.hide<false>(s, mine, key);
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                float most = NOTHING, sum = 0;
                #pragma unroll
                for (int j = 0; j < KEYS / 8; ++j)
                    most = fmaxf(most, fmaxf(s[i][j][2 * h], s[i][j][2 * h + 1]));
                most = fmaxf(most, across(most, 1));
                most = ceilf(c * fmaxf(most, across(most, 2)));
                const float now = fmaxf(top[i][h], most), from = now == NOTHING ? 0.0f : now;
                shrink[i][h] = power(int(fmaxf(top[i][h] - from, -126.0f)));
                top[i][h] = now;
                #pragma unroll
                for (int j = 0; j < KEYS / 8; ++j)
                    #pragma unroll
                    for (int e = 2 * h; e < 2 * h + 2; ++e) {
                        s[i][j][e] = power_of(fmaf(s[i][j][e], c, UP - from));
                        sum += s[i][j][e];
                    }
                total[i][h] = fmaf(total[i][h], shrink[i][h], sum);
            }
        const float down = near_power(-scales.v(key));
        multiply_across(y, Weights<KEYS>(s), v, [&](float sum, float part, int i, int h) {
            return PLANES == 1 ? fmaf(sum, shrink[i][h], part)
                               : fmaf(part, down, sum * shrink[i][h]);
        });
    }

    #pragma unroll
    for (int i = 0; i < TILES; ++i)
        #pragma unroll
        for (int h = 0; h < 2; ++h) {
            float& sum = total[i][h];
            sum += across(sum, 1);
            sum += across(sum, 2);
            // 14 - log2(the sum of all 2^(c s)): the integers apart, so that little is rounded
            const unsigned bits = __float_as_uint(sum);
            const float more = log2f(__int_as_float(int((bits & 0x7fffff) | 0x3f800000)));
            const float whole = top[i][h] - 2 * UP + (int(bits >> 23) - 127);
            const int row = mine + 16 * i + 8 * h + g;
            if (t == 0 && row < m)
                L[member * m_of + row] = sum == 0 ? NOTHING : sum == sum ? -whole - more : sum;
            sum = sum == 0 ? 0.0f : 1 / sum;
        }
    put_lines(Y + member / heads * y_batch + member % heads * y_head, y_next, y, first, m, width,
              [&](int i, int h) { return total[i][h]; });
}
