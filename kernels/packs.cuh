// packs.cuh: numbers that lie side by side, V at a time: 16 bytes of type scalar_t. In registers all
// arithmetic is of type real_t, single precision for half; what is kept for other kernels may be of
// that type in memory, too, 32 bytes then.
#pragma once
#include "half.cuh"  // before the type is chosen
#include "block.cuh"

constexpr int V = 16 / sizeof(scalar_t);

template <class T> struct alignas(16) Pack {
    T x[V];
};

template <class T> __device__ void load(real_t (&x)[V], const T* p)
{
    const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(p);
    if constexpr (sizeof(T) == 2) {
        unsigned words[V / 2];
        memcpy(words, &pack, sizeof words);
        #pragma unroll
        for (int e = 0; e < V; e += 2) {
            x[e] = first_of(words[e / 2], T());
            x[e + 1] = second_of(words[e / 2], T());
        }
    } else {
        #pragma unroll
        for (int e = 0; e < V; ++e) x[e] = real_t(pack.x[e]);
    }
}
template <class T> __device__ void store(T* p, const real_t (&x)[V])
{
    Pack<T> pack;
    #pragma unroll
    for (int e = 0; e < V; ++e) pack.x[e] = T(x[e]);
    *reinterpret_cast<Pack<T>*>(p) = pack;
}

// Their sum, by a tree
__device__ inline real_t pack_sum(const real_t (&x)[V])
{
    real_t sums[V];
    #pragma unroll
    for (int e = 0; e < V; ++e) sums[e] = x[e];
    #pragma unroll
    for (int d = V / 2; d > 0; d /= 2)
        #pragma unroll
        for (int e = 0; e < d; ++e) sums[e] += sums[e + d];
    return sums[0];
}

#define LEAST real_t(__int_as_float(0xff800000))  // -inf

// A parameter that is no integer: a double in 64 bits
__device__ inline real_t number(size bits) { return real_t(__longlong_as_double(bits)); }
