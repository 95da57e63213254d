// panel_rows.cuh: rows in shared memory, of a panel of 8 columns or others, 16 bytes at a time.
#pragma once
#include "scalar.cuh"

constexpr int PAD = 16 / sizeof(scalar_t);          // rows of 16 bytes more: no bank twice

using Row = scalar_t[8];                            // a lane's row of the panel

// Where row r of a panel begins in shared memory: 8 lanes at a time find 8 banks of 16 bytes, both
// with a row to a lane, as in factoring, and with a row or two to them all, as in tiles.
__host__ __device__ constexpr int panel_row(int r)
{
    constexpr int width = sizeof(scalar_t) == 16 ? 12 : 8, bend = sizeof(scalar_t) == 4 ? 4 : 2;
    return r * width + r / bend * PAD;
}

struct alignas(16) Quad { scalar_t x[PAD]; };

// Columns `first` and after of a row; those before it in the same 16 bytes come along. Of a row
// that is no whole number of these, what is past its end is written as zero.
template <class T, int K>
__device__ void read_row(const T* from, scalar_t (&x)[K], int first = 0)
{
    #pragma unroll
    for (int j = 0; j < K; j += PAD) {
        if (j + PAD <= first) continue;
        const Quad quad = *reinterpret_cast<const Quad*>(from + j);
        #pragma unroll
        for (int e = 0; e < PAD; ++e)
            if (j + e < K) x[j + e] = quad.x[e];
    }
}

template <int K>
__device__ void write_row(scalar_t* to, const scalar_t (&x)[K], int first = 0)
{
    #pragma unroll
    for (int j = 0; j < K; j += PAD) {
        if (j + PAD <= first) continue;
        Quad quad;
        #pragma unroll
        for (int e = 0; e < PAD; ++e) quad.x[e] = j + e < K ? x[j + e] : scalar_t{};
        *reinterpret_cast<Quad*>(to + j) = quad;
    }
}
