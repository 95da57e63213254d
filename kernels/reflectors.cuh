// reflectors.cuh: rows of W columns in the registers of a cluster, and sums over all its rows.
//
// Block k has the k-th part of the rows. Of a warp, lane (g, r) has ROWS of them, those of eight
// lanes next to each other, and of these every fourth column from g on. A sum over rows is taken by
// the lane, then by eight lanes, so that each ends with a column, by warps by way of shared memory,
// and by blocks, which send theirs, and add them up in one order.
#pragma once
#include "block.cuh"
#include "cluster.cuh"
#include "qr.cuh"
#include "sums.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int CLUSTER = 8, ROWS = 4, COLUMNS = 8;
#endif

constexpr int W = 4 * COLUMNS;
constexpr int VECTOR = 16 / sizeof(scalar_t), CHUNKS = W / VECTOR, GROUPS = 32 / CHUNKS;
static_assert(CHUNKS >= 1 && CHUNKS <= 32);

struct alignas(16) Pack { scalar_t x[VECTOR]; };

__device__ inline scalar_t* numbers(Pack* p) { return p->x; }
__device__ inline Chunk bits_of(const Pack& p)
{
    Chunk c;
    memcpy(&c, &p, sizeof c);
    return c;
}

// The sum of COUNT rows of packs, or what is largest in them; lane l has chunk l % CHUNKS
template <bool MOST, int COUNT> __device__ Pack combined(const Pack (*rows)[CHUNKS])
{
    const auto both = [](Pack x, const Pack& y) {
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) {
            const real_t most = MOST ? larger(real(x.x[e]), real(y.x[e])) : real_t(0);
            x.x[e] = add(x.x[e], y.x[e]);
            if (MOST) set_parts(x.x[e], most, real_t(0));
        }
        return x;
    };
    constexpr int N = (COUNT + GROUPS - 1) / GROUPS;
    Pack t[N];
    #pragma unroll
    for (int i = 0; i < N; ++i) {
        const int r = i * GROUPS + lane() / CHUNKS;
        t[i] = COUNT % GROUPS == 0 || r < COUNT ? rows[r][lane() % CHUNKS] : Pack{};
    }
    #pragma unroll
    for (int step = 1; step < N; step *= 2)
        #pragma unroll
        for (int i = 0; i + step < N; i += 2 * step) t[i] = both(t[i], t[i + step]);
    #pragma unroll
    for (int mask = CHUNKS; mask < 32; mask *= 2) {
        Pack other;
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) other.x[e] = across(t[0].x[e], mask);
        t[0] = both(t[0], other);
    }
    return t[0];
}

struct Rows {
    int m, rank;
    scalar_t a[ROWS][COLUMNS];

    __device__ int r() const { return lane() % 8; }
    __device__ int g() const { return lane() / 8; }
    __device__ int row(int q) const { return ((rank * ROWS + q) * WARPS + warp()) * 8 + r(); }
    __device__ int column(int c) const { return 4 * c + g(); }

    __device__ void load(const scalar_t* A, size lda, int columns)
    {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                a[q][c] = row(q) < m && column(c) < columns ? A[row(q) + column(c) * lda]
                                                            : scalar_t{};
    }

    // t[c] = x^H a for the columns a of this lane
    __device__ void inner_products(scalar_t (&t)[COLUMNS], const scalar_t (&x)[ROWS]) const
    {
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) t[c] = plus_inner(scalar_t{}, x[0], a[0][c]);
        #pragma unroll
        for (int q = 1; q < ROWS; ++q)
            #pragma unroll
            for (int c = 0; c < COLUMNS; ++c) t[c] = plus_inner(t[c], x[q], a[q][c]);
    }
};
