// attention_wgmma.cu: attention_forward.cu in half precision or bfloat16 on Hopper's tensor cores.
//
// A piece is ROWS queries of a member (attention_boxes.cuh). As many blocks as there is room for go
// through the pieces in turns (Pieces): what a block wants of its next piece is brought while it
// works on the one before. It goes through K and V, each in a ring of its own, LINES keys at a time.
// AHEAD, the scores of a tile are asked for together with the product of the weights before, which
// goes on while the new scores become weights; else each waits for the one before, a group needs
// fewer registers, and a multiprocessor has more of them.
//
// Floor: 4 m n WIDTH operations a member (half of them if causal) at 990 Tflop/s, or what 700 W
// allow, and m n powers, 16 a clock of a multiprocessor: as long as the products of WIDTH 64.
// Expected of 8 x 16 x 2048 x 128, causal: 0.24 ms (570 Tflop/s).
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int LINES = 128;  // keys of a tile
constexpr int STAGES = 2;   // of keys and of values in shared memory
constexpr int AHEAD = 1;    // 1: scores are asked for while values are still multiplied
constexpr int WIDTH = 128;  // numbers of a line, or more
constexpr int BLOCKS = 1;   // of a multiprocessor
#endif
constexpr int WARPS = 4 * (GROUPS + 1), LEAST = 32;
#include "attention_boxes.cuh"

// The pieces of a block. Of a causal member they are from short to long: of the first `paired`
// members the longest goes with the shortest, all pairs are equally long, and a round of the blocks
// takes one each; what is left is taken longest first, from the first block to the last and back, so
// that in the end all have had as much. K and V of few members are wanted at a time: they stay in
// the cache.
struct Pieces {
    int of_member, members, paired, rounds, causal;  // rounds: in which there are pairs
    int member, piece;

