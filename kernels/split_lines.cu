// split_lines.cu: both operands of a product, line by line, scaled and split to pairs of half
// precision (pairs.cuh), each half in a plane of its own with k fastest.
//
// A line along which numbers lie side by side belongs to a warp, or, where it is longer than
// HELD * 32, to a block, which has it in registers from the search for the largest number to
// the last store, or, longer than HELD * THREADS, reads it twice. Lines that lie side by side
// themselves, of which line_maxima knows the largest numbers, go through shared memory by tiles of
// SIDE lines and SIDE of k, TILES of them to a block, one being loaded while the one before is
// stored.
//
// Floor: 8 bytes an entry, read and written once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;    // of a block
constexpr int HELD = 16;     // numbers of a line in the registers of a thread
constexpr int TILES = 4;     // along k, to a block
#endif
#include "launch.cuh"
#include "operand_lines.cuh"
#include "shuffle.cuh"

constexpr int THREADS = 32 * WARPS, SIDE = 64;
struct alignas(8) Halves { unsigned x[2]; };
struct alignas(16) Words { unsigned x[4]; };

__device__ inline unsigned both_high(unsigned a, unsigned b) { return (a & 0xffff) | b << 16; }
__device__ inline unsigned both_low(unsigned a, unsigned b) { return a >> 16 | (b & 0xffff0000u); }

// Over the team of a line: a warp, or, `all`, the block
__device__ inline unsigned team_largest(unsigned x, bool all)
{
    x = __reduce_max_sync(ALL, x);
    if (!all) return x;
    __shared__ unsigned of_warp[WARPS];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) x = x < of_warp[w] ? of_warp[w] : x;
    return x;
}
__device__ inline int team_sum(int x, bool all)
{
    for (int step = 16; step; step /= 2) x += across(x, step);
    if (!all) return x;
    __shared__ int of_warp[WARPS];
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < WARPS; ++w) x += of_warp[w];
    return x;
}

__device__ inline void split_line(const Operand& of, size line, bool all)
{
    constexpr int EACH = HELD / 4;
    const int team = all ? THREADS : 32;
    const size stride = 4 * team, first = 4 * (threadIdx.x % team);
    const bool whole = of.in_fours(of.step, of.next);
    const float* const X = of.X + line * of.next;
    float x[EACH][4] = {};
    const auto load = [&](size from) {
        #pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const size p = from + i * stride;
            read_four(x[i], X + p * of.step, of.step, of.k - p, whole);
        }
    };
    unsigned most = 0;
    for (size from = first; from < of.k; from += EACH * stride) {
        load(from);
        #pragma unroll
        for (int i = 0; i < EACH; ++i)
            #pragma unroll
            for (int e = 0; e < 4; ++e) most = most < pattern(x[i][e]) ? pattern(x[i][e]) : most;
    }
    most = team_largest(most, all);
    const bool finite = most < 0x7f800000;
    const int exponent = scale_of(most);
    const Scale scale(exponent);
    int lost = 0;
    for (size from = first; from < of.k; from += EACH * stride) {
        if (of.k > EACH * stride) load(from);
        #pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const size p = from + i * stride;
            if (p >= of.k) continue;
            unsigned pair[4];
            #pragma unroll
            for (int e = 0; e < 4; ++e) pair[e] = finite ? pair_of(x[i][e], scale, lost) : 0;
            unsigned short* const to = of.pairs + line * of.room + p;
            *reinterpret_cast<Halves*>(to) = {both_high(pair[0], pair[1]),
                                              both_high(pair[2], pair[3])};
            *reinterpret_cast<Halves*>(to + of.lines * of.room) = {both_low(pair[0], pair[1]),
                                                                   both_low(pair[2], pair[3])};
        }
    }
    lost = team_sum(lost, all);
    if (threadIdx.x % team == 0) {
        Line about = line_of(exponent);
        about.lost = finite ? lost : NOT_FINITE;
        of.about[line] = about;
    }
}

