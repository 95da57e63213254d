// gemm_digits.cu: C := alpha A B^T + beta C in single precision, of lines that are digits (digits.cuh),
// by products of bytes on the tensor cores of Hopper, if all lines are even; else nothing.
//
// Tiles and who has what of them: tile_ring.cuh. A stage is 128 of k. The six products of digits go
// through the same sums of 32 bits, the least first: what three of them add up to is divided by 2^8
// before the next two are added, and these again before the last; the 8 bits that drop out of the
// second division are kept, so that what is rounded in the end to single precision is the whole. Sums are exact for k <= 43690.
//
// Floor: 12 m n k operations at 1979 Top/s, or what 700 W allow, about 1600 in bursts, 1450 for long:
// 4.1 ms at 8192, 4.6. A stage is as in gemm_int8.cu.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int BN = 256;     // columns of a tile
constexpr int STAGES = 4;   // in shared memory
constexpr int CLUSTER = 2;  // blocks that share B
constexpr int WIDE = 8;     // tiles of a cluster that follow each other downwards, then across
constexpr int A_ACROSS = 0, B_ACROSS = 0;  // bytes are multiplied along their lines only
#endif
#include "async.cuh"
#include "digits.cuh"
#include "hopper.cuh"
#include "launch.cuh"

constexpr int PLANES = 1;
using number_t = signed char;
#include "tile_ring.cuh"

// x z' + y y' + z x', x y' + y x', x x': digit `a` of A, `b` of B
struct SixProducts {
    static constexpr int RUNS = DIGITS;

    __device__ static int stages(int run, int chunks) { return (DIGITS - run) * chunks; }
    __device__ static Box box(int run, int stage, int chunks, int)
    {
        const int a = stage / chunks;
        return {stage - a * chunks, a, DIGITS - 1 - run - a};
    }
};

struct Result {
    float alpha, beta;
    float* C;
    size ld;
    int m, n;
    bool even;  // C can be stored in 8 bytes

    __device__ float of(float product, float before) const
    {
        return beta == 0 ? alpha * product : fmaf(alpha, product, beta * before);
    }
};

// (2^8 sum + rest) / times, by an inverse that is rounded, and once more for what that leaves: the
// number next to it, of two as near either
__device__ inline float joined(int sum, unsigned rest, float times, float inverse)
{
    const int head = sum & ~0xfff;
    const float high = float(head) * 256, low = float((sum - head) << 8 | int(rest));  // exact
    const float whole = high + low, x = whole * inverse;
    return fmaf(fmaf(-x, times, whole) + (high - whole + low), inverse, x);
}

// How a tile's columns are scaled, 64 of them and the next 64: a copy for each warp
struct Columns {
    static constexpr int MANY = 64;
    Scaled of[2][MANY];

    __device__ void fetch(int part, int j, const Scaled* b, int n)
    {
        __syncwarp();  // all have read those that were there
        #pragma unroll
        for (int c = threadIdx.x % 32; c < MANY; c += 32)
            copy_async<16, true>(&of[part % 2][c], b + min(j + MANY * part + c, n - 1), 16);
        end_group();
    }
    template <bool LAST> __device__ void await() const
    {
        await_groups<LAST ? 0 : 1>();
        __syncwarp();
    }
};

// (i, j) is where the rows of this warp begin; of four sums a word has the rests.
__device__ inline void store_tile(const int (&sums)[SUMS], const unsigned (&rests)[SUMS / 4], int i,
                                  int j, const Scaled* a, const Scaled* b, Columns& columns,
                                  const Result& result)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    Scaled rows[2];
    #pragma unroll
    for (int r = 0; r < 2; ++r) rows[r] = a[min(i + g + 8 * r, result.m - 1)];
    #pragma unroll
    for (int q = 0; q < BN / 8; ++q) {
        const int col = j + 8 * q + 2 * t;
        if (q % 8 == 0) {
            if (q + 8 < BN / 8) {
                columns.fetch(q / 8 + 1, j, b, result.n);
                columns.await<false>();
            } else {
                columns.await<true>();
            }
        }
        const Scaled* const two = columns.of[q / 8 % 2] + 8 * (q % 8) + 2 * t;
        const Scaled first = two[0], second = two[1];
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = i + g + 8 * r;
            if (row >= result.m || col >= result.n) continue;
            const auto product = [&](int e, const Scaled& column) {
                return joined(sums[4 * q + e], rests[q] >> 8 * e & 255, rows[r].times * column.times,
                              rows[r].inverse * column.inverse)
                       * (rows[r].down * column.down) * (rows[r].rest * column.rest);
            };
            const float x = product(2 * r, first), y = product(2 * r + 1, second);
            float* const to = result.C + row * result.ld + col;
            if (result.even && col + 1 < result.n) {
                float2* const both = reinterpret_cast<float2*>(to);
                const float2 c = result.beta == 0 ? float2{0, 0} : *both;
                *both = {result.of(x, c.x), result.of(y, c.y)};
            } else {
                *to = result.of(x, result.beta == 0 ? 0 : *to);
                if (col + 1 < result.n) to[1] = result.of(y, result.beta == 0 ? 0 : to[1]);
            }
        }
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (GROUPS + 1), 1)
gemm_digits(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, size m, size n,
            size k, const Scaled* a, const Scaled* b, float alpha, float beta, float* C, size ldc,
            const unsigned* uneven)
{
    wait_for_stream();
    __shared__ word barriers[2 * STAGES];
    if (*uneven) return;
    const Result result{alpha, beta, C, ldc, int(m), int(n), (size(C) | 4 * ldc) % 8 == 0};
    Columns& columns = reinterpret_cast<Columns*>(dynamic_shared + STAGES * STAGE + 1024)[
        threadIdx.x < 128 ? 0 : threadIdx.x / 32 - 4];
    unsigned rests[SUMS / 4];
    take_tiles<int, SixProducts>(barriers, A, B, Tiles(m, n), int((k + BK - 1) / BK),
        [&](int, int j) { columns.fetch(0, j, b, result.n); },
        [&](const int (&sums)[SUMS], int i, int j, int) {
            store_tile(sums, rests, i, j, a, b, columns, result);
        },
        [&](int run, int (&sums)[SUMS]) {
            #pragma unroll
            for (int e = 0; e < SUMS; ++e) {
                if (run == 0) {
                    sums[e] = (sums[e] + 128) >> 8;
                } else {
                    const unsigned rest = unsigned(sums[e] & 255) << 8 * (e % 4);
                    rests[e / 4] = e % 4 ? rests[e / 4] | rest : rest;
                    sums[e] >>= 8;
                }
            }
        });
}
