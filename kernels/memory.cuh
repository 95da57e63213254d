// memory.cuh: matrices in memory, any strides.
#pragma once
#include "scalar.cuh"

using size = long long;

template <class T> struct Strided {  // strides in elements
    T* p;
    size rs, cs;

    __device__ T& operator()(unsigned i, unsigned j) const { return p[i * rs + j * cs]; }
    // True if V neighbouring columns of n can be moved at once, in all members bs apart
    template <int V> __device__ bool in_packs(int n, size bs) const
    {
        constexpr size width = V * sizeof(scalar_t);
        return cs == 1 && n % V == 0 && (size(p) | size(rs * sizeof(scalar_t))
                                         | size(bs * sizeof(scalar_t))) % width == 0;
    }
};
