// recurrent_unsteps.cu: backward through all time steps of an LSTM, a GRU or an RNN (cells.cuh) in
// one launch, from the last to the first. With dh = dy + dz' U^T + carried', dz' and carried' what the
// step after it leaves (dh of a GRU; dc of an LSTM goes into c),
//
//     LSTM   dc += dh o (1 - tanh^2 c),  di = dc g,  df = dc c',  do = dh tanh c,  dg = dc i,  dc f on
//     GRU    dn = dh (1 - u),  dr = dn s,  du = dh (h' - n),  ds = dn r,  dh u on
//     RNN    dh
//
// each times the slope of its function make dz, GATES H numbers a row, side by side as the gates are;
// a GRU's third goes through U as ds, and dz, with dn, is stored beside. Where an LSTM's c was clipped
// no gradient goes through. Between steps k and k - 1, k a multiple of `truncate`, none goes at all
// (0: everywhere). Null: no gradient in the last state, or a start from 0.
//
// A block has UNITS units and ROWS rows of the batch, and keeps its UNITS rows of U, as pairs of half
// precision (pairs.cuh), in registers: a warp 16 DEEP columns of them, as tiles B of products dz' U^T.
// The warps' products are added in shared memory; a thread has one unit of one row, or several, and
// what they carry, for all steps. What a step has of its own comes to shared memory while dz' is waited for.
//
// dZ is EMPTY before and travels as it is (words.cuh): a nan with the bits of EMPTY gets others. The
// blocks of the same rows wait for each other: all blocks have to be on the GPU together.
//
// Products are sums of three of pairs, to 22 bits of a number or 2^-39 of the largest of the 16 CHUNK
// of its row that go through the tensor cores together, each with its scale; their sums are rounded.
//
// Floor, a step: every block reads GATES ROWS H words, from the L2 cache; the way of a word through it
// (a store, a load: about 1.5 us) and two barriers of the block.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int UNITS = 16;   // of a block, a multiple of 8
constexpr int ROWS = 16;    // of a block, a multiple of 16
constexpr int DEEP = 16;    // sixteens of k in a warp, of an LSTM
constexpr int CHUNK = 4;    // of them whose words a warp asks for together; divides DEEP
constexpr int CELL = 0;     // 0: LSTM, 1: GRU, 2: RNN
#endif
#include "async.cuh"
#include "cells.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "words.cuh"

constexpr int TILES = UNITS / 8, PITCH = UNITS + 4;
constexpr int CHUNKS = (DEEP * GATES + 4 * CHUNK - 1) / (4 * CHUNK), SIXTEENS = CHUNKS * CHUNK;
constexpr int EACH = Units<UNITS, ROWS>::EACH;  // units of a thread
static_assert(UNITS % 8 == 0 && ROWS % 16 == 0 && DEEP % CHUNK == 0);

// What a warp asks for: of rows g and g + 8 four words of each of CHUNK sixteens
using Asked = Four[2][CHUNK];

// The largest of `most` and four numbers without their signs
__device__ inline unsigned larger(unsigned most, const Four& w)
{
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        const unsigned bits = w.x[e] & 0x7fffffff;
        most = most < bits ? bits : most;
    }
    return most;
}

