// gemm.cuh: the end of a tile of multiply.cuh, C := alpha (A B) + beta C.
#pragma once
#include "multiply.cuh"
#include "operands.cuh"

// to := alpha tile + beta from, of which (i0, j0) is the tile's first element; m x n are left.
// beta = 0 leaves `from` unread.
template <class T>
__device__ void finish(T& tile, scalar_t alpha, scalar_t beta, Strided<const scalar_t> from,
                       Strided<scalar_t> to, bool vectors, int half, int i0, int j0, int m, int n)
{
    const bool read = !(real(beta) == 0 && abs1(beta) == 0);
    const bool clear = half & OTHERS_ZERO, upper = half & UPPER_OF_C;
    const auto wanted = [=](int i, int j) {
        return half == ALL_OF_C || (upper ? i0 + i <= j0 + j : i0 + i >= j0 + j);
    };
    tile.each(m, n, [&](int i, int j, scalar_t& x) {
        const bool real_one = half & HERMITIAN_C && i0 + i == j0 + j;
        scalar_t old{};
        if (read && wanted(i, j)) old = mul(beta, real_one ? real_part(from(i, j)) : from(i, j));
        x = minus_product(old, mul(alpha, real_t(-1)), x);
        if (real_one) x = real_part(x);
        if (clear && !wanted(i, j)) x = scalar_t{};
    });
    if (vectors && (half == ALL_OF_C || clear))
        tile.store(ByRows<scalar_t>{to.p, int(to.rs)}, m, n);
    else
        tile.each(m, n, [&](int i, int j, scalar_t& x) {
            if (clear || wanted(i, j)) to(i, j) = x;
        });
}
