// geqrf_t.cu: T of a block of reflectors, H(1) ... H(n) = I - V T V^H, from those of its leaves.
//
// TH = T^H is lower triangular; w x w tiles on its diagonal are there, and G = V^H V. Row i of T, which
// is a warp's, follows from itself, from tile to tile to the right, a column of the tile to a lane:
//
//     T(i, J) = -(T(i, :J) G(:J, J)) T(J, J).
//
// Rows do not wait for each other: n / w steps of up to n + w products in turn, 7 us of n = 256.
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
geqrf_t(const scalar_t* G, scalar_t* TH, size ld, size n, size w)
{
    wait_for_stream();
    const int width = int(n), leaf = int(w), lane = threadIdx.x % 32;
    const int i = int(blockIdx.x) * WARPS + warp();
    if (i >= width) return;
    scalar_t* const t = reinterpret_cast<scalar_t*>(dynamic_shared) + warp() * width;  // T^H(:, i)
    scalar_t* const mine = TH + i * ld;
    const int tile = i / leaf * leaf, right = tile + leaf;
    for (int j = lane; j < min(right, width); j += 32) {
        if (j < tile) mine[j] = scalar_t{};
        else t[j] = mine[j];
    }
    __syncwarp();
    for (int J = right; J < width; J += leaf) {
        const int j = J + lane, count = min(leaf, width - J);
        const bool there = lane < count;
        scalar_t sums[4] = {}, x{};
        #pragma unroll 4
        for (int k = tile; k < J; ++k)
            if (there) sums[k % 4] = minus_product(sums[k % 4], t[k], G[j + k * ld]);
        const scalar_t sum = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
        #pragma unroll 4
        for (int k = 0; k < count; ++k) {
            const scalar_t s = of_lane(sum, k);
            if (there) x = minus_product(x, s, TH[j + (J + k) * ld]);
        }
        if (there) t[j] = mine[j] = mul(x, real_t(-1));
        __syncwarp();
    }
}
