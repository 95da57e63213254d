// getrf_moved.cu: columns of a large matrix to the right of a wide block, whose rows are put in order
// as that block's interchanges say, in place: the rows that move, and nothing else.
//
// A block has COLUMNS columns. It finds which rows move, by their places, in shared memory: a bit for
// each, counted, so that a row's number among them is two words away. Then the numbers in these places
// come, column after column, STAGES of these under way, and go where the list says. Lanes have
// neighbours of the list, on the way in as on the way out.
//
// The floor: the sectors of 32 bytes in which something moves, each way. Of columns each with an order
// of its own, see getrf_columns.cu.
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 16, STAGES = 3;
#endif

// Place i, from row `first` on, takes what is in row order[i]; at most `most` rows move.
extern "C" __global__ void __launch_bounds__(THREADS)
getrf_moved(scalar_t* A, size lda, size ms, size ns, size first, const int* order, size most)
{
    wait_for_stream();
    __shared__ int of_warp[WARPS];
    const int lane = threadIdx.x % 32, top = int(first), rows = int(ms) - top, words = (rows + 31) / 32;
    scalar_t* const held = reinterpret_cast<scalar_t*>(dynamic_shared);  // STAGES times `most`
    unsigned* const moves = reinterpret_cast<unsigned*>(held + STAGES * most);  // place, and from << 16
    unsigned* const bits = moves + most;
    int* const before = reinterpret_cast<int*>(bits + words);  // moving rows before those of a word
    order += top;
    #pragma unroll 8
    for (int w = warp(); w < words; w += WARPS) {
        const int i = 32 * w + lane;
        const unsigned b = __ballot_sync(ALL, (i < rows ? order[i] : top + i) != top + i);
        if (lane == 0) bits[w] = b;
    }
    __syncthreads();
    const int share = (words + WARPS - 1) / WARPS, begin = share * warp();
    const int end = min(begin + share, words);
    int found = 0;
    for (int w = begin; w < end; w += 32) {
        const int mine = w + lane < end ? __popc(bits[w + lane]) : 0;
        int sum = mine;
        #pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int sooner = of_lane(sum, (lane + 32 - step) % 32);
            if (lane >= step) sum += sooner;
        }
        if (w + lane < end) before[w + lane] = found + sum - mine;
        found += of_lane(sum, 31);
    }
    if (lane == 0) of_warp[warp()] = found;
    __syncthreads();
    int sooner = 0, count = 0;
    for (int w = 0; w < WARPS; ++w) sooner += w < warp() ? of_warp[w] : 0, count += of_warp[w];
    for (int w = begin + lane; w < end; w += 32) before[w] += sooner;
    __syncthreads();
    const auto number = [=](int row) {
        return before[row / 32] + __popc(bits[row / 32] & ((1u << row % 32) - 1));
    };
    #pragma unroll 4
    for (int w = warp(); w < words; w += WARPS) {
        const int i = 32 * w + lane;
        if (bits[w] >> lane & 1) moves[number(i)] = unsigned(number(order[i] - top)) << 16 | i;
    }
    __syncthreads();

    const size column = size(blockIdx.x) * COLUMNS;
    const int mine = int(min(size(COLUMNS), ns - column));
    A += top + column * lda;
    const auto bring = [=](int c) {
        if (c < mine)
            #pragma unroll 4
            for (int e = thread(); e < count; e += THREADS)
                copy_async<sizeof(scalar_t)>(held + c % STAGES * most + e,
                                             A + c * lda + moves[e] % 65536, sizeof(scalar_t));
        end_group();
    };
    for (int c = 0; c < STAGES - 1; ++c) bring(c);
    for (int c = 0; c < mine; ++c) {
        await_groups<STAGES - 2>();
        __syncthreads();  // column c is there, and all are done with the one before
        bring(c + STAGES - 1);
        #pragma unroll 4
        for (int e = thread(); e < count; e += THREADS)
            A[c * lda + moves[e] % 65536] = held[c % STAGES * most + moves[e] / 65536];
    }
}
