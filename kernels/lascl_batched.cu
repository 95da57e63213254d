// lascl_batched.cu: X := A 2^e for every member of a batch, conjugated, or Hermitian by one triangle
// of A: so that what follows neither overflows nor loses bits to underflow, and back again.
//
// A launch that is to `find` e makes the largest number of X from 1/2 to 1 times 2^target, and keeps
// -e. Unless it does so `always` it leaves members alone whose numbers are smaller, or not finite,
// -e = 0; if always, members that are not finite become zero, -e = LOST. A launch that is not to
// find it scales by what is kept, LOST giving nan.
//
// A member has `parts` blocks, one where e is to be found: each goes through the lines of X, as far
// from its next number as all threads of these blocks are many. The floor: A read, X written, once;
// A is read again where e has to be found, from the cache if it is small. Multiplied in two steps,
// no power of two overflows; a number that becomes subnormal is rounded once.
#include "block.cuh"
#include "fours.cuh"
#include "launch.cuh"
#include "lost.cuh"
#include "shuffle.cuh"

enum { GENERAL, LOWER, UPPER };  // what of A counts
constexpr int NONE = 0, LOWEST = -LOST;

// fours.cuh's patterns of numbers of other types; integers compare faster
__device__ inline size pattern(double x) { return size(__double_as_longlong(fabs(x))); }
template <class R> __device__ auto pattern(complex<R> x)
{
    const auto re = pattern(x.re), im = pattern(x.im);
    return re > im ? re : im;
}
using Pattern = decltype(pattern(scalar_t{}));

__device__ inline float number_of(unsigned pattern) { return __int_as_float(int(pattern)); }
__device__ inline double number_of(size pattern) { return __longlong_as_double(pattern); }

// e of x = y 2^e, 1/2 <= y < 1
__device__ inline int exponent(real_t x)
{
    if (x == 0) return LOWEST;
    if (!isfinite(x)) return LOST;
    int e;
    frexp(x, &e);
    return e;
}

// use(i, j, load(i, j)) for the numbers of an m x n matrix, by one of `parts` blocks. Some loads are
// under way at a time: none depends on a condition, and past the end it is the first number's.
template <class Load, class Use>
__device__ void each(int m, int n, bool by_rows, size part, size parts, Load load, Use use)
{
    constexpr int AHEAD = 4;
    const int inner = by_rows ? n : m, outer = by_rows ? m : n;
    if (!inner) return;
    const size first = part * THREADS + thread(), step = parts * THREADS;
    const int lines = int(step / inner), ahead = int(step % inner);
    int o = int(first / inner), i = int(first % inner);
    while (o < outer) {
        int down[AHEAD], across[AHEAD];
        bool there[AHEAD];
        scalar_t x[AHEAD];
        #pragma unroll
        for (int q = 0; q < AHEAD; ++q) {
            there[q] = o < outer;
            down[q] = !there[q] ? 0 : by_rows ? o : i, across[q] = !there[q] ? 0 : by_rows ? i : o;
            o += lines;
            i += ahead;
            if (i >= inner) i -= inner, ++o;
        }
        #pragma unroll
        for (int q = 0; q < AHEAD; ++q) x[q] = load(down[q], across[q]);
        #pragma unroll
        for (int q = 0; q < AHEAD; ++q)
            if (there[q]) use(down[q], across[q], x[q]);
    }
}

// The largest e of all threads
__device__ inline int largest(int e, unsigned (&found)[WARPS])
{
    const unsigned in_warp = __reduce_max_sync(ALL, unsigned(e - LOWEST));
    if (threadIdx.x % 32 == 0) found[warp()] = in_warp;
    __syncthreads();
    unsigned most = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) most = found[w] > most ? found[w] : most;
    return int(most) + LOWEST;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
lascl_batched(const scalar_t* A, size a_row, size a_col, size a_next, size conjugated, size part,
              scalar_t* X, size x_row, size x_col, size x_next, int* kept, size find, size target,
              size always, size ms, size ns, size parts)
{
    wait_for_stream();
    __shared__ unsigned found[WARPS];
    const size b = blockIdx.x / parts, its_part = blockIdx.x - b * parts;
    const int m = size_of(ms, b), n = size_of(ns, b);
    const Strided<const scalar_t> a = matrix_of(A, a_row, a_col, a_next, b);
    const Strided<scalar_t> x = matrix_of(X, x_row, x_col, x_next, b);
    const bool by_rows = x.cs == 1;
    int& its_own = *array_of(kept, 1, b);
    const auto of = [=](int i, int j) {
        const bool there = part == GENERAL || (part == LOWER ? i >= j : i <= j);
        scalar_t y = a(there ? i : j, there ? j : i);
        if (part != GENERAL && i == j) y = scalar_t(real(y));
        return conjugated != !there ? conj(y) : y;
    };
    int e;
    if (find) {
        Pattern most = 0;
        each(m, n, by_rows, its_part, parts, of, [&](int, int, scalar_t y) {
            const Pattern its = pattern(y);
            most = its > most ? its : most;
        });
        e = largest(exponent(number_of(most)), found);
        if (e == LOWEST || (!always && (e <= target || e == LOST))) e = NONE;
        else if (e != LOST) e -= int(target);
        if (thread() == 0) its_own = e;
        if (e != LOST) e = -e;
    } else {
        e = its_own;
    }
    if (e == NONE && x.p == a.p) return;
    if (e == LOST) {
        const real_t lost = find ? real_t(0) : real_t(__int_as_float(0x7fc00000));
        each(m, n, by_rows, its_part, parts, [](int, int) { return scalar_t{}; },
             [=](int i, int j, scalar_t) { x(i, j) = scalar_t(lost); });
        return;
    }
    const real_t half = ldexp(real_t(1), e / 2), rest = ldexp(real_t(1), e - e / 2);
    each(m, n, by_rows, its_part, parts, of, [=](int i, int j, scalar_t y) {
        x(i, j) = mul(mul(y, half), rest);
    });
}