    // Goes to the n-th, if there is one; false behind the last. -1 is no piece.
    __device__ bool find(int n)
    {
        const int blocks = int(gridDim.x), pairs = (of_member + 1) / 2, in_pairs = paired * pairs;
        const int round = n < 2 * rounds ? n / 2 : n - rounds;
        const bool second = n < 2 * rounds && n % 2, back = round >= rounds && (round - rounds) % 2;
        const int mine = int(blockIdx.x), at = round * blocks + (back ? blocks - 1 - mine : mine);
        const int alone = at - in_pairs, left = members - paired;
        if (alone < 0) {
            member = at / pairs;
            piece = second ? at % pairs - of_member % 2 : of_member - 1 - at % pairs;
            return true;
        }
        member = causal ? paired + alone % left : alone / of_member;
        piece = second ? -1 : of_member - 1 - (causal ? alone / left : alone % of_member);
        return alone < left * of_member;
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
attention_wgmma(const __grid_constant__ TensorMap Q, const __grid_constant__ TensorMap K,
                const __grid_constant__ TensorMap V, scalar_t* Y, size y_batch, size y_head,
                size y_next, float* L, const unsigned char* mask, size mask_batch, size mask_head,
                size mask_query, size mask_key, size heads_of, size m_of, size n_of, size width_of,
                size scale_bits, size causal, size members, size paired, size rounds)
{
    wait_for_stream();
    const unsigned barriers = shared_address(dynamic_shared), others = barriers + 32;
    const Ring<PART<ROWS>, 1, 2> queries{boxes_from(others + 32 * STAGES), barriers, barriers + 16};
    const Ring<PART<LINES>> keys{queries.stages + 2 * PART<ROWS>, others, others + 8 * STAGES};
    const Ring<PART<LINES>> values{keys.stages + STAGES * PART<LINES>, others + 16 * STAGES,
                                   others + 24 * STAGES};
    if (thread() == 0) {
        queries.make();
        keys.make();
        values.make();
        show_barriers();
    }
    __syncthreads();

    const int m = int(m_of), n = int(n_of), heads = int(heads_of);
    Pieces pieces{(m + ROWS - 1) / ROWS, int(members), int(paired), int(rounds), int(causal)};
    Place<2> at_q;
    const auto looks_of = [=](int head, int batch) {
        return Looks{mask ? mask + batch * mask_batch + head * mask_head : mask, mask_query,
                     mask_key, m, n, int(causal)};
    };
    const auto tiles_of = [](const Looks& looks, int first) {
        return (looks.keys(first + ROWS - 1) + LINES - 1) / LINES;
    };

    if (group() == GROUPS) {
        give_registers<GIVEN>();
        if (thread() != 128 * GROUPS) return;
        Place<> at;
        #pragma unroll 1
        for (int i = 0; pieces.find(i); ++i) {
            if (pieces.piece < 0) continue;
            const int head = pieces.member % heads, batch = pieces.member / heads;
            const int first = pieces.piece * ROWS, tiles = tiles_of(looks_of(head, batch), first);
            if (!tiles) continue;
            queries.fill(at_q, Q, first, head, batch);
            at_q.next();
            #pragma unroll 1
            for (int tile = 0; tile < tiles; ++tile, at.next()) {
                keys.fill(at, K, tile * LINES, head, batch);
                values.fill(at, V, tile * LINES, head, batch);
            }
        }
        return;
    }
    take_registers<TAKEN>();
    const int team = group();
    const float c = power_factor(float(__longlong_as_double(scale_bits)), 0);
    Place<> at_k, at_v;
    #pragma unroll 1
    for (int i = 0; pieces.find(i); ++i) {
        if (pieces.piece < 0) continue;
        const int head = pieces.member % heads, batch = pieces.member / heads;
        const int first = pieces.piece * ROWS, mine = first + 16 * uniform_warp();
        const Looks looks = looks_of(head, batch);
        const int tiles = tiles_of(looks, first);
        const unsigned q = queries.at(at_q) + team * (64 * TILE_ROW);
        float y[WIDTH / 2] = {}, s[LINES / 2] = {};
        int p[LINES / 4];
        Softmax<1> softmax;

        // Scores become weights, while products may still read the ones before; these give their place
        const auto weigh = [&](int key) {
            const auto score = [&](int, int j, int e) -> float& { return s[4 * j + e]; };
            if (!looks.all(mine, key + LINES - 1)) looks.hide<false, 1, LINES / 8>(score, mine, key);
            softmax.weigh<LINES / 8, 4>(score, c);
        };
        const auto pack = [&] {
            const float (&shrink)[2] = softmax.shrink[0];
            if (__any_sync(ALL, shrink[0] != 1 || shrink[1] != 1))
                #pragma unroll
                for (int i = 0; i < WIDTH / 2; ++i) y[i] *= shrink[i / 2 % 2];
            #pragma unroll
            for (int i = 0; i < LINES / 4; ++i) p[i] = int(two_of(s[2 * i], s[2 * i + 1], scalar_t()));
        };
        const auto take_scores = [&] {
            keys.filled(at_k);
            keep(s);
            begin_products();
            ask_along<LINES>(s, q, keys.at(at_k));
            await_products<0>();
            keep(s);
            keys.done(at_k);
        };
        const auto add_values = [&] {
            values.filled(at_v);
            keep(y), keep(p);
            begin_products();
            ask_across<LINES>(y, p, values.at(at_v));
            await_products<0>();
            keep(y), keep(p);
            values.done(at_v);
        };
        if (tiles) {
            queries.filled(at_q);
            take_scores();
            weigh(0);
            pack();
            for (int tile = 1; tile < tiles; ++tile) {
                if (AHEAD) {
                    keys.filled(at_k);
                    values.filled(at_v);
                    keep(s), keep(y), keep(p);
                    begin_products();
                    ask_along<LINES>(s, q, keys.at(at_k));
                    ask_across<LINES>(y, p, values.at(at_v));
                    await_products<1>();
                    keep(s);
                    keys.done(at_k);
                    weigh(tile * LINES);
                    compute_first(softmax.total[0][0] + softmax.total[0][1]);
                    await_products<0>();
                    keep(y), keep(p);
                    values.done(at_v);
                } else {
                    add_values();
                    take_scores();
                    weigh(tile * LINES);
                }
                pack();
            }
            queries.done(at_q);
            add_values();
        }
        softmax.finish(L + pieces.member * m_of, mine, m);
        put_lines<1, WIDTH / 8>(
            Y + batch * y_batch + head * y_head, y_next,
            [&](int, int j, int e) { return y[4 * j + e]; }, mine, m, int(width_of),
            [&](int, int h) { return softmax.total[0][h]; });
    }
}
