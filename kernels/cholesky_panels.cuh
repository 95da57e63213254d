// cholesky_panels.cuh: A = L L^H of one matrix by a block, in panels of NB columns.
//
// An upper triangle is the lower one of the transpose: the launcher swaps the strides, and what is
// factored is conj(A) = conj(U^T) conj(U^T)^H.
//
// RESIDENT: the matrix is in shared memory, rows of leading(n), from the load to the store; every
// panel updates all columns to its right. Else only a panel is, rows of leading(NB): it is updated
// by all columns to its left, which are read from the result in global memory, mostly from the L2
// cache, n^3 / (6 NB) numbers of them twice. The diagonal block of a panel is one warp's, a lane
// having a row; the rows below it are a thread's each.
#pragma once
#include "multiply.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int NB = 16, RESIDENT = 1;
#endif

constexpr int TILE = sizeof(scalar_t) == 16 ? 8 : 16;  // of the product that updates

struct Diagonal {
    real_t inverse[NB];  // of the diagonal of L
    int info;            // of the matrix: 0, or the first column whose pivot is not positive
};

// The nb x nb block d, whose first column is column `first` of the matrix, by one warp
template <class W> __device__ void factor_diagonal(W d, int nb, int first, Diagonal& diagonal)
{
    const int i = threadIdx.x % 32;
    scalar_t a[NB];
    #pragma unroll
    for (int c = 0; c < NB; ++c) a[c] = c <= i && i < nb ? d(i, c) : scalar_t{};
    int bad = 0;
    #pragma unroll
    for (int k = 0; k < NB; ++k) {
        if (k >= nb) break;
        const real_t pivot = of_lane(real(a[k]), k);
        if (!(pivot > 0) && !bad) bad = k + 1;
        const real_t root = pivot > 0 ? sqrt(pivot) : pivot, r = real_t(1) / root;
        if (i == k) diagonal.inverse[k] = r;
        a[k] = i == k ? scalar_t{root} : mul(a[k], r);
        #pragma unroll
        for (int c = k + 1; c < NB; ++c)
            a[c] = minus_product(a[c], a[k], conj(of_lane(a[k], c)));
    }
    #pragma unroll
    for (int c = 0; c < NB; ++c)
        if (c <= i && i < nb) d(i, c) = a[c];
    if (bad && i == 0) diagonal.info = first + bad;
}

// The rows of a panel below its diagonal block: X := X L^-H
template <class W>
__device__ void solve_rows(W panel, int m, int nb, const Diagonal& diagonal)
{
    for (int i = nb + thread(); i < m; i += THREADS) {
        scalar_t x[NB];
        #pragma unroll
        for (int c = 0; c < NB; ++c) x[c] = c < nb ? panel(i, c) : scalar_t{};
        #pragma unroll
        for (int c = 0; c < NB; ++c) {
            if (c >= nb) break;
            x[c] = mul(x[c], diagonal.inverse[c]);
            #pragma unroll
            for (int r = c + 1; r < NB; ++r)
                if (r < nb) x[r] = minus_product(x[r], x[c], conj(scalar_t(panel(r, c))));
        }
        #pragma unroll
        for (int c = 0; c < NB; ++c)
            if (c < nb) panel(i, c) = x[c];
    }
}

// The panel whose diagonal block begins at `first`, m x nb; diagonal.info says if it failed, and
// its columns from there on mean nothing
template <class W>
__device__ void factor_panel(W panel, int m, int nb, int first, Diagonal& diagonal)
{
    if (warp() == 0) factor_diagonal(panel, nb, first, diagonal);
    __syncthreads();
    solve_rows(panel, m, nb, diagonal);
    __syncthreads();
}

// w -= (rows j and below of L, columns before j) (rows j .. j + nb of them)^H, L in global memory
__device__ inline void subtract_left(ByRows<scalar_t> w, Strided<scalar_t> L, int m, int nb, int j)
{
    const Strided<scalar_t> below = part(L, j, 0);
    const auto right = conjugate(Strided<scalar_t>{below.p, below.cs, below.rs});
    for (int i = warp() * TILE; i < m; i += WARPS * TILE)
        for (int c = 0; c < nb; c += TILE) {
            const auto a = part(below, i, 0);
            const auto b = part(right, 0, c);
            Tile<TILE, TILE, Strided<scalar_t>, Conjugate<Strided<scalar_t>>> sum;
            sum.clear();
            sum.template stream<16>(a, b, m - i, nb - c, j);
            sum.each(m - i, nb - c, [=](int r, int q, scalar_t x) {
                w(i + r, c + q) = minus_product(w(i + r, c + q), x, scalar_t{1});
            });
        }
}

// True if (i, j) is a result of a factorization with that info: else it is left as A has it
__device__ inline bool reached(int i, int j, int info)
{
    return !info || j < info - 1 || (i == j && j == info - 1);
}

// The lower triangle of `in` factored into `out`, and the other triangle copied if they differ.
// `room`: shared memory, n leading(n) numbers if RESIDENT, n leading(NB) if not.
__device__ inline int cholesky_block(Strided<const scalar_t> in, Strided<scalar_t> out, int n,
                                     scalar_t* room)
{
    __shared__ Diagonal diagonal;
    const bool both = in.p != out.p, in_rows = in.rs > in.cs, out_rows = out.rs > out.cs;
    if (thread() == 0) diagonal.info = 0;
    if constexpr (RESIDENT) {
        const ByRows<scalar_t> a{room, leading(n)};
        for_each(n, n, in_rows, [=](int i, int j) { if (both || j <= i) a(i, j) = in(i, j); });
        __syncthreads();
        for (int j = 0; j < n; j += NB) {
            const int nb = min(NB, n - j), rest = n - j - nb;
            factor_panel(part(a, j, j), n - j, nb, j, diagonal);
            if (diagonal.info) break;
            const auto left = part(a, j + nb, j);
            if (rest) multiply_half<-1, TILE, TILE>(part(a, j + nb, j + nb), left, adjoint(left),
                                                    rest, nb);
            __syncthreads();
        }
        const int info = diagonal.info;
        for_each(n, n, out_rows, [=](int i, int j) {
            if (j > i ? both : reached(i, j, info)) out(i, j) = a(i, j);
            else if (both) out(i, j) = in(i, j);
        });
        return info;
    } else {
        const ByRows<scalar_t> w{room, leading(NB)};
        if (both) for_each(n, n, out_rows, [=](int i, int j) { if (j > i) out(i, j) = in(i, j); });
        for (int j = 0; j < n; j += NB) {
            const int nb = min(NB, n - j), m = n - j;
            for_each(m, nb, in_rows, [=](int i, int c) { w(i, c) = in(j + i, j + c); });
            __syncthreads();
            if (j) subtract_left(w, out, m, nb, j);
            __syncthreads();
            factor_panel(w, m, nb, j, diagonal);
            const int info = diagonal.info;
            for_each(m, nb, out_rows, [=](int i, int c) {
                if (c > i) return;
                if (reached(j + i, j + c, info)) out(j + i, j + c) = w(i, c);
                else if (both) out(j + i, j + c) = in(j + i, j + c);
            });
            if (info) {
                if (both) for_each(m - nb, m - nb, out_rows, [=](int i, int c) {
                    if (c <= i) out(j + nb + i, j + nb + c) = in(j + nb + i, j + nb + c);
                });
                break;
            }
            __syncthreads();
        }
        return diagonal.info;
    }
}
