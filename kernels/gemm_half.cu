// gemm_half.cu: C := f(alpha A B^T + bias) + beta C in half precision or bfloat16, sums in single
// precision, by the tensor cores of Hopper; f nothing, relu or gelu, or times their slopes at Z, as
// what comes back through them is.
//
// Tiles and who has what of them: tile_ring.cuh. A stage is 64 of k. Operands are read as they lie,
// along k or across their lines.
//
// Floor: 2 m n k operations at 990 Tflop/s, or what 700 W allow, about 700. A stage is
// 128 (BM + BN / CLUSTER) bytes from L2 for BM BN 64 products.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int BN = 256;     // columns of a tile
constexpr int STAGES = 4;   // in shared memory
constexpr int CLUSTER = 2;  // blocks that share B
constexpr int WIDE = 8;     // tiles of a cluster that follow each other downwards, then across
constexpr int A_ACROSS = 0, B_ACROSS = 0;  // 1: its lines lie side by side
constexpr int BIAS = 0;        // 1: a number for each column of C, 2: for each row
constexpr int ACTIVATION = 0;  // 1: relu, 2: gelu, 3: its approximation; 4, 5, 6: slopes of these
#endif
#include "async.cuh"
#include "gelu.cuh"
#include "hopper.cuh"
#include "launch.cuh"
#include "scalar.cuh"
#include "shuffle.cuh"

constexpr int PLANES = 1;
constexpr bool SLOPE = ACTIVATION > 3;
using number_t = scalar_t;
#include "tile_ring.cuh"

// -- what becomes of a sum

__device__ inline float number_of(unsigned short bits)
{
    scalar_t x;
    x.bits = bits;
    return float(x);
}
__device__ inline float2 numbers_of(unsigned both)
{
    return {number_of((unsigned short)both), number_of((unsigned short)(both >> 16))};
}

struct Result {
    float alpha, beta;
    scalar_t* C;
    size ld;
    const scalar_t* bias;
    int m, n;
    bool wide, even, whole;  // C can be stored in 16 bytes, read in 4; bias can be read in 16
    const scalar_t* Z;  // where slopes are taken
    size ldz;
    bool z_even;

    __device__ float of(float sum, float more, float z) const
    {
        const float x = BIAS ? fmaf(alpha, sum, more) : alpha * sum;
        if (ACTIVATION == 1) return x < 0 ? 0 : x;
        if (ACTIVATION == 2) return gelu(x);
        if (ACTIVATION == 3) return gelu_approximately(x);
        if (ACTIVATION == 4) return z > 0 ? x : 0;
        if (ACTIVATION == 5) return x * gelu_slope(z);
        if (ACTIVATION == 6) return x * gelu_approximate_slope(z);
        return x;
    }
};

// The bias of a tile's columns, a copy for each warp, asked for when the tile begins
struct alignas(16) Columns {
    unsigned short x[BN];

    __device__ void fetch(int j, const Result& result)
    {
        static_assert(BN % 8 == 0);
        __syncwarp();  // all have read that of the tile before
        for (int c = 8 * (threadIdx.x % 32); c < BN; c += 256) {
            if (result.whole && j + c + 8 <= result.n)
                copy_async<16, true>(&x[c], result.bias + j + c, 16);
            else
                for (int e = c; e < c + 8; ++e)
                    x[e] = j + e < result.n ? result.bias[j + e].bits : 0;
        }
        end_group();
    }
    __device__ void await() const
    {
        await_groups<0>();
        __syncwarp();
    }
};

// Four pairs of neighbours in a row of C or Z, of 8 columns each further on, zeros outside
template <int OF_Z>
__device__ void read_pairs(unsigned (&old)[4], const Result& result, const scalar_t* line, int col,
                           bool there)
{
    const bool whole = (OF_Z ? result.z_even : result.even) && col + 26 <= result.n;
    #pragma unroll
    for (int s = 0; s < 4; ++s) {
        const int c = col + 8 * s;
        old[s] = 0;
        if (whole) {
            if (there) old[s] = *reinterpret_cast<const unsigned*>(line + c);
        } else if (there) {
            if (c < result.n) old[s] = line[c].bits;
            if (c + 1 < result.n) old[s] |= unsigned(line[c + 1].bits) << 16;
        }
    }
}

