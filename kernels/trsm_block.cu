// trsm_block.cu: L X = alpha B for a batch, L lower triangular of order n <= 1024.
//
// A block has R columns of X in shared memory from the load to the store. NB rows at a time are
// solved by substitution, the warps sharing the columns; then all warps subtract
// L(below, rows) X(rows) from what is below, in tiles, L straight from global memory, each number
// once. A member with an info other than zero gets X := B. The floor: B read and X written, and
// the triangle read by every block (from the L2 cache by all but the first).
#include "triangular.cuh"

// x := d^-1 x for nb rows of x: a lane has a row of the triangle, 32 / NB columns go at a time
__device__ inline void solve_rows(ByRows<scalar_t> d, const Divisor* divisors, ByRows<scalar_t> x,
                                  int nb, int columns, bool unit)
{
    constexpr int AT_ONCE = 32 / NB;
    const int lane = threadIdx.x % 32, i = lane % NB;
    scalar_t row[NB];
    #pragma unroll
    for (int p = 0; p < NB; ++p) row[p] = p < i && i < nb ? d(i, p) : scalar_t{};
    const Divisor mine = i < nb && !unit ? divisors[i] : Divisor{scalar_t{1}, 1};
    for (int first = warp() * AT_ONCE; first < columns; first += WARPS * AT_ONCE) {
        const int c = first + lane / NB;
        const bool here = i < nb && c < columns;
        scalar_t y = here ? x(i, c) : scalar_t{};
        #pragma unroll
        for (int q = 0; q < NB; ++q) {
            if (q >= nb) break;
            const scalar_t solved = of_lane(unit ? y : mine(y), lane - i + q);
            if (i == q) y = solved;
            if (i > q) y = minus_product(y, row[q], solved);
        }
        if (here) x(i, c) = y;
    }
}

__device__ inline void solve_slab(Lower L, Strided<const scalar_t> B, Strided<scalar_t> X, int n,
                                  int columns, scalar_t alpha, scalar_t* room)
{
    __shared__ scalar_t block[NB * NB];
    __shared__ Divisor divisors[NB];
    const ByRows<scalar_t> d{block, NB}, x{room, leading(R)};
    for_each(n, columns, by_rows(B), [=](int i, int j) { x(i, j) = scaled(alpha, B(i, j)); });
    for (int j = 0; j < n; j += NB) {
        const int nb = min(NB, n - j), rest = n - j - nb;
        for_each(nb, nb, by_rows(L.a), [=](int i, int c) {
            if (c < i) d(i, c) = L(j + i, j + c);
            else if (c == i) divisors[i] = divisor(L(j + i, j + i), L.unit);
        });
        __syncthreads();
        solve_rows(d, divisors, part(x, j, 0), nb, columns, L.unit);
        __syncthreads();
        constexpr int T = sizeof(scalar_t) == 16 ? 8 : 16;
        const auto solved = part(x, j, 0);
        const int across = (columns + T - 1) / T, tiles = (rest + T - 1) / T * across;
        for (int t = warp(); t < tiles; t += WARPS) {
            const int i = j + nb + t / across * T, c = t % across * T;
            Tile<T, T, Part<Lower>, ByRows<scalar_t>> sum;
            sum.clear();
            sum.template stream<16>(part(L, i, j), part(solved, 0, c), n - i, columns - c, nb);
            sum.each(n - i, columns - c, [=](int r, int q, scalar_t s) {
                x(i + r, c + q) = minus_product(x(i + r, c + q), s, scalar_t{1});
            });
        }
        __syncthreads();
    }
    for_each(n, columns, by_rows(X), [=](int i, int j) { X(i, j) = x(i, j); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
trsm_block(const scalar_t* A, size a_row, size a_col, size a_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           size alpha_re, size alpha_im, const int* info, size ns, size nrhs, size conjugated,
           size unit, size slabs)
{
    const size b = blockIdx.x / slabs, first = blockIdx.x % slabs * R;
    const int n = size_of(ns, b);
    const int columns = int(min(size(R), size_of(nrhs, b) - first));
    if (columns <= 0) return;
    const auto in = part(matrix_of(B, b_row, b_col, b_next, b), 0, int(first));
    const auto out = part(matrix_of(X, x_row, x_col, x_next, b), 0, int(first));
    const Lower L{matrix_of(A, a_row, a_col, a_next, b), conjugated != 0, unit != 0};
    if (info && info[b]) {
        if (in.p != out.p)
            for_each(n, columns, by_rows(out), [=](int i, int j) { out(i, j) = in(i, j); });
        return;
    }
    solve_slab(L, in, out, n, columns, number<scalar_t>::of(alpha_re, alpha_im),
               reinterpret_cast<scalar_t*>(dynamic_shared));
}
