// getri_small.cu: the inverses of a batch of n x n matrices, n <= N, from their LU factors.
//
// A team of lanes holds the factors in registers and solves for the columns of the identity, LC at
// a time: 2 n^3 operations, and the floor is 2 n^2 scalars over the memory's bandwidth. A member
// with a zero on U's diagonal, whose first is `info`, keeps its factors.
#include "launch.cuh"
#include "lu_columns.cuh"

struct Identity {
    __device__ scalar_t operator()(int i, int j) const { return scalar_t(real_t(i == j)); }
};

// The place of the first zero on the diagonal of a, counted from 1, or 0
__device__ inline int first_zero(const Block& a, int order)
{
    unsigned first = ALL;
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; ++s)
            if (row(i) == col(s) && row(i) < order && abs1(a[i][s]) == 0 && row(i) < first)
                first = row(i);
    if (LC > 1)  // of the lanes that share rows the one with the diagonal knows
        #pragma unroll
        for (int d = 1; d < LC; d *= 2) {
            const unsigned other = across(first, d);
            first = other < first ? other : first;
        }
    return int(team_min(first) + 1);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
getri_small(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
            scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns, size batch)
{
    wait_for_stream();
    const auto [m, here] = team_matrix(batch);
    const int n = size_of(ns, m), order = here ? n : 0;
    const auto lu = matrix_of(LU, lu_row, lu_col, lu_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);

    Block a;
    load(a, lu, lu.in_packs<CV>(n, lu_next), [=](int i, int j) { return i < order && j < order; });
    const int zero = first_zero(a, order);
    if (member() == 0 && here) *array_of(info, 1, m) = zero;

    Factors f;
    invert_diagonal(a, f, n);
    load_pivots(f, array_of(piv, n, m), order);
    __syncwarp();                               // x may be where the factors are
    solve_columns(a, f, Identity{}, x, false, zero ? 0 : order, n, n);
    int place[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) place[i] = row(i);
    const int kept = zero ? order : 0;
    store(a, x, x.in_packs<CV>(n, x_next), place,
          [=](int i, int j) { return i < kept && j < kept; });
}