// Stores a group's tile; (i, j) is where the rows of this warp begin. Lane (g, t) has of row g of
// each 8 x 8 tile the columns 2 t, 2 t + 1: of four tiles that lie side by side the lanes of a row
// exchange them, so that each has a row of one. C and Z are read one step ahead.
__device__ inline void store_tile(const float (&sums)[SUMS], int i, int j, const Result& result,
                                  const Columns& bias)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool reads = result.beta != 0;
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int row = i + g + 8 * r;
        const bool there = row < result.m;
        scalar_t* const line = result.C + row * result.ld;
        const float of_row = BIAS == 2 && there ? number_of(result.bias[row].bits) : 0;
        const scalar_t* const z_line = SLOPE ? result.Z + row * result.ldz : nullptr;
        unsigned old[2][4] = {}, z[2][4] = {};
        if (reads) read_pairs<0>(old[0], result, line, j + 2 * t, there);
        if (SLOPE) read_pairs<1>(z[0], result, z_line, j + 2 * t, there);
        #pragma unroll
        for (int q = 0; q < BN / 32; ++q) {
            const int next = j + 32 * (q + 1) + 2 * t;
            if (reads && q + 1 < BN / 32)
                read_pairs<0>(old[(q + 1) % 2], result, line, next, there);
            if (SLOPE && q + 1 < BN / 32)
                read_pairs<1>(z[(q + 1) % 2], result, z_line, next, there);
            unsigned w[4];
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
                const int at = 4 * (4 * q + s) + 2 * r;
                float2 more{of_row, of_row};
                if (BIAS == 1)
                    more = numbers_of(
                        *reinterpret_cast<const unsigned*>(&bias.x[32 * q + 8 * s + 2 * t]));
                const float2 before = numbers_of(old[q % 2][s]), place = numbers_of(z[q % 2][s]);
                w[s] = two_of(
                    fmaf(result.beta, before.x, result.of(sums[at], more.x, place.x)),
                    fmaf(result.beta, before.y, result.of(sums[at + 1], more.y, place.y)),
                    scalar_t());
            }
            #pragma unroll
            for (int mask = 1; mask < 4; mask *= 2)
                #pragma unroll
                for (int s = 0; s < 4; ++s)
                    if (!(s & mask)) {
                        const bool high = t & mask;
                        const unsigned other = across(high ? w[s] : w[s + mask], mask);
                        (high ? w[s] : w[s + mask]) = other;
                    }
            const int col = j + 32 * q + 8 * t;
            if (!there || col >= result.n) continue;
            if (result.wide && col + 8 <= result.n) {
                *reinterpret_cast<uint4*>(line + col) = make_uint4(w[0], w[1], w[2], w[3]);
            } else {
                #pragma unroll
                for (int e = 0; e < 8; ++e)
                    if (col + e < result.n)
                        line[col + e].bits = (unsigned short)(w[e / 2] >> e % 2 * 16);
            }
        }
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (GROUPS + 1), 1)
gemm_half(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, size m, size n,
          size k, float alpha, float beta, scalar_t* C, size ldc, const scalar_t* bias,
          const scalar_t* Z, size ldz)
{
    wait_for_stream();
    __shared__ word barriers[2 * STAGES];
    const size both = size(C) | 2 * ldc;
    const Result result{alpha, beta, C, ldc, bias, int(m), int(n), both % 16 == 0, both % 4 == 0,
                        size(bias) % 16 == 0, Z, ldz, (size(Z) | 2 * ldz) % 4 == 0};
    // Of the first warps, which have no sums, nobody looks there.
    Columns& columns = reinterpret_cast<Columns*>(
        dynamic_shared + STAGES * STAGE + 1024)[int(threadIdx.x / 32) - 4];
    take_tiles<float>(barriers, A, B, Tiles(m, n), int((k + BK - 1) / BK),
        [&](int, int j) {
            if (BIAS == 1) columns.fetch(j, result);
        },
        [&](const float (&sums)[SUMS], int i, int j, int) {
            if (BIAS == 1) columns.await();
            store_tile(sums, i, j, result, columns);
        });
}
