// operands.cuh: what the kernels of products say about their operands: where they lie, the numbers
// of the launch, and which part of C is wanted.
#pragma once
#include "memory.cuh"

template <class T> __device__ T turned(T x, bool conjugated) { return conjugated ? conj(x) : x; }
__device__ inline float turned(float x, bool) { return x; }
__device__ inline double turned(double x, bool) { return x; }

// An operand where it lies, in elements; conjugated if so
struct Operand {
    const scalar_t* p;
    size rs, cs;
    int conjugated;

    __device__ scalar_t operator()(int i, int j) const
    {
        return turned(p[i * rs + j * cs], conjugated);
    }
};
__device__ inline Operand part(Operand x, int i, int j)
{
    return {x.p + i * x.rs + j * x.cs, x.rs, x.cs, x.conjugated};
}

// True if rows, members and address are multiples of 16 bytes, and neighbours in a row are next
// to each other
__device__ inline bool in_vectors(const scalar_t* p, size rs, size cs, size bs)
{
    constexpr size bytes = sizeof(scalar_t);
    return cs == 1 && (size(p) | rs * bytes | bs * bytes) % 16 == 0 && rs >= 0 && rs < 1 << 30;
}

// A number of the launch: the bits of its two parts in double precision
template <class T = scalar_t> __device__ T number(size re, size im)
{
    if constexpr (sizeof(T) == sizeof(real_t)) return T(__longlong_as_double(re));
    else return T(real_t(__longlong_as_double(re)), real_t(__longlong_as_double(im)));
}

// Which elements of C are wanted: all, or those with i >= j (of a symmetric or Hermitian C, which
// then has a real diagonal), with UPPER_OF_C i <= j; with OTHERS_ZERO the others are zero, else they
// stay as they are
enum Part_of_C { ALL_OF_C, LOWER_OF_C, HERMITIAN_C, OTHERS_ZERO = 4, UPPER_OF_C = 8 };

// c + a b
__device__ inline float plus_product(float c, float a, float b) { return fmaf(a, b, c); }
__device__ inline double plus_product(double c, double a, double b) { return fma(a, b, c); }
template <class R>
__device__ complex<R> plus_product(complex<R> c, complex<R> a, complex<R> b)
{
    return {fma(-a.im, b.im, fma(a.re, b.re, c.re)), fma(a.im, b.re, fma(a.re, b.im, c.im))};
}

__device__ inline float real_part(float x) { return x; }
__device__ inline double real_part(double x) { return x; }
template <class R> __device__ complex<R> real_part(complex<R> x)
{
    return complex<R>(x.re);
}

// A real number that is not finite where x is not
template <class R> __device__ R as_one(R x) { return x; }
template <class R> __device__ R as_one(complex<R> x) { return abs1(x); }
// zero; nan where any of these is not finite
template <class R, class T> __device__ R plus_nothing(R zero, const T& x)
{
    return plus_product(zero, as_one(x), R(0));
}
template <class R, class T, int N> __device__ R plus_nothing(R zero, const T (&x)[N])
{
    #pragma unroll
    for (int e = 0; e < N; ++e) zero = plus_nothing(zero, x[e]);
    return zero;
}
