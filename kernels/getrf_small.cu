// getrf_small.cu: LU of a batch of m x n matrices, m, n <= N, with partial pivoting unless
// UNPIVOTED (then piv is not written).
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh), so A crosses
// memory twice and nothing else does: the floor is 2 m n scalars over the memory's bandwidth.
// Rows stay in their lanes, and the final store applies the permutation (lu.cuh).
#include "launch.cuh"
#include "lu.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
getrf_small(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* LU, size lu_row, size lu_col, size lu_next,
            int* piv, int* info, size ms, size ns, size batch)
{
    wait_for_stream();
    const auto [b, here] = team_matrix(batch);
    const int m = size_of(ms, b), n = size_of(ns, b), steps = m < n ? m : n;
    const int rows = here ? m : 0, cols = here ? n : 0;
    const auto in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(LU, lu_row, lu_col, lu_next, b);

    Block a;
    load(a, in, {A, a_row, a_col, a_next, m, n, batch}, in.in_packs<CV>(n, a_next),
         [=](int i, int j) { return i < rows && j < cols; });
    Tags tag;
    Factors f;
    if constexpr (TEAM > 1) lu(a, tag, f, m, n);
    else lu_alone(a, tag, f, m, n);

    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = place(tag[i]);
    store(a, out, {LU, lu_row, lu_col, lu_next, m, n, batch}, out.in_packs<CV>(n, lu_next), to,
          [=](int i, int j) { return i >= 0 && j < cols; });
    if constexpr (!UNPIVOTED) store_kept(f.piv, array_of(piv, steps, b), here ? steps : 0);
    if (member() == 0 && here) *array_of(info, 1, b) = f.info;
}
