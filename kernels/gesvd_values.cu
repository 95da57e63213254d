// gesvd_values.cu: singular values of a batch of m x n matrices, m >= n.
//
// As gesvd_vectors.cu without W: each sweep is 5 m n^2 / 2 fused operations.
constexpr int VECTORS = 0;
#include "launch.cuh"
#include "svd.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
gesvd_values(const scalar_t* A, size a_row, size a_col, size a_next, size conj_a,
             real_t* S, int* info, scalar_t* work, size ms, size ns, size batch)
{
    wait_for_stream();
    const size at = size(blockIdx.x) * TEAMS + team();
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = int(ms), n = int(ns);
    const Strided<scalar_t> none{nullptr, 0, 0};
    svd({A + b * a_next, a_row, a_col}, conj_a, none, false, none, false,
        S + b * n, info + b, m, n, n, here,
        scratch(SHARED ? nullptr : work + b * columns_of(n) * LD, n));
}
