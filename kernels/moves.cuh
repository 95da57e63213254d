// moves.cuh: matrices of a block to shared memory, where rows lie APART numbers apart, and back.
#pragma once
#include "async.cuh"
#include "multiply.cuh"

// move(to, from, row, column) for the numbers of two matrices of m x n, V in a row at a time;
// neighbouring lanes take neighbours in a row.
template <int V, class T, class U, class F>
__device__ void each_at(Strided<T> to, Strided<U> from, int m, int n, F move)
{
    const int across = (n + V - 1) / V;
    int wide = 32;
    while (wide > 1 && wide / 2 >= across) wide /= 2;
    const int i = thread() / wide, step = THREADS / wide;
    for (int j = thread() % wide; j < across; j += wide) {
        T* x = to.p + i * to.rs + V * j * to.cs;
        U* y = from.p + i * from.rs + V * j * from.cs;
        const size dx = step * to.rs, dy = step * from.rs;
        #pragma unroll 4
        for (int left = m - i; left > 0; left -= step, x += dx, y += dy)
            move(x, y, m - left, V * j);
    }
}
// The same for move(to, from)
template <int V, class T, class U, class F>
__device__ void each_of(Strided<T> to, Strided<U> from, int m, int n, F move)
{
    each_at<V>(to, from, m, n, [=](T* x, U* y, int, int) { move(x, y); });
}
template <class T> __device__ Strided<T> transposed(Strided<T> x) { return {x.p, x.cs, x.rs}; }

// a := from, m x n, under way until await_all(): whole sectors of what is in global memory
template <int APART>
__device__ void begin_fetch(scalar_t* a, Strided<const scalar_t> from, int m, int n)
{
    constexpr int word = sizeof(scalar_t);
    const Strided<scalar_t> to{a, APART, 1};
    const auto one = [](scalar_t* x, const scalar_t* y) { copy_async<word>(x, y, word); };
    if (from.template in_packs<VECTOR>(n, 0))
        each_of<VECTOR>(to, from, m, n,
                        [](scalar_t* x, const scalar_t* y) { copy_async<16>(x, y, 16); });
    else if (from.cs == 1) each_of<1>(to, from, m, n, one);
    else each_of<1>(transposed(to), transposed(from), n, m, one);
}
__device__ inline void await_all()
{
    end_group();
    await_groups<0>();
    __syncthreads();
}

template <int APART> __device__ void send(Strided<scalar_t> to, scalar_t* a, int m, int n)
{
    const Strided<const scalar_t> from{a, APART, 1};
    const auto one = [](scalar_t* x, const scalar_t* y) { *x = *y; };
    if (to.template in_packs<VECTOR>(n, 0))
        each_of<VECTOR>(to, from, m, n, [](scalar_t* x, const scalar_t* y) {
            *reinterpret_cast<Vector*>(x) = *reinterpret_cast<const Vector*>(y);
        });
    else if (to.cs == 1) each_of<1>(to, from, m, n, one);
    else each_of<1>(transposed(to), transposed(from), n, m, one);
}
