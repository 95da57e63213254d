// lag2s.cu: a matrix of double precision rounded to single, column by column, and the sums of |a_ij|
// along its rows, for the test of the residual that follows (blasx/mixed.py).
//
// A thread has a row of COLUMNS columns and leaves their sum, which is not finite where a number of
// theirs is too large for single precision, or nan. TURN columns are under way together.
//
// The floor: a number of eight bytes (complex: sixteen) read, and one of half as many written.
#include "block.cuh"
#include "launch.cuh"
#include "low.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int COLUMNS = 128;
#endif
constexpr int TURN = 8;     // columns of a thread that are under way together

// sums: by chunks of columns, m numbers each
extern "C" __global__ void __launch_bounds__(THREADS)
lag2s(const scalar_t* A, size lda, size m, size n, low_t* to, size ld, double* sums)
{
    wait_for_stream();
    const size i = size(blockIdx.x) * THREADS + thread(), first = size(blockIdx.y) * COLUMNS;
    const int columns = int(min(size(COLUMNS), n - first));
    if (i >= m) return;
    A += i + first * lda, to += i + first * ld;
    double sum = 0;
    for (int c = 0; c < columns; c += TURN, A += TURN * lda, to += TURN * ld) {
        scalar_t x[TURN];
        #pragma unroll
        for (int t = 0; t < TURN; ++t) x[t] = c + t < columns ? A[t * lda] : scalar_t{};
        #pragma unroll
        for (int t = 0; t < TURN; ++t) {
            if (c + t >= columns) break;
            const low_t y = low(x[t]);
            const double size = double(abs1(y));
            to[t * ld] = y;
            sum += isfinite(size) ? modulus(x[t]) : size;
        }
    }
    sums[blockIdx.y * m + i] = sum;
}
