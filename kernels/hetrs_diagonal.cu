// hetrs_diagonal.cu: X := D^-1 X, D of blocks of order 1 and 2 on the diagonal of the factors of a
// Hermitian or symmetric matrix.
//
// A thread has a row of X, and the next where they share a block of D: pairs of negative ipiv, from
// either end of a run of them. An upper triangle is a lower one counted from the other end.
//
// Floor: X there and back.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;
#endif
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
hetrs_diagonal(const scalar_t* A, size rs, size cs, size n, const int* ipiv, scalar_t* X, size ldx,
               size count, size hermitian)
{
    wait_for_stream();
    const int k = int(blockIdx.x) * THREADS + thread();
    if (k >= n) return;
    const auto adjoint = [=](scalar_t x) { return hermitian ? conj(x) : x; };
    const auto a = [=](int i, int j) {
        const scalar_t x = A[i * rs + j * cs];
        return i == j && hermitian ? scalar_t{real(x)} : x;
    };
    int after = 0;
    while (k + after < n && ipiv[(k + after) * rs] < 0) ++after;
    if (after == 0) {
        const scalar_t over = reciprocal(a(k, k));
        for (int j = 0; j < count; ++j) X[k * rs + j * ldx] = mul(X[k * rs + j * ldx], over);
    } else if (after % 2 == 0) {
        const scalar_t over = reciprocal(a(k + 1, k)), other = adjoint(over);
        const scalar_t first = mul(a(k, k), other), second = mul(a(k + 1, k + 1), over);
        const scalar_t det = minus_product(mul(first, second), scalar_t{1}, scalar_t{1});
        const scalar_t scale = reciprocal(det);
        for (int j = 0; j < count; ++j) {
            scalar_t &x = X[k * rs + j * ldx], &y = X[(k + 1) * rs + j * ldx];
            const scalar_t b = mul(x, other), c = mul(y, over);
            x = mul(minus_product(mul(second, b), c, scalar_t{1}), scale);
            y = mul(minus_product(mul(first, c), b, scalar_t{1}), scale);
        }
    }
}
