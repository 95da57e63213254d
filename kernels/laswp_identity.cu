// laswp_identity.cu: X := the rows of the identity interchanged by the pivots of getrf, for a batch:
// what the inverses are solved from. A member with a zero on U's diagonal, whose first is `info`,
// gets its factors, and trsm passes it by.
//
// A block has a member, a thread a column of X at a time: it follows the one of its column through
// all interchanges. The floor: n^2 numbers written.
#include "diagonal.cuh"
#include "interchanges.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
laswp_identity(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
               scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns)
{
    wait_for_stream();
    const size b = blockIdx.x;
    const int n = int(ns);
    const Strided<const scalar_t> lu{LU + b * lu_next, lu_row, lu_col};
    const Strided<scalar_t> x{X + b * x_next, x_row, x_col};
    __shared__ unsigned found[WARPS];
    const int zero = first_zero(lu, n, found);
    if (thread() == 0) info[b] = zero;
    if (zero) {
        put(x, lu, n, n);
        return;
    }
    int* const pivots = reinterpret_cast<int*>(dynamic_shared);
    int* const place = pivots + n + 3;  // no 16 bytes are of both
    for (int k = thread(); k < n; k += THREADS) pivots[k] = piv[b * n + k];
    __syncthreads();
    for (int j = thread(); j < n; j += THREADS) place[j] = brought(pivots, n, j);
    __syncthreads();
    for_each(n, n, x.cs == 1, [=](int i, int j) { x(i, j) = scalar_t(real_t(i == place[j])); });
}
