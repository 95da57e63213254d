// lu_solve.cuh: solve with LU factors for WIDTH right-hand sides, by the threads of a block.
//
// The right-hand sides stay in shared memory. The factors pass by in panels of NB columns, DEEP
// rows at a time: a warp solves with the triangle on their diagonal, a row to a lane, and all
// subtract the products of the rest. op(A) = A^T: the caller swaps the strides, U^T is solved
// first, and the rows are interchanged at the end.
#pragma once
#include "async.cuh"
#include "multiply.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int NB = 32, DEEP = 128, WIDTH = 8, TM = 16, TN = 8, BLOCKS = 1;
#endif
static_assert(NB == 32);  // a row of a triangle to a lane

// to := from or its conjugate, m x n; all threads wait for it.
__device__ inline void bring(ByRows<scalar_t> to, Strided<const scalar_t> from, int m, int n,
                             bool conjugated)
{
    constexpr int word = sizeof(scalar_t);
    __syncthreads();
    if (from.cs == 1)
        for (int e = thread(); e < m * NB; e += THREADS) {
            const int i = e / NB, j = e % NB;
            if (j < n) copy_async<word>(&to(i, j), &from(i, j), word);
        }
    else
        for_each(m, n, false, [=](int i, int j) { copy_async<word>(&to(i, j), &from(i, j), word); });
    end_group();
    await_groups<0>();
    __syncthreads();
    if (!conjugated) return;
    for_each(m, n, true, [=](int i, int j) { to(i, j) = conj(to(i, j)); });
    __syncthreads();
}

// Y := T^-1 Y for the triangle T in the first n <= NB rows of `t`, the columns shared by the warps
template <bool LOWER>
__device__ void solve_triangle(ByRows<scalar_t> t, ByRows<scalar_t> y, int n, int width, bool unit)
{
    const int i = threadIdx.x % 32;
    scalar_t row[NB];
    #pragma unroll
    for (int p = 0; p < NB; ++p)
        row[p] = i < n && (LOWER ? p < i : p > i && p < n) ? t(i, p) : scalar_t{};
    const scalar_t pivot = i < n && !unit ? t(i, i) : scalar_t(1);
    const bool tiny = abs1(pivot) < TINY && abs1(pivot) != 0;
    const scalar_t inverse = reciprocal(tiny ? mul(pivot, LIFT) : pivot);
    for (int j = warp(); j < width; j += WARPS) {
        scalar_t x = i < n ? y(i, j) : scalar_t{};
        #pragma unroll
        for (int q = 0; q < NB; ++q) {
            const int p = LOWER ? q : NB - 1 - q;
            if (p >= n) continue;
            if (!unit && i == p) x = mul(tiny ? mul(x, LIFT) : x, inverse);
            const scalar_t xp = of_lane(x, p);
            if (LOWER ? i > p : i < p) x = minus_product(x, row[p], xp);
        }
        if (i < n) y(i, j) = x;
    }
    __syncthreads();
}

// Y := T^-1 Y for a triangle of the n x n matrix `a`
__device__ inline void solve_lower(Strided<const scalar_t> a, ByRows<scalar_t> t,
                                   ByRows<scalar_t> y, int n, int width, bool unit,
                                   bool conjugated)
{
    for (int k = 0; k < n; k += NB) {
        const int steps = n - k < NB ? n - k : NB;
        for (int i = k; i < n; i += DEEP) {
            const int deep = n - i < DEEP ? n - i : DEEP, past = i == k ? steps : 0;
            bring(t, part(a, i, k), deep, steps, conjugated);
            if (i == k) solve_triangle<true>(t, part(y, k, 0), steps, width, unit);
            multiply<-1, TM, TN>(part(y, i + past, 0), part(t, past, 0), part(y, k, 0),
                                 deep - past, width, steps);
        }
    }
    __syncthreads();
}
__device__ inline void solve_upper(Strided<const scalar_t> a, ByRows<scalar_t> t,
                                   ByRows<scalar_t> y, int n, int width, bool unit,
                                   bool conjugated)
{
    for (int k = (n - 1) / NB * NB; k >= 0; k -= NB) {
        const int steps = n - k < NB ? n - k : NB;
        bring(t, part(a, k, k), steps, steps, conjugated);
        solve_triangle<false>(t, part(y, k, 0), steps, width, unit);
        for (int i = 0; i < k; i += DEEP) {
            const int deep = k - i < DEEP ? k - i : DEEP;
            bring(t, part(a, i, k), deep, steps, conjugated);
            multiply<-1, TM, TN>(part(y, i, 0), t, part(y, k, 0), deep, width, steps);
        }
    }
    __syncthreads();
}

// The row of b that the interchanges bring to row i, found backwards from there; pivots that are
// none must not reach past b.
__device__ inline int origin(int i, const int* piv, int n)
{
    int at = i;
    for (int k = n - 1; k >= 0; --k) {
        const int p = piv[k];
        at = at == k ? p : at == p ? k : at;
    }
    return at >= 0 && at < n ? at : i;
}

// X := op(A)^-1 B, n x width. The row in shared memory is the one that the interchanges bring there.
__device__ inline void solve_with_lu(Strided<const scalar_t> lu, const int* piv,
                                     Strided<const scalar_t> b, Strided<scalar_t> x, int n,
                                     int width, size trans)
{
    const ByRows<scalar_t> y{reinterpret_cast<scalar_t*>(dynamic_shared), leading(WIDTH)};
    const ByRows<scalar_t> t{y.p + n * y.ld, leading(NB)};
    int* const pivots = reinterpret_cast<int*>(t.p + (n < DEEP ? n : DEEP) * t.ld);
    int* const origins = pivots + n;
    for (int k = thread(); k < n; k += THREADS) pivots[k] = piv[k];
    __syncthreads();
    for (int i = thread(); i < n; i += THREADS) origins[i] = origin(i, pivots, n);
    __syncthreads();
    for_each(n, width, b.cs == 1, [=](int i, int j) { y(i, j) = b(trans ? i : origins[i], j); });
    solve_lower(lu, t, y, n, width, !trans, trans == 2);
    solve_upper(lu, t, y, n, width, trans, trans == 2);
    for_each(n, width, x.cs == 1, [=](int i, int j) { x(trans ? origins[i] : i, j) = y(i, j); });
}
