// geqrf_shared.cu: QR factorization of a batch of m x n matrices, m, n <= N: a warp to each.
//
// Memory is read and written once: the floor is 2 m n scalars over its bandwidth (qr_shared.cuh
// says what takes longer).
constexpr bool SIDE = false;
#include "launch.cuh"
#include "qr_shared.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_shared(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
             size q_col, size q_next, scalar_t* TAU, size ms, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    scalar_t* const a = reinterpret_cast<scalar_t*>(dynamic_shared);
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b);
    fetch(a, matrix_of(A, a_row, a_col, a_next, b), m, n);
    qr_in_shared(a, s, array_of(TAU, m < n ? m : n, b), m, n);
    store(a, matrix_of(QR, q_row, q_col, q_next, b), m, n);
}
