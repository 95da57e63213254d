// gerbt.cu: S = U^T A V in single precision of a matrix of double, U and V random butterflies
// (gerbt.cuh), and the sums of |a_ij| along the rows of A (as lag2s.cu, for blasx/mixed.py).
//
// S is of order 4 h, the least that is not below n: A has ones on its diagonal from n on. A thread has
// four rows, a quarter of the order apart, of COLUMNS columns of a quarter: sixteen numbers that make
// sixteen of S. It leaves the sums of its rows, which are not finite where a number of S is not.
//
// The floor: a number of eight bytes (complex: sixteen) read, and one of half as many written.
#include "block.cuh"
#include "gerbt.cuh"
#include "launch.cuh"
#include "low.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int COLUMNS = 32;
#endif

// sums: by chunks of columns, n numbers each
extern "C" __global__ void __launch_bounds__(THREADS)
gerbt(const scalar_t* A, size lda, size n, size h, low_t* S, double* sums)
{
    wait_for_stream();
    const size i = size(blockIdx.x) * THREADS + thread(), first = size(blockIdx.y) * COLUMNS;
    __shared__ float inner[COLUMNS][4], outer[COLUMNS][4];
    for (int c = thread(); c < COLUMNS; c += THREADS) {
        const Butterfly right(RIGHT, first + c, h);
        #pragma unroll
        for (int q = 0; q < 4; ++q) inner[c][q] = right.inner[q], outer[c][q] = right.outer[q];
    }
    __syncthreads();
    if (i >= h) return;
    const Butterfly left(LEFT, i, h);
    const size order = 4 * h;
    double sum[4] = {};
    for (int c = 0; c < COLUMNS && first + c < h; ++c) {
        const size j = first + c;
        scalar_t x[4][4];  // by columns
        #pragma unroll
        for (int p = 0; p < 4; ++p)
            #pragma unroll
            for (int q = 0; q < 4; ++q) {
                const size row = i + q * h, col = j + p * h;
                x[p][q] = row < n && col < n ? A[row + col * lda] : scalar_t(real_t(row == col));
            }
        #pragma unroll
        for (int q = 0; q < 4; ++q)
            #pragma unroll
            for (int p = 0; p < 4; ++p)
                if (j + p * h < n) sum[q] += modulus(x[p][q]);
        #pragma unroll
        for (int p = 0; p < 4; ++p) left.transposed(x[p]);
        const Butterfly right(inner[c], outer[c]);
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            scalar_t y[4] = {x[0][q], x[1][q], x[2][q], x[3][q]};
            right.transposed(y);
            #pragma unroll
            for (int p = 0; p < 4; ++p) {
                const low_t s = low(y[p]);
                S[i + q * h + (j + p * h) * order] = s;
                const double size = double(abs1(s));
                if (!isfinite(size)) sum[0] = size;
            }
        }
    }
    #pragma unroll
    for (int q = 0; q < 4; ++q)
        if (i + q * h < n) sums[blockIdx.y * n + i + q * h] = sum[q];
}
