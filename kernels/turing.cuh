// turing.cuh: what GPUs before Ampere (sm_75) lack, by what they have: products of tiles by numbers
// that lanes send each other, the largest and the sum over a warp by halves. Slow, and with the
// results of the same operations in another order.
#pragma once

#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800) || defined(BLASX_TURING)
#define TURING 1
#else
#define TURING 0
#endif

#if TURING
namespace turing {
__device__ inline float sum(float c, float a, float b) { return fmaf(a, b, c); }
__device__ inline double sum(double c, double a, double b) { return fma(a, b, c); }

// (c0, c1) += A B for 8 x 4 times 4 x 8 tiles, of which lane (g, t) has A(g, t), B(t, g) and C(g, 2 t),
// C(g, 2 t + 1); a function that is called, for there are many.
template <class T> struct Two {
    T x, y;
};
template <class T> __noinline__ __device__ Two<T> added(T c0, T c1, T a, T b)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const T x = __shfl_sync(0xffffffffu, a, 4 * g + k);
        c0 = sum(c0, x, __shfl_sync(0xffffffffu, b, 8 * t + k));
        c1 = sum(c1, x, __shfl_sync(0xffffffffu, b, 8 * t + 4 + k));
    }
    return {c0, c1};
}
template <class T> __device__ void product(T& c0, T& c1, T a, T b)
{
    const Two<T> c = added(c0, c1, a, b);
    c0 = c.x, c1 = c.y;
}
}  // namespace turing
#endif

#if TURING && defined(__CUDA_ARCH__)
__device__ inline unsigned __reduce_max_sync(unsigned lanes, unsigned x)
{
    for (int mask = 16; mask; mask /= 2) x = max(x, __shfl_xor_sync(lanes, x, mask));
    return x;
}
__device__ inline unsigned __reduce_min_sync(unsigned lanes, unsigned x)
{
    for (int mask = 16; mask; mask /= 2) x = min(x, __shfl_xor_sync(lanes, x, mask));
    return x;
}
__device__ inline unsigned __reduce_add_sync(unsigned lanes, unsigned x)
{
    for (int mask = 16; mask; mask /= 2) x += __shfl_xor_sync(lanes, x, mask);
    return x;
}
#endif
