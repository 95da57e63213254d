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

    // Whether a tile's columns from j on, of C and Z, need no look at edges
    __device__ bool plain(int j) const
    {
        return wide && j + BN <= n && (!SLOPE || z_even);
    }
    __device__ float of(float sum, float more, float z) const
    {
        const float x = BIAS ? fmaf(alpha, sum, more) : alpha * sum;
        if (ACTIVATION == 1) return larger_or_nan(x, 0);
        if (ACTIVATION == 2) return gelu(x);
        if (ACTIVATION == 3) return gelu_approximately(x);
        if (ACTIVATION == 4) return z > 0 ? x : 0;
        if (ACTIVATION == 5) return x * gelu_slope(z);
        if (ACTIVATION == 6) return x * gelu_approximate_slope(z);
        return x;
    }
};

// What a warp has in shared memory: the bias of a tile's columns, asked for when the tile begins,
// and 16 rows of PART columns that are to be stored, whose pitch spreads a column over all banks
constexpr int PART = 64;
struct alignas(16) Columns {
    unsigned short x[BN], stored[16][PART + 8];

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

// Four pairs of neighbours in a line of C or Z that has n numbers, each 8 further on, zeros past it
__device__ inline void read_pairs(unsigned (&pairs)[4], const scalar_t* line, int col, int n,
                                  bool even)
{
    if (even && col + 26 <= n) {
        #pragma unroll
        for (int s = 0; s < 4; ++s)
            pairs[s] = *reinterpret_cast<const unsigned*>(line + col + 8 * s);
        return;
    }
    #pragma unroll
    for (int s = 0; s < 4; ++s) {
        const int c = col + 8 * s;
        pairs[s] = c < n ? line[c].bits : 0;
        if (c + 1 < n) pairs[s] |= unsigned(line[c + 1].bits) << 16;
    }
}

// Of Z what a lane needs, by PART columns, of which AHEAD are asked for when a plain tile begins
constexpr int AHEAD = BN / PART < 2 ? BN / PART : 2;
struct Places {
    unsigned z[AHEAD][2][PART / 32][4];

    __device__ void fetch(int part, int i, int j, const Result& result)
    {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = i + g + 8 * r;
            const scalar_t* const line = result.Z + row * result.ldz + j + part * PART + 2 * t;
            #pragma unroll
            for (int c = 0; c < PART / 8; ++c)
                z[part % AHEAD][r][c / 4][c % 4] =
                    row < result.m ? *reinterpret_cast<const unsigned*>(line + 8 * c) : 0;
        }
    }
    __device__ void begin(int i, int j, const Result& result)
    {
        if (!result.plain(j)) return;
        #pragma unroll
        for (int part = 0; part < AHEAD; ++part) fetch(part, i, j, result);
    }
};

// Pairs of numbers of C or Z as a lane has them of a PART of its tile
__device__ inline void read_part(unsigned (&pairs)[2][PART / 32][4], const scalar_t* X, size ld,
                                 int i, int col, const Result& result, bool even)
{
    #pragma unroll
    for (int r = 0; r < 2; ++r)
        #pragma unroll
        for (int q = 0; q < PART / 32; ++q)
            read_pairs(pairs[r][q], X + (i + 8 * r) * ld, col + 32 * q,
                       i + 8 * r < result.m ? result.n : 0, even);
}

// Stores a group's tile; (i, j) is where the rows of this warp begin. Lane (g, t) has of rows g and
// g + 8 of each 16 x 8 tile the columns 2 t, 2 t + 1. PART columns at a time go through shared
// memory, for a lane to store 8 neighbours, and 8 lanes 128 bytes.
__device__ inline void store_tile(const float (&sums)[SUMS], int i, int j, const Result& result,
                                  Columns& columns, Places& places)
{
    constexpr int STEPS = PART / 32;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool plain = result.plain(j);
    float of_row[2] = {};
    if (BIAS == 2)
        for (int r = 0; r < 2; ++r)
            if (i + g + 8 * r < result.m) of_row[r] = number_of(result.bias[i + g + 8 * r].bits);
    #pragma unroll
    for (int part = 0; part < BN / PART; ++part) {
        const int first = j + part * PART;
        auto& z = places.z[part % AHEAD];
        if (SLOPE && !plain)
            read_part(z, result.Z, result.ldz, i + g, first + 2 * t, result, result.z_even);
        float2 x[2][STEPS][4];
        #pragma unroll
        for (int e = 0; e < 8 * STEPS; ++e) {
            const int q = e / 8, r = e / 4 % 2, s = e % 4, step = part * STEPS + q;
            const int at = 4 * (4 * step + s) + 2 * r;
            float2 more{of_row[r], of_row[r]}, place{};
            if (BIAS == 1)
                more = numbers_of(*reinterpret_cast<const unsigned*>(
                    &columns.x[32 * step + 8 * s + 2 * t]));
            if (SLOPE) place = numbers_of(z[r][q][s]);
            x[r][q][s] = {result.of(sums[at], more.x, place.x),
                          result.of(sums[at + 1], more.y, place.y)};
        }
        if (SLOPE && plain && part + AHEAD < BN / PART) places.fetch(part + AHEAD, i, j, result);
        if (result.beta != 0) {
            unsigned old[2][STEPS][4];
            read_part(old, result.C, result.ld, i + g, first + 2 * t, result, result.even);
            #pragma unroll
            for (int e = 0; e < 8 * STEPS; ++e) {
                float2& to = x[e / 4 % 2][e / 8][e % 4];
                const float2 before = numbers_of(old[e / 4 % 2][e / 8][e % 4]);
                to = {fmaf(result.beta, before.x, to.x), fmaf(result.beta, before.y, to.y)};
            }
        }
        #pragma unroll
        for (int e = 0; e < 2 * STEPS; ++e) {
            const int q = e / 2, r = e % 2;
            unsigned w[4];
            #pragma unroll
            for (int s = 0; s < 4; ++s) w[s] = two_of(x[r][q][s].x, x[r][q][s].y, scalar_t());
            store_tiles(&columns.stored[8 * r + lane % 8][32 * q + 8 * (lane / 8)], w);
        }
        __syncwarp();
        #pragma unroll
        for (int r = lane / 8; r < 16; r += 4) {
            const int row = i + r, col = first + 8 * (lane % 8);
            const uint4 eight = *reinterpret_cast<const uint4*>(&columns.stored[r][8 * (lane % 8)]);
            scalar_t* const to = result.C + row * result.ld + col;
            if (row >= result.m) continue;
            if (plain || (result.wide && col + 8 <= result.n)) {
                *reinterpret_cast<uint4*>(to) = eight;
            } else {
                const unsigned w[4] = {eight.x, eight.y, eight.z, eight.w};
                #pragma unroll
                for (int e = 0; e < 8; ++e)
                    if (col + e < result.n) to[e].bits = (unsigned short)(w[e / 2] >> e % 2 * 16);
            }
        }
        __syncwarp();
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
    Places places;
    take_tiles<float>(barriers, A, B, Tiles(m, n), int((k + BK - 1) / BK),
        [&](int i, int j) {
            if (BIAS == 1) columns.fetch(j, result);
            if (SLOPE) places.begin(i, j, result);
        },
        [&](const float (&sums)[SUMS], int i, int j, int) {
            if (BIAS == 1) columns.await();
            store_tile(sums, i, j, result, columns, places);
        });
}
