// lstm_unstep.cu: backward through the functions of one time step of an LSTM, number by number. With
// dh and dc what later steps send, and dy the gradient in the output h,
//
//     dc += (dh + dy) o (1 - tanh^2 c)
//     di = dc g,   df = dc c',   do = (dh + dy) tanh c,   dg = dc i
//
// each times the slope of its function; dc f goes on to the step before. Where c was clipped no
// gradient goes through. The gates are what lstm_steps left, i f o g of a row side by side.
//
// A thread has four units of one row. Floor: dy, dh, dc, c, c' and the gates read, dc and dz
// written: 60 bytes a unit.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
#endif
#include "block.cuh"
#include "launch.cuh"

struct alignas(16) Four {
    float x[4];
};

__device__ inline Four four(const float* p, size i)
{
    return p ? *reinterpret_cast<const Four*>(p + i) : Four{};
}

extern "C" __global__ void __launch_bounds__(THREADS)
lstm_unstep(const float* gates, const float* c, const float* c_before, const float* dY,
            const float* dH, float* dC, float* dZ, size clip_bits, size rows, size units)
{
    wait_for_stream();
    const size e = (size(blockIdx.x) * THREADS + thread()) * 4;
    if (e >= rows * units) return;
    const size row = e / units, at = row * 3 * units + e;  // of i, in lines of 4 units
    const float clip = float(__longlong_as_double(clip_bits));
    const Four i = four(gates, at), f = four(gates, at + units), o = four(gates, at + 2 * units);
    const Four g = four(gates, at + 3 * units), now = four(c, e), before = four(c_before, e);
    const Four dy = four(dY, e), dh = four(dH, e);
    Four dc = four(dC, e), di, df, dout, dg;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const float squashed = tanhf(now.x[k]), into = dh.x[k] + dy.x[k];
        float d = dc.x[k] + into * o.x[k] * (1 - squashed * squashed);
        if (!(fabsf(now.x[k]) < clip)) d = d * 0;
        di.x[k] = d * g.x[k] * (i.x[k] * (1 - i.x[k]));
        df.x[k] = d * before.x[k] * (f.x[k] * (1 - f.x[k]));
        dout.x[k] = into * squashed * (o.x[k] * (1 - o.x[k]));
        dg.x[k] = d * i.x[k] * (1 - g.x[k] * g.x[k]);
        dc.x[k] = d * f.x[k];
    }
    const auto put = [](float* p, size i, const Four& x) { *reinterpret_cast<Four*>(p + i) = x; };
    put(dC, e, dc);
    put(dZ, at, di);
    put(dZ, at + units, df);
    put(dZ, at + 2 * units, dout);
    put(dZ, at + 3 * units, dg);
}
