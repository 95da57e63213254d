// activation.cu: y = f(x), number by number, and dx = f'(x) dy: blasx/nn/activations.py has the
// functions and their derivatives, which ask for x or for y.
//
// Floor: x (or x or y, and dy) read, y (or dx) written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 2;    // of 16 bytes, of each array in a thread
#endif
#include "elements.cuh"
#include "exponential.cuh"
#include "gelu.cuh"
#include "launch.cuh"

using R = real_t;
constexpr double CUBE = 0.044715;
constexpr double SLOPE = 0.79788456080286535588;    // sqrt(2 / pi)
constexpr double DENSITY = 0.39894228040143267794;  // sqrt(1 / 2 pi)
constexpr double NARROW = 0.70710678118654752440;   // sqrt(1 / 2)

// 1 / (1 + e^-x), of small numbers as accurate as of large ones
__device__ inline float inverse(float x) { return approximate_reciprocal(x); }
__device__ inline double inverse(double x) { return 1 / x; }
__device__ inline R sigmoid(R x)
{
    const R e = power(-fabs(x)), share = inverse(1 + e);
    return x < 0 ? e * share : share;
}

// Each with f(x) and the derivative at `at`, which is x, or y where OF_Y; a: alpha or beta
struct Relu {
    __device__ static R f(R x, R) { return x > 0 || x != x ? x : R(0); }
    __device__ static R slope(R x, R) { return x > 0 ? R(1) : R(0); }
};
struct Tanh {
    __device__ static R f(R x, R) { return tanh(x); }
    __device__ static R slope(R y, R) { return 1 - y * y; }
};
struct Sigmoid {
    __device__ static R f(R x, R) { return sigmoid(x); }
    __device__ static R slope(R y, R) { return y * (1 - y); }
};
struct Elu {
    __device__ static R f(R x, R a) { return x > 0 ? x : a * expm1(x); }
    __device__ static R slope(R x, R a) { return x > 0 ? R(1) : a * expm1(x) + a; }
};
struct Gelu {
    __device__ static double share(double x) { return 0.5 + 0.5 * erf(x * NARROW); }
    __device__ static double f(double x, double) { return x * share(x); }
    __device__ static double slope(double x, double)
    {
        return share(x) + x * (exp(-0.5 * x * x) * DENSITY);
    }
    __device__ static float f(float x, float) { return gelu(x); }
    __device__ static float slope(float x, float) { return gelu_slope(x); }
};
struct GeluByTanh {
    __device__ static double share(double x)
    {
        return 0.5 + 0.5 * tanh(SLOPE * (x + CUBE * x * x * x));
    }
    __device__ static double f(double x, double) { return x * share(x); }
    __device__ static double slope(double x, double)
    {
        const double p = share(x);
        return p + x * (2 * p * (1 - p) * SLOPE * (1 + 3 * CUBE * x * x));
    }
    __device__ static float f(float x, float) { return gelu_approximately(x); }
    __device__ static float slope(float x, float) { return gelu_approximate_slope(x); }
};
struct Softplus {
    __device__ static R f(R x, R) { return (x > 0 || x != x ? x : R(0)) + log1p(exp(-fabs(x))); }
    __device__ static R slope(R x, R) { return sigmoid(x); }
};
struct Swish {
    __device__ static R f(R x, R a) { return x * sigmoid(a * x); }
    __device__ static R slope(R x, R a)
    {
        const R s = sigmoid(a * x);
        return s + a * (x * s) * (1 - s);
    }
};

template <class F>
__device__ void apply(const scalar_t* at, const scalar_t* dY, scalar_t* to, R a, size count)
{
    if (dY) map(to, at, dY, count, [=](R x, R dy, size) { return dy * F::slope(x, a); });
    else map(to, at, nullptr, count, [=](R x, R, size) { return F::f(x, a); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
activation(size function, const scalar_t* at, const scalar_t* dY, scalar_t* to, size a, size count)
{
    wait_for_stream();
    switch (function) {  // by its place in blasx/nn/_gpu.py
    case 0: apply<Relu>(at, dY, to, number(a), count); break;
    case 1: apply<Tanh>(at, dY, to, number(a), count); break;
    case 2: apply<Sigmoid>(at, dY, to, number(a), count); break;
    case 3: apply<Elu>(at, dY, to, number(a), count); break;
    case 4: apply<Gelu>(at, dY, to, number(a), count); break;
    case 5: apply<GeluByTanh>(at, dY, to, number(a), count); break;
    case 6: apply<Softplus>(at, dY, to, number(a), count); break;
    case 7: apply<Swish>(at, dY, to, number(a), count); break;
    }
}
