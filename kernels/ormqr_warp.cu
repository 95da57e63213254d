// ormqr_warp.cu: op(Q) C for a batch of C with few columns, Q the product of the first k reflectors
// of geqrf.
//
// A warp, or some lanes of it, has a member and four columns of C at a time, or the only one, in
// registers; the reflectors pass by (passing_columns.cuh). A step is one reflector: two reads of its
// column's numbers by the lanes, and the sums over them. C op(Q) is this for the transposes: what the
// launcher says by strides, `conjugated` and `adjoint`.
//
// The floor: what is below the diagonal of QR is read, C read and written, once: m k - k^2 / 2 +
// 2 m n scalars; 4 m n k - 2 n k^2 operations.
#include "launch.cuh"
#include "qr.cuh"
#include "passing_columns.cuh"

template <int R>
__device__ void multiply(const Passing& q, const Strided<scalar_t>& c, bool adjoint,
                         bool conjugated, int n, int first, bool here)
{
    Sides<R> sides;
    sides.load({c.p, c.rs, c.cs}, q.m, n, first);
    sides.reflect(q, adjoint, conjugated);
    sides.each([&](int i, int j, scalar_t y) {
        if (i < q.m && first + j < n && here) c(i, first + j) = y;
    });
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
ormqr_warp(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
           size tau_next, scalar_t* C, size c_row, size c_col, size c_next, size ms, size ns,
           size ks, size conjugated, size adjoint, size apart, size batch)
{
    wait_for_stream();
    const int team = threadIdx.x / LANES;
    const size at = size(blockIdx.x) * TEAMS + team, b = at < batch ? at : batch - 1;
    const int m = size_of(ms, b), n = size_of(ns, b), k = size_of(ks, b);
    const Passing q{matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, tau_next, b),
                    reinterpret_cast<scalar_t*>(dynamic_shared) + team * STAGES * int(apart),
                    int(apart), m, k, most_of_warp<LANES>(k)};
    const auto c = matrix_of(C, c_row, c_col, c_next, b);
    const int columns = most_of_warp<LANES>(n);
    if (columns == 1) multiply<1>(q, c, adjoint, conjugated, n, 0, at < batch);
    else
        #pragma unroll 1
        for (int j = 0; j < columns; j += TOGETHER)
            multiply<TOGETHER>(q, c, adjoint, conjugated, n, j, at < batch);
}
