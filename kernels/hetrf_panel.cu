// hetrf_panel.cu: a panel of A = L D L^H, Bunch and Kaufman's pivoting, of one large matrix.
//
// The panel begins where the one before has ended, at `start` or at the column before it, and ends at
// `end`, or at the column before that where a block of D of order 2 would have to cross it: which of
// them is known on the GPU only, in `starts`. W has column j of A less what the columns of the panel
// before it take off,
//
//     w_j = a_j - L conj(W_j.)^T ,   so that L D L^H = L W^H ;
//
// the caller takes L W^H off what begins at `end`, with the columns from start - 1 on. So what is
// not among the panel's columns has zeros in W, and column start - 1, if it is left over, is brought
// up to date here. An upper triangle is a lower one whose rows and columns are counted from the other
// end: the launcher turns strides round. Symmetric matrices: nothing is conjugated.
//
// All blocks are on the GPU together. Rows are dealt out by strips of 32 TALL; a row of L times
// conj(W_j) is taken by ACROSS warps. A column takes a meeting (grid.cuh), which finds the largest
// below the diagonal, another if the diagonal is too small beside it, for which the column of that
// row is made, and a third where rows have changed places. L stays as the interchanges of the whole
// panel leave it; hetrf_undo.cu brings it to LAPACK's form.
//
// Floor: each column reads L of the panel, once or twice, from L2; and the way of 1.7 meetings
// (of random matrices), each a few trips to L2.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;
constexpr int NB = 64;      // columns of a panel
constexpr int TALL = 2;     // warps down the rows of a strip, the others beside them
#endif
#include "grid.cuh"
#include "launch.cuh"
#include "qr.cuh"

constexpr int ACROSS = WARPS / TALL, STRIP = 32 * TALL, SHARE = (NB + ACROSS) / ACROSS;
constexpr double ALPHA = 0.6403882032022076;  // (1 + sqrt(17)) / 8
static_assert(WARPS % TALL == 0);

struct Shared {
    scalar_t sums[ACROSS][STRIP], f[NB + 1];
    Candidate best[WARPS + 1];
};

// 1 / d, or 1 / (LIFT d) of a tiny one
struct Divisor {
    bool tiny;
    scalar_t inverse;

    __device__ explicit Divisor(scalar_t d) : tiny(abs1(d) < TINY)
    {
        inverse = reciprocal(lifted(d));
    }
    __device__ scalar_t lifted(scalar_t x) const { return tiny ? mul(x, LIFT) : x; }
    __device__ scalar_t of(scalar_t x) const { return mul(lifted(x), inverse); }
};

struct Panel {
    scalar_t* A;
    size rs, cs;
    int n, zero, first;        // column `zero` is the first of W, `first` the first of the panel
    scalar_t* W;
    size ws;
    bool hermitian, reversed;
    Shared& s;

    __device__ scalar_t& a(int i, int j) const { return A[i * rs + j * cs]; }
    __device__ scalar_t& w(int i, int j) const { return W[i * rs + (j - zero) * ws]; }
    __device__ scalar_t adjoint(scalar_t x) const { return hermitian ? conj(x) : x; }
    __device__ scalar_t on_diagonal(scalar_t x) const { return hermitian ? scalar_t{real(x)} : x; }
    __device__ int owner(int i) const { return (i - zero) / STRIP % gridDim.x; }
    // As LAPACK counts
    __device__ int number(int i) const { return reversed ? n - i : i + 1; }
    __device__ int place_of(const Candidate& x) const { return reversed ? n - x.place : x.place; }
    __device__ Candidate candidate(scalar_t x, int i, int top) const
    {
        return Candidate::of(abs1(x), reversed ? n - i : i, i == (reversed ? n - 1 : top));
    }

    // f(i) for the rows of this block from `top` on, by one of the threads that have a row's sums
    template <class F> __device__ void for_rows(int top, F f) const
    {
        if (warp() >= TALL) return;
        for (int base = zero + STRIP * int(blockIdx.x); base < n; base += STRIP * gridDim.x) {
            const int i = base + thread();
            if (i >= top && i < n) f(i);
        }
    }

