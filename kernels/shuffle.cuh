// shuffle.cuh: a number of another lane of the warp, or of WIDTH neighbouring lanes of it.
#pragma once
#include "scalar.cuh"

constexpr unsigned ALL = 0xffffffffu;

template <int WIDTH = 32, class T> __device__ T of_lane(T x, int lane)
{
    return __shfl_sync(ALL, x, lane, WIDTH);
}
template <int WIDTH = 32, class R> __device__ complex<R> of_lane(complex<R> x, int lane)
{
    return {of_lane<WIDTH>(x.re, lane), of_lane<WIDTH>(x.im, lane)};
}

// Of the lane whose number differs in the bits of `mask`
template <class T> __device__ T across(T x, int mask) { return __shfl_xor_sync(ALL, x, mask); }
template <class R> __device__ complex<R> across(complex<R> x, int mask)
{
    return {across(x.re, mask), across(x.im, mask)};
}
