// tile_ring.cuh: products by tiles on Hopper's tensor cores: what a kernel multiplies, number_t, comes
// through a ring of stages in shared memory, and becomes sums in registers.
//
// A block has a multiprocessor to itself, and a CLUSTER of them takes tiles of C in turn that lie
// one under the other, each 64 GROUPS rows and BN columns: they share the tile's lines of B, of
// which each asks for its part on behalf of all. The first four warps of a block are the producer,
// of which one thread asks for boxes of 128 bytes of k, STAGES of them under way, and those of the
// next tile while this one is stored. A group of four warps each multiplies 64 rows. C is made of
// PLANES at most, products of as many planes of A and of B, one after the other, or of what a kernel
// says are the products of its sums (as OneProduct does).
#pragma once
#include "cluster.cuh"
#include "hopper.cuh"
#include "strips.cuh"

using size = long long;

constexpr int BM = 64 * GROUPS, BK = TILE_ROW / sizeof(number_t), SUMS = BN / 2;
constexpr unsigned PART_A = BM * TILE_ROW, PART_B = BN * TILE_ROW, STAGE = PART_A + PART_B;
static_assert(BN % (64 * CLUSTER) == 0);
// Registers of a thread at the start, of a producer's, and of one that multiplies: of 65536 for all
constexpr int AT_START = 512 / (GROUPS + 1) / 8 * 8, GIVEN = 40;
constexpr int LEFT = ((GROUPS + 1) * AT_START - GIVEN) / GROUPS / 8 * 8;
constexpr int TAKEN = LEFT < 240 ? LEFT : 240;

struct Tiles {  // of a cluster, plane by plane
    Strips<BM * CLUSTER, BN> strips;
    int planes;

    __device__ Tiles(size m, size n, int planes = PLANES, int half = 0)
        : strips(m, n, half), planes(planes) {}
    __device__ int count() const { return planes * strips.count(); }
    __device__ bool place(int tile, int& i, int& j, int& plane) const
    {
        plane = PLANES > 1 ? tile / strips.count() : 0;
        return strips.place(tile - plane * strips.count(), i, j);
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

// What is multiplied at a time: BK of k, from BK `chunk` on, of a plane of A and one of B
struct Box { int chunk, a, b; };

// The products of a plane of C, in RUNS, after each of which but the last a kernel changes the sums
struct OneProduct {
    static constexpr int RUNS = 1;

    __device__ static int stages(int, int chunks) { return chunks; }
    __device__ static Box box(int, int stage, int, int plane) { return {stage, plane, plane}; }
};

// BK of k of LINES lines, for this block or for all of the cluster
template <int ACROSS, int LINES, bool ALL_BLOCKS>
__device__ void load_lines(unsigned to, const TensorMap& X, unsigned full, int k, int line,
                           int plane)
{
    constexpr int EACH = ACROSS ? 64 : LINES;
    #pragma unroll
    for (int l = 0; l < LINES; l += EACH) {
        const int x = ACROSS ? line + l : k, y = ACROSS ? k : line;
        if constexpr (ALL_BLOCKS)
            load_box(to + l * TILE_ROW, X, full, x, y, plane,
                     (unsigned short)((1 << CLUSTER) - 1));
        else
            load_box(to + l * TILE_ROW, X, full, x, y, plane);
    }
}

template <class Products>
__device__ void produce(const TensorMap& A, const TensorMap& B, Tiles tiles, int chunks, int rank,
                        unsigned shared, unsigned full, unsigned empty)
{
    constexpr int MINE = BN / CLUSTER;
    Place at{0, 0};
    for (int tile = blockIdx.x / CLUSTER; tile < tiles.count(); tile += gridDim.x / CLUSTER) {
        int i, j, plane;
        if (!tiles.place(tile, i, j, plane)) continue;
        i = (i * CLUSTER + rank) * BM, j = j * BN + rank * MINE;
        for (int run = 0; run < Products::RUNS; ++run)
            for (int c = 0; c < Products::stages(run, chunks); ++c, at.next()) {
                const Box box = Products::box(run, c, chunks, plane);
                await(empty + 8 * at.stage, at.phase ^ 1);
                expect(full + 8 * at.stage, STAGE);
                const unsigned to = shared + at.stage * STAGE;
                load_lines<A_ACROSS, BM, false>(to, A, full + 8 * at.stage, box.chunk * BK, i, box.a);
                load_lines<B_ACROSS, MINE, (CLUSTER > 1)>(to + PART_A + rank * MINE * TILE_ROW, B,
                                                          full + 8 * at.stage, box.chunk * BK, j,
                                                          box.b);
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

// sums += A B^T for the 64 rows of a group; one stage is multiplied while the next is asked for
template <class S>
__device__ void add_products(S (&sums)[SUMS], Place& at, int stages, int group,
                             unsigned shared, unsigned full, unsigned empty)
{
    keep(sums);
    unsigned before = 0;
    for (int c = 0; c < stages; ++c) {
        await(full + 8 * at.stage, at.phase);
        const unsigned from = shared + at.stage * STAGE;
        const word a = tile_at<A_ACROSS>(from + 64 * group * TILE_ROW, 64 * TILE_ROW);
        const word b = tile_at<B_ACROSS>(from + PART_A, 64 * TILE_ROW);
        begin_products();
        #pragma unroll
        for (int p = 0; p < 4; ++p)
            multiply<0, A_ACROSS, B_ACROSS>(sums, a + p * ONE_PRODUCT<A_ACROSS>,
                                            b + p * ONE_PRODUCT<B_ACROSS>, number_t());
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

struct Nothing {
    template <class... X> __device__ void operator()(X&&...) const {}
};

// The kernel, which has shared memory for 2 STAGES barriers: for each tile of this block begin(i, j),
// between(run, sums), and, when its sums are there, store(sums, i, j, plane); (i, j) is where the rows
// of this warp begin.
template <class S, class Products = OneProduct, class Begin, class Store, class Between = Nothing>
__device__ void take_tiles(word* barriers, const TensorMap& A, const TensorMap& B, Tiles tiles,
                           int chunks, Begin begin, Store store, Between between = {})
{
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
    const int rank = blockIdx.x % CLUSTER;
    if (threadIdx.x < 128) {
        give_registers<GIVEN>();
        if (threadIdx.x == 0) produce<Products>(A, B, tiles, chunks, rank, shared, full, empty);
    } else {
        take_registers<TAKEN>();
        const int group = threadIdx.x / 128 - 1;
        Place at{0, 0};
        for (int tile = blockIdx.x / CLUSTER; tile < tiles.count(); tile += gridDim.x / CLUSTER) {
            int i, j, plane;
            if (!tiles.place(tile, i, j, plane)) continue;
            i = (i * CLUSTER + rank) * BM + (threadIdx.x / 32 - 4) * 16, j *= BN;
            begin(i, j);
            S sums[SUMS];
            #pragma unroll
            for (int e = 0; e < SUMS; ++e) sums[e] = 0;
            #pragma unroll
            for (int run = 0; run < Products::RUNS; ++run) {
                add_products(sums, at, Products::stages(run, chunks), group, shared, full, empty);
                if (run + 1 < Products::RUNS) between(run, sums);
            }
            store(sums, i, j, plane);
        }
    }
    __syncwarp();
    meet_cluster<CLUSTER>();  // no block ends while another tells it something
}