    // Column `to` of W := source(i) - L conj(row `row` of W), from row k on; f(i, it)
    template <class Source, class F>
    __device__ void make(int row, int k, int to, Source source, F f) const
    {
        const int down = warp() % TALL, beside = warp() / TALL, count = k - first;
        for (int c = thread(); c < count; c += THREADS) s.f[c] = adjoint(w(row, first + c));
        for (int base = zero + STRIP * int(blockIdx.x); base < n; base += STRIP * gridDim.x) {
            if (base + STRIP <= k) continue;
            const int i = base + 32 * down + lane();
            const bool here = i >= k && i < n;
            scalar_t l[SHARE], sum{};
            #pragma unroll
            for (int q = 0; q < SHARE; ++q) {
                const int c = beside + ACROSS * q;
                l[q] = here && c < count ? a(i, first + c) : scalar_t{};
            }
            if (here && beside == 0) sum = source(i);
            __syncthreads();
            #pragma unroll
            for (int q = 0; q < SHARE; ++q) {
                const int c = beside + ACROSS * q;
                if (c < count) sum = minus_product(sum, l[q], s.f[c]);
            }
            s.sums[beside][32 * down + lane()] = sum;
            __syncthreads();
            if (beside != 0 || !here) continue;
            #pragma unroll
            for (int b = 1; b < ACROSS; ++b) sum = add(sum, s.sums[b][32 * down + lane()]);
            if (i == row) sum = on_diagonal(sum);
            w(i, to) = sum;
            f(i, sum);
        }
    }

    // Column start - 1, which the panel before has left over, less that panel's part of it
    __device__ void catch_up(const scalar_t* before, int left_over) const
    {
        const int from = max(left_over - NB, 0);
        for_rows(left_over, [&](int i) {
            scalar_t y = a(i, left_over);
            for (int c = from; c < left_over; ++c)
                y = minus_product(y, a(i, c), adjoint(
                    before[left_over * rs + (c - left_over + NB) * ws]));
            a(i, left_over) = i == left_over ? on_diagonal(y) : y;
        });
    }
};

// D = (d0, conj(e); e, d1): rows (x, y) of two columns of W to those of L
struct TwoByTwo {
    Divisor over;              // of e
    scalar_t first, second, scale, adjoint_scale;

    __device__ TwoByTwo(scalar_t d0, scalar_t e, scalar_t d1, bool hermitian) : over(e)
    {
        const auto of = [=](scalar_t x) { return hermitian ? conj(x) : x; };
        first = over.of(d1);
        second = mul(over.lifted(d0), of(over.inverse));
        scalar_t det = minus_product(mul(first, second), scalar_t{1}, scalar_t{1});
        if (hermitian) det = scalar_t{real(det)};
        const scalar_t t = reciprocal(det);
        scale = mul(t, over.inverse);
        adjoint_scale = mul(t, of(over.inverse));
    }
    __device__ scalar_t left(scalar_t x, scalar_t y) const
    {
        x = over.lifted(x), y = over.lifted(y);
        return mul(adjoint_scale, minus_product(mul(first, x), y, scalar_t{1}));
    }
    __device__ scalar_t right(scalar_t x, scalar_t y) const
    {
        x = over.lifted(x), y = over.lifted(y);
        return mul(scale, minus_product(mul(second, y), x, scalar_t{1}));
    }
};

