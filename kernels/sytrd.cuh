// sytrd.cuh: what the reductions by blocks have in common: numbers of all threads of a block.
#pragma once
#include "block.cuh"
#include "tridiagonal.cuh"

// The sum over the block, the same for all; one barrier
template <class T> __device__ T block_sum(T x, T* each)
{
    #pragma unroll
    for (int d = 16; d; d /= 2) x = add(x, across(x, d));
    if (WARPS == 1) {
        __syncwarp();
        return x;
    }
    if (threadIdx.x % 32 == 0) each[warp()] = x;
    __syncthreads();
    x = each[0];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) x = add(x, each[w]);
    return x;
}

__device__ inline real_t block_most(real_t x, real_t* each)
{
    x = most_of_lanes(x);
    if (threadIdx.x % 32 == 0) each[warp()] = x;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) x = larger(x, each[w]);
    __syncthreads();
    return x;
}
