// cells.cuh: a step of a recurrent cell for one unit of one row, forth and back. z is x W + b + h' U,
// h' what the step before left.
//
//     LSTM   i, f, o = sigmoid(z)   g = tanh(z)    c := f c' + i g       h = o tanh c
//     GRU    r, u = sigmoid(z)      n = tanh(z + r s), s = h' U + c      h = n + u (h' - n)
//     RNN    h = tanh(z)
//
// A GRU's third part of h' U is kept apart, as s. What a thread carries from step to step is c, or h.
#pragma once

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

// What of them a gradient is multiplied with: for each gate a slope, of dh or of what goes into c or n; what is
// carried on; and, of an LSTM, of dh that goes into c, and whether any does
struct Slopes {
    float z[4], on, of_h;
    bool inside;
};
__device__ inline Slopes slopes_of(const float (&kept)[KEPT], float clip)
{
    if constexpr (CELL == LSTM) {
        const float i = kept[0], f = kept[1], o = kept[2], d = kept[3], c = kept[4];
        const float squashed = tanhf(c);
        return {{d * (i * (1 - i)), kept[5] * (f * (1 - f)), squashed * (o * (1 - o)), i * (1 - d * d)},
                f, o * (1 - squashed * squashed), fabsf(c) < clip};
    } else if constexpr (CELL == GRU) {
        const float r = kept[0], u = kept[1], n = kept[2], s = kept[3], before = kept[4];
        const float of_new = (1 - u) * (1 - n * n);
        return {{s * (r * (1 - r)), (before - n) * (u * (1 - u)), r}, u, of_new, true};
    } else {
        return {{1 - kept[0] * kept[0]}, 0, 0, true};
    }
}

// The gradients in z, of that in h and of what is carried back, c's or h's share that does not go by
// U. A GRU's third is that in s; z's own is `of_new`.
__device__ inline void unstep_of(const Slopes& slopes, float dh, float& carried,
                                 float (&dz)[GATES], float& of_new)
{
    if constexpr (CELL == LSTM) {
        float into = carried + dh * slopes.of_h;
        if (!slopes.inside) into = into * 0;
        dz[0] = into * slopes.z[0];
        dz[1] = into * slopes.z[1];
        dz[2] = dh * slopes.z[2];
        dz[3] = into * slopes.z[3];
        carried = into * slopes.on;
    } else if constexpr (CELL == GRU) {
        of_new = dh * slopes.of_h;
        dz[0] = of_new * slopes.z[0];
        dz[1] = dh * slopes.z[1];
        dz[2] = of_new * slopes.z[2];
        carried = dh * slopes.on;
    } else {
        dz[0] = dh * slopes.z[0];
    }
}
