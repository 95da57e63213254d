// tensor.cuh: products of double and of single precision on the tensor cores.
#pragma once
#include "scalar.cuh"

// (c0, c1) += A B for 8 x 4 times 4 x 8 tiles: lane (g, t) = (lane / 4, lane % 4) has A(g, t),
// B(t, g) and C(g, 2 t), C(g, 2 t + 1)
__device__ inline void tensor_product(double& c0, double& c1, double a, double b)
{
#if TURING
    turing::product(c0, c1, a, b);
#elif !defined(BLASX_SIM)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
        : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
#else
    sim::mma_m8n8k4(c0, c1, a, b);
#endif
}

template <class R>
__device__ void tensor_product(complex<R>& c0, complex<R>& c1, complex<R> a, complex<R> b)
{
    tensor_product(c0.re, c1.re, a.re, b.re);
    tensor_product(c0.im, c1.im, a.re, b.im);
    tensor_product(c0.re, c1.re, -a.im, b.im);
    tensor_product(c0.im, c1.im, a.im, b.re);
}

// (c0, c1; c2, c3) += A B for 16 x 8 times 8 x 8 tiles: two of the above, one above the other,
// in two steps of k. Lane (g, t) has A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4),
// B(t, g), B(t + 4, g), and (c0, c1) of the upper, (c2, c3) of the lower half.
__device__ inline void tensor_product(double (&c)[4], const double (&a)[4], const double (&b)[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    #pragma unroll
    for (int k = 0; k < 2; ++k)
        #pragma unroll
        for (int half = 0; half < 2; ++half)
            tensor_product(c[2 * half], c[2 * half + 1], a[2 * k + half], b[k]);
#endif
}

// (c0, c1) += A B for 8 x 8 tiles, the upper half of those above
__device__ inline void tensor_product(double (&c)[2], const double (&a)[2], const double (&b)[2])
{
    #pragma unroll
    for (int k = 0; k < 2; ++k) tensor_product(c[0], c[1], a[k], b[k]);
}

// C += A B likewise for 16 of k: A(g, t + 4 e), A(g + 8, t + 4 e) and B(t + 4 e, g), e = 0 ... 3
__device__ inline void tensor_product(double (&c)[4], const double (&a)[8], const double (&b)[4])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},"
        "{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
          "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
    tensor_product(c, {a[0], a[1], a[2], a[3]}, {b[0], b[1]});
    tensor_product(c, {a[4], a[5], a[6], a[7]}, {b[2], b[3]});
#endif
}

// d += A B likewise of numbers of which the tensor cores see the first 11 bits
__device__ inline void rough_product(float (&d)[4], const float (&a)[4], const float (&b)[2])
{
#if TURING
    for (int k = 0; k < 2; ++k)
        for (int half = 0; half < 2; ++half)
            turing::product(d[2 * half], d[2 * half + 1], a[2 * k + half], b[k]);
#elif !defined(BLASX_SIM)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
          "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
    sim::mma_m16n8k8(d, a, b);
#endif
}

// x = high + low, 11 bits and the 12 that are left, of which the last is dropped
template <int N> __device__ void split(const float (&x)[N], float (&high)[N], float (&low)[N])
{
    #pragma unroll
    for (int e = 0; e < N; ++e) {
        high[e] = __int_as_float(int((__float_as_uint(x[e]) + 0x1000) & 0xffffe000));
        low[e] = x[e] - high[e];
    }
}

template <int N> struct Split {
    float high[N], low[N];

    __device__ Split(const float (&x)[N]) { split(x, high, low); }
    __device__ void negate()
    {
        #pragma unroll
        for (int e = 0; e < N; ++e) high[e] = -high[e], low[e] = -low[e];
    }
};

// d += A B but for the products of the first parts, which are the largest
__device__ inline void less_product(float (&d)[4], const Split<4>& a, const Split<2>& b)
{
    rough_product(d, a.low, b.high);
    rough_product(d, a.high, b.low);
}

// c += A B likewise in single precision: three products of parts, of which the tensor cores cut off
// the sums; those of 8 of k at a time are added here, rounded. Where an operand is not finite, or
// near the largest number, so is the sum not.
__device__ inline void tensor_product(float (&c)[4], const float (&x)[4], const float (&y)[2])
{
    const Split<4> a(x);
    const Split<2> b(y);
    float d[4] = {};
    less_product(d, a, b);
    rough_product(d, a.high, b.high);
    #pragma unroll
    for (int e = 0; e < 4; ++e) c[e] += d[e];
}

// Of a number below 2^-114 the second part is too small for single precision. Where numbers may be
// of any size they are multiplied `raised`, and sums `lowered` in the end: what is past 2^102 is then
// not finite.
template <class T> __device__ T raised(T x)
{
    if constexpr (sizeof(typename real_of<T>::type) == 4) return mul(x, 0x1p13f);
    else return x;
}
template <class T> __device__ T lowered(T x)
{
    if constexpr (sizeof(typename real_of<T>::type) == 4) return mul(x, 0x1p-26f);
    else return x;
}
template <class T> __device__ void lower(T& x) { x = lowered(x); }
template <class T, int N> __device__ void lower(T (&x)[N])
{
    #pragma unroll
    for (int e = 0; e < N; ++e) lower(x[e]);
}

// re + i im += (x + i y) (u + i v), tiles by their parts: four products
template <class R, int C, int M, int N>
__device__ void parts_product(R (&re)[C], R (&im)[C], const R (&x)[M], const R (&y)[M],
                              const R (&u)[N], const R (&v)[N])
{
    if constexpr (sizeof(R) == 4) {  // of either part of the sum two, which the tensor cores add
        const Split<M> s(x), t(y);
        const Split<N> p(u), q(v);
        Split<M> minus = t;
        minus.negate();
        float d[4] = {}, e[4] = {};
        less_product(d, s, p), less_product(d, minus, q);
        less_product(e, s, q), less_product(e, t, p);
        rough_product(d, s.high, p.high), rough_product(d, minus.high, q.high);
        rough_product(e, s.high, q.high), rough_product(e, t.high, p.high);
        #pragma unroll
        for (int i = 0; i < C; ++i) re[i] += d[i], im[i] += e[i];
    } else {
        R minus[M];
        #pragma unroll
        for (int i = 0; i < M; ++i) minus[i] = -y[i];
        tensor_product(re, x, u);
        tensor_product(im, x, v);
        tensor_product(re, minus, v);
        tensor_product(im, y, u);
    }
}

template <class R, int C, int M, int N>
__device__ void tensor_product(complex<R> (&c)[C], const complex<R> (&a)[M],
                               const complex<R> (&b)[N])
{
    R re[C], im[C], x[M], y[M], u[N], v[N];
    #pragma unroll
    for (int e = 0; e < C; ++e) re[e] = c[e].re, im[e] = c[e].im;
    #pragma unroll
    for (int e = 0; e < M; ++e) x[e] = a[e].re, y[e] = a[e].im;
    #pragma unroll
    for (int e = 0; e < N; ++e) u[e] = b[e].re, v[e] = b[e].im;
    parts_product(re, im, x, y, u, v);
    #pragma unroll
    for (int e = 0; e < C; ++e) c[e] = {re[e], im[e]};
}
