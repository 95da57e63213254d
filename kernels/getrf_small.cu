// getrf_small.cu: LU with partial pivoting of a batch of m x n matrices, m, n <= N.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh), so A crosses
// memory twice and nothing else does: the floor is 2 m n scalars over the memory's bandwidth.
// Rows stay in their lanes, and the final store applies the permutation (lu.cuh).
#include "lu.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
getrf_small(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* LU, size lu_row, size lu_col, size lu_next,
            int* piv, int* info, size m, size n, size batch)
{
    const size b = team_matrix();
    const int rows = b < batch ? m : 0, cols = b < batch ? n : 0;
    const int steps = rows < cols ? rows : cols;
    const Strided<const scalar_t> in{A + b * a_next, a_row, a_col};
    const Strided<scalar_t> out{LU + b * lu_next, lu_row, lu_col};

    Block a;
    load(a, in, in.in_packs<CV>(n, a_next), [=](int i, int j) { return i < rows && j < cols; });
    Tags tag;
    Factors f;
    lu(a, tag, f, m, n);

    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = place(tag[i]);
    store(a, out, out.in_packs<CV>(n, lu_next), to,
          [=](int i, int j) { return i >= 0 && j < cols; });
    store_kept(f.piv, piv + b * steps, steps);
    if (member() == 0 && b < batch) info[b] = f.info;
}
