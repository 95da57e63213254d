// gemm_int8.cu: C := A B^T of bytes, exactly, or f(scale A B^T + bias) in single precision, by the tensor
// cores of Hopper; f nothing, relu or gelu.
//
// Tiles and who has what of them: tile_ring.cuh. A stage is 128 of k. Operands lie along k. Sums have
// 32 bits, and wrap around as integers do.
//
// Floor: 2 m n k operations at 1979 Top/s, or what 700 W allow, 1200 to 1450; C is 4 m n bytes, written
// once: a lane has two neighbours of a row, four of them 32 bytes of it.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int BN = 256;     // columns of a tile
constexpr int STAGES = 4;   // in shared memory
constexpr int CLUSTER = 2;  // blocks that share B
constexpr int WIDE = 8;     // tiles of a cluster that follow each other downwards, then across
constexpr int A_ACROSS = 0, B_ACROSS = 0;  // bytes are multiplied along their lines only
constexpr int SCALE_OF = 0;    // 0: C is of integers, 1: one scale, 2: one for each column, 3: row
constexpr int BIAS = 0;        // 0: one number, 1: one for each column of C, 2: for each row
constexpr int ACTIVATION = 0;  // 1: relu, 2: gelu, 3: its approximation
#endif
#include "gelu.cuh"
#include "hopper.cuh"
#include "launch.cuh"

constexpr int PLANES = 1;
using number_t = signed char;
#include "tile_ring.cuh"

struct Result {
    int* C;  // or of as many numbers of single precision
    size ld;
    const float *scale, *bias;
    float times, more;  // the scale and bias where there is but one
    int m, n;
    bool even;  // C can be stored in 8 bytes

    // What there is of a row's numbers, and of two neighbouring columns'
    __device__ float2 of_columns(const float* x, int j) const
    {
        return {x[j], j + 1 < n ? x[j + 1] : 0};
    }
    __device__ int of(int sum, float times, float more) const
    {
        if (!SCALE_OF) return sum;
        float x = fmaf(times, float(sum), more);
        if (ACTIVATION == 1) x = x < 0 ? 0 : x;
        if (ACTIVATION == 2) x = gelu(x);
        if (ACTIVATION == 3) x = gelu_approximately(x);
        return __float_as_int(x);
    }
};

// (i, j) is where the rows of this warp begin.
__device__ inline void store_tile(const int (&sums)[SUMS], int i, int j, const Result& result)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int row = i + g + 8 * r;
        if (row >= result.m) continue;
        const float once = SCALE_OF == 3 ? result.scale[row] : result.times;
        const float more = BIAS == 2 ? result.bias[row] : result.more;
        int* const line = result.C + row * result.ld;
        #pragma unroll
        for (int q = 0; q < BN / 8; ++q) {
            const int col = j + 8 * q + 2 * t;
            if (col >= result.n) continue;
            const float2 times = SCALE_OF == 2 ? result.of_columns(result.scale, col)
                                             : float2{once, once};
            const float2 bias = BIAS == 1 ? result.of_columns(result.bias, col)
                                          : float2{more, more};
            const int x = result.of(sums[4 * q + 2 * r], times.x, bias.x);
            const int y = result.of(sums[4 * q + 2 * r + 1], times.y, bias.y);
            if (result.even && col + 1 < result.n) {
                *reinterpret_cast<int2*>(line + col) = make_int2(x, y);
            } else {
                line[col] = x;
                if (col + 1 < result.n) line[col + 1] = y;
            }
        }
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (GROUPS + 1), 1)
gemm_int8(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, size m, size n,
          size k, int* C, size ldc, const float* scale, const float* bias, float times, float more)
{
    wait_for_stream();
    __shared__ word barriers[2 * STAGES];
    const Result result{C, ldc, scale, bias, times, more, int(m), int(n),
                        (size(C) | 4 * ldc) % 8 == 0};
    take_tiles<int>(barriers, A, B, Tiles(m, n), int((k + BK - 1) / BK), [](int, int) {},
        [&](const int (&sums)[SUMS], int i, int j, int) { store_tile(sums, i, j, result); });
}
