// hetrf_undo.cu: the interchanges of a panel of A = L D L^H are undone in its columns before them:
// LAPACK's form, in which L(:, j) is as its own step has left it.
//
// A thread has a column. Panel p begins at starts[p], column p NB or the one before it; NB > 1.
//
// Floor: an interchange is two numbers there and back, of n NB / 2 in all, by sectors of 32 bytes.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 1;
#endif
#include "block.cuh"
#include "launch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
hetrf_undo(scalar_t* A, size rs, size cs, size n, size width, const int* ipiv, const int* starts)
{
    wait_for_stream();
    const int c = int(blockIdx.x) * THREADS + thread();
    if (c >= n) return;
    int panel = (c + 1) / int(width);
    if (starts[panel] > c) --panel;
    for (int j = starts[panel + 1] - 1; j > c;) {
        const int to = ipiv[j * rs], first = to < 0 ? j - 1 : j;
        const int p = rs < 0 ? int(n) - abs(to) : abs(to) - 1;
        if (c < first && p != j) {
            scalar_t &x = A[j * rs + c * cs], &y = A[p * rs + c * cs];
            const scalar_t old = x;
            x = y, y = old;
        }
        j = first - 1;
    }
}
