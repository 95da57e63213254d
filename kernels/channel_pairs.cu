// channel_pairs.cu: images of single precision with their channels last, as pairs of half precision
// (pairs.cuh): of pixel (n, h, w) the high parts of its channels lie side by side, then the low
// parts, `room` of each, a multiple of 64, with zeros after the last channel. All are scaled by the
// exponent e that takes the largest to 2^14 or more: a number counts to 2^-22 of itself, or 2^-39 of
// the largest, and one that is not finite is nan in what it goes into.
//
// Two launches: FIRST_PASS leaves the largest of each block's numbers in `parts`; the other has the
// largest of these and writes e, and a line of `sums`, if asked for, of each channel's numbers in
// its strip. A block has 64 channels and, of 64 pixels at a time, a strip. Four neighbouring pixels
// of a channel are read by a thread, turned in shared memory, and eight neighbouring channels of a
// pixel written; the second launch goes backwards, for what the first read last is still in the L2
// cache.
//
// Floor: X read twice, and as many bytes written.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int BLOCKS = 4;   // on a multiprocessor
constexpr int FIRST_PASS = 0; // 1: the first launch
#endif
#include "block.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "shuffle.cuh"

constexpr int SIDE = 64;                     // pixels and channels of a tile
constexpr int HIGH = THREADS / (SIDE / 4);   // channels that the threads read at a time
constexpr int EACH = SIDE / HIGH;            // of a thread
static_assert(SIDE % HIGH == 0 && THREADS % SIDE == 0);

struct Images {
    const float* X;
    size image, channel, row, col;  // from one to the next
    unsigned width, pixels_of;      // of an image
    size pixels;                    // of all
    bool by_fours;                  // four neighbours from a multiple of four on are a pack

    __device__ size place(unsigned p) const
    {
        const unsigned n = p / pixels_of, of = p - n * pixels_of, h = of / width;
        return n * image + h * row + (of - h * width) * col;
    }
};

// x := channels first + HIGH i, pixels p ...
__device__ inline void read(float (&x)[EACH][4], const Images& of, size p, int first, int channels)
{
    size at[4];
    const bool pack = of.by_fours && p + 4 <= of.pixels;
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        at[e] = (e == 0 || !pack) && p + e < of.pixels ? of.place(unsigned(p + e)) : 0;
    #pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int c = first + HIGH * i;
        float4 v = make_float4(0, 0, 0, 0);
        const float* const from = of.X + c * of.channel;
        if (c < channels) {
            if (pack) {
                v = *reinterpret_cast<const float4*>(from + at[0]);
            } else {
                if (p < of.pixels) v.x = from[at[0]];
                if (p + 1 < of.pixels) v.y = from[at[1]];
                if (p + 2 < of.pixels) v.z = from[at[2]];
                if (p + 3 < of.pixels) v.w = from[at[3]];
            }
        }
        x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
channel_pairs(const float* X, size image, size channel, size row, size col, size by_fours,
              size channels, size height, size width, size pixels, unsigned* parts, size parts_of,
              unsigned short* pairs, size room, int* exponent, float* sums)
{
    wait_for_stream();
    __shared__ float4 tile_of[SIDE * SIDE / 4];
    float* const turned = reinterpret_cast<float*>(tile_of);
    __shared__ unsigned largest[WARPS];
    const Images of{X, image, channel, row, col, unsigned(width), unsigned(height * width), pixels,
                    by_fours != 0};
    const int chunks = int(room) / SIDE, strips = gridDim.x / chunks;
    const int chunk = blockIdx.x % chunks, strip = blockIdx.x / chunks;
    const int tiles = int((pixels + SIDE - 1) / SIDE);
    const int quad = thread() % (SIDE / 4), own = thread() / (SIDE / 4);
    float x[EACH][4];
    unsigned most = 0;
    if (FIRST_PASS) {
        #pragma unroll 1
        for (int tile = strip; tile < tiles; tile += strips) {
            read(x, of, size(tile) * SIDE + 4 * quad, chunk * SIDE + own, int(channels));
            #pragma unroll
            for (int i = 0; i < EACH; ++i)
                #pragma unroll
                for (int e = 0; e < 4; ++e) most = larger_finite(most, x[i][e]);
        }
    } else {
        for (int i = thread(); i < parts_of; i += THREADS) most = parts[i] > most ? parts[i] : most;
    }
    most = __reduce_max_sync(ALL, most);
    if (thread() % 32 == 0) largest[warp()] = most;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) most = largest[w] > most ? largest[w] : most;
    if (FIRST_PASS) {
        if (thread() == 0) parts[blockIdx.x] = most;
        return;
    }

    const int e = scale_of_all(most);
    if (blockIdx.x == 0 && thread() == 0) *exponent = e;
    const Scale scale(e);
    // Channel c of pixel p is at c SIDE + (p ^ 4 (c / 8)): no two threads of a warp want one bank
    const auto place = [](int c, int p) { return c * SIDE + (p ^ c / 8 % 8 * 4); };
    constexpr int EIGHTS = SIDE / 8;
    const int eight = thread() % EIGHTS;
    float total[EACH] = {};
    #pragma unroll 1
    for (int tile = (tiles - 1 - strip) / strips * strips + strip; tile >= 0; tile -= strips) {
        read(x, of, size(tile) * SIDE + 4 * quad, chunk * SIDE + own, int(channels));
        #pragma unroll
        for (int i = 0; i < EACH; ++i) {
            total[i] += (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
            *reinterpret_cast<float4*>(turned + place(own + HIGH * i, 4 * quad)) = make_float4(
                scale.of(x[i][0]), scale.of(x[i][1]), scale.of(x[i][2]), scale.of(x[i][3]));
        }
        __syncthreads();
        #pragma unroll
        for (int p = thread() / EIGHTS; p < SIDE; p += THREADS / EIGHTS) {
            unsigned high[4], low[4];
            #pragma unroll
            for (int k = 0; k < 4; ++k) {
                const Pair pair = pairs_of(turned[place(8 * eight + 2 * k, p)],
                                           turned[place(8 * eight + 2 * k + 1, p)]);
                high[k] = pair.high, low[k] = pair.low;
            }
            const size pixel = size(tile) * SIDE + p;
            if (pixel >= pixels) continue;
            unsigned short* const to = pairs + pixel * 2 * room + chunk * SIDE + 8 * eight;
            *reinterpret_cast<uint4*>(to) = make_uint4(high[0], high[1], high[2], high[3]);
            *reinterpret_cast<uint4*>(to + room) = make_uint4(low[0], low[1], low[2], low[3]);
        }
        __syncthreads();
    }
    if (!sums) return;
    #pragma unroll
    for (int i = 0; i < EACH; ++i) {
        #pragma unroll
        for (int mask = 1; mask < SIDE / 4; mask *= 2) total[i] += across(total[i], mask);
        if (quad == 0) sums[size(strip) * room + chunk * SIDE + own + HIGH * i] = total[i];
    }
}