// Four numbers, scaled, as two pairs
__device__ inline void split(const Four& w, Scale scale, unsigned (&high)[2], unsigned (&low)[2])
{
    split([&](int e, int d) { return __int_as_float(int(w.x[2 * e + d])); }, scale, high, low);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
recurrent_unsteps(const float* gates, const float* U, const float* C, const float* states,
                  const float* state_before, const float* dY, const float* dH,
                  const float* dCarried, unsigned* dZ, float* dZ_of_x, float* dCarried_before,
                  size clip_bits, size backwards, size truncate, size times, size batch, size rows,
                  size units)
{
    wait_for_stream();
    __shared__ float parts[WARPS][ROWS][PITCH];
    __shared__ float ahead[KEPT + 1][EACH * THREADS];  // what is kept, and dy, of a thread's units
    __shared__ unsigned largest[WARPS];
    const int groups = (int(units) + UNITS - 1) / UNITS, H = int(units);
    const int first_unit = int(blockIdx.x) % groups * UNITS, lane = thread() % 32;
    const int first_row = int(blockIdx.x) / groups * ROWS, left = int(rows) - first_row;
    const int g = lane / 4, t = lane % 4, first_k = warp() * 16 * SIXTEENS + 4 * t;

    // Of tile i lane (g, t) has unit g, of the k-th sixteen columns 4 t ... 4 t + 3 of U
    const auto weights = [=](int k, int i) {
        const int j = first_unit + 8 * i + g, column = first_k + 16 * k;
        return column < GATES * H && j < H
            ? *reinterpret_cast<const Four*>(U + j * size(GATES * H) + column) : Four{};
    };
    unsigned most = 0;
    #pragma unroll 1
    for (int k = 0; k < SIXTEENS; ++k)
        #pragma unroll
        for (int i = 0; i < TILES; ++i) most = larger(most, weights(k, i));
    most = __reduce_max_sync(ALL, most);
    if (lane == 0) largest[warp()] = most;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) most = most < largest[w] ? largest[w] : most;
    const int lift = scale_of(most);
    unsigned high[SIXTEENS][TILES][2], low[SIXTEENS][TILES][2];
    #pragma unroll
    for (int k = 0; k < SIXTEENS; ++k)
        #pragma unroll
        for (int i = 0; i < TILES; ++i) {
            split(weights(k, i), Scale(lift), high[k][i], low[k][i]);
            __syncwarp();  // no more weights at a time than there is room for
        }

    const Units<UNITS, ROWS> cells{first_unit, first_row, left, H};
    const float clip = float(__longlong_as_double(clip_bits));
    float carried[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        carried[e] = dCarried && cells.there(e) ? dCarried[cells.place(e)] : 0.0f;

    for (int step = 0; step < int(times); ++step) {
        const int k = int(times) - 1 - step;  // of the steps as they went forward
        const size now = (backwards ? step : k) * batch + first_row;
        const size after = backwards ? now - batch : now + batch;
        const bool through = step && !(truncate && (k + 1) % truncate == 0);
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (!cells.there(e)) continue;
            const int mine = thread() + e * THREADS;
            const size at = (now + cells.row(e)) * H + first_unit + cells.unit(e);
            #pragma unroll
            for (int q = 0; q < KEPT_GATES; ++q)
                copy_async<4>(&ahead[q][mine],
                              gates + at + (now + cells.row(e)) * (GATES - 1) * H + q * H, 4);
            copy_async<4>(&ahead[KEPT_GATES][mine], C + at, 4);
            if (CELL != RNN)
                copy_async<4>(&ahead[KEPT - 1][mine],
                              k ? states + (backwards ? at + batch * H : at - batch * H)
                                : state_before ? state_before + cells.place(e) : dY,
                              k || state_before ? 4 : 0);
            copy_async<4>(&ahead[KEPT][mine], dY + at, 4);
        }
        end_group();
        if (through) {
            #pragma unroll 1
            for (int n = 0; n < ROWS; n += 16) {
                const unsigned* const from = dZ + (after + n + g) * GATES * H + first_k;
                const bool here[2] = {n + g < left, n + g + 8 < left};
                const auto ask = [&](Asked& w, int chunk, bool again) {
                    bool missing = false;
                    #pragma unroll
                    for (int r = 0; r < 2; ++r)
                        #pragma unroll
                        for (int a = 0; a < CHUNK; ++a) {
                            const int k = 16 * (chunk * CHUNK + a);
                            if (again ? !w[r][a].there() : here[r] && first_k + k < GATES * H)
                                w[r][a] = look(from + r * 8 * GATES * H + k);
                            else if (!again) w[r][a] = Four{};
                        }
                    #pragma unroll
                    for (int r = 0; r < 2; ++r)
                        #pragma unroll
                        for (int a = 0; a < CHUNK; ++a) missing |= !w[r][a].there();
                    return missing;
                };
                Asked w;
                float total[TILES][4] = {};
                #pragma unroll
                for (int chunk = 0; chunk < CHUNKS; ++chunk) {
                    for (bool missing = ask(w, chunk, false); __any_sync(ALL, missing);
                         missing = ask(w, chunk, true)) give_way();
                    Line lines[2];
                    Scale scales[2];
                    #pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        unsigned top = 0;
                        #pragma unroll
                        for (int a = 0; a < CHUNK; ++a) top = larger(top, w[r][a]);
                        #pragma unroll
                        for (int d = 1; d < 4; d *= 2) {
                            const unsigned other = __shfl_xor_sync(ALL, top, d);
                            top = top < other ? other : top;
                        }
                        lines[r] = line_of(scale_of(top));
                        scales[r] = Scale(scale_of(top));
                    }
                    float sum[TILES][4] = {};
                    unsigned head[CHUNK][4];
                    #pragma unroll
                    for (int a = 0; a < CHUNK; ++a) {
                        unsigned rest[4], high_of[2], low_of[2];
                        #pragma unroll
                        for (int r = 0; r < 2; ++r) {
                            split(w[r][a], scales[r], high_of, low_of);
                            #pragma unroll
                            for (int e = 0; e < 2; ++e) {
                                head[a][2 * e + r] = high_of[e];
                                rest[2 * e + r] = low_of[e];
                            }
                        }
                        #pragma unroll
                        for (int i = 0; i < TILES; ++i) {
                            const int at = chunk * CHUNK + a;
                            tensor_product(sum[i], head[a], low[at][i], half{});
                            tensor_product(sum[i], rest, high[at][i], half{});
                        }
                    }
                    #pragma unroll
                    for (int a = 0; a < CHUNK; ++a)
                        #pragma unroll
                        for (int i = 0; i < TILES; ++i)
                            tensor_product(sum[i], head[a], high[chunk * CHUNK + a][i], half{});
                    #pragma unroll
                    for (int i = 0; i < TILES; ++i)
                        #pragma unroll
                        for (int e = 0; e < 4; ++e)
                            total[i][e] += sum[i][e] * lines[e / 2].down * lines[e / 2].rest;
                }
                #pragma unroll
                for (int i = 0; i < TILES; ++i)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e)
                        parts[warp()][n + g + e / 2 * 8][8 * i + 2 * t + e % 2] = total[i][e];
            }
        }
        await_groups<0>();
        float dh[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            dh[e] = cells.there(e) ? ahead[KEPT][thread() + e * THREADS] : 0.0f;
            if (!step && dH && cells.there(e)) dh[e] += dH[cells.place(e)];
            if (step && !through) carried[e] = 0;
            if (CELL == GRU) dh[e] += carried[e];
        }
        if (through) {
            __syncthreads();
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                float sum = 0;
                if (cells.row(e) < ROWS)
                    #pragma unroll
                    for (int v = 0; v < WARPS; ++v) sum += parts[v][cells.row(e)][cells.unit(e)];
                const Line line = line_of(lift);
                dh[e] += sum * line.down * line.rest;
            }
            __syncthreads();
        }
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (!cells.there(e)) continue;
            const int mine = thread() + e * THREADS;
            float kept[KEPT], dz[GATES], of_new;
            #pragma unroll
            for (int q = 0; q < KEPT; ++q) kept[q] = ahead[q][mine];
            unstep_of(kept, dh[e], carried[e], clip, dz, of_new);
            const size at = (now + cells.row(e)) * GATES * H + first_unit + cells.unit(e);
            #pragma unroll
            for (int q = 0; q < GATES; ++q) {
                const unsigned word = __float_as_uint(dz[q]);
                show(dZ + at + q * H, word == EMPTY ? 0x7fffffff : word);
                if (CELL == GRU) dZ_of_x[at + q * H] = q < 2 ? dz[q] : of_new;
            }
        }
    }
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        if (cells.there(e)) dCarried_before[cells.place(e)] = carried[e];
}
