// tensor.cuh: products of double precision on the tensor cores.
#pragma once
#include "scalar.cuh"

// (c0, c1) += A B for 8 x 4 times 4 x 8 tiles: lane (g, t) = (lane / 4, lane % 4) has A(g, t),
// B(t, g) and C(g, 2 t), C(g, 2 t + 1)
__device__ inline void tensor_product(double& c0, double& c1, double a, double b)
{
#ifndef BLASX_SIM
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
