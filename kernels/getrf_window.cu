// getrf_window.cu: LU of a panel of a large matrix with pivots from its window, the first rows below
// the diagonal, which one block has in shared memory (lu_shared.cuh).
//
// The window crosses memory once each way; the floor is the choices of pivots, one after the other.
constexpr int BESIDE = 0;  // columns of right-hand sides
#include "launch.cuh"
#include "lu_shared.cuh"

// The m rows of a window, N at most, and `width` columns, WINDOW at most; pivots count from the
// matrix's first row, as does info, which the panel at `first` = 0 begins.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getrf_window(scalar_t* A, size lda, size ms, size width, int* piv, size first, int* info)
{
    wait_for_stream();
    const int m = int(ms), n = int(width), before = int(first);
    scalar_t* const a = matrix_in_shared();
    begin_fetch<LD>(a, {A, 1, lda}, m, n);
    await_all();
    const int zero = lu_in_shared(behind(m), a, piv, m, n, n, before);
    send<LD>({A, 1, lda}, a, m, n);
    if (thread() == 0 && (before == 0 || (zero && *info == 0))) *info = zero ? before + zero : 0;
}
