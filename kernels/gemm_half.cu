// gemm_half.cu: C := f(alpha A B^T + bias) + beta C in half precision or bfloat16, sums in single
// precision, by the tensor cores of Hopper; f nothing, relu or gelu.
//
// A block has a multiprocessor to itself, and a CLUSTER of them takes tiles of C in turn that lie
// one under the other, each 64 GROUPS rows and BN columns: they share the tile's lines of B, of
// which each asks for its part on behalf of all. The first four warps of a block are the producer,
// of which one thread asks for boxes of 64 of k, STAGES of them under way, and those of the next
// tile while this one is stored. A group of four warps each multiplies 64 rows. Operands are read
// as they lie, along k or across their lines.
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
constexpr int ACTIVATION = 0;  // 1: relu, 2: gelu, 3: its approximation
#endif
#include "async.cuh"
#include "cluster.cuh"
#include "hopper.cuh"
#include "launch.cuh"
#include "scalar.cuh"
#include "shuffle.cuh"

using size = long long;

constexpr int BM = 64 * GROUPS, BK = TILE_ROW / 2, SUMS = BN / 2;
constexpr unsigned PART_A = BM * TILE_ROW, PART_B = BN * TILE_ROW, STAGE = PART_A + PART_B;
static_assert(BN % (64 * CLUSTER) == 0);
// Registers of a thread at the start, of a producer's, and of one that multiplies: of 65536 for all
constexpr int AT_START = 512 / (GROUPS + 1) / 8 * 8, GIVEN = 40;
constexpr int LEFT = ((GROUPS + 1) * AT_START - GIVEN) / GROUPS / 8 * 8;
constexpr int TAKEN = LEFT < 240 ? LEFT : 240;

struct Tiles {  // of a cluster: in strips WIDE high, along which those at work share lines
    int down, across;

    __device__ Tiles(size m, size n)
        : down(int((m + BM * CLUSTER - 1) / (BM * CLUSTER))), across(int((n + BN - 1) / BN)) {}
    __device__ int count() const { return down * across; }
    __device__ void place(int tile, int& i, int& j) const
    {
        const int strip = tile / (WIDE * across), left = down - strip * WIDE;
        const int high = left < WIDE ? left : WIDE, rest = tile - strip * WIDE * across;
        i = strip * WIDE + rest % high;
        j = rest / high;
    }
};