// `before`: W of the panel before; starts[panel], and what it leaves in the next; ipiv counted as A
// is; stash: room for 6 numbers; places: 2 (BITS + 1) words for each block; `number` of the first of
// at most 3 meetings to a column. info is 0 to begin with.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
hetrf_panel(scalar_t* A, size rs, size cs, size n, size start, size end, scalar_t* W,
            const scalar_t* before, size ws, int* ipiv, int* info, int* starts, size panel,
            scalar_t* stash, word* places, size number, size hermitian)
{
    wait_for_stream();
    __shared__ Shared s;
    const Panel p{A, rs, cs, int(n), int(start) - 1, starts[panel], W, ws, hermitian != 0, rs < 0, s};
    Choice meeting{places, unsigned(number)};
    if (p.first < start) p.catch_up(before, p.first);
    else if (start) p.for_rows(int(end) - 1, [&](int i) { p.w(i, p.zero) = scalar_t{}; });
    __syncthreads();
    int k = p.first;
    for (int turn = 0; k < end && (k + 1 < end || end == n); ++turn) {
        scalar_t* const kept = stash + 3 * (turn % 2);  // y_k; y_imax; z_imax
        Candidate best{NONE, NOWHERE};
        p.make(k, k, k, [&](int i) { return i == k ? p.on_diagonal(p.a(i, k)) : p.a(i, k); },
               [&](int i, scalar_t y) {
                   if (i == k) kept[0] = y;
                   else best.meet(p.candidate(y, i, k + 1));
               });
        best = best_of_grid(best, meeting, s.best);
        ++meeting.number;
        const scalar_t d0 = kept[0];
        const real_t diagonal = abs1(d0), most = best.norm > 0 ? best.norm : real_t(0);
        const bool none = (diagonal == 0 && most == 0) || diagonal != diagonal;
        int kp = k, steps = 1;
        if (!none && !(diagonal >= real_t(ALPHA) * most)) {
            const int row = p.place_of(best);
            best = {NONE, NOWHERE};
            p.make(row, k, k + 1, [&](int i) {
                return i < row ? p.adjoint(p.a(row, i)) : i == row ? p.on_diagonal(p.a(i, i)) : p.a(i, row);
            }, [&](int i, scalar_t z) {
                if (i == row) kept[1] = p.w(i, k), kept[2] = z;
                else best.meet(p.candidate(z, i, k));
            });
            const real_t others = best_of_grid(best, meeting, s.best).norm;
            ++meeting.number;
            if (!(diagonal >= real_t(ALPHA) * most * (most / others))) {
                kp = row;
                if (!(abs1(kept[2]) >= real_t(ALPHA) * others)) steps = 2;
            }
        }
        // Column kk of what is left becomes row and column kp; L, from W
        const int kk = k + steps - 1;
        const bool moved = kp != kk, other = kp != k && steps == 1;
        const Divisor over(other ? kept[2] : d0);
        const TwoByTwo block(d0, kept[steps == 2], kept[2 * (steps == 2)], p.hermitian);
        const auto store = [&](int i, scalar_t x, scalar_t y) {  // row i of W's columns k, k + 1
            if (steps == 1) {
                if (other) p.w(i, k) = x = y;
                p.a(i, k) = none ? x : over.of(x);
            } else {
                p.a(i, k) = block.left(x, y);
                p.a(i, k + 1) = block.right(x, y);
            }
        };
        p.for_rows(kk + 1, [&](int i) {
            if (i == kp) return;
            if (moved) (i < kp ? p.a(kp, i) : p.a(i, kp)) = i < kp ? p.adjoint(p.a(i, kk)) : p.a(i, kk);
            store(i, p.w(i, k), steps == 2 || other ? p.w(i, k + 1) : scalar_t{});
        });
        if (moved && int(blockIdx.x) == p.owner(kp)) {
            for (int c = p.first + thread(); c < k; c += THREADS) {
                const scalar_t x = p.a(kk, c), y = p.w(kk, c);
                p.a(kk, c) = p.a(kp, c), p.w(kk, c) = p.w(kp, c);
                p.a(kp, c) = x, p.w(kp, c) = y;
            }
            if (thread() == 0) {
                const scalar_t x = p.w(kk, k), y = p.w(kk, k + 1);
                p.a(kp, kp) = p.on_diagonal(p.a(kk, kk));
                p.w(kp, k) = x, p.w(kp, k + 1) = y;
                store(kp, x, y);
            }
        }
        if (int(blockIdx.x) == p.owner(kp) && thread() == 0) {
            p.a(k, k) = other ? kept[2] : d0;
            if (steps == 2) p.a(kk, k) = kept[1], p.a(kk, kk) = kept[2];
            const int to = steps == 2 ? -p.number(kp) : p.number(kp);
            ipiv[k * rs] = ipiv[kk * rs] = to;
            if (none && *info == 0) *info = p.number(k);
        }
        __syncthreads();
        if (moved) {
            if (warp() == 0) {
                if (lane() == 0) meeting.tell({});
                meeting.hear(gridDim.x, [](const unsigned (&)[BITS + 1]) {});
            }
            ++meeting.number;
            __syncthreads();
        }
        k += steps;
    }
    if (k < end) p.for_rows(int(end), [&](int i) { p.w(i, int(end) - 1) = scalar_t{}; });
    if (blockIdx.x == 0 && thread() == 0) starts[panel + 1] = k;
}
