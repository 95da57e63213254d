// convolution_boxes.cuh: convolutions, and the gradients of their weights, as products on Hopper's
// tensor cores whose operands come in boxes of images with channels last, in pairs of half
// precision (channel_pairs.cu). Where a box is not in the image there are zeros: that is padding.
//
// A block has a multiprocessor to itself. Of its first four warps, the producer, one thread asks for
// boxes, 64 of k of both parts of both operands to a stage, STAGES of them under way. Two groups of
// four warps have 64 rows and BN columns of sums each: the two lie one under the other (ROWS = 2),
// and share the lines of B, or beside each other (ROWS = 1), and share those of A. They multiply low
// high + high low + high high of a stage in turns, so that one adds while the other multiplies: the
// tensor cores cut off what does not fit a sum of 25 bits, so after 64 of k what they have is
// added to sums in registers, rounded.
#pragma once
#include "hopper.cuh"
#include "launch.cuh"
#include "pairs.cuh"
#include "shuffle.cuh"

using size = long long;

constexpr int GROUPS = 2, BM = 64 * ROWS, BESIDE = GROUPS / ROWS, SUMS = BN / 2;
constexpr int BK = TILE_ROW / 2;
constexpr unsigned PART_A = BM * TILE_ROW, PART_B = BESIDE * BN * TILE_ROW;
constexpr unsigned STAGE = 2 * (PART_A + PART_B);
// Registers of a thread of the producer, and of one that multiplies: of 65536 for all
constexpr int GIVEN = 56, TAKEN = 224;
static_assert((ROWS == 1 || ROWS == 2) && BN % 8 == 0);

// The ring's position: a stage and the phase of its barriers
struct Place {
    unsigned stage = 0, phase = 0;
    __device__ void next()
    {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
};

struct Ring {
    unsigned stages, full, empty;

    // Where the next stage's boxes go, when it is empty; so many bytes are to come
    __device__ unsigned begin(Place at, unsigned bytes) const
    {
        await(empty + 8 * at.stage, at.phase ^ 1);
        expect(full + 8 * at.stage, bytes);
        return stages + at.stage * STAGE;
    }
};

// Both parts of a box, which lie `room` numbers apart, to places PART bytes apart
template <unsigned PART>
__device__ void load_both(unsigned to, const TensorMap& X, unsigned full, int room, int c, int col,
                          int row, int image)
{
    load_box(to, X, full, c, col, row, image);
    load_box(to + PART, X, full, room + c, col, row, image);
}

// sums += A B^T, or sums := A B^T, for product `step` of a stage
template <int fresh, int ACROSS_A, int ACROSS_B>
__device__ void products(float (&sums)[SUMS], word a, word b, int step)
{
    multiply<fresh, ACROSS_A, ACROSS_B>(sums, a + step * ONE_PRODUCT<ACROSS_A>,
                                        b + step * ONE_PRODUCT<ACROSS_B>, half());
}

// sums := A B^T of `chunks` stages for the 64 rows of a group; lines of A and of B along k, or,
// if across, boxes of 64 k of as many lines
template <int ACROSS_A, int ACROSS_B>
__device__ void multiply_stages(float (&sums)[SUMS], Place& at, int chunks, int group,
                                const Ring& ring)
{
    const unsigned own_a = ROWS == 2 ? group * 64 * TILE_ROW : 0;
    const unsigned own_b = 2 * PART_A + (ROWS == 1 ? group * BN * TILE_ROW : 0);
    float part[SUMS];
    #pragma unroll
    for (int e = 0; e < SUMS; ++e) sums[e] = part[e] = 0;
    for (int c = 0; c < chunks; ++c, at.next()) {
        await(ring.full + 8 * at.stage, at.phase);
        const unsigned from = ring.stages + at.stage * STAGE;
        const word a_high = tile_at<ACROSS_A>(from + own_a, 64 * TILE_ROW);
        const word b_high = tile_at<ACROSS_B>(from + own_b, 64 * TILE_ROW);
        const word a_low = a_high + (PART_A >> 4), b_low = b_high + (PART_B >> 4);
        wait_turn(group);
        keep(part);
        begin_products();
        products<FRESH, ACROSS_A, ACROSS_B>(part, a_low, b_high, 0);
        #pragma unroll
        for (int p = 1; p < 4; ++p) products<0, ACROSS_A, ACROSS_B>(part, a_low, b_high, p);
        #pragma unroll
        for (int p = 0; p < 4; ++p) products<0, ACROSS_A, ACROSS_B>(part, a_high, b_low, p);
        #pragma unroll
        for (int p = 0; p < 4; ++p) products<0, ACROSS_A, ACROSS_B>(part, a_high, b_high, p);
        end_products();
        give_turn(1 - group);
        await_products<0>();
        keep(part);
        if (threadIdx.x % 128 == 0) arrive(ring.empty + 8 * at.stage);
        #pragma unroll
        for (int e = 0; e < SUMS; ++e) sums[e] += part[e];
    }
}

// The kernel, which has shared memory for 2 STAGES barriers: produce(ring) in one thread,
// multiply(ring, group) in those of two groups
template <class Produce, class Multiply>
__device__ void by_boxes(word* barriers, Produce produce, Multiply multiply)
{
    const unsigned full = shared_address(barriers);
    const Ring ring{(shared_address(dynamic_shared) + 1023u) & ~1023u, full, full + 8 * STAGES};
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            make_barrier(ring.full + 8 * s, 1);
            make_barrier(ring.empty + 8 * s, GROUPS);
        }
        show_barriers();
    }
    __syncthreads();
    // From one lane, so that the compiler knows that a warp agrees on it
    const int group = of_lane(int(threadIdx.x) / 128, 0) - 1;
    if (group < 0) {
        give_registers<GIVEN>();
        if (threadIdx.x == 0) produce(ring);
    } else {
        take_registers<TAKEN>();
        if (group == GROUPS - 1) give_turn(0);
        multiply(ring, group);
        if (group == 0) wait_turn(0);
    }
}
