// scalar.cuh: the four scalar types of LAPACK and their arithmetic.
//
// The kernels are compiled without contraction, and every fused operation is written out here, so
// that a result depends on the source alone: not on the compiler, the variant or the batch.
#pragma once
#include "turing.cuh"

template <class R> struct alignas(2 * sizeof(R)) complex {
    R re, im;
    complex() = default;
    // Not an aggregate: of complex{x} nvcc 13.0 would leave the imaginary part undefined.
    __host__ __device__ complex(R re, R im = 0) : re(re), im(im) {}
};

template <class T> struct real_of { using type = T; };
template <class R> struct real_of<complex<R>> { using type = R; };

#ifndef SCALAR             // the launcher writes it
#define SCALAR double
#endif
using scalar_t = SCALAR;   // s d c z
using real_t = real_of<scalar_t>::type;

// Below TINY the reciprocal may overflow: numbers are multiplied by LIFT first, exactly.
template <class R> struct range;
template <> struct range<float> {
    static constexpr float TINY = 0x1p-126f, LIFT = 0x1p24f;
};
template <> struct range<double> {
    static constexpr double TINY = 0x1p-1022, LIFT = 0x1p53;
};
constexpr real_t TINY = range<real_t>::TINY, LIFT = range<real_t>::LIFT;

template <class R> __device__ R real(R x) { return x; }
template <class R> __device__ R real(complex<R> x) { return x.re; }

__device__ inline float conj(float x) { return x; }
__device__ inline double conj(double x) { return x; }
template <class R> __device__ complex<R> conj(complex<R> x) { return {x.re, -x.im}; }

// |re| + |im|, the size by which LAPACK chooses pivots
__device__ inline float abs1(float x) { return fabsf(x); }
__device__ inline double abs1(double x) { return fabs(x); }
template <class R> __device__ R abs1(complex<R> x) { return abs1(x.re) + abs1(x.im); }

__device__ inline float mul(float a, float b) { return a * b; }
__device__ inline double mul(double a, double b) { return a * b; }
template <class R> __device__ complex<R> mul(complex<R> a, R b) { return {a.re * b, a.im * b}; }
template <class R> __device__ complex<R> mul(complex<R> a, complex<R> b)
{
    return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
}

__device__ inline float add(float a, float b) { return a + b; }
__device__ inline double add(double a, double b) { return a + b; }
template <class R> __device__ complex<R> add(complex<R> a, complex<R> b)
{
    return {a.re + b.re, a.im + b.im};
}

// c - a b
__device__ inline float minus_product(float c, float a, float b) { return fmaf(-a, b, c); }
__device__ inline double minus_product(double c, double a, double b) { return fma(-a, b, c); }
template <class R>
__device__ complex<R> minus_product(complex<R> c, complex<R> a, complex<R> b)
{
    return {fma(a.im, b.im, fma(-a.re, b.re, c.re)), fma(-a.im, b.re, fma(-a.re, b.im, c.im))};
}

// The power of two near 1 / x, for x of at least TINY (its exponent field, mirrored).
__device__ inline float mirror(float x)
{
    const int e = 254 - (__float_as_int(x) >> 23 & 255);
    return __int_as_float((e < 1 ? 1 : e) << 23);
}
__device__ inline double mirror(double x)
{
    const int e = 2046 - (__double2hiint(x) >> 20 & 2047);
    return __hiloint2double((e < 1 ? 1 : e) << 20, 0);
}

// 1 / x for |x| of at least TINY; of a complex x without overflow on the way
__device__ inline float reciprocal(float x) { return 1.0f / x; }
__device__ inline double reciprocal(double x) { return 1.0 / x; }
template <class R> __device__ complex<R> reciprocal(complex<R> x)
{
    const R a = abs1(x.re), b = abs1(x.im), s = mirror(a < b ? b : a);
    const R re = x.re * s, im = x.im * s, q = s / fma(re, re, im * im);
    return {re * q, -im * q};
}
