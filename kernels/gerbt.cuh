// gerbt.cuh: random butterflies,
//
//     W = [ B'    ] B,    B = [ R  S ] / sqrt 2,
//         [    B" ]           [ R -S ]
//
// B' and B" the same of half the order, R and S diagonal, of numbers between e^-1/20 and e^1/20 that
// depend on their place alone. Four elements of a vector, a quarter of its order apart, make four of
// W x, or of W^T x, and no others.
//
// Parker: Random butterfly transformations with applications in computational linear algebra, UCLA
// CSD-950023 (1995); Baboulin, Dongarra, Herrmann, Tomov, ACM TOMS 39 (2013) 8.
#pragma once
#include "block.cuh"

enum Side : unsigned { LEFT, RIGHT };

// A number between e^-1/20 and e^1/20, the same for the same place
__device__ inline float random_scale(unsigned place)
{
    unsigned x = place * 0x9e3779b9u + 0x7f4a7c15u;  // every bit depends on every bit of the place
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    const float u = float(int(x ^ x >> 16)) * (0.05f * 0x1p-31f);
    return fmaf(u, fmaf(u, fmaf(u, 1.0f / 6, 0.5f), 1.0f), 1.0f);
}

struct Butterfly {  // what becomes of elements i, i + h, i + 2 h, i + 3 h
    float inner[4], outer[4];  // of B' and B", of B; what the square roots make is in these

    __device__ Butterfly(Side side, size i, size h)
    {
        #pragma unroll
        for (int q = 0; q < 4; ++q) {
            const unsigned place = 4 * unsigned(i + q * h) + 2 * side;
            inner[q] = random_scale(place), outer[q] = 0.5f * random_scale(place + 1);
        }
    }

    __device__ Butterfly(const float (&in)[4], const float (&out)[4])
    {
        #pragma unroll
        for (int q = 0; q < 4; ++q) inner[q] = in[q], outer[q] = out[q];
    }

    template <class T> __device__ void transposed(T (&x)[4]) const  // W^T x
    {
        #pragma unroll
        for (int q = 0; q < 4; q += 2) both(x[q], x[q + 1], inner[q], inner[q + 1]);
        #pragma unroll
        for (int q = 0; q < 2; ++q) both(x[q], x[q + 2], outer[q], outer[q + 2]);
    }

    template <class T> __device__ void plain(T (&x)[4]) const       // W x
    {
        #pragma unroll
        for (int q = 0; q < 4; ++q) x[q] = scaled(x[q], outer[q]);
        #pragma unroll
        for (int q = 0; q < 2; ++q) both(x[q], x[q + 2], 1, 1);
        #pragma unroll
        for (int q = 0; q < 4; ++q) x[q] = scaled(x[q], inner[q]);
        #pragma unroll
        for (int q = 0; q < 4; q += 2) both(x[q], x[q + 1], 1, 1);
    }

private:
    template <class T> static __device__ T scaled(T x, float s)
    {
        return mul(x, typename real_of<T>::type(s));
    }
    template <class T> static __device__ void both(T& x, T& y, float r, float s)
    {
        const T sum = add(x, y), difference = add(x, scaled(y, -1));
        x = scaled(sum, r), y = scaled(difference, s);
    }
};
