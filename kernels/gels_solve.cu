// gels_solve.cu: op(R) X = Y for a batch, R the upper triangle that geqrf leaves, n x n, op turned
// (R^T), conjugated, or both; turned, rows n to m of X become zero.
//
// A block has a member and COLUMNS right-hand sides at a time in shared memory. The triangle goes
// by blocks of 32 rows: a warp solves with one for a right-hand side, a lane having a row; then
// every thread takes the 32 off another row. n^2 operations a column, n^2 / 2 numbers to read.
// A zero on the diagonal: `info` says the first, X is what Y was; of R = 0 the solution is zero.
#include "diagonal.cuh"
#include "launch.cuh"
#include "qr.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int COLUMNS = 4;  // right-hand sides at a time
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif

__device__ inline float quotient(float x, float y) { return x / y; }
__device__ inline double quotient(double x, double y) { return x / y; }
template <class R> __device__ complex<R> quotient(complex<R> x, complex<R> y)
{
    const R m = abs1(y), first = m < TINY ? LIFT : R(1);
    const complex<R> lifted = mul(y, first);
    return mul(mul(x, reciprocal(lifted)), first);
}

// The first zero on the diagonal, counted from 1, or 0; n + 1 if all of R is zero
__device__ inline int rank_lost(Strided<const scalar_t> R, int n, unsigned (&found)[WARPS])
{
    const int first = first_zero(R, n, found);
    if (first != 1) return first;
    unsigned zero = 1;
    for_each(n, n, R.cs == 1, [&](int i, int j) { if (i <= j && abs1(R(i, j)) != 0) zero = 0; });
    __syncthreads();
    zero = __reduce_min_sync(ALL, zero);
    if (threadIdx.x % 32 == 0) found[warp()] = zero;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) zero &= found[w];
    return zero ? n + 1 : 1;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gels_solve(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* Y, size y_row,
           size y_col, size y_next, int* infos, size turned, size conjugated, size ms, size ns,
           size columns_of)
{
    wait_for_stream();
    __shared__ scalar_t diagonal[32][33];
    __shared__ unsigned found[WARPS];
    scalar_t* const x = reinterpret_cast<scalar_t*>(dynamic_shared);  // (row, column): row first
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b), nrhs = size_of(columns_of, b);
    const auto R = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(Y, y_row, y_col, y_next, b);
    const auto op = [=](int i, int j) {  // its element (i, j)
        const scalar_t e = turned ? R(j, i) : R(i, j);
        return conjugated ? conj(e) : e;
    };
    const int zero = rank_lost(R, n, found);
    if (thread() == 0) *array_of(infos, 1, b) = zero > n ? 0 : zero;
    if (turned)
        for_each(m - n, nrhs, out.cs == 1, [=](int i, int j) { out(n + i, j) = scalar_t{}; });
    if (zero) {
        if (zero > n)
            for_each(n, nrhs, out.cs == 1, [=](int i, int j) { out(i, j) = scalar_t{}; });
        return;
    }
    for (int first = 0; first < nrhs; first += COLUMNS) {
        const int columns = nrhs - first < COLUMNS ? nrhs - first : COLUMNS;
        for_each(n, columns, out.cs == 1, [=](int i, int j) {
            x[i * COLUMNS + j] = out(i, first + j);
        });
        const int blocks = (n + 31) / 32;
        for (int q = 0; q < blocks; ++q) {
            const int k = (turned ? q : blocks - 1 - q) * 32, size_ = n - k < 32 ? n - k : 32;
            for_each(size_, size_, (R.cs == 1) != bool(turned), [=](int i, int j) {
                diagonal[i][j] = op(k + i, k + j);
            });
            __syncthreads();
            for (int c = warp(); c < columns; c += WARPS) {
                const int lane = threadIdx.x % 32, mine = lane < size_ ? lane : 0;
                scalar_t y = x[(k + mine) * COLUMNS + c];
                for (int step = 0; step < size_; ++step) {
                    const int i = turned ? step : size_ - 1 - step;
                    const scalar_t solved = of_lane(quotient(y, diagonal[mine][mine]), i);
                    if (mine == i) y = solved;
                    else if (turned ? mine > i : mine < i)
                        y = minus_product(y, diagonal[mine][i], solved);
                }
                __syncwarp();  // lanes past the block have read another's
                if (lane < size_) x[(k + lane) * COLUMNS + c] = y;
            }
            __syncthreads();
            const int low = turned ? k + 32 : 0, high = turned ? n : k;
            for (int r = low + thread(); r < high; r += THREADS)
                for (int i = 0; i < size_; ++i) {
                    const scalar_t e = op(r, k + i);
                    #pragma unroll
                    for (int c = 0; c < COLUMNS; ++c)
                        if (c < columns)
                            x[r * COLUMNS + c] =
                                minus_product(x[r * COLUMNS + c], e, x[(k + i) * COLUMNS + c]);
                }
        }
        for_each(n, columns, out.cs == 1, [=](int i, int j) {
            out(i, first + j) = x[i * COLUMNS + j];
        });
        __syncthreads();
    }
}
