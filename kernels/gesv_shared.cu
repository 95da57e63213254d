// gesv_shared.cu: solve A X = B for a batch of n x n matrices in shared memory, a block to each, by
// LU with pivoting: all of a matrix, or a WINDOW of columns at a time.
//
// B lies beside A, or its last window, and takes part in the factorization, which leaves inv(L) P B
// of it; what is left to do is the solution with U, a warp to a right-hand side. U comes again
// window by window, LU being given where there are any. The floor is n^2 + 2 n nrhs scalars
// over the memory's bandwidth, and n^2 more where the factors are asked for (LU is not null).
constexpr int BESIDE = 8;  // right-hand sides, at most
#include "launch.cuh"
#include "lu_windows.cuh"
#include "shuffle.cuh"

constexpr int DOWN = (N + 31) / 32;

// x := column j of `from`, of which rows `first` to `end` become those of inv(U) y and the rows above
// lose their products with these; by one warp, DOWN rows to a lane. U's columns from `first` on, a
// multiple of 32, begin at `u`.
__device__ inline void solve_upper(scalar_t* u, int first, int end, Strided<const scalar_t> from,
                                   Strided<scalar_t> x, int j)
{
    scalar_t y[DOWN], inverse[DOWN];
    bool tiny[DOWN];
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        const int i = lane_id() + 32 * q;
        y[q] = i < end ? from(i, j) : scalar_t{};
        const scalar_t pivot = i >= first && i < end ? *at(u, i, i - first) : scalar_t(real_t(1));
        tiny[q] = abs1(pivot) < TINY;
        inverse[q] = inverse_of(pivot);
    }
    #pragma unroll
    for (int q = DOWN - 1; q >= 0; --q)
        #pragma unroll 1
        for (int k = 24; k >= 0; k -= NB) {
            if (32 * q < first || 32 * q + k >= end) continue;
            Row row[DOWN];
            #pragma unroll
            for (int p = 0; p <= q; ++p) {
                const int i = lane_id() + 32 * p;
                read_row(at(u, i < end ? i : 0, 32 * q + k - first), row[p]);
            }
            #pragma unroll
            for (int r = NB - 1; r >= 0; --r) {
                if (32 * q + k + r >= end) continue;
                const scalar_t mine = mul(tiny[q] ? mul(y[q], LIFT) : y[q], inverse[q]);
                const scalar_t v = of_lane(mine, k + r);
                #pragma unroll
                for (int p = 0; p < q; ++p) y[p] = minus_product(y[p], row[p][r], v);
                y[q] = lane_id() < k + r ? minus_product(y[q], row[q][r], v)
                     : lane_id() == k + r ? v : y[q];
            }
        }
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        const int i = lane_id() + 32 * q;
        if (i < end) x(i, j) = y[q];
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
    int found;
    if constexpr (IN_WINDOWS) {
        found = lu_by_windows(matrix_of(A, a_row, a_col, a_next, i),
                              matrix_of(LU, lu_row, lu_col, lu_next, i),
                              piv ? array_of(piv, n, i) : nullptr, n, n, b, x, nrhs);
    } else {
        begin_fetch<LD>(a, matrix_of(A, a_row, a_col, a_next, i), n, n);
        begin_fetch<LD>(a + first, b, n, nrhs);
        await_all();
        found = lu_in_shared(s, a, piv ? array_of(piv, n, i) : nullptr, n, n, first + nrhs);
    }
    if (thread() == 0) {
        *array_of(info, 1, i) = found;
        s.info = found;
    }
    __syncthreads();
    if (s.info) {
        if (b.p != x.p) for_each(n, nrhs, b.cs == 1, [=](int r, int j) { x(r, j) = b(r, j); });
    } else if constexpr (IN_WINDOWS) {
        const auto lu = matrix_of(LU, lu_row, lu_col, lu_next, i);
        #pragma unroll 1
        for (int k = (n - 1) / WINDOW * WINDOW; k >= 0; k -= WINDOW) {
            const int end = n - k < WINDOW ? n : k + WINDOW;
            __syncthreads();
            begin_fetch<LD>(a, part(Strided<const scalar_t>{lu.p, lu.rs, lu.cs}, 0, k), end,
                            end - k);
            await_all();
            for (int j = warp(); j < nrhs; j += WARPS)
                solve_upper(a, k, end, {x.p, x.rs, x.cs}, x, j);
        }
    } else {
        for (int j = warp(); j < nrhs; j += WARPS)
            solve_upper(a, 0, n, {a + first, LD, 1}, x, j);
    }
    if (!IN_WINDOWS && LU) send<LD>(matrix_of(LU, lu_row, lu_col, lu_next, i), a, n, n);
}
