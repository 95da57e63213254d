// geqrf_t.cu: T of a block of reflectors, H(1) ... H(n) = I - V T V^H, from those of its leaves.
//
// TH = T^H is lower triangular; w x w tiles on its diagonal are there, and G = V^H V. Row i of T,
// which is a warp's, follows from itself, from tile to tile to the right, a column to a lane:
//
//     T(i, J) = -(T(i, :J) G(:J, J)) T(J, J).
//
// Rows do not wait for each other: n / w steps of up to n + w products in turn, w a multiple of 4,
// all of whose numbers are in L2.
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

constexpr int WIDEST = 32;  // of leaves

extern "C" __global__ void __launch_bounds__(THREADS)
geqrf_t(const scalar_t* G, scalar_t* TH, size ld, size n, size w)
{
    wait_for_stream();
    const int width = int(n), leaf = int(w), lane = threadIdx.x % 32;
    const int i = int(blockIdx.x) * WARPS + warp();
    if (i >= width) return;
    scalar_t* const t = reinterpret_cast<scalar_t*>(dynamic_shared) + warp() * width;  // T^H(:, i)
    scalar_t* const mine = TH + i * ld;
    const int first = i / leaf * leaf, right = first + leaf;
    for (int j = lane; j < min(right, width); j += 32) {
        if (j < first) mine[j] = scalar_t{};
        else t[j] = mine[j];
    }
    __syncwarp();
    for (int J = right; J < width; J += leaf) {
        const int j = J + lane, count = min(leaf, width - J);
        const bool there = lane < count;
        scalar_t tile[WIDEST], sums[4] = {}, x[4] = {};
        #pragma unroll
        for (int k = 0; k < WIDEST; ++k)
            tile[k] = there && k < count ? TH[j + (J + k) * ld] : scalar_t{};
        #pragma unroll 4
        for (int k = first; k < J; k += 4) {
            scalar_t g[4];
            #pragma unroll
            for (int e = 0; e < 4; ++e) g[e] = there ? G[j + (k + e) * ld] : scalar_t{};
            #pragma unroll
            for (int e = 0; e < 4; ++e) sums[e] = minus_product(sums[e], t[k + e], g[e]);
        }
        const scalar_t sum = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
        #pragma unroll
        for (int k = 0; k < WIDEST; ++k)
            x[k % 4] = minus_product(x[k % 4], of_lane(sum, k), tile[k]);
        if (there) t[j] = mine[j] = mul(add(add(x[0], x[1]), add(x[2], x[3])), real_t(-1));
        __syncwarp();
    }
}
