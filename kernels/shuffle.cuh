// shuffle.cuh: a number of another lane of the warp.
#pragma once
#include "scalar.cuh"

template <class R> __device__ R of_lane(R x, int lane)
{
    return __shfl_sync(0xffffffffu, x, lane);
}
template <class R> __device__ complex<R> of_lane(complex<R> x, int lane)
{
    return {of_lane(x.re, lane), of_lane(x.im, lane)};
}
