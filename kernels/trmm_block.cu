// trmm_block.cu: X = alpha L B for a batch, L lower triangular.
//
// A block makes WARPS R columns, a warp R of them in registers (triangular.cuh), N rows at a time
// from the last on, so that X may be where B is. L and B pass through shared memory, 8 DEEP of k at
// a time. The floor, where n <= N: B read and X written once, the triangle read by every block
// (from the L2 cache by all but the first): (n^2 / 2 + 2 n nrhs) numbers; n^2 nrhs operations.
#include "launch.cuh"
#include "triangular.cuh"

__device__ inline void multiply_columns(const Lower& L, Strided<const scalar_t> in,
                                        Strided<scalar_t> out, int columns, scalar_t alpha,
                                        bool conjugated, scalar_t* ring)
{
    const int n = L.n, mine = min(columns - warp() * R, R);
    scalar_t* const block = ring + warp() * BLOCK;
    const Columns<const scalar_t> B(part(in, 0, warp() * R), n, mine);
    const Columns<scalar_t> X(part(out, 0, warp() * R), n, mine);
    #pragma unroll 1
    for (int first = RESIDENT ? 0 : (n - 1) / N * N; first >= 0; first -= N) {
        const int m = min(n - first, N);
        Strip strip;
        strip.clear();
        if (!RESIDENT && first) {
            add_product<1, false>(strip, L, first, m, 0, first, B, conjugated, ring);
            await_groups<0>();
            __syncthreads();  // nobody reads the ring any more
        }
        add_product<1, true>(strip, L, first, m, first, first + m, B, conjugated, ring);
        __syncthreads();  // a block lies where the ring does
        scalar_t* p = X.from(first);
        if (mine > 0)
            #pragma unroll
            for (int I = 0; I < NT; ++I) {
                if (8 * I >= m) break;
                Strip::give(strip.x[I], block);
                __syncwarp();
                X.each(p, first + 8 * I, [=](int, int k, int c, scalar_t* at, bool there) {
                    const scalar_t x = block[in_block(k, c)];
                    if (there) *at = scaled(alpha, conjugated ? conj(x) : x);
                });
                __syncwarp();
            }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
trmm_block(const scalar_t* A, size a_row, size a_col, size a_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           size alpha_re, size alpha_im, size ns, size nrhs, size conjugated, size unit,
           size slabs)
{
    wait_for_stream();
    const unsigned parts = unsigned(slabs);
    const size b = blockIdx.x / parts, first = size(blockIdx.x % parts) * (WARPS * R);
    const int n = size_of(ns, b);
    const int columns = int(min(size(WARPS * R), size_of(nrhs, b) - first));
    if (columns <= 0 || n <= 0) return;
    multiply_columns({matrix_of(A, a_row, a_col, a_next, b), n, unit != 0},
                     part(matrix_of(B, b_row, b_col, b_next, b), 0, int(first)),
                     part(matrix_of(X, x_row, x_col, x_next, b), 0, int(first)), columns,
                     number<scalar_t>::of(alpha_re, alpha_im), conjugated != 0,
                     reinterpret_cast<scalar_t*>(dynamic_shared));
}
