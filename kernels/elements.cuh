// elements.cuh: arrays gone through number by number, 16 bytes a thread at a time.
//
// A thread has PACKS packs, those of a block's threads side by side. Addresses are multiples of 16
// bytes; past `count` numbers are 0, and not written.
#pragma once
#include "block.cuh"

constexpr int V = 16 / sizeof(scalar_t);

struct alignas(16) Pack {
    scalar_t x[V];
};

__device__ inline scalar_t number(size bits) { return scalar_t(__longlong_as_double(bits)); }

// Where pack c of this thread begins
__device__ inline size begin_of(int c)
{
    return ((size(blockIdx.x) * PACKS + c) * THREADS + thread()) * V;
}

__device__ inline Pack get(const scalar_t* p, size i, size count)
{
    if (i + V <= count) return *reinterpret_cast<const Pack*>(p + i);
    Pack x{};
    #pragma unroll
    for (int e = 0; e < V; ++e)
        if (i + e < count) x.x[e] = p[i + e];
    return x;
}

__device__ inline void put(scalar_t* p, const Pack& x, size i, size count)
{
    if (i + V <= count) {
        *reinterpret_cast<Pack*>(p + i) = x;
        return;
    }
    #pragma unroll
    for (int e = 0; e < V; ++e)
        if (i + e < count) p[i + e] = x.x[e];
}

// y[i] := f(x[i], z[i], i); z may be null, and y be x or z
template <class F>
__device__ void map(scalar_t* y, const scalar_t* x, const scalar_t* z, size count, F f)
{
    Pack a[PACKS], b[PACKS] = {};
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        a[c] = get(x, begin_of(c), count);
        if (z) b[c] = get(z, begin_of(c), count);
    }
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) a[c].x[e] = f(a[c].x[e], b[c].x[e], begin_of(c) + e);
        put(y, a[c], begin_of(c), count);
    }
}
