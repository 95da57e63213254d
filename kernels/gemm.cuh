// gemm.cuh: what the kernels of products of batches share: operands in memory, and the end of a
// tile, C := alpha (A B) + beta C.
#pragma once
#include "multiply.cuh"

// An operand where it lies, in elements; conjugated if so
struct Operand {
    const scalar_t* p;
    size rs, cs;
    int conjugated;

    __device__ scalar_t operator()(int i, int j) const
    {
        const scalar_t x = p[i * rs + j * cs];
        return conjugated ? conj(x) : x;
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
// then has a real diagonal)
enum Part_of_C { ALL_OF_C, LOWER_OF_C, HERMITIAN_C };

__device__ inline scalar_t real_part(float x) { return scalar_t(x); }
__device__ inline scalar_t real_part(double x) { return scalar_t(x); }
template <class R> __device__ scalar_t real_part(complex<R> x) { return scalar_t(x.re); }

// to := alpha tile + beta from, of which (i0, j0) is the tile's first element; m x n are left.
// beta = 0 leaves `from` unread.
template <class T>
__device__ void finish(T& tile, scalar_t alpha, scalar_t beta, Strided<const scalar_t> from,
                       Strided<scalar_t> to, bool vectors, int half, int i0, int j0, int m, int n)
{
    const bool read = !(real(beta) == 0 && abs1(beta) == 0);
    const auto wanted = [=](int i, int j) { return half == ALL_OF_C || i0 + i >= j0 + j; };
    tile.each(m, n, [&](int i, int j, scalar_t& x) {
        scalar_t old{};
        if (read && wanted(i, j)) old = mul(beta, from(i, j));
        x = minus_product(old, mul(alpha, real_t(-1)), x);
        if (half == HERMITIAN_C && i0 + i == j0 + j) x = real_part(x);
    });
    if (vectors && half == ALL_OF_C)
        tile.store(ByRows<scalar_t>{to.p, int(to.rs)}, m, n);
    else
        tile.each(m, n, [&](int i, int j, scalar_t& x) { if (wanted(i, j)) to(i, j) = x; });
}
