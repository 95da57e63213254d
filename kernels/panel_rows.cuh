// panel_rows.cuh: a panel of 8 columns by rows in shared memory, 16 bytes at a time.
#pragma once
#include "scalar.cuh"

constexpr int PAD = 16 / sizeof(scalar_t);          // rows of 16 bytes more: no bank twice

using Row = scalar_t[8];                            // a lane's row of the panel

// Where row r of a panel begins in shared memory: 8 lanes at a time find 8 banks of 16 bytes, both
// with a row to a lane, as in factoring, and with a row or two to them all, as in tiles.
__device__ inline int panel_row(int r)
{
    constexpr int width = sizeof(scalar_t) == 16 ? 12 : 8, bend = sizeof(scalar_t) == 4 ? 4 : 2;
    return r * width + r / bend * PAD;
}

struct alignas(16) Quad { scalar_t x[PAD]; };

// Columns `first` and after of a row; those before it in the same 16 bytes come along.
template <class T> __device__ void read_row(const T* from, Row& x, int first = 0)
{
    #pragma unroll
    for (int j = 0; j < 8; j += PAD) {
        if (j + PAD <= first) continue;
        const Quad quad = *reinterpret_cast<const Quad*>(from + j);
        #pragma unroll
        for (int e = 0; e < PAD; ++e) x[j + e] = quad.x[e];
    }
}

__device__ inline void write_row(scalar_t* to, const Row& x, int first = 0)
{
    #pragma unroll
    for (int j = 0; j < 8; j += PAD) {
        if (j + PAD <= first) continue;
        Quad quad;
        #pragma unroll
        for (int e = 0; e < PAD; ++e) quad.x[e] = x[j + e];
        *reinterpret_cast<Quad*>(to + j) = quad;
    }
}
