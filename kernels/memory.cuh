// memory.cuh: matrices in memory, any strides, and the members of a batch.
//
// A kernel finds member b through the functions below. A batch of equal members is an address and
// strides; a RAGGED one is a table with a line for each member, and sizes are tables too.
#pragma once
#include "scalar.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int RAGGED = 0;
#endif

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

// Matrix b of a batch that begins at A, members `next` apart; RAGGED: of a table at A with
// (address, row stride, column stride) for each
template <class T>
__device__ Strided<T> matrix_of(T* A, size row, size col, size next, size b)
{
    if (!RAGGED) return {A + b * next, row, col};
    const size* const line = reinterpret_cast<const size*>(A) + 3 * b;
    return {reinterpret_cast<T*>(line[0]), line[1], line[2]};
}

// What member b has at p, `next` apart; RAGGED: of a table of addresses at p
template <class T> __device__ T* array_of(T* p, size next, size b)
{
    return RAGGED ? reinterpret_cast<T* const*>(p)[b] : p + b * next;
}

// A stride of member b, or a size: the same for all; RAGGED: of a table at that address
__device__ inline size stride_of(size s, size b)
{
    return RAGGED ? reinterpret_cast<const size*>(s)[b] : s;
}
__device__ inline int size_of(size n, size b) { return int(stride_of(n, b)); }

// The most of any member of a warp whose teams of TEAM lanes have one each: all lanes go together
template <int TEAM> __device__ int most_of_warp(int n)
{
    if constexpr (RAGGED && TEAM < 32) n = int(__reduce_max_sync(0xffffffffu, unsigned(n)));
    return n;
}
