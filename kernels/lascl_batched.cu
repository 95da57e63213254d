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
#include "launch.cuh"

enum { GENERAL, LOWER, UPPER };  // what of A counts
constexpr int NONE = 0, LOST = 1 << 20, LOWEST = -(1 << 20);
constexpr unsigned ALL = 0xffffffff;

// e of x = y 2^e, 1/2 <= |y| < 1
template <class R> __device__ int exponent(R x)
{
    if (x == 0) return LOWEST;
    if (!isfinite(x)) return LOST;
    int e;
    frexp(x, &e);
    return e;
}
template <class R> __device__ int exponent(complex<R> x)
{
    const int re = exponent(x.re), im = exponent(x.im);
    return re > im ? re : im;
}

// for_each of block.cuh for m n of any size, by one of `parts` blocks
template <class F>
__device__ void each(size m, size n, bool by_rows, size part, size parts, F f)
{
    const size inner = by_rows ? n : m, outer = by_rows ? m : n;
    if (!inner) return;
    const size first = part * THREADS + thread(), step = parts * THREADS;
    const size lines = step / inner, ahead = step - lines * inner;
    size o = first / inner, i = first - o * inner;
    while (o < outer) {
        if (by_rows) f(o, i);
        else f(i, o);
        o += lines;
        i += ahead;
        if (i >= inner) {
            i -= inner;
            ++o;
        }
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
    const size m = RAGGED ? size_of(ms, b) : ms, n = RAGGED ? size_of(ns, b) : ns;
    const Strided<const scalar_t> a = matrix_of(A, a_row, a_col, a_next, b);
    const Strided<scalar_t> x = matrix_of(X, x_row, x_col, x_next, b);
    const bool by_rows = x.cs == 1;
    int& its_own = *array_of(kept, 1, b);
    const auto of = [=](size i, size j) {
        const bool there = part == GENERAL || (part == LOWER ? i >= j : i <= j);
        scalar_t y = there ? a(i, j) : a(j, i);
        if (part != GENERAL && i == j) y = scalar_t(real(y));
        return conjugated != !there ? conj(y) : y;
    };
    int e;
    if (find) {
        int mine = LOWEST;
        each(m, n, by_rows, its_part, parts, [&](size i, size j) {
            const int its = exponent(of(i, j));
            mine = its > mine ? its : mine;
        });
        e = largest(mine, found);
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
        each(m, n, by_rows, its_part, parts, [=](size i, size j) { x(i, j) = scalar_t(lost); });
        return;
    }
    const real_t half = ldexp(real_t(1), e / 2), rest = ldexp(real_t(1), e - e / 2);
    each(m, n, by_rows, its_part, parts, [=](size i, size j) {
        x(i, j) = mul(mul(of(i, j), half), rest);
    });
}
