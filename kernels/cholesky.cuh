// cholesky.cuh: A = L L^H of the matrix of a team, lower triangle.
//
// A upper triangle is the lower one of the transpose: the launcher swaps the strides, and what is
// factored is conj(A) = conj(U^T) conj(U^T)^H.
#pragma once
#include "factors.cuh"
#include "tiles.cuh"

// The lower triangle of a := L, above it a is not touched. f.info is the first column whose pivot
// is not positive; from there on the columns are not L's.
__device__ inline void cholesky_by_columns(Block& a, Factors& f, int n)
{
    f.info = 0, f.lifted = 0;
    const int steps = most_of_warp<TEAM>(n);
    #pragma unroll
    for (int k = 0; k < N; ++k) {
        if (k >= steps) break;
        const real_t d = real(from(a[k / LR][slot_of(k)], k % LR * LC + t_of(k)));
        real_t root, r;
        if (d >= TINY && d < HUGE) {
            r = near_rsqrt(d);
            root = d * r;
            root = fma(fma(-root, root, d), r / 2, root);
        } else {
            root = d > 0 ? sqrt(d) : d;
            r = real_t(1) / root;
            if (!(d > 0) && !f.info && (!RAGGED || k < n)) f.info = k + 1;
        }
        keep(f.inverse, k, scalar_t{r});

        Column c;  // column k of L, of which the part below the diagonal will be used
        column(a, k, c);
        #pragma unroll
        for (int i = 0; i < RN; ++i) {
            c[i] = mul(c[i], r);
            scalar_t& mine = a[i][slot_of(k)];
            const scalar_t l = row(i) == k ? scalar_t{root} : c[i];
            mine = t() == t_of(k) && row(i) >= k ? l : mine;
            if constexpr (TOLD)
                if (row(i) < N) staged(k)[row(i)] = c[i];
        }
        scalar_t below[N];  // column k, if TOLD
        if constexpr (TOLD) {
            __syncwarp();
            read_row(staged(k), below, k + 1);
        }
        #pragma unroll
        for (int s = 0; s < CN; ++s) {
            if (last_col(s) <= k) continue;
            scalar_t l{};  // element (col(s), k) of L
            if constexpr (TOLD) {
                l = below[s];
            } else {
                #pragma unroll
                for (int q = 0; q < RN; ++q) {
                    if (q < first_col(s) / LR || q > last_col(s) / LR) continue;
                    const scalar_t x = from(c[q], col(s) % LR * LC + t());
                    l = col(s) / LR == q ? x : l;
                }
            }
            #pragma unroll
            for (int i = 0; i < RN; ++i) {
                if (LR * i + LR - 1 < first_col(s) || LR * i + LR - 1 <= k) continue;
                if ((LR * i >= last_col(s) || row(i) >= col(s)) && (first_col(s) > k || col(s) > k))
                    a[i][s] = minus_product(a[i][s], c[i], conj(l));
            }
        }
    }
}

#include "cholesky_tiles.cuh"

__device__ inline void cholesky(Block& a, Factors& f, int n)
{
    if constexpr (TILES) cholesky_by_panels(a, f, n);
    else cholesky_by_columns(a, f, n);
}

// Columns that a failed factorization has not reached get back what A holds, as LAPACK leaves it.
__device__ inline void restore(Block& a, const Strided<const scalar_t>& A, const Factors& f, int n)
{
    if (!f.info) return;
    #pragma unroll
    for (int i = 0; i < RN; ++i)
        #pragma unroll
        for (int s = 0; s < CN; ++s)
            if (row(i) < n && (col(s) < row(i) ? col(s) >= f.info - 1
                                               : col(s) == row(i) && col(s) >= f.info))
                a[i][s] = A(row(i), col(s));
}
