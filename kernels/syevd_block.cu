// syevd_block.cu: eigenvalues and, where asked for, eigenvectors of a batch of Hermitian matrices.
//
// With s above 1.25 |A| (Frobenius), B = A / s + I is positive definite, of condition below 9, and
// has A's eigenvectors. One-sided Jacobi (svd.cuh) makes the columns of X = B V orthogonal: their
// lengths are 1 + w / s, and as B is positive definite its left singular vectors x / |x| are its
// right ones, V: no rotation need be kept. Errors are those of s, a few |A|.
//
// A team keeps X on chip between loading a triangle of A and storing V, w: the floor of memory is
// 3/2 n^2 scalars. Each sweep is 5 n^3 / 2 fused operations, 7 to 11 sweeps are usual. SHARED = 0:
// the columns lie in `work`, in the L2 cache. V may lie where A does.
constexpr int VECTORS = 0;
#include "launch.cuh"
#include "svd.cuh"

// A is read where row >= column; `conj_a`: what is there is the conjugate of A.
__device__ inline void eigen(Strided<const scalar_t> A, bool conj_a, Strided<scalar_t> V,
                             bool vectors, real_t* w, int* info, int n, bool here, Scratch room)
{
    const int columns = columns_of(n);
    scalar_t* const X = room.X;
    for (int e = member(); e < columns * LD; e += TEAM) X[e] = scalar_t(0);
    team_sync();
    real_t most = 0;
    if (here)
        team_each(n, n, A.cs == 1, [=, &most](int i, int j) {
            if (i < j) return;
            scalar_t x = A(i, j);
            x = i == j ? scalar_t(real(x)) : conj_a ? conj(x) : x;
            X[j * LD + i] = x;
            X[i * LD + j] = conj(x);
            most = larger(most, largest(x));
        });
    most = over_team(most, room.sums, larger);
    const bool finite = most - most == 0;
    bool active = here && finite;
    const int unit = active && most > 0 ? -1 - ilogb(most) : 0;   // entries below 1
    team_sync();
    real_t squares = 0;
    if (active)
        team_each(n, n, false, [=, &squares](int i, int j) {
            const scalar_t x = shifted(X[j * LD + i], unit);
            X[j * LD + i] = x;
            squares += square(x);
        });
    const real_t norm = sqrt(over_team(squares, room.sums, sum));
    const int scale = active && norm > 0 ? -1 - ilogb(norm * real_t(1.25)) : 0;
    if (active)
        team_each(n, n, false, [=](int i, int j) {
            const scalar_t x = shifted(X[j * LD + i], scale);
            X[j * LD + i] = add(x, scalar_t(i == j ? 1 : 0));
        });
    team_sync();
    active = orthogonalized(room, n, n, active);
    measure(room, columns);
    for (int c = member(); c < n; c += TEAM) {
        const real_t s = room.lengths[c];
        int rank = finite ? 0 : c;   // lengths that are nan have no order
        for (int j = 0; j < n && finite; ++j)
            rank += room.lengths[j] < s || (room.lengths[j] == s && j < c);
        room.order[rank] = c;
        const real_t length = sqrt(s);
        if (here) w[rank] = finite ? shifted(length - 1, -(unit + scale)) : most - most;
    }
    if (here && member() == 0) *info = !finite || active;
    if (!vectors) return;
    team_sync();
    const real_t nan = most - most;   // 0 of a finite matrix
    if (here)
        team_each(n, n, V.cs == 1, [=](int i, int j) {
            const int c = room.order[j];
            V(i, j) = finite ? mul(X[c * LD + i], room.inverses[c]) : scalar_t(nan);
        });
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
syevd_block(const scalar_t* A, size a_row, size a_col, size a_next, size conj_a,
            scalar_t* V, size v_row, size v_col, size v_next, size vectors,
            real_t* w, int* info, scalar_t* work, size ns, size most, size batch)
{
    wait_for_stream();
    const size at = size(blockIdx.x) * TEAMS + team();
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int n = size_of(ns, b);
    scalar_t* const columns = SHARED ? nullptr : array_of(work, columns_of(n) * LD, b);
    eigen(matrix_of(A, a_row, a_col, a_next, b), conj_a, matrix_of(V, v_row, v_col, v_next, b),
          vectors, array_of(w, n, b), array_of(info, 1, b), n, here, scratch(columns, int(most)));
}
