// convolve.cu: y of a convolution, and the part of dx that has one remainder by the strides
// (convolution.cuh): s is a window, k an element of it.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int BM = 64, BN = 128;  // the block's tile of C
constexpr int TM = 32, TN = 64;   // a warp's
constexpr int BK = 16;            // of k at a time
constexpr int STAGES = 3;         // of these in shared memory
constexpr int WARPS = 4;          // of a block
constexpr int BLOCKS = 2;         // on a multiprocessor
#endif
#include "convolution.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
convolve(const scalar_t* A, size a_row, size a_group, const scalar_t* X, size x_group, size height,
         size width, scalar_t* C, size c_row, size c_group, size c_split, scalar_t* more,
         size rows, size split, const int* exponent_a, const int* exponent_x, size at, size row,
         size col, size k, size k_inner, size k_last, size k_first, size k_second, size k_third,
         size k_row, size k_col, size ka_first, size ka_second, size ka_third, size s,
         size s_inner, size s_last, size s_first, size s_second, size s_third, size s_row,
         size s_col, size sc_first, size sc_second, size sc_third)
{
    wait_for_stream();
    const Index of_k{int(k), int(k_inner), int(k_last), int(k_first), int(k_second), int(k_third),
                     int(k_row), int(k_col), int(ka_first), int(ka_second), int(ka_third)};
    const Index of_s{int(s), int(s_inner), int(s_last), int(s_first), int(s_second), int(s_third),
                     int(s_row), int(s_col), int(sc_first), int(sc_second), int(sc_third)};
    convolution<false>(A, a_row, a_group, Image{X, int(height), int(width)}, x_group, C, c_row,
                       c_group, c_split, more, int(rows), of_k, of_s,
                       Place{int(at), int(row), int(col), 0}, int(split), exponent_a, exponent_x);
}
