// getrf_shared.cu: LU of a batch of m x n matrices, m, n <= N, in shared memory, a block to each,
// with partial pivoting unless UNPIVOTED (then piv is not written): all of a matrix, or a WINDOW of
// columns at a time.
//
// A matrix crosses memory once each way (more in windows, lu_windows.cuh): the floor is 2 m n
// scalars over the memory's bandwidth.
// What is above it are the min(m, n) choices of a pivot, or steps without one, one after the other
// (lu_shared.cuh), of which several blocks on a multiprocessor make several at a time.
constexpr int BESIDE = 0;  // columns of right-hand sides
#include "launch.cuh"
#include "lu_windows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_shared(const scalar_t* A, size a_row, size a_col, size a_next,
             scalar_t* LU, size lu_row, size lu_col, size lu_next,
             int* piv, int* info, size ms, size ns, size batch)
{
    wait_for_stream();
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const auto pivots = [=] { return UNPIVOTED ? nullptr : array_of(piv, m < n ? m : n, b); };
    int found;
    if constexpr (IN_WINDOWS) {
        found = lu_by_windows(matrix_of(A, a_row, a_col, a_next, b),
                              matrix_of(LU, lu_row, lu_col, lu_next, b), pivots(), m, n);
    } else {
        scalar_t* const a = matrix_in_shared();
        begin_fetch<LD>(a, matrix_of(A, a_row, a_col, a_next, b), m, n);
        await_all();
        found = lu_in_shared(behind(m), a, pivots(), m, n, n);
        send<LD>(matrix_of(LU, lu_row, lu_col, lu_next, b), a, m, n);
    }
    if (thread() == 0) *array_of(info, 1, b) = found;
}
