// qr.cuh: Householder's reflectors as LAPACK has them.
//
// H = I - tau v v^H with v = (1, x scale) takes (alpha, x) to (beta, 0), beta real:
//
//     beta = -sign(Re alpha) |(alpha, x)|, tau = (beta - alpha) / beta, scale = 1 / (alpha - beta)
//
// The sums x^H x and x^H a, for all other columns a, are taken together, before scale is known:
// v^H a = a_0 + conj(scale) x^H a. Squares must neither overflow, for which columns are scaled to
// within SMALL and LARGE at the outset where they are not (a power of two, taken out of R again),
// nor lose what they measure: below LEAST the x is scaled once more.
#pragma once
#include "reciprocal.cuh"
#include "shuffle.cuh"

template <class R> struct squares;
template <> struct squares<float> {
    static constexpr float SMALL = 0x1p-28f, LARGE = 0x1p40f, LEAST = 0x1p-72f;
};
template <> struct squares<double> {
    static constexpr double SMALL = 0x1p-200, LARGE = 0x1p400, LEAST = 0x1p-600;
};
constexpr real_t SMALL = squares<real_t>::SMALL, LARGE = squares<real_t>::LARGE,
                 LEAST = squares<real_t>::LEAST;

__device__ inline float imaginary(float) { return 0; }
__device__ inline double imaginary(double) { return 0; }
template <class R> __device__ R imaginary(complex<R> x) { return x.im; }

// s + conj(x) y
__device__ inline float plus_inner(float s, float x, float y) { return fmaf(x, y, s); }
__device__ inline double plus_inner(double s, double x, double y) { return fma(x, y, s); }
template <class R> __device__ complex<R> plus_inner(complex<R> s, complex<R> x, complex<R> y)
{
    return {fma(x.im, y.im, fma(x.re, y.re, s.re)), fma(-x.im, y.re, fma(x.re, y.im, s.im))};
}

// The larger of m and the parts of x; nan if there is one
template <class T> __device__ real_t larger(real_t m, T x)
{
    const real_t re = fabs(real(x)), im = fabs(imaginary(x));
    m = re > m || re != re ? re : m;
    return im > m || im != im ? im : m;
}

// The largest of the numbers of a warp's lanes, likewise
__device__ inline real_t most_of_lanes(real_t x)
{
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) x = larger(x, across(x, mask));
    return x;
}

// A power of two in two factors, for their product may overflow
struct Power {
    real_t first, second;

    template <class T> __device__ T times(T x) const { return mul(mul(x, first), second); }
    __device__ Power inverse() const { return {real_t(1) / second, real_t(1) / first}; }
};

// What takes a number of size m near 1; one for 0, nan and infinity
__device__ inline Power to_one(real_t m)
{
    if (!(m > 0) || isinf(m)) return {1, 1};
    const real_t first = m < TINY ? LIFT : real_t(1);
    return {first, mirror(m * first)};
}
__device__ inline bool is_usual(real_t m) { return m == 0 || (m >= SMALL && m <= LARGE); }

struct Reflector {
    scalar_t tau, scale;
    real_t beta;
};

__device__ inline void set_parts(float& x, real_t re, real_t) { x = re; }
__device__ inline void set_parts(double& x, real_t re, real_t) { x = re; }
template <class R> __device__ void set_parts(complex<R>& x, R re, R im) { x = {re, im}; }

// From alpha and x^H x; H = I if `none`. NEAR: of real numbers, without a branch, where squares are
// at least LEAST
template <bool NEAR = false>
__device__ Reflector reflector(scalar_t alpha, real_t squares, bool none)
{
    const real_t re = real(alpha), im = imaginary(alpha);
    const real_t all = fma(re, re, NEAR ? squares : fma(im, im, squares));
    const real_t q = NEAR ? near_rsqrt(all) : rsqrt(all);
    const real_t y = all * q, norm = fma(fma(-y, y, all), q / 2, y);
    const real_t sign = re < 0 ? real_t(-1) : real_t(1);   // of -beta
    Reflector h;
    h.beta = -sign * norm;
    set_parts(h.tau, fma(sign * re, q, real_t(1)), sign * im * q);
    scalar_t below;                                          // alpha - beta
    set_parts(below, fma(sign, norm, re), im);
    h.scale = NEAR ? near_reciprocal(below) : reciprocal(below);
    if (none) {
        h.tau = h.scale = scalar_t{};
        h.beta = re;
    }
    return h;
}
