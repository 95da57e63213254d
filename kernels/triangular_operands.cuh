// triangular_operands.cuh: what all kernels of triangles say about their operands.
#pragma once
#include "async.cuh"
#include "multiply.cuh"

// alpha, which comes as the bits of two numbers of double precision
template <class T> struct number {
    static __device__ T of(size re, size) { return T(__longlong_as_double(re)); }
};
template <class T> struct number<complex<T>> {
    static __device__ complex<T> of(size re, size im)
    {
        return {T(__longlong_as_double(re)), T(__longlong_as_double(im))};
    }
};

__device__ inline bool is_one(real_t x) { return x == 1; }
__device__ inline bool is_one(complex<real_t> x) { return x.re == 1 && x.im == 0; }
__device__ inline scalar_t scaled(scalar_t alpha, scalar_t x)
{
    return is_one(alpha) ? x : mul(alpha, x);
}

// True if neighbours in a row are closer in memory than those in a column
template <class T> __device__ bool by_rows(const Strided<T>& x)
{
    return (x.cs < 0 ? -x.cs : x.cs) < (x.rs < 0 ? -x.rs : x.rs);
}

