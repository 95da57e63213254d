// cells.cuh: a step of a recurrent cell for one unit of one row, forth and back. z is x W + b + h' U,
// h' what the step before left.
//
//     LSTM   i, f, o = sigmoid(z)   g = tanh(z)    c := f c' + i g       h = o tanh c
//     GRU    r, u = sigmoid(z)      n = tanh(z + r s), s = h' U + c      h = n + u (h' - n)
//     RNN    h = tanh(z)
//
// A GRU's third part of h' U is kept apart, as s. What a thread carries from step to step is c, or h.
#pragma once
#include "block.cuh"
#include "pairs.cuh"

enum { LSTM, GRU, RNN };
constexpr int GATES = CELL == LSTM ? 4 : CELL == GRU ? 3 : 1;

__device__ inline float sigmoid(float x) { return 0.5f * tanhf(0.5f * x) + 0.5f; }

// h, of z, which becomes the gates
__device__ inline float step_of(float (&z)[GATES], float s, float& carried, float clip)
{
    if constexpr (CELL == LSTM) {
        const float i = sigmoid(z[0]), f = sigmoid(z[1]), o = sigmoid(z[2]);
        const float d = tanhf(z[3]), sum = f * carried + i * d;
        carried = sum > clip ? clip : sum < -clip ? -clip : sum;
        z[0] = i, z[1] = f, z[2] = o, z[3] = d;
        return o * tanhf(carried);
    } else if constexpr (CELL == GRU) {
        const float r = sigmoid(z[0]), u = sigmoid(z[1]), n = tanhf(z[2] + r * s);
        z[0] = r, z[1] = u, z[2] = n;
        return carried = n + u * (carried - n);
    } else {
        return tanhf(z[0]);
    }
}

// What backward wants of a step, in this order: the gates but of an RNN, c, s or h, and, but of an
// RNN, what was carried from the step before
constexpr int KEPT_GATES = CELL == RNN ? 0 : GATES, KEPT = KEPT_GATES + (CELL == RNN ? 1 : 2);

// The gradients in z, of that in h and of what is carried back, c's or h's share that does not go by
// U. A GRU's third is that in s; z's own is `of_new`.
__device__ inline void unstep_of(const float (&kept)[KEPT], float dh, float& carried, float clip,
                                 float (&dz)[GATES], float& of_new)
{
    if constexpr (CELL == LSTM) {
        const float i = kept[0], f = kept[1], o = kept[2], d = kept[3], c = kept[4];
        const float squashed = tanhf(c);
        float into = carried + dh * o * (1 - squashed * squashed);
        if (!(fabsf(c) < clip)) into = into * 0;
        dz[0] = into * d * (i * (1 - i));
        dz[1] = into * kept[5] * (f * (1 - f));
        dz[2] = dh * squashed * (o * (1 - o));
        dz[3] = into * i * (1 - d * d);
        carried = into * f;
    } else if constexpr (CELL == GRU) {
        const float r = kept[0], u = kept[1], n = kept[2], s = kept[3], before = kept[4];
        of_new = dh * (1 - u) * (1 - n * n);
        dz[0] = of_new * s * (r * (1 - r));
        dz[1] = dh * (before - n) * (u * (1 - u));
        dz[2] = of_new * r;
        carried = dh * u;
    } else {
        dz[0] = dh * (1 - kept[0] * kept[0]);
    }
}

// Pairs e of the weights of_pair(e, 0) and of_pair(e, 1), scaled
template <int N, class F>
__device__ void split(F of_pair, Scale scale, unsigned (&high)[N], unsigned (&low)[N])
{
    #pragma unroll
    for (int e = 0; e < N; ++e) {
        const Pair of = pairs_of(scale.of(of_pair(e, 0)), scale.of(of_pair(e, 1)));
        high[e] = of.high;
        low[e] = of.low;
    }
}

// The units of a block, UNITS of each of ROWS rows, which its threads share: a thread's are numbered
// from 0. `left` rows and H units there are, from the first row on and in all.
template <int UNITS, int ROWS> struct Units {
    static constexpr int EACH = (UNITS * ROWS + THREADS - 1) / THREADS;  // of a thread
    int first_unit, first_row, left, H;

    __device__ static int unit(int e) { return (thread() + e * THREADS) % UNITS; }
    __device__ static int row(int e) { return (thread() + e * THREADS) / UNITS; }
    __device__ bool there(int e) const
    {
        return row(e) < ROWS && row(e) < left && first_unit + unit(e) < H;
    }
    // Its place where all rows have a number of each unit
    __device__ size place(int e) const
    {
        return (first_row + row(e)) * size(H) + first_unit + unit(e);
    }
};

// The largest of a lane's weights, eight of each of TILES tiles for each sixteen of k, as bits
template <int SIXTEENS, int TILES, class F> __device__ unsigned largest_weight(F weight)
{
    unsigned most = 0;
    #pragma unroll 1
    for (int k = 0; k < SIXTEENS; ++k)
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int e = 0; e < 8; ++e) {
                const unsigned bits = __float_as_uint(weight(k, i, e / 2, e % 2)) & 0x7fffffff;
                most = most < bits ? bits : most;
            }
    return most;
}
