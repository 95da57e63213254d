// recurrent_steps.cu: all time steps of an LSTM, a GRU or an RNN (cells.cuh) in one launch. Z holds
// x W of every step, (time, row of the batch, GATES H: gate by gate), and is overwritten by the gates;
// C gets c of an LSTM, s of a GRU, Y gets h of every step. In the first step h' U is 0: if it is not,
// the caller has added it to Z, and a GRU's third part is s_before.
//
// A block has UNITS units and ROWS rows of the batch, and keeps its GATES UNITS columns of U, as
// pairs of half precision (pairs.cuh), in registers: a warp those of 16 DEEP rows of U, as tiles A of
// products U^T h^T. The warps' products are added in shared memory; a thread has one unit of one
// row, or several, and what they carry, for all steps.
//
// h travels through `words`, (time, row, H) pairs, EMPTY before: each word tells by itself whether
// it is there, so that nothing is announced and nothing ordered. A thread asks for all it wants at
// once, and again for what was not there. The blocks of the same rows wait for each other: all
// blocks have to be on the GPU together.
//
// Products are sums of three of pairs, to 22 bits, 16 DEEP of k on the tensor cores (the small ones
// first, for they cut off their sums), the rest rounded. h is scaled by 2^14: it counts to 2^-38 of
// 1, or 2^-22 of itself; a weight likewise beside the largest of its block. A GRU that begins with an
// h past 1 has another power, `lift`.
//
// Floor, a step: every block reads ROWS H words, from the L2 cache; the way of a word through it
// (a store, a load: about 1.5 us) and two barriers of the block.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int UNITS = 16;   // of a block, a multiple of 4
constexpr int ROWS = 16;    // of a block, a multiple of 8
constexpr int DEEP = 4;     // sixteens of k in a warp
constexpr int EIGHTS = 2;   // eights of rows whose words a warp asks for together
constexpr int CELL = 0;     // 0: LSTM, 1: GRU, 2: RNN
#endif
#include "cells.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "words.cuh"

constexpr int M = GATES * UNITS, TILES = (M + 15) / 16;
constexpr int PITCH = 16 * TILES + 4;  // no two lanes meet in a bank
constexpr int EACH = Units<UNITS, ROWS>::EACH;  // units of a thread
constexpr int LIFT_H = 14;
static_assert(UNITS % 4 == 0 && ROWS % (8 * EIGHTS) == 0);

// The high and low halves of two words
__device__ inline unsigned highs(unsigned a, unsigned b) { return (a & 0xffff) | b << 16; }
__device__ inline unsigned lows(unsigned a, unsigned b) { return a >> 16 | (b & 0xffff0000); }

