// attention_wgmma.cu: attention_forward.cu in half precision or bfloat16 on Hopper's tensor cores.
//
// A piece is ROWS queries of a member (attention_boxes.cuh). A block has one, or, of the first `paired`
// members, two, the longest with the shortest: what it wants of the second is brought while it works
// on the first. It goes through K and V, each in a ring of its own, LINES keys at a time. The scores
// of a tile are asked for together with the product of the weights before, which goes on while the
// new scores become weights; and with TURNS groups ask one after the other, so that one computes powers
// while the other's products run.
//
// Floor: 4 m n WIDTH operations a member (half of them if causal) at 990 Tflop/s, or what 700 W
// allow, and m n powers, 16 a clock of a multiprocessor: as long as the products of WIDTH 64.
// Expected of 8 x 16 x 2048 x 128, causal: 0.28 ms (500 Tflop/s).
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int LINES = 128;  // keys of a tile
constexpr int STAGES = 2;   // of keys and of values in shared memory
constexpr int TURNS = 1;    // 1: groups ask for products one after the other
constexpr int WIDTH = 128;  // numbers of a line, or more
constexpr int BLOCKS = 1;   // of a multiprocessor
#endif
constexpr int WARPS = 4 * (GROUPS + 1);
#include "attention_boxes.cuh"

static_assert(!TURNS || GROUPS == 2);

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), BLOCKS)
attention_wgmma(const __grid_constant__ TensorMap Q, const __grid_constant__ TensorMap K,
                const __grid_constant__ TensorMap V, scalar_t* Y, size y_batch, size y_head,
                size y_next, float* L, const unsigned char* mask, size mask_batch, size mask_head,
                size mask_query, size mask_key, size heads_of, size m_of, size n_of, size width_of,
                size scale_bits, size causal, size paired)
{
    wait_for_stream();
    const unsigned of_q = shared_address(dynamic_shared), others = of_q + 16;
    const unsigned shared = boxes_from(others + 32 * STAGES);
    const Ring<PART<LINES>> keys{shared + 2 * PART<ROWS>, others, others + 8 * STAGES};
    const Ring<PART<LINES>> values{keys.stages + STAGES * PART<LINES>, others + 16 * STAGES,
                                   others + 24 * STAGES};
    if (thread() == 0) {
        make_barrier(of_q, 1);
        make_barrier(of_q + 8, 1);
        keys.make();
        values.make();
        show_barriers();
    }
    __syncthreads();

    const int m = int(m_of), n = int(n_of), heads = int(heads_of);
    const int pieces = (m + ROWS - 1) / ROWS, pairs = (pieces + 1) / 2;  // of a member
    const int alone = int(blockIdx.x) - int(paired) * pairs;  // which of those with one piece
    const int member = alone < 0 ? int(blockIdx.x) / pairs : int(paired) + alone / pieces;
    const int i = alone < 0 ? int(blockIdx.x) % pairs : alone % pieces;
    const int count = alone < 0 && 2 * i != pieces - 1 ? 2 : 1;
    const auto first_of = [=](int piece) { return (piece ? i : pieces - 1 - i) * ROWS; };
    const int head = member % heads, batch = member / heads;
    const Looks looks{mask ? mask + batch * mask_batch + head * mask_head : mask, mask_query,
                      mask_key, m, n, int(causal)};
    const auto tiles_of = [=](int first) {
        return (looks.keys(first + ROWS - 1) + LINES - 1) / LINES;
    };

    if (group() == 0) {
        give_registers<GIVEN>();
        if (thread() != 0) return;
        Place at;
        const auto fill = [&](const Ring<PART<LINES>>& ring, const TensorMap& from, int key) {
            ring.emptied(at);
            expect(ring.full + 8 * at.stage, PART<LINES>);
            load_lines<LINES>(ring.at(at), from, ring.full + 8 * at.stage, key, head, batch);
        };
        for (int piece = 0; piece < count; ++piece) {
            const int first = first_of(piece), tiles = tiles_of(first);
            if (!tiles) continue;
            expect(of_q + 8 * piece, PART<ROWS>);
            load_lines<ROWS>(shared + piece * PART<ROWS>, Q, of_q + 8 * piece, first, head, batch);
            for (int tile = 0; tile < tiles; ++tile, at.next()) {
                fill(keys, K, tile * LINES);
                fill(values, V, tile * LINES);
            }
        }
        return;
    }
    take_registers<TAKEN>();
    const int team = group() - 1;
    const float c = power_factor(float(__longlong_as_double(scale_bits)), 0);
    Place at_k, at_v;
    if (TURNS && team == 1) give_turn(0);
    #pragma unroll 1
    for (int piece = 0; piece < count; ++piece) {
        const int first = first_of(piece), tiles = tiles_of(first);
        const int mine = first + 16 * (uniform_warp() - 4);
        const unsigned q = shared + piece * PART<ROWS> + team * (64 * TILE_ROW);
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
        if (tiles) {
            await(of_q + 8 * piece, 0);
            keys.filled(at_k);
            keep(s);
            begin_products();
            ask_along<LINES>(s, q, keys.at(at_k));
            await_products<0>();
            keep(s);
            keys.done(at_k);
            weigh(0);
            pack();
            for (int tile = 1; tile < tiles; ++tile) {
                keys.filled(at_k);
                values.filled(at_v);
                if (TURNS) wait_turn(team);
                keep(s), keep(y), keep(p);
                begin_products();
                ask_along<LINES>(s, q, keys.at(at_k));
                ask_across<LINES>(y, p, values.at(at_v));
                if (TURNS) give_turn(1 - team);
                await_products<1>();
                keep(s);
                keys.done(at_k);
                weigh(tile * LINES);
                compute_first(softmax.total[0][0] + softmax.total[0][1]);
                await_products<0>();
                keep(y), keep(p);
                values.done(at_v);
                pack();
            }
            values.filled(at_v);
            keep(y), keep(p);
            begin_products();
            ask_across<LINES>(y, p, values.at(at_v));
            await_products<0>();
            keep(y), keep(p);
            values.done(at_v);
        }
        softmax.finish(L + member * m_of, mine, m);
        put_lines<1, WIDTH / 8>(
            Y + batch * y_batch + head * y_head, y_next,
            [&](int, int j, int e) { return y[4 * j + e]; }, mine, m, int(width_of),
            [&](int, int h) { return softmax.total[0][h]; });
    }
    if (TURNS && team == 0) wait_turn(0);  // the turn that nobody takes
}
