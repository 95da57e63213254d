// potrs_panels.cu: solve with the Cholesky factors of a batch, a block to WIDTH right-hand sides of
// a matrix, `parts` blocks to each: where L does not fit a block (potrs_block.cu).
//
// The right-hand sides stay in shared memory. L passes by once for either sweep, in lines as it
// lies in memory, rows or columns, 32 lines at a time: their triangle on the diagonal, and what is
// beside it in chunks of DEEP numbers a line. The way through the chunks is known beforehand, and
// STAGES - 1 of them are on their way while one is used. In one sweep the lines are rows of the
// triangle that is solved, and their products with what is known are gathered before a warp solves
// with the one on the diagonal, a row to a lane; in the other they are its columns, and products
// with what a warp found are taken off all that is to come.
//
// The floor is n^2 / 2 + 2 n nrhs scalars over the memory's bandwidth, the second time from the L2
// cache; above it are n / 16 triangles, one after the other. A factor by its upper triangle comes
// with swapped strides and is conj(L). A member whose `failed` is not zero gets X := B.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WIDTH = 4, DEEP = 64, STAGES = 3, BLOCKS = 1;
#endif
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"
#include "operands.cuh"
#include "shuffle.cuh"

constexpr int LINES = 32, PITCH = DEEP + 1, EACH = LINES / WARPS;  // lines of a warp
static_assert(LINES % WARPS == 0 && DEEP % 32 == 0 && STAGES > 1);

// The chunks of the lower triangle, in the order of their use
struct Walk {
    int n;
    bool by_rows;               // lines are rows
    int sweep = 0, k = 0, i = 0;  // chunk i of lines k and the next 31

    __device__ bool gathers() const { return by_rows == (sweep == 0); }
    __device__ bool done() const { return sweep == 2; }
    __device__ int beside() const  // chunks beside the triangle on the diagonal
    {
        const int count = by_rows ? k : n - k - LINES;
        return count > 0 ? (count + DEEP - 1) / DEEP : 0;
    }
    __device__ bool on_diagonal() const { return i == (gathers() ? beside() : 0); }
    __device__ int begin() const  // in a line
    {
        if (on_diagonal()) return k;
        return (by_rows ? 0 : k + LINES) + (gathers() ? i : i - 1) * DEEP;
    }
    __device__ int end() const
    {
        return on_diagonal() ? min(k + LINES, n) : min(begin() + DEEP, by_rows ? k : n);
    }
    __device__ void advance()
    {
        if (i++ < beside()) return;
        i = 0;
        if (sweep == 0 && k + LINES >= n) sweep = 1;
        else if (sweep == 1 && k == 0) sweep = 2;
        else k += sweep == 0 ? LINES : -LINES;
    }
};

struct Sides {  // the right-hand sides, of which `width` are there
    scalar_t* y;
    int apart, width;
    __device__ scalar_t& operator()(int i, int s) const { return y[s * apart + i]; }
};

// A chunk goes to shared memory, without waiting for it.
__device__ inline void bring(scalar_t* to, const Strided<const scalar_t>& L, const Walk& w)
{
    constexpr int bytes = sizeof(scalar_t);
    const int begin = w.begin(), count = w.end() - begin, lines = min(LINES, w.n - w.k);
    const size next = w.by_rows ? L.rs : L.cs, step = w.by_rows ? L.cs : L.rs;
    const scalar_t* const from = L.p + w.k * next + begin * step;
    for (int e = thread(); e < LINES * DEEP; e += THREADS) {
        const int l = e / DEEP, j = e % DEEP;
        if (l < lines && j < count) copy_async<bytes>(to + l * PITCH + j, from + l * next + j * step,
                                                      bytes);
    }
}

// sums(l, s) += line l of the warp times what is known
__device__ inline void gather(scalar_t (&sums)[EACH][WIDTH], const scalar_t* chunk, const Sides& y,
                              int begin, int end, bool conjugated)
{
    chunk += warp() * EACH * PITCH;
    #pragma unroll
    for (int j = threadIdx.x % 32; j < DEEP; j += 32) {
        if (begin + j >= end) break;
        #pragma unroll
        for (int s = 0; s < WIDTH; ++s) {
            if (s >= y.width) break;
            const scalar_t known = y(begin + j, s);
            #pragma unroll
            for (int q = 0; q < EACH; ++q)
                sums[q][s] = minus_product(sums[q][s], turned(chunk[q * PITCH + j], conjugated),
                                           known);
        }
    }
}

// Rows k and the next += the warps' sums, which become zero.
__device__ inline void collect(scalar_t (&sums)[EACH][WIDTH], const Sides& y, int k, int n)
{
    #pragma unroll
    for (int q = 0; q < EACH; ++q)
        #pragma unroll
        for (int s = 0; s < WIDTH; ++s) {
            if (s >= y.width) break;
            #pragma unroll
            for (int half = 16; half; half /= 2)
                sums[q][s] = add(sums[q][s], across(sums[q][s], half));
            const int i = k + warp() * EACH + q;
            if (threadIdx.x % 32 == 0 && i < n) y(i, s) = add(y(i, s), sums[q][s]);
            sums[q][s] = scalar_t{};
        }
}

