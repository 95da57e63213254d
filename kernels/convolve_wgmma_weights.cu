// convolve_wgmma_weights.cu: dW of a convolution of stride 1 (convolution_boxes.cuh):
//
//     C(r, s; m, c) = sum over pixels p of dY(m; p) X(c; p + (r, s))
//
// Rows are filters, columns channels, 64 of them for an element (r, s) and then for the next, and
// k are pixels, a box of 64 to a stage. A block has BM filters, BESIDE BN columns and a split of
// the boxes; each split has a C of its own, which is summed later, in order.
//
// Floor: 6 m n k operations of the tensor cores, or what comes from the L2 cache to a tile: 256 (64
// ROWS + BESIDE BN) bytes for 64 of k. Measured: 231 Tflop/s of 2 m n k of 256 filters of 3 x 3 (64
// images of 14 x 14), 210 of 64 (56 x 56).
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int ROWS = 2;     // groups one under the other
constexpr int BN = 128;     // columns of a group
constexpr int STAGES = 3;   // in shared memory
#endif
#include "convolution_boxes.cuh"

constexpr int COLUMNS = BESIDE * BN / 64;  // of 64 each
static_assert(BN % 64 == 0);

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
convolve_wgmma_weights(const __grid_constant__ TensorMap Y, const __grid_constant__ TensorMap X,
                       size y_room, size x_room, size high, size wide, size step_row,
                       size step_col, size first_row, size first_col, float* C, size c_split,
                       size rows, size channels, size images, size height, size width,
                       size box_images, size box_rows, size box_cols, size splits,
                       const int* exponent_y, const int* exponent_x)
{
    wait_for_stream();
    __shared__ word barriers[2 * STAGES];
    const int across = int((width + box_cols - 1) / box_cols);
    const int down = int((height + box_rows - 1) / box_rows);
    const int boxes = across * down * int((images + box_images - 1) / box_images);
    const int row_tiles = int((rows + BM - 1) / BM), sixties = int(x_room) / 64;
    const int elements = int(high * wide), columns = elements * sixties;
    const int tiles = row_tiles * ((columns + COLUMNS - 1) / COLUMNS);
    const int jobs = tiles * int(splits), each = (boxes + int(splits) - 1) / int(splits);
    const auto first_box = [=](int job) { return job / tiles * each; };
    const auto end_box = [=](int job) { return min(boxes, (job / tiles + 1) * each); };
    const auto produce = [&](const Ring& ring) {
        Place at;
        for (int job = blockIdx.x; job < jobs; job += gridDim.x) {
            const int tile = job % tiles, m = tile % row_tiles * BM;
            int c[COLUMNS], row[COLUMNS], col[COLUMNS];
            #pragma unroll
            for (int q = 0; q < COLUMNS; ++q) {  // what is past the last element is not stored
                const int column = tile / row_tiles * COLUMNS + q, of = column / sixties;
                c[q] = (column - of * sixties) * 64;
                row[q] = int(first_row) + of / int(wide) * int(step_row);
                col[q] = int(first_col) + of % int(wide) * int(step_col);
            }
            for (int box = first_box(job); box < end_box(job); ++box, at.next()) {
                const int line = box / across, j = (box - line * across) * int(box_cols);
                const int n = line / down, i = (line - n * down) * int(box_rows);
                const int image = n * int(box_images);
                const unsigned to = ring.begin(at, STAGE), full = ring.full + 8 * at.stage;
                #pragma unroll
                for (int q = 0; q < ROWS; ++q)
                    load_both<PART_A>(to + q * 64 * TILE_ROW, Y, full, int(y_room), m + 64 * q, j, i,
                                      image);
                #pragma unroll
                for (int q = 0; q < COLUMNS; ++q)
                    load_both<PART_B>(to + 2 * PART_A + q * 64 * TILE_ROW, X, full, int(x_room), c[q],
                                      j + col[q], i + row[q], image);
            }
        }
    };
    const auto multiply = [&](const Ring& ring, int group) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32 - 4;
        const float down_y = power(-*exponent_y), down_x = power(-*exponent_x);
        Place at;
        for (int job = blockIdx.x; job < jobs; job += gridDim.x) {
            float sums[SUMS];
            multiply_stages<1, 1>(sums, at, end_box(job) - first_box(job), group, ring);
            const int tile = job % tiles;
            const int first = tile / row_tiles * COLUMNS + (BESIDE == 2 ? group * (BN / 64) : 0);
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int m = tile % row_tiles * BM + (ROWS == 2 ? group * 64 : 0) + warp % 4 * 16
                              + 8 * h + g;
                if (m >= rows) continue;
                #pragma unroll
                for (int q = 0; q < BN / 64; ++q) {
                    const int of = (first + q) / sixties;
                    const int c0 = (first + q - of * sixties) * 64 + 2 * t;
                    if (of >= elements) continue;
                    float* const to = C + job / tiles * c_split + (of * rows + m) * channels;
                    #pragma unroll
                    for (int p = 0; p < 8; ++p) {
                        const int c = c0 + 8 * p, at_sums = 4 * (8 * q + p) + 2 * h;
                        const float x = sums[at_sums] * down_y * down_x;
                        const float y = sums[at_sums + 1] * down_y * down_x;
                        if (c + 1 < channels && size(to + c) % 8 == 0) {
                            *reinterpret_cast<float2*>(to + c) = {x, y};
                        } else {
                            if (c < channels) to[c] = x;
                            if (c + 1 < channels) to[c + 1] = y;
                        }
                    }
                }
            }
        }
    };
    by_boxes(barriers, produce, multiply);
}
