// recurrent_unsteps_cluster.cu: what recurrent_unsteps.cu does, where all units find room in a cluster
// of blocks, which send each other what they make of dz instead of dz.
//
// A cluster has 8 rows of the batch, a block UNITS units of them and the columns of U that these
// units' gates have, as pairs of half precision (pairs.cuh) in registers: a warp those of 16 TILES
// units, as tiles A of products U dz^T. So a block makes, of its own dz, a part of dh of all units, and
// sends each to the block that has the units (cluster.cuh), which adds them in the order of the blocks.
// A thread has one unit of one row, or several, and what they carry, for all steps. What a step has of
// its own is brought to shared memory STAGES - 1 steps ahead.
//
// Beside dz there remain its sums over time and the rows of a cluster, which are shares of the
// gradients in the biases, and the gradient in the state before the first step.
//
// Products are sums of three of pairs, to 22 bits of a number or 2^-39 of the largest of its row in
// the block, with which it is scaled.
//
// Floor, a step: the way of a message to another block (about 0.3 us), one barrier of the block,
// UNITS / 4 products one after the other: 0.6 us. An H200 takes 1.3.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int UNITS = 16;   // of a block, 16 or 32
constexpr int CLUSTER = 8;  // blocks; CLUSTER UNITS is a multiple of 16 WARPS
constexpr int STAGES = 3;   // steps whose numbers are in shared memory or on their way there
constexpr int CELL = 0;     // 0: LSTM, 1: GRU, 2: RNN
#endif
#include "async.cuh"
#include "cells.cuh"
#include "cluster.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "shuffle.cuh"

constexpr int ROWS = 8;
constexpr int SIXTEENS = UNITS / 4;  // of k: a unit's gates are four of it
constexpr int TILES = CLUSTER * UNITS / (16 * WARPS), OWN = UNITS / 16;  // of a warp, of a block
constexpr int PITCH = UNITS + 4;     // no two lanes meet in a bank
constexpr int EACH = Units<UNITS, ROWS>::EACH;  // units of a thread
constexpr int SUMS = GATES + (CELL == GRU);
static_assert((UNITS == 16 || UNITS == 32) && CLUSTER * UNITS % (16 * WARPS) == 0 && CLUSTER >= 2);

// In shared memory: two barriers, by turns; by turns and rows, the factors that undo their scales; by
// turns, rows and units, a unit's gates as pairs; by turns, blocks and tiles, what a lane of a sender
// has of a tile; of steps, what is kept of them and dy, by threads.
constexpr int FACTORS = 64, SPLIT = FACTORS + 2 * 8 * ROWS, PARTS = SPLIT + 2 * 16 * ROWS * PITCH;
constexpr int AHEAD = PARTS + 2 * CLUSTER * OWN * 512;

