// gerbt_rows.cu: Y = U^T X, or Y = V X, of a few columns, U and V the butterflies of gerbt.cu.
//
// A thread has four rows, a quarter of their number apart, of one column. Rows of X past its last are
// zero; those of Y past its last are not written.
#include "block.cuh"
#include "gerbt.cuh"
#include "launch.cuh"

// U^T X of n rows, in 4 h rows, if `to_factors`; else V X of 4 h rows, n of them
extern "C" __global__ void __launch_bounds__(THREADS)
gerbt_rows(const scalar_t* X, size ldx, scalar_t* Y, size ldy, size n, size h, int to_factors)
{
    wait_for_stream();
    const size i = size(blockIdx.x) * THREADS + thread();
    if (i >= h) return;
    X += blockIdx.y * ldx + i, Y += blockIdx.y * ldy + i;
    scalar_t x[4];
    #pragma unroll
    for (int q = 0; q < 4; ++q) x[q] = !to_factors || i + q * h < n ? X[q * h] : scalar_t{};
    const Butterfly of(to_factors ? LEFT : RIGHT, i, h);
    if (to_factors) of.transposed(x);
    else of.plain(x);
    #pragma unroll
    for (int q = 0; q < 4; ++q)
        if (to_factors || i + q * h < n) Y[q * h] = x[q];
}