// Lines side by side: SIDE of them from `line` on, TILES * SIDE of k from `from` on
__device__ inline void split_tiles(const Operand& of, size line, size from)
{
    __shared__ unsigned tile[SIDE][SIDE + 1], most[SIDE];
    __shared__ int gone[SIDE];
    constexpr int EACH = SIDE * SIDE / 4 / THREADS, ROWS = 4 * THREADS / SIDE;
    const bool whole = of.in_fours(of.next, of.step);
    const int col = 4 * (threadIdx.x % (SIDE / 4)), row = threadIdx.x / (SIDE / 4);
    float x[EACH][4];

    const auto load = [&](size k0) {
        #pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const size p = k0 + row + i * ROWS;
            const size n = p < of.k ? of.lines - line - col : 0;
            read_four(x[i], of.X + (line + col) * of.next + p * of.step, of.next, n, whole);
        }
    };
    load(from);
    for (int i = threadIdx.x; i < SIDE; i += THREADS) {
        unsigned largest = 0;
        if (line + i < of.lines) {
            #pragma unroll 8
            for (size c = 0; c < of.chunks; ++c) {
                const unsigned found = of.largest[c * of.lines + line + i];
                largest = largest < found ? found : largest;
            }
            if (from == 0) {
                const Line about = line_of(scale_of(largest));
                of.about[line + i].down = about.down;
                of.about[line + i].rest = about.rest;
                of.about[line + i].none = 0;
            }
        }
        most[i] = largest;
        gone[i] = from == 0 && largest >= 0x7f800000 ? NOT_FINITE : 0;
    }
    __syncthreads();
    int lost[4] = {};
    for (int step = 0; step < TILES && from < of.k; ++step, from += SIDE) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            const Scale scale(scale_of(most[col + e]));
            const bool finite = most[col + e] < 0x7f800000;
            #pragma unroll
            for (int i = 0; i < EACH; ++i)
                tile[row + i * ROWS][col + e] = finite ? pair_of(x[i][e], scale, lost[e]) : 0;
        }
        if (step + 1 < TILES && from + SIDE < of.k) load(from + SIDE);
        __syncthreads();
        for (int i = threadIdx.x; i < SIDE * SIDE / 8; i += THREADS) {
            const int p = i % (SIDE / 8) * 8, at = i / (SIDE / 8);
            if (line + at >= of.lines || from + p >= of.k) continue;
            unsigned pair[8];
            #pragma unroll
            for (int e = 0; e < 8; ++e) pair[e] = tile[p + e][at];
            Words high, low;
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                high.x[e] = both_high(pair[2 * e], pair[2 * e + 1]);
                low.x[e] = both_low(pair[2 * e], pair[2 * e + 1]);
            }
            unsigned short* const to = of.pairs + (line + at) * of.room + from + p;
            *reinterpret_cast<Words*>(to) = high;
            *reinterpret_cast<Words*>(to + of.lines * of.room) = low;
        }
        __syncthreads();
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        if (lost[e]) atomicAdd(&gone[col + e], lost[e]);
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE; i += THREADS)
        if (gone[i] && line + i < of.lines) atomicAdd(&of.about[line + i].lost, gone[i]);
}

__device__ inline void split_operand(const Operand& of, unsigned block)
{
    if (of.largest) {
        const unsigned across = (of.lines + SIDE - 1) / SIDE;
        split_tiles(of, size(block % across) * SIDE, size(block / across) * TILES * SIDE);
    } else {
        const bool all = of.k > HELD * 32;
        const size line = all ? block : size(block) * WARPS + threadIdx.x / 32;
        if (line < of.lines) split_line(of, line, all);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
split_lines(size blocks, const float* A, size m, size k, size a_next, size a_step,
            unsigned short* a_pairs, size room, Line* a_about, unsigned* a_largest, size a_chunks,
            const float* B, size n, size b_next, size b_step, unsigned short* b_pairs,
            Line* b_about, unsigned* b_largest, size b_chunks)
{
    wait_for_stream();
    if (blockIdx.x < blocks)
        split_operand({A, m, k, a_next, a_step, a_pairs, room, a_about, a_largest, a_chunks},
                      blockIdx.x);
    else
        split_operand({B, n, k, b_next, b_step, b_pairs, room, b_about, b_largest, b_chunks},
                      blockIdx.x - unsigned(blocks));
}
