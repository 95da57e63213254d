// elements.cuh: arrays gone through number by number, 16 bytes a thread at a time.
//
// A thread has PACKS packs, those of a block's threads side by side. Addresses are multiples of 16
// bytes; past `count` numbers are 0, and not written.
#pragma once
#include "packs.cuh"

// Where pack c of this thread begins
__device__ inline size begin_of(int c)
{
    return ((size(blockIdx.x) * PACKS + c) * THREADS + thread()) * V;
}

template <class T> __device__ void get(real_t (&x)[V], const T* p, size i, size count)
{
    if (i + V <= count) {
        load(x, p + i);
        return;
    }
    #pragma unroll
    for (int e = 0; e < V; ++e) x[e] = i + e < count ? real_t(p[i + e]) : real_t(0);
}

template <class T> __device__ void put(T* p, const real_t (&x)[V], size i, size count)
{
    if (i + V <= count) {
        store(p + i, x);
        return;
    }
    #pragma unroll
    for (int e = 0; e < V; ++e)
        if (i + e < count) p[i + e] = T(x[e]);
}

// y[i] := f(x[i], z[i], i); z may be null, and y be x or z
template <class F>
__device__ void map(scalar_t* y, const scalar_t* x, const scalar_t* z, size count, F f)
{
    real_t a[PACKS][V], b[PACKS][V] = {};
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        get(a[c], x, begin_of(c), count);
        if (z) get(b[c], z, begin_of(c), count);
    }
    #pragma unroll
    for (int c = 0; c < PACKS; ++c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) a[c][e] = f(a[c][e], b[c][e], begin_of(c) + e);
        put(y, a[c], begin_of(c), count);
    }
}
