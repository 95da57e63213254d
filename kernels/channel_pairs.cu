// channel_pairs.cu: images of single precision with their channels last, as pairs of half precision
// (pairs.cuh): of pixel (n, h, w) the high parts of its channels lie side by side, then the low
// parts, `room` of each, a multiple of 64, with zeros after the last channel. All are scaled by the
// exponent e that takes the largest to 2^14 or more: a number counts to 2^-22 of itself, or 2^-39 of
// the largest, and one that is not finite is nan in what it goes into.
//
// Two launches for both operands of a product: FIRST_PASS leaves the largest of each block's numbers
// in `parts`; the other has the largest of these and writes e, and a line of `sums`, if asked for,
// of each channel's numbers in its strip. A block has 64 channels and, of 64 pixels at a time, a
// strip. Four neighbouring pixels of a channel are read by a thread, turned in shared memory, and
// eight neighbouring channels of a pixel written; the second launch goes backwards, for what the
// first read last is still in the L2 cache.
//
// Floor: both read twice, and as many bytes written.
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
    size by_fours;                  // 1: four neighbours from a multiple of four on are a pack
    size channels, height, width, pixels;
    unsigned* parts;
    size blocks;                    // that have parts of it
    unsigned short* pairs;
    size room;
    int* exponent;
    float* sums;

    __device__ size place(unsigned p) const
    {
        const unsigned n = p / unsigned(height * width), of = p - n * unsigned(height * width);
        const unsigned h = of / unsigned(width);
        return n * image + h * row + (of - h * unsigned(width)) * col;
    }
};

// x := channels first + HIGH i, pixels p ...
__device__ inline void read(float (&x)[EACH][4], const Images& of, size p, int first)
{
    size at[4];
    const bool pack = of.by_fours != 0 && p + 4 <= of.pixels;
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        at[e] = (e == 0 || !pack) && p + e < of.pixels ? of.place(unsigned(p + e)) : 0;
    #pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int c = first + HIGH * i;
        float4 v = make_float4(0, 0, 0, 0);
        const float* const from = of.X + c * of.channel;
        if (c < of.channels) {
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

__device__ inline void split(const Images& of, int block)
{
    __shared__ float4 tile_of[SIDE * SIDE / 4];
    float* const turned = reinterpret_cast<float*>(tile_of);
    __shared__ unsigned largest[WARPS];
    const int chunks = int(of.room) / SIDE, strips = int(of.blocks) / chunks;
    const int chunk = block % chunks, strip = block / chunks;
    const int tiles = int((of.pixels + SIDE - 1) / SIDE);
    const int quad = thread() % (SIDE / 4), own = thread() / (SIDE / 4);
    float x[EACH][4];
    unsigned most = 0;
    if (FIRST_PASS) {
        #pragma unroll 1
        for (int tile = strip; tile < tiles; tile += strips) {
            read(x, of, size(tile) * SIDE + 4 * quad, chunk * SIDE + own);
            #pragma unroll
            for (int i = 0; i < EACH; ++i)
                #pragma unroll
                for (int e = 0; e < 4; ++e) most = larger_finite(most, x[i][e]);
        }
    } else {
        for (int i = thread(); i < of.blocks; i += THREADS) most = of.parts[i] > most ? of.parts[i] : most;
    }
    most = __reduce_max_sync(ALL, most);
    if (thread() % 32 == 0) largest[warp()] = most;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) most = largest[w] > most ? largest[w] : most;
    if (FIRST_PASS) {
        if (thread() == 0) of.parts[block] = most;
        return;
    }

    const int e = scale_of_all(most);
    if (block == 0 && thread() == 0) *of.exponent = e;
    const Scale scale(e);
    // Channel c of pixel p is at c SIDE + (p ^ 4 (c / 8)): no two threads of a warp want one bank
    const auto place = [](int c, int p) { return c * SIDE + (p ^ c / 8 % 8 * 4); };
    constexpr int EIGHTS = SIDE / 8;
    const int eight = thread() % EIGHTS;
    float total[EACH] = {};
    #pragma unroll 1
    for (int tile = (tiles - 1 - strip) / strips * strips + strip; tile >= 0; tile -= strips) {
        read(x, of, size(tile) * SIDE + 4 * quad, chunk * SIDE + own);
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
            if (pixel >= of.pixels) continue;
            unsigned short* const to = of.pairs + pixel * 2 * of.room + chunk * SIDE + 8 * eight;
            *reinterpret_cast<uint4*>(to) = make_uint4(high[0], high[1], high[2], high[3]);
            *reinterpret_cast<uint4*>(to + of.room) = make_uint4(low[0], low[1], low[2], low[3]);
        }
        __syncthreads();
    }
    if (!of.sums) return;
    #pragma unroll
    for (int i = 0; i < EACH; ++i) {
        #pragma unroll
        for (int mask = 1; mask < SIDE / 4; mask *= 2) total[i] += across(total[i], mask);
        if (quad == 0) of.sums[size(strip) * of.room + chunk * SIDE + own + HIGH * i] = total[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
channel_pairs(size blocks, const float* A, size a_image, size a_channel, size a_row, size a_col,
              size a_by_fours, size a_channels, size a_height, size a_width, size a_pixels,
              unsigned* a_parts, size a_blocks, unsigned short* a_pairs, size a_room,
              int* a_exponent, float* a_sums, const float* B, size b_image, size b_channel,
              size b_row, size b_col, size b_by_fours, size b_channels, size b_height,
              size b_width, size b_pixels, unsigned* b_parts, size b_blocks,
              unsigned short* b_pairs, size b_room, int* b_exponent, float* b_sums)
{
    wait_for_stream();
    const bool left = blockIdx.x < blocks;  // which operand: one text for both
    split({left ? A : B, left ? a_image : b_image, left ? a_channel : b_channel,
           left ? a_row : b_row, left ? a_col : b_col, left ? a_by_fours : b_by_fours,
           left ? a_channels : b_channels, left ? a_height : b_height, left ? a_width : b_width,
           left ? a_pixels : b_pixels, left ? a_parts : b_parts, left ? a_blocks : b_blocks,
           left ? a_pairs : b_pairs, left ? a_room : b_room, left ? a_exponent : b_exponent,
           left ? a_sums : b_sums}, int(blockIdx.x) - (left ? 0 : int(blocks)));
}
