// triangular.cuh: solves and products with a lower triangular matrix from the left.
//
// All cases of trsm and trmm are this one through strides: a transposed A swaps them, an upper one
// is the lower one of reversed rows and columns (negative strides), and X op(A) = B is
// op(A)^T X^T = B^T. What strides cannot do is the conjugate.
#pragma once
#include "multiply.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int NB = 16, R = 32;
#endif

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

// A divisor: below TINY the reciprocal may overflow, and the number is lifted first.
struct Divisor {
    scalar_t inverse;
    real_t lift;
    __device__ scalar_t operator()(scalar_t x) const
    {
        return mul(inverse, lift == 1 ? x : mul(x, lift));
    }
};
__device__ inline Divisor divisor(scalar_t d, bool unit)
{
    if (unit) return {scalar_t{1}, 1};
    const bool small = abs1(d) < TINY;
    return {reciprocal(small ? mul(d, LIFT) : d), small ? LIFT : real_t(1)};
}

// The triangle as the product wants it: zeros above the diagonal, ones on it if `unit`
struct Lower {
    Strided<const scalar_t> a;
    bool conjugated, unit;

    __device__ scalar_t operator()(int i, int j) const
    {
        if (j > i) return scalar_t{};
        if (j == i && unit) return scalar_t{1};
        const scalar_t x = a(i, j);
        return conjugated ? conj(x) : x;
    }
};

// True if neighbours in a row are closer in memory than those in a column
template <class T> __device__ bool by_rows(const Strided<T>& x)
{
    return (x.cs < 0 ? -x.cs : x.cs) < (x.rs < 0 ? -x.rs : x.rs);
}
