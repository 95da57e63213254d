// gesvd_vectors.cu: singular values and vectors of a batch of m x n matrices, m >= n.
//
// A team keeps X and W (svd.cuh) on chip between loading A and storing T, S, W: the floor of
// memory is 3 n^2 scalars of a square matrix. Each sweep is 5 m n^2 / 2 fused operations for X and
// 2 n^3 for W, and 7 to 11 sweeps are usual. SHARED = 0: the columns lie in `work`, in the L2 cache.
constexpr int VECTORS = 1;
#include "launch.cuh"
#include "svd.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
gesvd_vectors(const scalar_t* A, size a_row, size a_col, size a_next, size conj_a,
              scalar_t* T, size t_row, size t_col, size t_next, size conj_t,
              scalar_t* W, size w_row, size w_col, size w_next, size conj_w,
              real_t* S, int* info, scalar_t* work, size ms, size ns, size ks, size batch)
{
    wait_for_stream();
    const size at = size(blockIdx.x) * TEAMS + team();
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = int(ms), n = int(ns);
    svd({A + b * a_next, a_row, a_col}, conj_a, {T + b * t_next, t_row, t_col},
        conj_t, {W + b * w_next, w_row, w_col}, conj_w, S + b * n,
        info + b, m, n, int(ks), here,
        scratch(SHARED ? nullptr : work + b * columns_of(n) * LD, n));
}
