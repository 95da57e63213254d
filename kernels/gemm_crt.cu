// gemm_crt.cu: C := A B^T of integers, given by their remainders (moduli.cuh), modulo each modulus, by
// the tensor cores of Hopper: MODULI products of bytes, one after the other in one launch.
//
// Tiles and who has what of them: tile_ring.cuh. A stage is 128 of k. Sums of 32 bits are exact for
// k < 2^17; what is stored of one is a byte again. The bytes of C lie as the tensor cores leave sums:
// for each modulus blocks of 16 x 16 elements, 8 bytes for a lane of a warp, in rows of blocks. Where
// lines are such that it matters, which all blocks see for themselves, sizes are multiplied too;
// not at all without a place for `unsure`. `half`: of C one triangle (strips.cuh).
//
// Floor: 2 MODULI m n k operations at 1979 Top/s, or what 700 W allow, 1200 to 1450 of cuBLAS's: 8.3
// ms at 8192, or 11.4 to 13.7. A stage is 128 (BM + BN / CLUSTER) bytes from L2 for 128 BM BN products; C is
// MODULI m n bytes, written once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int BN = 256;     // columns of a tile
constexpr int STAGES = 4;   // in shared memory
constexpr int CLUSTER = 2;  // blocks that share B
constexpr int WIDE = 8;     // tiles of a cluster that follow each other downwards, then across
constexpr int FEWER = 0;     // 1: 14 moduli, not 15
constexpr int A_ACROSS = 0, B_ACROSS = 0;  // bytes are multiplied along their lines only
#endif
#include "hopper.cuh"
#include "launch.cuh"
#include "moduli.cuh"

constexpr int PLANES = PARTS * MODULI + 1;
using number_t = signed char;
#include "tile_ring.cuh"

// The bytes of a sum modulo p: x + 128 modulo p, or p more, is below 256, and 128 less is a remainder
struct Modulus {
    unsigned p, shift, quotient;

    __device__ explicit Modulus(int plane)
        : p(TABLE.p[plane]), shift(TABLE.shift[plane]), quotient(TABLE.of_any[plane]) {}
    __device__ unsigned of(int sum) const  // + 128
    {
        const unsigned x = unsigned(sum) + shift;
        return x - (__umulhi(x, quotient) >> 7) * p;
    }
    __device__ unsigned operator()(const int* sums) const  // four of them
    {
        const unsigned x = of(sums[0]) + (of(sums[1]) << 8) + (of(sums[2]) << 16)
                           + (of(sums[3]) << 24);
        return x ^ 0x80808080u;
    }
};
// The bytes of sums of sizes: how many bits they have
struct Bits {
    __device__ unsigned of(int sum) const { return 32 - __clz(sum); }
    __device__ unsigned operator()(const int* sums) const
    {
        return of(sums[0]) | of(sums[1]) << 8 | of(sums[2]) << 16 | of(sums[3]) << 24;
    }
};

// The blocks of a warp's rows, from the one at `to` on, `left` of them
template <class F>
__device__ void store_blocks(const int (&sums)[SUMS], uint2* to, size left, F bytes)
{
    #pragma unroll
    for (int q = 0; q < BN / 16; ++q)
        if (q < left) to[32 * q] = make_uint2(bytes(sums + 8 * q), bytes(sums + 8 * q + 4));
}

// Whether there are two lines whose product could be worse than it looks, zeros and such as are not
// finite apart
__device__ inline bool any_unsure(const Line* a, size m, const Line* b, size n, size k)
{
    const unsigned fair = enough(double(k));
    bool few = false, inexact = false;
    #pragma unroll 4
    for (size l = threadIdx.x; l < m + n; l += 128 * (GROUPS + 1)) {
        const Line line = l < m ? a[l] : b[l - m];
        few |= line.length > 0 && line.fair < fair;
        inexact |= line.length > 0 && line.loss > 0;
    }
    few = __syncthreads_or(few), inexact = __syncthreads_or(inexact);
    return few && inexact;
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (GROUPS + 1), 1)
gemm_crt(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, size m, size n,
         size k, const Line* a, const Line* b, uint2* C, unsigned* unsure, size half)
{
    wait_for_stream();
    __shared__ word barriers[2 * STAGES];
    const bool sizes = unsure && any_unsure(a, m, b, n, k);
    if (unsure && blockIdx.x == 0 && threadIdx.x == 0) *unsure = sizes;
    const size down = (m + 15) / 16, across = (n + 15) / 16;  // blocks of C
    const Tiles tiles(m, n, PLANES - 1 + sizes, int(half));
    take_tiles<int>(barriers, A, B, tiles, int((k + BK - 1) / BK), [](int, int) {},
        [&](const int (&sums)[SUMS], int i, int j, int plane) {
            if (i >= m) return;
            uint2* const to = C + ((plane * down + i / 16) * across + j / 16) * 32
                              + threadIdx.x % 32;
            const size left = across - j / 16;
            if (plane < PLANES - 1) store_blocks(sums, to, left, Modulus(plane / PARTS));
            else store_blocks(sums, to, left, Bits());
        });
}
