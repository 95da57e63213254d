// potrf_small.cu: Cholesky factorization of a batch of n x n matrices, n <= N.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh): the floor is
// 2 n^2 scalars over the memory's bandwidth out of place, where the other triangle is carried
// along, and about half of it in place, where that is neither loaded nor stored.
#include "cholesky.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
potrf_small(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* C, size c_row, size c_col, size c_next, int* info, size ns, size batch)
{
    wait_for_stream();
    const auto [b, here] = team_matrix(batch);
    const int n = size_of(ns, b), order = here ? n : 0;
    const auto in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(C, c_row, c_col, c_next, b);
    const bool both = in.p != out.p;
    const bool in_packs = in.in_packs<CV>(n, a_next), out_packs = out.in_packs<CV>(n, c_next);
    const auto wanted = [=](int i, int j) {
        return i < order && j < order && (both ? !right_of_tiles(i, j) : j <= i);
    };
    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = row(i);

    Block a;
    load(a, in, in_packs, wanted);
    if (TILES && both) {  // what the factorization does not touch goes at once
        const auto right = [=](int i, int j) {
            return i < order && j < order && right_of_tiles(i, j);
        };
        Block b;
        load(b, in, in_packs, right);
        store(b, out, out_packs, to, right);
    }
    Factors f;
    cholesky(a, f, n);
    if (here) restore(a, in, f, n);

    store(a, out, out_packs, to, wanted);
    if (member() == 0 && here) *array_of(info, 1, b) = f.info;
}
