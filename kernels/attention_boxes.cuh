// attention_boxes.cuh: what the kernels of attention (attention.cuh) on Hopper's tensor cores share:
// lines that come in boxes of 64 numbers, and products of a group of four warps, which has 64 of the
// block's ROWS lines.
//
// GROUPS groups of a block multiply. Its last four warps are the producer: one thread asks for the
// block's own lines, and for those of the other side, a tile at a time, STAGES of them under way. A
// block of few lines asks for the other side's more often; where that has few, BLOCKS of them on a
// multiprocessor multiply in turns.
#pragma once
#include "attention_weights.cuh"
#include "hopper.cuh"
#include "launch.cuh"

constexpr int ROWS = 64 * GROUPS, HALVES = WIDTH / 64;
// Registers of a thread that multiplies, and of the producer, LEAST at least, of 65536 for all of
// BLOCKS
constexpr int AT_START = 512 / (GROUPS + 1) / BLOCKS / 8 * 8, OF_ALL = (GROUPS + 1) * AT_START;
constexpr int LEFT = (OF_ALL - LEAST) / GROUPS / 8 * 8, TAKEN = LEFT < 240 ? LEFT : 240;
constexpr int REST = OF_ALL - GROUPS * TAKEN, GIVEN = REST < AT_START ? REST : AT_START;
static_assert(WIDTH % 64 == 0);

// Which group of four warps this is, GROUPS the producer, and which warp of the block: from one lane,
// so that the compiler knows that a warp agrees on it
__device__ inline int group() { return of_lane(thread() / 128, 0); }
__device__ inline int uniform_warp() { return of_lane(warp(), 0); }

// Bytes of a box of so many lines, and of the lines
template <int LINES> constexpr unsigned BOX = LINES * TILE_ROW;
template <int LINES> constexpr unsigned PART = HALVES * BOX<LINES>;

// Where boxes may begin in shared memory that is free from here on
__device__ inline unsigned boxes_from(unsigned at) { return (at + 1023u) & ~1023u; }

template <int LINES>
__device__ void load_lines(unsigned to, const TensorMap& from, unsigned barrier, int line, int head,
                           int batch)
{
    #pragma unroll
    for (int h = 0; h < HALVES; ++h)
        load_box(to + h * BOX<LINES>, from, barrier, 64 * h, line, head, batch);
}

// The position in a ring: a stage and the phase of its barriers
template <int COUNT = STAGES> struct Place {
    unsigned stage = 0, phase = 0;
    __device__ void next()
    {
        if (++stage == COUNT) stage = 0, phase ^= 1;
    }
};

// Where a ring's COUNT stages of BYTES are, and its barriers: each is filled by so many threads
template <unsigned BYTES, int FILLERS = 1, int COUNT = STAGES> struct Ring {
    using Place = ::Place<COUNT>;
    unsigned stages, full, empty;

    __device__ unsigned at(Place of) const { return stages + of.stage * BYTES; }
    __device__ void make() const
    {
        for (int s = 0; s < COUNT; ++s) {
            make_barrier(full + 8 * s, FILLERS);
            make_barrier(empty + 8 * s, GROUPS);
        }
    }
    // By the producer: the lines from this one on, when there is room for them
    __device__ void fill(Place of, const TensorMap& from, int line, int head, int batch) const
    {
        emptied(of);
        expect(full + 8 * of.stage, BYTES);
        load_lines<BYTES / PART<1>>(at(of), from, full + 8 * of.stage, line, head, batch);
    }
    __device__ void emptied(Place of) const { await(empty + 8 * of.stage, of.phase ^ 1); }
    __device__ void filled(Place of) const { await(full + 8 * of.stage, of.phase); }
    __device__ void done(Place& of) const
    {
        if (thread() % 128 == 0) arrive(empty + 8 * of.stage);
        of.next();
    }
    __device__ void done_before(Place next) const
    {
        const unsigned stage = (next.stage ? next.stage : COUNT) - 1;
        if (thread() % 128 == 0) arrive(empty + 8 * stage);
    }
};

// s := A B^T for the group's 64 lines at a, of ROWS that lie there, and LINES at b
template <int LINES>
__device__ void ask_along(float (&s)[LINES / 2], unsigned a, unsigned b)
{
    #pragma unroll
    for (int h = 0; h < HALVES; ++h)
        #pragma unroll
        for (int p = 0; p < 4; ++p) {
            const word x = tile_at<0>(a + h * BOX<ROWS>) + p * ONE_PRODUCT<0>;
            const word y = tile_at<0>(b + h * BOX<LINES>) + p * ONE_PRODUCT<0>;
            if (h == 0 && p == 0) multiply<FRESH>(s, x, y, scalar_t());
            else multiply(s, x, y, scalar_t());
        }
    end_products();
}

// sums += P V for the group's weights of LINES lines, which are at v
template <int LINES>
__device__ void ask_across(float (&sums)[WIDTH / 2], const int (&p)[LINES / 4], unsigned v)
{
    #pragma unroll
    for (int k = 0; k < LINES / 16; ++k)
        multiply_held<0, 1>(sums, p + 4 * k, tile_at<1>(v, BOX<LINES>) + k * ONE_PRODUCT<1>,
                            scalar_t());
    end_products();
}
