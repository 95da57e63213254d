// convolve_wgmma.cu: y of a convolution of stride 1, and its data gradient, which is one, too, with
// the weights turned round (convolution_boxes.cuh):
//
//     C(m, p) = sum over (r, s) and c of W(m, c; r, s) X(c; p + (r, s))
//
// Rows are filters m, lines of A the channels of a filter's element (r, s), or, A_ACROSS, the
// channels m of filters c, the last element first; columns are pixels p = (n, i, j), lines of B
// their channels, in a box of so many columns, rows and images as leave the multiprocessors the
// fewest turns. What of a box is not in y is not stored.
//
// Floor: 6 m n k operations of the tensor cores, or what comes from the L2 cache to a tile: 256 (64
// ROWS + BESIDE BN) bytes for 64 of k. Measured: 231 Tflop/s of 2 m n k of 256 filters of 3 x 3 (64
// images of 14 x 14), 165 of 64 (56 x 56).
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int ROWS = 2;     // groups one under the other
constexpr int BN = 128;     // columns of a group
constexpr int STAGES = 3;   // in shared memory
constexpr int A_ACROSS = 0; // 1: the weights turned round
#endif
#include "convolution_boxes.cuh"

// Boxes of pixels, along the columns first
struct Boxes {
    int col, row, image;          // so many of each in a box
    int width, height, images;    // of y
    int across, down;             // boxes of an image

    __device__ int pixels() const { return col * row * image; }
    __device__ void place(int box, int& n, int& i, int& j) const
    {
        const int line = box / across;
        j = (box - line * across) * col;
        n = line / down;
        i = (line - n * down) * row;
        n *= image;
    }
};

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
convolve_wgmma(const __grid_constant__ TensorMap W, const __grid_constant__ TensorMap X, size w_room,
               size x_room, size high, size wide, size step_row, size step_col, size first_row,
               size first_col, float* C, size c_image, size c_channel, size c_row, size c_col,
               const float* bias, size rows, size images, size height, size width, size box_images,
               size box_rows, size box_cols, const int* exponent_w, const int* exponent_x)
{
    wait_for_stream();
    __shared__ word barriers[2 * STAGES];
    const Boxes boxes{int(box_cols), int(box_rows), int(box_images), int(width), int(height),
                      int(images), int((width + box_cols - 1) / box_cols),
                      int((height + box_rows - 1) / box_rows)};
    const int row_tiles = int((rows + BM - 1) / BM);
    const int of_pixels = boxes.across * boxes.down
                          * int((images + box_images - 1) / box_images);
    const int tiles = row_tiles * ((of_pixels + BESIDE - 1) / BESIDE);
    const int channels = int(x_room), chunks = channels / BK * int(high * wide);
    const auto produce = [&](const Ring& ring) {
        const unsigned bytes = 2 * (PART_A + BESIDE * boxes.pixels() * TILE_ROW);
        Place at;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int m = tile % row_tiles * BM, box = tile / row_tiles * BESIDE;
            int n[BESIDE], i[BESIDE], j[BESIDE];
            #pragma unroll
            for (int b = 0; b < BESIDE; ++b) {
                boxes.place(box + b, n[b], i[b], j[b]);
                i[b] += int(first_row), j[b] += int(first_col);
            }
            for (int c = 0; c < channels; c += BK)
                for (int r = 0; r < high; ++r)
                    for (int s = 0; s < wide; ++s, at.next()) {
                        const unsigned to = ring.begin(at, bytes), full = ring.full + 8 * at.stage;
                        if constexpr (!A_ACROSS)
                            load_both<PART_A>(to, W, full, int(w_room), c, s, r, m);
                        else
                            #pragma unroll
                            for (int q = 0; q < ROWS; ++q)
                                load_both<PART_A>(to + q * 64 * TILE_ROW, W, full, int(w_room),
                                                  m + 64 * q, int(wide) - 1 - s,
                                                  int(high) - 1 - r, c);
                        #pragma unroll
                        for (int b = 0; b < BESIDE; ++b)
                            load_both<PART_B>(to + 2 * PART_A + b * BN * TILE_ROW, X, full,
                                              channels, c, j[b] + s * int(step_col),
                                              i[b] + r * int(step_row), n[b]);
                    }
        }
    };
    const auto multiply = [&](const Ring& ring, int group) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, warp = threadIdx.x / 32 - 4;
        int* const columns = reinterpret_cast<int*>(dynamic_shared + STAGES * STAGE + 1024)
                             + warp * BN;  // where they are in C, or -1
        const float down_w = power(-*exponent_w), down_x = power(-*exponent_x);
        Place at;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            int n, i, j;
            boxes.place(tile / row_tiles * BESIDE + (BESIDE == 2 ? group : 0), n, i, j);
            __syncwarp();  // all have read those of the tile before
            for (int p = lane; p < BN; p += 32) {
                const int line = p / boxes.col, of = line / boxes.row;
                const int col = j + p - line * boxes.col, row = i + line - of * boxes.row;
                const bool there = of < boxes.image && n + of < boxes.images && row < boxes.height
                                   && col < boxes.width;
                columns[p] = there ? int((n + of) * c_image + row * c_row + col * c_col) : -1;
            }
            __syncwarp();
            float sums[SUMS];
            multiply_stages<A_ACROSS, 0>(sums, at, chunks, group, ring);
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int m = tile % row_tiles * BM + (ROWS == 2 ? group * 64 : 0) + warp % 4 * 16
                              + 8 * h + g;
                if (m >= rows) continue;
                float* const to = C + m * c_channel;
                const float add = bias ? bias[m] : 0;
                #pragma unroll
                for (int q = 0; q < BN / 8; ++q) {
                    const int first = columns[8 * q + 2 * t], second = columns[8 * q + 2 * t + 1];
                    const float x = sums[4 * q + 2 * h] * down_w * down_x + add;
                    const float y = sums[4 * q + 2 * h + 1] * down_w * down_x + add;
                    if (first >= 0 && second == first + 1 && size(to + first) % 8 == 0) {
                        *reinterpret_cast<float2*>(to + first) = {x, y};
                    } else {
                        if (first >= 0) to[first] = x;
                        if (second >= 0) to[second] = y;
                    }
                }
            }
        }
    };
    by_boxes(barriers, produce, multiply);
}