__device__ inline word two_floats(float a, float b)
{
    return __float_as_uint(a) | word(__float_as_uint(b)) << 32;
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
recurrent_unsteps_cluster(const float* gates, const float* U, const float* C, const float* states,
                          const float* state_before, const float* dY, const float* dH,
                          const float* dCarried, float* dZ, float* dZ_of_x, float* dH_before,
                          float* dCarried_before, float* sums_of_dZ, size clip_bits,
                          size backwards, size truncate, size times, size batch, size units)
{
    wait_for_stream();
    const int H = int(units), rank = int(blockIdx.x) % CLUSTER, lane = thread() % 32;
    const int first_unit = rank * UNITS, first_row = int(blockIdx.x) / CLUSTER * ROWS;
    const int left = int(batch) - first_row, g = lane / 4, t = lane % 4;
    const unsigned shared = shared_address(dynamic_shared);
    if (thread() == 0) {
        make_barrier(shared, 1);
        make_barrier(shared + 8, 1);
        show_barriers();
    }

    // Of tile i lane (g, t) has rows g, g + 8 of U, of the k-th sixteen columns the gates of unit
    // 4 k + t: register a those of row g + 8 (a % 2) and of gates 2 (a / 2), 2 (a / 2) + 1
    const auto weight = [=](int k, int i, int a, int e) {
        const int j = 16 * (warp() * TILES + i) + g + 8 * (a % 2), own = first_unit + 4 * k + t;
        const int q = a / 2 * 2 + e;
        return j < H && own < H && q < GATES ? U[(j * GATES + q) * size(H) + own] : 0.0f;
    };
    const int lift = scale_of(__reduce_max_sync(ALL, largest_weight<SIXTEENS, TILES>(weight)));
    const Scale scale(lift);
    const Line line = line_of(lift);
    unsigned high[SIXTEENS][TILES][4], low[SIXTEENS][TILES][4];
    #pragma unroll
    for (int k = 0; k < SIXTEENS; ++k)
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            split([=](int a, int e) { return weight(k, i, a, e); }, scale, high[k][i], low[k][i]);

    const Units<UNITS, ROWS> cells{first_unit, first_row, left, H};
    const float clip = float(__longlong_as_double(clip_bits));
    float carried[EACH], sums[EACH][SUMS] = {};
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        carried[e] = dCarried && cells.there(e) ? dCarried[cells.place(e)] : 0.0f;

    // What a unit has of a step, by steps from the end
    const auto ahead = [=](int step, int q, int e) -> float& {
        return reinterpret_cast<float*>(dynamic_shared + AHEAD)[
            ((step % STAGES * (KEPT + 1) + q) * EACH + e) * THREADS + thread()];
    };
    const auto place_of = [=](int step) {  // the first row's line at that time
        return (backwards ? step : times - 1 - step) * batch + first_row;
    };
    const auto bring = [&](int step) {
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (step >= int(times) || !cells.there(e)) continue;
            const size line_of_h = place_of(step) + cells.row(e);
            const size at = line_of_h * H + first_unit + cells.unit(e);
            #pragma unroll
            for (int q = 0; q < KEPT_GATES; ++q)
                copy_async<4>(&ahead(step, q, e), gates + at + (line_of_h * (GATES - 1) + q) * H, 4);
            copy_async<4>(&ahead(step, KEPT_GATES, e), C + at, 4);
            if (CELL != RNN) {
                const bool first = step == int(times) - 1;
                const float* const before
                    = !first ? states + (backwards ? at + batch * H : at - batch * H)
                    : state_before ? state_before + cells.place(e) : dY;
                copy_async<4>(&ahead(step, KEPT - 1, e), before, !first || state_before ? 4 : 0);
            }
            copy_async<4>(&ahead(step, KEPT, e), dY + at, 4);
        }
        end_group();
    };
    meet_cluster();
    #pragma unroll
    for (int step = 0; step < STAGES - 1; ++step) bring(step);

    bool through = false;  // whether the step after this one has sent something here
    unsigned turn = 0;     // of messages
    for (int step = 0;; ++step) {
        float dh[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            dh[e] = !step && dH && cells.there(e) ? dH[cells.place(e)] : 0.0f;
        if (through) {
            await(shared + turn % 2 * 8, turn / 2 % 2);
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (cells.row(e) >= ROWS) continue;
                const int u = cells.unit(e), r = cells.row(e);
                const float* const parts = reinterpret_cast<const float*>(dynamic_shared + PARTS)
                    + (turn % 2 * CLUSTER * OWN + u / 16) * 128
                    + (u % 8 * 4 + r / 2) * 4 + u / 8 % 2 * 2 + r % 2;
                #pragma unroll
                for (int b = 0; b < CLUSTER; ++b) dh[e] += parts[b * OWN * 128];
            }
            ++turn;
        }
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (CELL == GRU) dh[e] += carried[e];
        if (step == int(times)) {
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (!cells.there(e)) continue;
                dH_before[cells.place(e)] = dh[e];
                if (CELL == LSTM) dCarried_before[cells.place(e)] = carried[e];
            }
            break;
        }
        bring(step + STAGES - 1);
        await_groups<STAGES - 1>();
        Chunk* const pairs = reinterpret_cast<Chunk*>(dynamic_shared + SPLIT) + turn % 2 * ROWS * PITCH;
        float* const factors = reinterpret_cast<float*>(dynamic_shared + FACTORS) + turn % 2 * 2 * ROWS;
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (cells.row(e) >= ROWS) continue;  // all lanes of a warp, or none
            float dz[4] = {};
            if (cells.there(e)) {
                float kept[KEPT], of_gates[GATES], of_new;
                #pragma unroll
                for (int q = 0; q < KEPT; ++q) kept[q] = ahead(step, q, e);
                unstep_of(kept, dh[e] + ahead(step, KEPT, e), carried[e], clip, of_gates, of_new);
                const size at = (place_of(step) + cells.row(e)) * GATES * H + first_unit
                                + cells.unit(e);
                #pragma unroll
                for (int q = 0; q < GATES; ++q) {
                    dz[q] = dZ[at + q * H] = of_gates[q];
                    const float of_x = CELL == GRU && q == 2 ? of_new : dz[q];
                    if (CELL == GRU) dZ_of_x[at + q * H] = of_x;
                    sums[e][q] += of_x;
                }
                if (CELL == GRU) sums[e][SUMS - 1] += dz[2];
            }
            unsigned top = 0;
            #pragma unroll
            for (int q = 0; q < GATES; ++q) {
                const unsigned bits = __float_as_uint(dz[q]) & 0x7fffffff;
                top = top < bits ? bits : top;
            }
            #pragma unroll
            for (int d = 1; d < UNITS; d *= 2) {
                const unsigned other = across(top, d);
                top = top < other ? other : top;
            }
            const int up = scale_of(top);
            const Scale of_row(up);
            const Pair some = pairs_of(of_row.of(dz[0]), of_row.of(dz[1]));
            const Pair more = pairs_of(of_row.of(dz[2]), of_row.of(dz[3]));
            pairs[cells.row(e) * PITCH + cells.unit(e)]
                = {some.high | word(more.high) << 32, some.low | word(more.low) << 32};
            if (cells.unit(e) == 0) {
                const Line down = line_of(up);
                reinterpret_cast<word*>(factors)[cells.row(e)] = two_floats(down.down, down.rest);
            }
        }
        // Of what comes before, where a piece begins, nothing is known, but in the state at the start
        const size k = times - 1 - step;  // of the steps as they went forward
        through = !truncate || !k || k % truncate;
        if (!through) {
            #pragma unroll
            for (int e = 0; e < EACH; ++e) carried[e] = 0;
            continue;
        }
        __syncthreads();
        // Pairs are read until the next step's barrier. Who sends parts of two turns hence has had
        // some of the next from every block, which each sent after a barrier that follows its reading.
        if (thread() == 0) expect(shared + turn % 2 * 8, CLUSTER * OWN * 512);
        float small[TILES][4] = {}, other[TILES][4] = {}, sum[TILES][4] = {};
        #pragma unroll
        for (int n = 0; n < SIXTEENS; ++n) {
            const Chunk x = pairs[g * PITCH + 4 * n + t];
            const unsigned head[2] = {unsigned(x.first), unsigned(x.first >> 32)};
            const unsigned rest[2] = {unsigned(x.second), unsigned(x.second >> 32)};
            #pragma unroll
            for (int i = 0; i < TILES; ++i) {
                tensor_product(small[i], low[n][i], head, half{});
                tensor_product(other[i], high[n][i], rest, half{});
                tensor_product(sum[i], high[n][i], head, half{});
            }
        }
        #pragma unroll
        for (int i = 0; i < TILES; ++i) {
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[i][e] = (sum[i][e] + (small[i][e] + other[i][e])) * line.down * line.rest
                            * factors[4 * t + e % 2 * 2] * factors[4 * t + e % 2 * 2 + 1];
            const int tile = warp() * TILES + i, to = tile / OWN;
            const int place = PARTS + ((turn % 2 * CLUSTER + rank) * OWN + tile % OWN) * 512
                              + lane * 16;
            send(address_in(shared + place, to),
                 {two_floats(sum[i][0], sum[i][1]), two_floats(sum[i][2], sum[i][3])},
                 address_in(shared + turn % 2 * 8, to));
        }
    }

    // All parts have come, and been read: their place serves for the sums of each row.
    __syncthreads();
    float* const of_rows = reinterpret_cast<float*>(dynamic_shared + PARTS);
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        if (cells.row(e) < ROWS)
            #pragma unroll
            for (int q = 0; q < SUMS; ++q)
                of_rows[(cells.row(e) * SUMS + q) * UNITS + cells.unit(e)] = sums[e][q];
    __syncthreads();
    for (int e = thread(); e < SUMS * UNITS; e += THREADS) {
        float sum = 0;
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) sum += of_rows[r * SUMS * UNITS + e];
        const int unit = first_unit + e % UNITS;
        if (unit < H) sums_of_dZ[(blockIdx.x / CLUSTER * SUMS + e / UNITS) * size(H) + unit] = sum;
    }
    meet_cluster();  // nobody ends while others may send something there
}
