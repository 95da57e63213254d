// block.cuh: the threads of a block, and matrices in its shared memory.
#pragma once
#include "memory.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int WARPS = 4;    // of a block
#endif
constexpr int THREADS = 32 * WARPS;

#ifndef BLASX_SIM           // the launch says how much
extern __shared__ __align__(128) char dynamic_shared[];
#endif

__device__ inline int thread() { return threadIdx.x; }
__device__ inline int warp() { return threadIdx.x / 32; }

// Calls f(i, j) once for each element of an m x n matrix, the threads of the block sharing them.
// Neighbouring threads take neighbours in a row if `by_rows`, else in a column.
template <class F> __device__ void for_each(int m, int n, bool by_rows, F f)
{
    const int inner = by_rows ? n : m, total = m * n;
    for (int e = thread(); e < total; e += THREADS) {
        const int o = e / inner, i = e - o * inner;
        if (by_rows) f(o, i);
        else f(i, o);
    }
}

// to := from, both m x n, `to` in global memory, by lines along its unit stride. The caller
// synchronises.
template <class T, class U>
__device__ void put(Strided<T> to, Strided<U> from, int m, int n)
{
    for_each(m, n, to.cs == 1, [=](int i, int j) { to(i, j) = from(i, j); });
}
