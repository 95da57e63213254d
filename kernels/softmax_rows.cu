// softmax_rows.cu: softmax of every row, its logarithm, and the gradients in x of both:
//
//     y = e^(x - top) / sum e^(x - top)              dx = y (dy - sum dy y)
//     y = x - top - log sum e^(x - top)              dx = dy - e^y sum dy
//
// top is the largest x. A softmax of nothing but -inf is 0: nothing was there to choose.
//
// A team has a row (rows.cuh). Floor: what is read (x, or y and dy) and written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 4;    // of a block
constexpr int TEAM = 128;   // threads of a row
constexpr int PACKS = 2;    // of 16 bytes, of a row in a thread
#endif
#include "launch.cuh"
#include "rows.cuh"

template <bool PACKED>
__device__ void forward(const scalar_t* X, scalar_t* Y, bool log_of, size m, size n)
{
    Team team;
    const size i = team.row();
    Row<1, PACKED> row({X}, i, int(n), i < m);
    scalar_t top = LEAST, total = 0;
    row.each([&](Held<1>& x, int e, int) { top = x[0][e] > top ? x[0][e] : top; });
    top = team.largest(top);
    if (!log_of && top == LEAST) top = 0;
    row.each([&](Held<1>& x, int e, int) {
        const scalar_t power = exp(x[0][e] - top);
        total += power;
        if (!log_of && row.held()) x[0][e] = power;
    });
    total = team.sum(total);
    const scalar_t less = log(total), share = 1 / (total == 0 ? scalar_t(1) : total);
    row.packs([&](Held<1>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            if (log_of) x[0][e] = x[0][e] - top - less;
            else x[0][e] = (row.held() ? x[0][e] : exp(x[0][e] - top)) * share;
        }
        row.in.put(Y + i * n, x[0], first, c);
    });
}

template <bool PACKED>
__device__ void backward(const scalar_t* Y, const scalar_t* dY, scalar_t* dX, bool log_of, size m,
                         size n)
{
    Team team;
    const size i = team.row();
    Row<2, PACKED> row({Y, dY}, i, int(n), i < m);
    scalar_t sum = 0;
    row.each([&](Held<2>& x, int e, int) { sum += log_of ? x[1][e] : x[1][e] * x[0][e]; });
    sum = team.sum(sum);
    row.packs([&](Held<2>& x, int first, int c) {
        #pragma unroll
        for (int e = 0; e < V; ++e)
            x[1][e] = log_of ? x[1][e] - exp(x[0][e]) * sum : x[0][e] * (x[1][e] - sum);
        row.in.put(dX + i * n, x[1], first, c);
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax_rows(const scalar_t* X, const scalar_t* dY, scalar_t* to, size log_of, size m, size n)
{
    wait_for_stream();
    const bool packed = n % V == 0;
    if (dY && packed) backward<true>(X, dY, to, log_of, m, n);
    else if (dY) backward<false>(X, dY, to, log_of, m, n);
    else if (packed) forward<true>(X, to, log_of, m, n);
    else forward<false>(X, to, log_of, m, n);
}
