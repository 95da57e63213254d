// gemm_naive.cu: C := alpha op(A) op(B) + beta C, one thread to an element.
//
// The first rung of the ladder: the definition, and nothing that crosses memory is kept. Threads
// side by side take neighbours in a row of C, so that B is read in whole lines and A's element is
// the same for all of them.
//
// Floor: two loads for every fused product, most of them from L1, where a multiprocessor does four
// products of single precision in the time of one load: an eighth of its peak, 8 Tflop/s of an
// H200 (measured: 6.4 at n = 2048).
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int DIM_X = 32;   // threads across a row of C
constexpr int DIM_Y = 8;    // and down
#endif
#include "launch.cuh"
#include "operands.cuh"

extern "C" __global__ void __launch_bounds__(DIM_X * DIM_Y)
gemm_naive(size m, size n, size k, const scalar_t* A, size ars, size acs, size conj_a,
           const scalar_t* B, size brs, size bcs, size conj_b, scalar_t* C, size crs, size ccs,
           size alpha_re, size alpha_im, size beta_re, size beta_im)
{
    wait_for_stream();
    const size across = (n + DIM_X - 1) / DIM_X;
    const size i = blockIdx.x / across * DIM_Y + threadIdx.y;
    const size j = blockIdx.x % across * DIM_X + threadIdx.x;
    if (i >= m || j >= n) return;
    A += i * ars, B += j * bcs, C += i * crs + j * ccs;
    scalar_t sum{};
    for (size p = 0; p < k; ++p, A += acs, B += brs) {
        const scalar_t a = *A, b = *B;
        sum = plus_product(sum, conj_a ? conj(a) : a, conj_b ? conj(b) : b);
    }
    const scalar_t beta = number(beta_re, beta_im);
    const bool read = ((beta_re | beta_im) & 0x7fffffffffffffff) != 0;  // not a zero of either sign
    *C = plus_product(read ? mul(beta, *C) : scalar_t{}, number(alpha_re, alpha_im), sum);
}