// What is to come -= the lines times what was found in rows k and the next, a number of a line to
// four lanes.
__device__ inline void scatter(const scalar_t* chunk, const Sides& y, int k, int begin, int end,
                               bool conjugated)
{
    const int lane = threadIdx.x % 32, lines = min(LINES, y.apart - k);
    #pragma unroll 1
    for (int j = 8 * warp() + lane % 8; j < DEEP; j += 8 * WARPS) {
        scalar_t sums[WIDTH] = {};
        #pragma unroll
        for (int e = 0; e < LINES / 4; ++e) {
            const int l = LINES / 4 * (lane / 8) + e;
            const bool there = l < lines && begin + j < end;
            const scalar_t x = there ? turned(chunk[l * PITCH + j], conjugated) : scalar_t{};
            #pragma unroll
            for (int s = 0; s < WIDTH; ++s)
                if (s < y.width && there) sums[s] = minus_product(sums[s], x, y(k + l, s));
        }
        #pragma unroll
        for (int s = 0; s < WIDTH; ++s) {
            if (s >= y.width) break;
            #pragma unroll
            for (int half = 8; half <= 16; half *= 2) sums[s] = add(sums[s], across(sums[s], half));
            if (lane < 8 && begin + j < end) y(begin + j, s) = add(y(begin + j, s), sums[s]);
        }
    }
}

// Rows k and the next := inv(L) times them, or inv(L)^T; L(i, j) is at down i + right j.
template <bool DOWN>
__device__ void solve(const scalar_t* l, int down, int right, const Sides& y, int k,
                      bool conjugated)
{
    const int i = threadIdx.x % 32, steps = min(LINES, y.apart - k);
    for (int s = warp(); s < y.width; s += WARPS) {
        const real_t pivot = i < steps ? real(l[i * (down + right)]) : real_t(1);
        const bool tiny = abs1(pivot) < TINY && pivot != 0;
        const real_t inverse = reciprocal(tiny ? mul(pivot, LIFT) : pivot);
        scalar_t x = i < steps ? y(k + i, s) : scalar_t{};
        #pragma unroll 8
        for (int step = 0; step < steps; ++step) {
            const int j = DOWN ? step : steps - 1 - step;
            if (i == j) x = mul(tiny ? mul(x, LIFT) : x, inverse);
            const scalar_t found = of_lane(x, j);
            if (DOWN ? i > j && i < steps : i < j)
                x = minus_product(x, turned(l[DOWN ? i * down + j * right : j * down + i * right],
                                            conjugated), found);
        }
        if (i < steps) y(k + i, s) = x;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrs_panels(const scalar_t* C, size c_row, size c_col, size c_next,
             const scalar_t* B, size b_row, size b_col, size b_next,
             scalar_t* X, size x_row, size x_col, size x_next,
             const int* failed, size upper, size ns, size columns, size parts)
{
    wait_for_stream();
    const size m = blockIdx.x / parts, first = blockIdx.x % parts * WIDTH;
    const int n = size_of(ns, m), width = int(min(size(WIDTH), size_of(columns, m) - first));
    const auto L = matrix_of(C, c_row, c_col, c_next, m);
    const auto all_b = matrix_of(B, b_row, b_col, b_next, m);
    const auto all_x = matrix_of(X, x_row, x_col, x_next, m);
    const Strided<const scalar_t> b{all_b.p + first * all_b.cs, all_b.rs, all_b.cs};
    const Strided<scalar_t> x{all_x.p + first * all_x.cs, all_x.rs, all_x.cs};
    if (failed && *array_of(failed, size(1), m)) {
        if (b.p != x.p)
            for_each(n, width, b.cs == 1, [=](int i, int j) { x(i, j) = b(i, j); });
        return;
    }
    scalar_t* const ring = reinterpret_cast<scalar_t*>(dynamic_shared);
    const Sides y{ring + STAGES * LINES * PITCH, n, width};
    Walk w{n, abs(L.cs) <= abs(L.rs)}, ahead = w;
    const auto bring_next = [&](int stage) {
        if (!ahead.done()) bring(ring + stage * LINES * PITCH, L, ahead), ahead.advance();
        end_group();
    };
    for (int stage = 0; stage < STAGES - 1; ++stage) bring_next(stage);
    for_each(n, width, b.cs == 1, [=](int i, int j) { y(i, j) = b(i, j); });
    scalar_t sums[EACH][WIDTH] = {};
    for (int now = 0, next = STAGES - 1; !w.done(); w.advance()) {
        await_groups<STAGES - 2>();
        __syncthreads();
        bring_next(next);
        const scalar_t* const chunk = ring + now * LINES * PITCH;
        const bool conjugated = upper != (w.sweep == 1);  // L^H in the second sweep
        if (w.on_diagonal()) {
            if (w.gathers()) {
                collect(sums, y, w.k, n);
                __syncthreads();
            }
            const int down = w.by_rows ? PITCH : 1, right = w.by_rows ? 1 : PITCH;
            if (w.sweep == 0) solve<true>(chunk, down, right, y, w.k, conjugated);
            else solve<false>(chunk, down, right, y, w.k, conjugated);
        } else if (w.gathers()) {
            gather(sums, chunk, y, w.begin(), w.end(), conjugated);
        } else {
            scatter(chunk, y, w.k, w.begin(), w.end(), conjugated);
        }
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    __syncthreads();
    for_each(n, width, x.cs == 1, [=](int i, int j) { x(i, j) = y(i, j); });
}
