// orgqr_strips.cu: the first n columns of Q for a batch, Q the product of k reflectors of geqrf, by
// strips of columns (qr_strips.cuh).
//
// A strip begins as columns of the identity in shared memory; the panels, the last first, change
// them from their own row on. 4 m n k - 2 (m + n) k^2 + 4/3 k^3 operations.
#include "launch.cuh"
#include "qr_strips.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
orgqr_strips(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* TS,
             size ts_next, scalar_t* Q, size o_row, size o_col, size o_next, size ms, size ns,
             size ks, size strips)
{
    wait_for_stream();
    const size b = blockIdx.x / strips;
    // the last strip first, which most panels change
    const int n = size_of(ns, b), first = int(strips - 1 - blockIdx.x % strips) * COLUMNS;
    const int left = n - first, width = left < COLUMNS ? left : COLUMNS, m = size_of(ms, b);
    if (width <= 0) return;
    const auto q = matrix_of(Q, o_row, o_col, o_next, b);
    const Strided<scalar_t> out{q.p + first * q.cs, q.rs, q.cs};
    scalar_t* const strip = reinterpret_cast<scalar_t*>(dynamic_shared);
    for_each((m + 7) / 8 * 8, COLUMNS, true, [=](int i, int j) {
        strip[i * LD + j] = scalar_t{real_t(i == first + j)};
    });
    __syncthreads();
    apply_panels(matrix_of(QR, q_row, q_col, q_next, b), array_of(TS, ts_next, b), strip, false,
                 true, m, size_of(ks, b), first);
    moved<COLUMNS>(m, width, out.cs == 1, [=](int i, int j) { return strip[i * LD + j]; },
                   [=](int i, int j, scalar_t x) { out(i, j) = x; });
}