extern "C" __global__ void __launch_bounds__(THREADS, 1)
recurrent_steps(float* Z, const float* U, size u_row, size u_col, const float* bias,
                const float* s_bias, const float* carried_before, const float* s_before,
                const int* lift_of_h, float* C, float* Y, unsigned* words, size clip_bits,
                size backwards, size times, size batch, size rows, size units)
{
    wait_for_stream();
    __shared__ float parts[WARPS][ROWS][PITCH];
    __shared__ unsigned largest[WARPS];
    const int groups = (int(units) + UNITS - 1) / UNITS, H = int(units);
    const int first_unit = int(blockIdx.x) % groups * UNITS, lane = thread() % 32;
    const int first_row = int(blockIdx.x) / groups * ROWS, left = int(rows) - first_row;
    const int g = lane / 4, t = lane % 4, first_k = warp() * 16 * DEEP + 4 * t;

    // Of tile i lane (g, t) has columns g, g + 8 of U, of the k-th sixteen rows 4 t ... 4 t + 3
    const auto weight = [=](int k, int i, int e, int half) {
        const int m = 16 * i + g + 8 * half, j = first_unit + m % UNITS, row = first_k + 16 * k + e;
        return row < H && j < H && m < M ? U[row * u_row + (m / UNITS * H + j) * u_col] : 0.0f;
    };
    unsigned most = __reduce_max_sync(ALL, largest_weight<DEEP, TILES>(weight));
    if (lane == 0) largest[warp()] = most;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) most = most < largest[w] ? largest[w] : most;
    const int lift = scale_of(most);
    const Scale scale(lift);
    const Line line = line_of(lift);
    unsigned high[DEEP][TILES][4], low[DEEP][TILES][4];
    #pragma unroll
    for (int k = 0; k < DEEP; ++k)
        #pragma unroll
        for (int i = 0; i < TILES; ++i) {
            split([=](int e, int d) { return weight(k, i, e / 2 * 2 + d, e % 2); }, scale,
                  high[k][i], low[k][i]);
            __syncwarp();  // no more weights at a time than there is room for
        }

    const Units<UNITS, ROWS> cells{first_unit, first_row, left, H};
    const float clip = float(__longlong_as_double(clip_bits));
    const int lift_h = CELL == GRU && lift_of_h ? *lift_of_h : LIFT_H;
    float b[EACH][GATES], s_of_bias[EACH], carried[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
        const int j = first_unit + cells.unit(e);
        #pragma unroll
        for (int q = 0; q < GATES; ++q) b[e][q] = cells.there(e) ? bias[q * H + j] : 0.0f;
        s_of_bias[e] = CELL == GRU && cells.there(e) ? s_bias[j] : 0.0f;
        carried[e] = CELL != RNN && cells.there(e) && carried_before
                         ? carried_before[(first_row + cells.row(e)) * size(H) + j] : 0.0f;
    }

    for (size step = 0; step < times; ++step) {
        const size now = (backwards ? times - 1 - step : step) * batch + first_row;
        const size before = backwards ? now + batch : now - batch;
        float z[EACH][GATES], s[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            #pragma unroll
            for (int q = 0; q < GATES; ++q)
                z[e][q] = cells.there(e) ? b[e][q] + Z[((now + cells.row(e)) * GATES + q) * H
                                                       + first_unit + cells.unit(e)] : 0.0f;
            s[e] = s_of_bias[e];
            if (CELL == GRU && !step && s_before && cells.there(e))
                s[e] += s_before[cells.place(e)];
        }
        if (step) {
            #pragma unroll
            for (int n = 0; n < ROWS; n += 8 * EIGHTS) {
                Four w[EIGHTS][DEEP];
                const auto ask = [&](bool again) {
                    bool missing = false;
                    #pragma unroll
                    for (int a = 0; a < EIGHTS; ++a)
                        #pragma unroll
                        for (int k = 0; k < DEEP; ++k) {
                            const int row = n + 8 * a + g, from = first_k + 16 * k;
                            if (again ? !w[a][k].there() : row < left && from < H)
                                w[a][k] = look(words + (before + row) * H + from);
                            else if (!again) w[a][k] = Four{};
                        }
                    #pragma unroll
                    for (int a = 0; a < EIGHTS; ++a)
                        #pragma unroll
                        for (int k = 0; k < DEEP; ++k) missing |= !w[a][k].there();
                    return missing;
                };
                for (bool missing = ask(false); __any_sync(ALL, missing); missing = ask(true))
                    give_way();
                #pragma unroll
                for (int a = 0; a < EIGHTS; ++a) {
                    float sum[TILES][4] = {};
                    #pragma unroll
                    for (int k = 0; k < DEEP; ++k) {
                        const unsigned (&x)[4] = w[a][k].x;
                        const unsigned head[2] = {highs(x[0], x[1]), highs(x[2], x[3])};
                        const unsigned rest[2] = {lows(x[0], x[1]), lows(x[2], x[3])};
                        #pragma unroll
                        for (int i = 0; i < TILES; ++i) {
                            tensor_product(sum[i], low[k][i], head, half{});
                            tensor_product(sum[i], high[k][i], rest, half{});
                        }
                    }
                    #pragma unroll
                    for (int k = 0; k < DEEP; ++k) {
                        const unsigned (&x)[4] = w[a][k].x;
                        const unsigned head[2] = {highs(x[0], x[1]), highs(x[2], x[3])};
                        #pragma unroll
                        for (int i = 0; i < TILES; ++i)
                            tensor_product(sum[i], high[k][i], head, half{});
                    }
                    #pragma unroll
                    for (int i = 0; i < TILES; ++i)
                        #pragma unroll
                        for (int e = 0; e < 4; ++e)
                            parts[warp()][n + 8 * a + 2 * t + e % 2][16 * i + g + e / 2 * 8]
                                = sum[i][e];
                }
            }
            __syncthreads();
            #pragma unroll
            for (int e = 0; e < EACH; ++e)
                #pragma unroll
                for (int q = 0; q < GATES; ++q) {
                    float sum = 0;
                    if (cells.row(e) < ROWS)
                        #pragma unroll
                        for (int v = 0; v < WARPS; ++v)
                            sum += parts[v][cells.row(e)][q * UNITS + cells.unit(e)];
                    (CELL == GRU && q == 2 ? s[e] : z[e][q])
                        += sum * line.down * line.rest * power(-lift_h);
                }
            __syncthreads();
        }
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (!cells.there(e)) continue;
            const int j = first_unit + cells.unit(e);
            const size at = (now + cells.row(e)) * H + j;
            const float h = step_of(z[e], s[e], carried[e], clip);
            const Pair of = pairs_of(h * power(lift_h), 0);
            show(words + at, highs(of.high, of.low));
            Y[at] = h;
            if (CELL == RNN) continue;
            C[at] = CELL == LSTM ? carried[e] : s[e];
            float* const gates = Z + (now + cells.row(e)) * GATES * H + j;
            #pragma unroll
            for (int q = 0; q < GATES; ++q) gates[q * H] = z[e][q];
        }
    }
}
