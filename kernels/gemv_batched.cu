// gemv_batched.cu: y := alpha A x + beta y of every member of a batch.
//
// A is read once, 16 bytes a lane, along whichever stride is 1. By rows a team of LANES lanes has R
// rows at a time, which share x, and adds its partial sums up across the lanes. By columns a warp
// has DOWN times 16 bytes of rows, and 32 / DOWN columns at a time. Of lines that are no
// whole number of 16 bytes lanes read neighbours in turn, number by number. What is summed by whom
// depends on how long lines are, not on where they begin.
//
// Floor: A read once; a few operations a number are nothing beside it.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int LANES = 16;   // by rows: lanes to a team, along the columns
constexpr int R = 4;        // rows to a team, at most LANES
constexpr int DOWN = 16;    // by columns: lanes along the rows
#endif
#include "gemm.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

constexpr int V = VECTOR;
static_assert(R <= LANES && 32 % LANES == 0 && 32 % DOWN == 0);

// How lanes read a line: 16 bytes at once; of lines that are no whole number of these neighbours in
// turn, number by number; or, as they do in lines that do, from anywhere.
enum Way { AT_ONCE, IN_TURN, ANY };

// Which V numbers of a chunk of a line, which L lanes read, are a lane's: first, first + next, ...
template <Way WAY, int L> struct Share {
    bool turn;
    int first;

    __device__ Share(int lane, int length)
        : turn(WAY == IN_TURN || (WAY == ANY && length % V)), first(turn ? lane : V * lane) {}
    __device__ int next() const { return turn ? L : 1; }
    // x := the lane's numbers of the chunk that begins at p, zeros past `left` numbers from its first
    __device__ void read(scalar_t (&x)[V], const scalar_t* p, size step, int left,
                         int conjugated) const
    {
        if (WAY == AT_ONCE) {
            const Vector v = *reinterpret_cast<const Vector*>(p);
            #pragma unroll
            for (int e = 0; e < V; ++e) x[e] = v.x[e];
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e) {
                x[e] = scalar_t{};
                if (e * next() < left) x[e] = p[e * next() * (WAY == ANY ? step : size(1))];
            }
        }
        if (conjugated) {
            #pragma unroll
            for (int e = 0; e < V; ++e) x[e] = conj(x[e]);
        }
    }
};

struct Result {  // where y is, and what becomes of it
    const scalar_t* y;
    scalar_t* o;
    size ys, os;
    scalar_t alpha, beta;

    __device__ void operator()(int i, scalar_t sum) const
    {
        const bool read = abs1(beta) != 0;
        const scalar_t old = read ? mul(beta, y[i * ys]) : scalar_t{};
        o[i * os] = plus_product(old, alpha, sum);
    }
};

template <Way WAY>
__device__ void by_rows(Operand a, const scalar_t* x, size xs, int m, int n, const Result& result)
{
    const int lane = threadIdx.x % LANES;
    const Share<WAY, LANES> of(lane, n);
    scalar_t sum[R] = {};
    #pragma unroll (WAY == IN_TURN ? 1 : 2)
    for (int j = of.first; j < n; j += V * LANES) {
        scalar_t left[R][V], right[V];
        #pragma unroll
        for (int r = 0; r < R; ++r)
            of.read(left[r], a.p + (r < m ? r : 0) * a.rs + j * a.cs, a.cs, n - j, a.conjugated);
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            const int at = j + e * of.next();
            right[e] = x[(WAY == AT_ONCE || at < n ? at : j) * xs];
        }
        #pragma unroll
        for (int r = 0; r < R; ++r)
            #pragma unroll
            for (int e = 0; e < V; ++e) sum[r] = plus_product(sum[r], left[r][e], right[e]);
    }
    scalar_t mine{};
    #pragma unroll
    for (int r = 0; r < R; ++r) {
        #pragma unroll
        for (int d = LANES / 2; d > 0; d /= 2) sum[r] = add(sum[r], across(sum[r], d));
        mine = lane == r ? sum[r] : mine;
    }
    if (lane < m && lane < R) result(lane, mine);
}

template <Way WAY>
__device__ void by_columns(Operand a, const scalar_t* x, size xs, int m, int n,
                           const Result& result)
{
    const int lane = threadIdx.x % DOWN, group = threadIdx.x % 32 / DOWN;
    const Share<WAY, DOWN> of(lane, m);
    const int i = of.first;
    scalar_t sum[V] = {};
    #pragma unroll (WAY == IN_TURN ? 2 : 8)
    for (int j = group; j < n; j += 32 / DOWN) {
        scalar_t left[V];
        of.read(left, a.p + (i < m ? i : 0) * a.rs + j * a.cs, a.rs, m - i, a.conjugated);
        const scalar_t right = x[j * xs];
        #pragma unroll
        for (int e = 0; e < V; ++e) sum[e] = plus_product(sum[e], left[e], right);
    }
    #pragma unroll
    for (int e = 0; e < V; ++e) {
        #pragma unroll
        for (int d = 16; d >= DOWN; d /= 2) sum[e] = add(sum[e], across(sum[e], d));
        if (group == 0 && i + e * of.next() < m) result(i + e * of.next(), sum[e]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
gemv_batched(size m, size n, size columns, const scalar_t* A, size ars, size acs, size abs,
             size conj_a, const scalar_t* X, size xs, size xbs, const scalar_t* Y, size ys,
             size ybs, scalar_t* O, size os, size obs, size alpha_re, size alpha_im, size beta_re,
             size beta_im, size batch)
{
    wait_for_stream();
    const int rows = columns ? V * DOWN : R;  // of a team, which is the warp if by columns
    const int chunks = (int(m) + rows - 1) / rows;
    const size work = columns ? size(blockIdx.x) * WARPS + warp()
                              : (size(blockIdx.x) * THREADS + thread()) / LANES;
    const bool there = work < batch * chunks;
    const size member = there ? work / chunks : 0;
    const int i = there ? int(work - member * chunks) * rows : 0;
    const Operand a{A + member * abs + i * ars, ars, acs, int(conj_a)};
    const Result result{Y + member * ybs + i * ys, O + member * obs + i * os, ys, os,
                        number(alpha_re, alpha_im), number(beta_re, beta_im)};
    const int here = there ? int(m) - i : 0, terms = there ? int(n) : 0;
    const scalar_t* const x = X + member * xbs;
    if (columns) {
        if (m % V == 0 && in_vectors(A, acs, ars, abs))
            by_columns<AT_ONCE>(a, x, xs, here, terms, result);
        else if (V > 1 && m % V && ars == 1) by_columns<IN_TURN>(a, x, xs, here, terms, result);
        else by_columns<ANY>(a, x, xs, here, terms, result);
    } else {
        if (n % V == 0 && in_vectors(A, ars, acs, abs))
            by_rows<AT_ONCE>(a, x, xs, here, terms, result);
        else if (V > 1 && n % V && acs == 1) by_rows<IN_TURN>(a, x, xs, here, terms, result);
        else by_rows<ANY>(a, x, xs, here, terms, result);
    }
}
