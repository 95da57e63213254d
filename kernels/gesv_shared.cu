// gesv_shared.cu: solve A X = B for a batch of n x n matrices that fit shared memory beside their
// right-hand sides, a block to each, by LU with pivoting.
//
// B lies beside A and takes part in the factorization, which leaves inv(L) P B of it; what is left
// to do is the solution with U, a warp to a right-hand side. The floor is n^2 + 2 n nrhs scalars
// over the memory's bandwidth, and n^2 more where the factors are asked for (LU is not null).
constexpr int BESIDE = 8;  // right-hand sides, at most
#include "launch.cuh"
#include "lu_shared.cuh"
#include "shuffle.cuh"

constexpr int DOWN = (N + 31) / 32;

// x := inv(U) y, y being column j of `a`, by one warp, DOWN rows to a lane
__device__ inline void solve_upper(scalar_t* a, int n, int j, Strided<scalar_t> x, int to)
{
    scalar_t y[DOWN], inverse[DOWN];
    bool tiny[DOWN];
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        const int i = lane_id() + 32 * q;
        y[q] = i < n ? *at(a, i, j) : scalar_t{};
        const scalar_t pivot = i < n ? *at(a, i, i) : scalar_t(real_t(1));
        tiny[q] = abs1(pivot) < TINY;
        inverse[q] = inverse_of(pivot);
    }
    #pragma unroll
    for (int q = DOWN - 1; q >= 0; --q)
        #pragma unroll 1
        for (int k = 24; k >= 0; k -= NB) {
            if (32 * q + k >= n) continue;
            Row u[DOWN];
            #pragma unroll
            for (int p = 0; p <= q; ++p) {
                const int i = lane_id() + 32 * p;
                read_row(at(a, i < n ? i : 0, 32 * q + k), u[p]);
            }
            #pragma unroll
            for (int r = NB - 1; r >= 0; --r) {
                if (32 * q + k + r >= n) continue;
                const scalar_t mine = mul(tiny[q] ? mul(y[q], LIFT) : y[q], inverse[q]);
                const scalar_t v = of_lane(mine, k + r);
                #pragma unroll
                for (int p = 0; p < q; ++p) y[p] = minus_product(y[p], u[p][r], v);
                y[q] = lane_id() < k + r ? minus_product(y[q], u[q][r], v)
                     : lane_id() == k + r ? v : y[q];
            }
        }
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        const int i = lane_id() + 32 * q;
        if (i < n) x(i, to) = y[q];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gesv_shared(const scalar_t* A, size a_row, size a_col, size a_next,
            scalar_t* LU, size lu_row, size lu_col, size lu_next, int* piv,
            const scalar_t* B, size b_row, size b_col, size b_next,
            scalar_t* X, size x_row, size x_col, size x_next,
            int* info, size ns, size columns, size batch)
{
    wait_for_stream();
    const size i = blockIdx.x;
    const int n = size_of(ns, i), nrhs = size_of(columns, i), first = whole_panels(n);
    const auto b = matrix_of(B, b_row, b_col, b_next, i);
    const auto x = matrix_of(X, x_row, x_col, x_next, i);
    scalar_t* const a = matrix_in_shared();
    Shared& s = behind(n);
    begin_fetch(a, matrix_of(A, a_row, a_col, a_next, i), n, n);
    begin_fetch(a + first, b, n, nrhs);
    await_all();
    const int found = lu_in_shared(s, a, piv ? array_of(piv, n, i) : nullptr, n, n,
                                   first + nrhs);
    if (thread() == 0) {
        *array_of(info, 1, i) = found;
        s.info = found;
    }
    __syncthreads();
    if (s.info) {
        if (b.p != x.p) for_each(n, nrhs, b.cs == 1, [=](int r, int j) { x(r, j) = b(r, j); });
    } else {
        for (int j = warp(); j < nrhs; j += WARPS) solve_upper(a, n, first + j, x, j);
    }
    if (LU) send(matrix_of(LU, lu_row, lu_col, lu_next, i), a, n, n);
}
