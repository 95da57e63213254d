// trmm_block.cu: X = alpha L B for a batch, L lower triangular of order n <= 1024.
//
// A block has R columns of B in shared memory; its warps make tiles of X, the triangle straight
// from global memory, each number once to a block, and write them where they belong: also over B,
// of which the block has its copy. The floor: B read, X written, the triangle read.
#include "triangular.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
trmm_block(const scalar_t* A, size a_row, size a_col, size a_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           size alpha_re, size alpha_im, size ns, size nrhs, size conjugated, size unit,
           size slabs)
{
    const size b = blockIdx.x / slabs, first = blockIdx.x % slabs * R;
    const int n = size_of(ns, b);
    const int columns = int(min(size(R), size_of(nrhs, b) - first));
    if (columns <= 0) return;
    const auto in = part(matrix_of(B, b_row, b_col, b_next, b), 0, int(first));
    const auto out = part(matrix_of(X, x_row, x_col, x_next, b), 0, int(first));
    const Lower L{matrix_of(A, a_row, a_col, a_next, b), conjugated != 0, unit != 0};
    const scalar_t alpha = number<scalar_t>::of(alpha_re, alpha_im);
    const ByRows<scalar_t> x{reinterpret_cast<scalar_t*>(dynamic_shared), leading(R)};
    for_each(n, columns, by_rows(in), [=](int i, int j) { x(i, j) = in(i, j); });
    __syncthreads();
    constexpr int T = sizeof(scalar_t) == 16 ? 8 : 16;
    const int across = (columns + T - 1) / T, tiles = (n + T - 1) / T * across;
    for (int t = warp(); t < tiles; t += WARPS) {
        const int i = t / across * T, c = t % across * T;
        Tile<T, T, Part<Lower>, ByRows<scalar_t>> sum;
        sum.clear();
        sum.template stream<16>(part(L, i, 0), part(x, 0, c), n - i, columns - c, min(n, i + T));
        sum.each(n - i, columns - c, [=](int r, int q, scalar_t s) {
            out(i + r, c + q) = scaled(alpha, s);
        });
    }
}
