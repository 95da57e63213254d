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
                             Way in_way, Way out_way, int n, bool here)
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
    load(a, in, in_way, order * order, wanted);
    if (TILES && both && out_way != AS_A_LINE) {  // what stays as it is goes at once
        const auto right = [=](int i, int j) {
            return i < order && j < order && right_of_tiles(i, j);
        };
        Block b;
        load(b, in, in_way, order * order, right);
        store(b, out, out_way, order * order, to, right);
    }
    Factors f;
    cholesky(a, f, n);
    if (here) restore(a, in, f, n);

    if (out_way == AS_A_LINE) bring_line(in.p, order * order);  // with what is not wanted
    store(a, out, out_way, order * order, to, wanted);
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
    const Way in_way = way_of(in, n, n, a_next);
    Way out_way = way_of(out, n, n, c_next);
    const bool alike = in_way == AS_A_LINE && in.rs == out.rs && a_next == c_next
                       && (size(A) - size(C)) % 16 == 0;
    if (out_way == AS_A_LINE && !alike) out_way = BY_NUMBER;
    int failed;
    if constexpr (LARGE)
        failed = cholesky_large(in, out, in_way == IN_PACKS, out_way == IN_PACKS, here ? n : 0);
    else failed = factor(in, out, in_way, out_way, n, here);
    if (member() == 0 && here) *array_of(info, 1, b) = failed;
}
