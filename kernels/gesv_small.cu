// gesv_small.cu: solve A X = B for a batch of n x n matrices, n <= N, by LU with pivoting.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh) and solves with
// the factors it has in registers: the floor is 2 n^2 + 2 n nrhs scalars over the memory's
// bandwidth. Rows stay where they were loaded, those of B too; storing puts them in place.
#include "launch.cuh"
#include "solve.cuh"

// R right-hand sides, from the first-th on, with a matrix in tiles; a singular one leaves them.
template <int R>
__device__ void solve_rows(const Scratch& s, int at, const Factors& f,
                           const Strided<const scalar_t>& b, const Strided<scalar_t>& x,
                           int order, int n, int nrhs, int first)
{
    scalar_t given[R], y[R];
    #pragma unroll
    for (int q = 0; q < R; ++q)
        y[q] = given[q] = lane() < order && first + q < nrhs ? b(lane(), first + q) : scalar_t{};
    substitute_by_rows<true, true>(s, at, f, y, n, true);
    substitute_by_rows<false, true>(s, at, f, y, n, false);
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (lane() < order && first + q < nrhs)
            x(f.info ? lane() : at, first + q) = f.info ? given[q] : y[q];
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
gesv_small(const scalar_t* A, size a_row, size a_col, size a_next,
           scalar_t* LU, size lu_row, size lu_col, size lu_next, int* piv,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           int* info, size ns, size columns, size batch)
{
    wait_for_stream();
    const auto [m, here] = team_matrix(batch);
    const int n = size_of(ns, m), order = here ? n : 0, nrhs = size_of(columns, m);
    const auto in = matrix_of(A, a_row, a_col, a_next, m);
    const auto out = matrix_of(LU, lu_row, lu_col, lu_next, m);
    const auto b = matrix_of(B, b_row, b_col, b_next, m);
    const auto x = matrix_of(X, x_row, x_col, x_next, m);

    Block a;
    load(a, in, {A, a_row, a_col, a_next, n, n, batch}, in.in_packs<CV>(n, a_next),
         [=](int i, int j) { return i < order && j < order; });
    Tags tag;
    Factors f;
    lu(a, tag, f, n, n);

    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = place(tag[i]);
    store(a, out, {LU, lu_row, lu_col, lu_next, n, n, batch}, out.in_packs<CV>(n, lu_next), to,
          [=](int i, int j) { return i >= 0 && j < order; });
    store_kept(f.piv, array_of(piv, n, m), order);

    if (member() == 0 && here) *array_of(info, 1, m) = f.info;

    if constexpr (TILES) {
        const int at = place_of_lane(tag);
        const Scratch& s = scratch();
        to_rows(a, scratch());
        if (nrhs == 1) solve_rows<1>(s, at, f, b, x, order, n, nrhs, 0);
        else
            #pragma unroll 1
            for (int j = 0; j < nrhs; j += 4) solve_rows<4>(s, at, f, b, x, order, n, nrhs, j);
        return;
    }
    const int most = most_of_warp<TEAM>(nrhs);
    #pragma unroll 1
    for (int first = 0; first < most; first += LC) {
        const int j = first + t();
        Column given, y;
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            y[i] = given[i] = row(i) < order && j < nrhs ? b(row(i), j) : scalar_t{};
        substitute<true, true>(a, tag, f, y, n, true);
        substitute<false, true>(a, tag, f, y, n, false);
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < RN; ++i)
            if (row(i) < order && j < nrhs)
                x(f.info ? row(i) : to[i], j) = f.info ? given[i] : y[i];
    }
}
