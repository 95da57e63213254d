// moves.cuh: matrices of a block to shared memory, where rows lie APART numbers apart, and back.
#pragma once
#include "async.cuh"
#include "multiply.cuh"

// Whether rows of n follow each other without gaps
template <class T> __device__ bool is_line(const Strided<T>& x, int n)
{
    return n > 0 && x.rs == n && x.cs == 1;
}
// move(row, column, e) for the numbers of m rows of n that lie as a line from p on, number e of it,
// V at a time: neighbouring lanes take neighbours, warps from a multiple of 128 bytes on, of
// whatever rows.
template <int V, class F> __device__ void each_of_line(const void* p, int m, int n, F move)
{
    const int across = n / V, down = THREADS / across, right = THREADS - down * across;
    int e = thread() - int(size(p) % 128 / (V * sizeof(scalar_t)));
    if (e < 0) e += THREADS;
    int i = e / across, j = e - i * across;
    #pragma unroll 4
    for (; i < m; e += THREADS) {
        move(i, V * j, V * e);
        i += down, j += right;
        if (j >= across) j -= across, ++i;
    }
}

// move(to, from, row, column) for the numbers of two matrices of m x n, V in a row at a time;
// neighbouring lanes take neighbours in a row. OUT: the second is in shared memory, else the first.
template <int V, bool OUT, class T, class U, class F>
__device__ void each_at(Strided<T> to, Strided<U> from, int m, int n, F move)
{
    if (OUT && is_line(to, n))
        return each_of_line<V>(to.p, m, n, [=](int i, int j, int e) {
            move(to.p + e, from.p + i * int(from.rs) + j * int(from.cs), i, j);
        });
    if (!OUT && is_line(from, n))
        return each_of_line<V>(from.p, m, n, [=](int i, int j, int e) {
            move(to.p + i * int(to.rs) + j * int(to.cs), from.p + e, i, j);
        });
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
template <int V, bool OUT, class T, class U, class F>
__device__ void each_of(Strided<T> to, Strided<U> from, int m, int n, F move)
{
    each_at<V, OUT>(to, from, m, n, [=](T* x, U* y, int, int) { move(x, y); });
}
template <class T> __device__ Strided<T> transposed(Strided<T> x) { return {x.p, x.cs, x.rs}; }

// a := from, m x n, under way until await_all()
template <int APART>
__device__ void begin_fetch(scalar_t* a, Strided<const scalar_t> from, int m, int n)
{
    constexpr int word = sizeof(scalar_t);
    const Strided<scalar_t> to{a, APART, 1};
    const auto one = [](scalar_t* x, const scalar_t* y) { copy_async<word>(x, y, word); };
    if (from.template in_packs<VECTOR>(n, 0))
        each_of<VECTOR, false>(to, from, m, n, [](scalar_t* x, const scalar_t* y) {
            copy_async<16>(x, y, 16);
        });
    else if (from.cs == 1) each_of<1, false>(to, from, m, n, one);
    else each_of<1, false>(transposed(to), transposed(from), n, m, one);
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
        each_of<VECTOR, true>(to, from, m, n, [](scalar_t* x, const scalar_t* y) {
            *reinterpret_cast<Vector*>(x) = *reinterpret_cast<const Vector*>(y);
        });
    else if (to.cs == 1) each_of<1, true>(to, from, m, n, one);
    else each_of<1, true>(transposed(to), transposed(from), n, m, one);
}
