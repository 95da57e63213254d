// potrf_small.cu: Cholesky factorization of a batch of n x n matrices, n <= N.
//
// A team of lanes holds a matrix from the first load to the last store (lanes.cuh): the floor is
// 2 n^2 scalars over the memory's bandwidth out of place, where the other triangle is carried
// along, and about half of it in place, where that is neither loaded nor stored. Above N = 32 the
// team is a warp, and holds no more than the triangle (cholesky_large.cuh).
#include "cholesky.cuh"
#include "cholesky_large.cuh"
#include "launch.cuh"

// The matrix of a team; returns its info. No lane leaves early if the team has none.
__device__ inline int factor(const Strided<const scalar_t>& in, const Strided<scalar_t>& out,
                             const Whole& given, Whole taken, bool in_packs, bool out_packs, int n,
                             bool here)
{
    const int order = here ? n : 0;
    const bool both = in.p != out.p;
    const auto wanted = [=](int i, int j) {
        return i < order && j < order && (both ? !right_of_tiles(i, j) : j <= i);
    };
    int to[RN];
    #pragma unroll
    for (int i = 0; i < RN; ++i) to[i] = row(i);

    Block a;
    load(a, in, given, in_packs, wanted);
    const bool line = LINES > 1 && given.bytes && taken.bytes;
    if (TILES && both && !line) {  // what the factorization does not touch goes at once
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

    if (!both || (TILES && !line)) taken.bytes = 0;
    taken.lower = !both;
    store(a, out, taken, out_packs, to, wanted);
    return f.info;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
potrf_small(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* C, size c_row, size c_col, size c_next, int* info, size ns, size batch)
{
    wait_for_stream();
    const auto [b, here] = team_matrix(batch);
    const int n = size_of(ns, b);
    const auto in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(C, c_row, c_col, c_next, b);
    const bool in_packs = in.in_packs<CV>(n, a_next), out_packs = out.in_packs<CV>(n, c_next);
    int failed;
    if constexpr (LARGE) failed = cholesky_large<false>(in, out, in_packs, out_packs, here ? n : 0);
    else failed = factor(in, out, {A, a_row, a_col, a_next, n, n, batch},
                         {C, c_row, c_col, c_next, n, n, batch}, in_packs, out_packs, n, here);
    if (member() == 0 && here) *array_of(info, 1, b) = failed;
}
