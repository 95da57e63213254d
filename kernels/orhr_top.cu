// orhr_top.cu: reflectors from orthonormal columns, the top of them (LAPACK's ORHR_COL).
//
// The QR factorization of Q, m x n with Q^H Q = I, has R = S of diagonal 1 and -1, and reflectors
//
//     H = I - Y T Y^H,   Q - (S; 0) = Y U,
//
// Y unit lower trapezoidal, U upper triangular: an LU factorization without interchanges, of which
// the first n rows need nothing of the others. Where S(j, j) is of the other sign than the number
// it is taken off, that is a pivot of at least 1, and the largest of its column.
//
// One block, Q's first n rows in shared memory: A n^2 numbers in, Y and U out, S beside. Floor: the
// chain, n times a division, two barriers and a product.
#include "block.cuh"
#include "launch.cuh"
#include "reciprocal.cuh"

// A: n x n, by columns of ld numbers, Q's first rows, then U and below it Y. S: n numbers.
extern "C" __global__ void __launch_bounds__(THREADS)
orhr_top(scalar_t* A, size ld, size n, scalar_t* S)
{
    wait_for_stream();
    const int order = int(n), high = order + 1;
    scalar_t* const a = reinterpret_cast<scalar_t*>(dynamic_shared);
    for_each(order, order, false, [=](int i, int j) { a[i + j * high] = A[i + j * ld]; });
    __syncthreads();
    for (int j = 0; j < order; ++j) {
        scalar_t* const column = a + j * high;
        const real_t sign = real(column[j]) < 0 ? real_t(1) : real_t(-1);
        const scalar_t pivot = add(column[j], scalar_t(-sign)), over = reciprocal(pivot);
        __syncthreads();  // all have read the pivot's place
        if (thread() == 0) {
            column[j] = pivot;
            S[j] = scalar_t(sign);
        }
        for (int i = j + 1 + thread(); i < order; i += THREADS) column[i] = mul(column[i], over);
        __syncthreads();
        for_each(order - j - 1, order - j - 1, false, [=](int i, int k) {
            scalar_t& to = a[j + 1 + i + (j + 1 + k) * high];
            to = minus_product(to, column[j + 1 + i], a[j + (j + 1 + k) * high]);
        });
        __syncthreads();
    }
    for_each(order, order, false, [=](int i, int j) { A[i + j * ld] = a[i + j * high]; });
}