// The ring's position: a stage and the phase of its barriers
struct Place {
    unsigned stage, phase;
    __device__ void next()
    {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
};

// BK of k of LINES lines, for this block or for all of the cluster
template <int ACROSS, int LINES, bool ALL_BLOCKS>
__device__ void load_lines(unsigned to, const TensorMap& X, unsigned full, int k, int line)
{
    constexpr int EACH = ACROSS ? 64 : LINES;
    #pragma unroll
    for (int l = 0; l < LINES; l += EACH) {
        const int x = ACROSS ? line + l : k, y = ACROSS ? k : line;
        if constexpr (ALL_BLOCKS)
            load_box(to + l * TILE_ROW, X, full, x, y, 0, (unsigned short)((1 << CLUSTER) - 1));
        else
            load_box(to + l * TILE_ROW, X, full, x, y, 0);
    }
}

__device__ inline void produce(const TensorMap& A, const TensorMap& B, Tiles tiles, int chunks,
                               int rank, unsigned shared, unsigned full, unsigned empty)
{
    constexpr int MINE = BN / CLUSTER;
    Place at{0, 0};
    for (int tile = blockIdx.x / CLUSTER; tile < tiles.count(); tile += gridDim.x / CLUSTER) {
        int i, j;
        tiles.place(tile, i, j);
        i = (i * CLUSTER + rank) * BM, j = j * BN + rank * MINE;
        for (int c = 0; c < chunks; ++c, at.next()) {
            await(empty + 8 * at.stage, at.phase ^ 1);
            expect(full + 8 * at.stage, STAGE);
            const unsigned to = shared + at.stage * STAGE;
            load_lines<A_ACROSS, BM, false>(to, A, full + 8 * at.stage, c * BK, i);
            load_lines<B_ACROSS, MINE, (CLUSTER > 1)>(to + PART_A + rank * MINE * TILE_ROW, B,
                                                      full + 8 * at.stage, c * BK, j);
        }
    }
}

// A group has done with a stage: each block of the cluster that fills it is told so.
__device__ inline void release(unsigned empty)
{
    if (CLUSTER == 1) {
        if (threadIdx.x % 128 == 0) arrive(empty);
    } else if (threadIdx.x % 128 < CLUSTER) {
        arrive_in(threadIdx.x % 128, empty);
    }
}

// sums := A B^T for the 64 rows of a group; one stage is multiplied while the next is asked for
__device__ inline void multiply_tile(float (&sums)[SUMS], Place& at, int chunks, int group,
                                     unsigned shared, unsigned full, unsigned empty)
{
    #pragma unroll
    for (int e = 0; e < SUMS; ++e) sums[e] = 0;
    keep(sums);
    unsigned before = 0;
    for (int c = 0; c < chunks; ++c) {
        await(full + 8 * at.stage, at.phase);
        const unsigned from = shared + at.stage * STAGE;
        const word a = tile_at<A_ACROSS>(from + 64 * group * TILE_ROW, 64 * TILE_ROW);
        const word b = tile_at<B_ACROSS>(from + PART_A, 64 * TILE_ROW);
        begin_products();
        #pragma unroll
        for (int p = 0; p < 4; ++p)
            multiply<0, A_ACROSS, B_ACROSS>(sums, a + p * ONE_PRODUCT<A_ACROSS>,
                                            b + p * ONE_PRODUCT<B_ACROSS>, scalar_t());
        end_products();
        await_products<1>();
        if (c) release(before);
        before = empty + 8 * at.stage;
        at.next();
    }
    await_products<0>();
    keep(sums);
    release(before);
}

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

__device__ inline float exp2_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float reciprocal_of(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// x P(x), P the normal distribution function: P(x) = 1 / (1 + 2^-z), z = x times a polynomial of
// x^2, fitted to x P(x), whose error stays below 7e-8. The approximation by tanh is the same with
// one of degree 1.
__device__ inline float gelu(float x)
{
    const float y = x * x;
    float z = fmaf(y, 5.23388e-9f, -3.860164e-7f);
    z = fmaf(y, z, 1.14667395e-5f);
    z = fmaf(y, z, -1.59485247e-4f);
    z = fmaf(y, z, -9.5295031e-5f);
    z = fmaf(y, z, 0.104838194f);
    z = fmaf(y, z, 2.30220735f);
    return x * reciprocal_of(1 + exp2_of(-x * z));
}
__device__ inline float gelu_approximately(float x)
{
    const float z = fmaf(x * x, 0.1029432396f, 2.302208198f);  // 2 log2(e) sqrt(2 / pi) (1 + ...)
    return x * reciprocal_of(1 + exp2_of(-x * z));
}

struct Result {
    float alpha, beta;
    scalar_t* C;
    size ld;
    const scalar_t* bias;
    int m, n;
    bool wide, even, whole;  // C can be stored in 16 bytes, read in 4; bias can be read in 16

    __device__ float of(float sum, float more) const
    {
        float x = BIAS ? fmaf(alpha, sum, more) : alpha * sum;
        if (ACTIVATION == 1) x = x < 0 ? 0 : x;
        if (ACTIVATION == 2) x = gelu(x);
        if (ACTIVATION == 3) x = gelu_approximately(x);
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

// Four pairs of neighbours in a row of C, of 8 columns each further on, zeros outside
__device__ inline void read_pairs(unsigned (&old)[4], const Result& result, const scalar_t* line,
                                  int col, bool there)
{
    const bool whole = result.even && col + 26 <= result.n;
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
// exchange them, so that each has a row of one. C is read one step ahead.
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
        unsigned old[2][4] = {};
        if (reads) read_pairs(old[0], result, line, j + 2 * t, there);
        #pragma unroll
        for (int q = 0; q < BN / 32; ++q) {
            if (reads && q + 1 < BN / 32)
                read_pairs(old[(q + 1) % 2], result, line, j + 32 * (q + 1) + 2 * t, there);
            unsigned w[4];
            #pragma unroll
            for (int s = 0; s < 4; ++s) {
                const int at = 4 * (4 * q + s) + 2 * r;
                float2 more{of_row, of_row};
                if (BIAS == 1)
                    more = numbers_of(
                        *reinterpret_cast<const unsigned*>(&bias.x[32 * q + 8 * s + 2 * t]));
                const float2 before = numbers_of(old[q % 2][s]);
                w[s] = two_of(fmaf(result.beta, before.x, result.of(sums[at], more.x)),
                              fmaf(result.beta, before.y, result.of(sums[at + 1], more.y)),
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
          size k, float alpha, float beta, scalar_t* C, size ldc, const scalar_t* bias)
{
    wait_for_stream();
    __shared__ alignas(8) word barriers[2 * STAGES];
    const unsigned shared = (shared_address(dynamic_shared) + 1023u) & ~1023u;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            make_barrier(full + 8 * s, 1);
            make_barrier(empty + 8 * s, GROUPS * CLUSTER);
        }
        show_barriers();
    }
    meet_cluster<CLUSTER>();
    const Tiles tiles(m, n);
    const int chunks = int((k + BK - 1) / BK), rank = blockIdx.x % CLUSTER;
    if (threadIdx.x < 128) {
        give_registers<GIVEN>();
        if (threadIdx.x == 0) produce(A, B, tiles, chunks, rank, shared, full, empty);
    } else {
        take_registers<TAKEN>();
        const int group = threadIdx.x / 128 - 1;
        const size both = size(C) | 2 * ldc;
        const Result result{alpha, beta, C, ldc, bias, int(m), int(n), both % 16 == 0,
                            both % 4 == 0, size(bias) % 16 == 0};
        Columns& columns = reinterpret_cast<Columns*>(
            dynamic_shared + STAGES * STAGE + 1024)[threadIdx.x / 32 - 4];
        Place at{0, 0};
        for (int tile = blockIdx.x / CLUSTER; tile < tiles.count(); tile += gridDim.x / CLUSTER) {
            int i, j;
            tiles.place(tile, i, j);
            i = (i * CLUSTER + rank) * BM + (threadIdx.x / 32 - 4) * 16, j *= BN;
            if (BIAS == 1) columns.fetch(j, result);
            float sums[SUMS];
            multiply_tile(sums, at, chunks, group, shared, full, empty);
            if (BIAS == 1) columns.await();
            store_tile(sums, i, j, result, columns);
        }
    }
    __syncwarp();
    meet_cluster<CLUSTER>();  // no block ends while another tells it something
}
