// qr_columns.cuh: the columns of a panel, one after the other, by a block.
//
// A panel of PB columns is factored with its rows in registers, a row to a thread (ROWS of them,
// THREADS apart): a step sums x^H a for all columns over the lanes, then over the warps, at one
// barrier. In shared memory rows of NB numbers are LD apart: the kernel says so, and NB, and what S
// it keeps there, with members z, tau, row, sums, most and f.
#pragma once
#include "block.cuh"
#include "compiling.cuh"
#include "qr.cuh"
#include "shuffle.cuh"

constexpr int DEEP = sizeof(scalar_t) == 4 ? 16 : 8;  // loads that are under way together
constexpr int PB = NB < 16 ? NB : 16;  // columns whose rows fit registers

struct alignas(16) Vector { scalar_t x[16 / sizeof(scalar_t)]; };

__device__ inline int lane() { return threadIdx.x % 32; }

// store(o, i, load(o, i)) for all o < outer, i < inner, neighbours in i being ACROSS lanes wide, and
// many loads under way
template <int ACROSS, class Load, class Store>
__device__ void moved(int outer, int inner, Load load, Store store)
{
    constexpr int down = 32 / ACROSS, step = WARPS * down;
    for (int i = lane() % ACROSS; i < inner; i += ACROSS)
        #pragma unroll 1
        for (int o = warp() * down + lane() / ACROSS; o < outer; o += DEEP * step) {
            scalar_t x[DEEP];
            #pragma unroll
            for (int d = 0; d < DEEP; ++d)
                if (o + d * step < outer) x[d] = load(o + d * step, i);
            #pragma unroll
            for (int d = 0; d < DEEP; ++d)
                if (o + d * step < outer) store(o + d * step, i, x[d]);
        }
}
// The same for the elements (i, j) of an m x n matrix, along the rows if `by_rows`
template <int ACROSS, class Load, class Store>
__device__ void moved(int m, int n, bool by_rows, Load load, Store store)
{
    if (by_rows) moved<ACROSS>(m, n, load, store);
    else moved<32>(n, m, [&](int j, int i) { return load(i, j); },
                   [&](int j, int i, scalar_t x) { store(i, j, x); });
}

// Sums over the lanes of a warp of K numbers each: lane l ends with that of number l / (32 / K).
template <int K, int MASK = 16> __device__ scalar_t lane_sums(const scalar_t (&x)[K])
{
    const bool upper = lane() & MASK;
    if constexpr (K > 1) {
        scalar_t half[K / 2];
        #pragma unroll
        for (int i = 0; i < K / 2; ++i) {
            const scalar_t mine = upper ? x[i + K / 2] : x[i], its = upper ? x[i] : x[i + K / 2];
            half[i] = add(mine, across(its, MASK));
        }
        return lane_sums<K / 2, MASK / 2>(half);
    } else {
        const scalar_t sum = add(x[0], across(x[0], MASK));
        if constexpr (MASK > 1) {
            const scalar_t one[1] = {sum};
            return lane_sums<1, MASK / 2>(one);
        } else {
            return sum;
        }
    }
}

// Sums over the block: lane l has that of number l % PB. One barrier; `turn` alternates.
template <class S>
__device__ scalar_t block_sums(const scalar_t (&x)[PB], S& s, int turn)
{
    const scalar_t mine = lane_sums(x);
    if (lane() % (32 / PB) == 0) s.sums[turn][warp()][lane() / (32 / PB)] = mine;
    __syncthreads();
    scalar_t sum = s.sums[turn][0][lane() % PB];
    #pragma unroll
    for (int w = 1; w < WARPS; ++w) sum = add(sum, s.sums[turn][w][lane() % PB]);
    return sum;
}

// The largest over the block; two barriers
template <class S> __device__ real_t block_most(real_t x, S& s)
{
    x = most_of_lanes(x);
    if (lane() == 0) s.most[warp()] = x;
    __syncthreads();
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) x = larger(x, s.most[w]);
    __syncthreads();
    return x;
}

// Factor the rows x PB panel in V: R on and above the diagonal, the reflectors below it; tau and
// V^H V go to `s` as those of columns `first` and on. Columns from `count` on get no reflector:
// a tau of zero, and no step.
// NEAR: real numbers, by qr.cuh's reflectors without a branch.
template <bool NEAR = false, class S>
__device__ void factor_panel(scalar_t* V, S& s, int rows, int count, int first)
{
    scalar_t a[ROWS][PB];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int r = thread() + i * THREADS;
        #pragma unroll
        for (int c = 0; c < PB; ++c) a[i][c] = scalar_t{};
        if (r < rows)
            #pragma unroll
            for (int c = 0; c < PB; ++c) a[i][c] = V[r * LD + c];
    }
    const int steps = count < PB ? count : PB;
    // In step j register c holds column (c + j) % PB, so that the loop is not unrolled.
    #pragma unroll 1
    for (int j = 0; j < steps; ++j) {
        scalar_t part[PB], x[ROWS];
        #pragma unroll
        for (int i = 0; i < ROWS; ++i)
            x[i] = thread() + i * THREADS > j ? a[i][0] : scalar_t{};
        #pragma unroll
        for (int c = 0; c < PB; ++c) {
            part[c] = scalar_t{};
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) part[c] = plus_inner(part[c], x[i], a[i][c]);
        }
        if (thread() == j)
            #pragma unroll
            for (int c = 0; c < PB; ++c) s.row[j % 2][c] = a[0][c];
        scalar_t sum = block_sums(part, s, j % 2);
        real_t squares = real(of_lane(sum, 0));
        scalar_t alpha = s.row[j % 2][0];
        bool none = false;
        Power undo{1, 1};
        if (!(squares >= LEAST)) {                    // rare: x is zero, tiny or nan
            real_t most = 0;
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) most = larger(most, x[i]);
            most = block_most(most, s);
            none = most == 0 && imaginary(alpha) == 0;
            const Power power = to_one(larger(most, alpha));
            undo = power.inverse();
            alpha = power.times(alpha);
            #pragma unroll
            for (int i = 0; i < ROWS; ++i) x[i] = power.times(x[i]);
            #pragma unroll
            for (int c = 0; c < PB; ++c) {
                part[c] = scalar_t{};
                #pragma unroll
                for (int i = 0; i < ROWS; ++i)
                    part[c] = plus_inner(part[c], x[i], c ? a[i][c] : x[i]);
            }
            sum = block_sums(part, s, j % 2);
            squares = real(of_lane(sum, 0));
        }
        const Reflector h = reflector<NEAR>(alpha, squares, none);
        const int c = lane() % PB;
        const bool earlier = c >= PB - j;
        const scalar_t head = s.row[j % 2][c];
        const scalar_t f = c && !earlier
            ? mul(conj(h.tau), add(head, mul(conj(h.scale), sum))) : scalar_t{};
        if (lane() < PB) {
            s.f[warp()][c] = f;
            if (warp() == 0 && earlier)
                s.z[first + c + j - PB][first + j] = add(conj(head), mul(conj(sum), h.scale));
            if (warp() == 0 && c == 0) s.tau[first + j] = h.tau;
        }
        __syncwarp();
        scalar_t all[PB];
        #pragma unroll
        for (int c = 0; c < PB; ++c) all[c] = s.f[warp()][c];
        __syncwarp();
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int r = thread() + i * THREADS;
            scalar_t v = mul(x[i], h.scale), kept = r > j ? v : a[i][0];
            if (r == j) {
                v = none ? scalar_t{} : scalar_t{1};
                if (!none) kept = scalar_t{undo.times(h.beta)};
            }
            if (none) kept = a[i][0];
            #pragma unroll
            for (int c = 1; c < PB; ++c) a[i][c - 1] = minus_product(a[i][c], v, all[c]);
            a[i][PB - 1] = kept;
        }
    }
    const int done = steps > 0 ? steps : 0;
    #pragma unroll 1
    for (int j = done; j < PB; ++j) {
        if (thread() < j) s.z[first + thread()][first + j] = scalar_t{};
        if (thread() == j) s.tau[first + j] = scalar_t{};
    }
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int r = thread() + i * THREADS;
        if (r < rows)
            #pragma unroll
            for (int c = 0; c < PB; ++c) V[r * LD + (c + done) % PB] = a[i][c];
    }
}

// Row r of V, of T or of Z, 16 bytes at a time
template <int K> __device__ void row_of(scalar_t (&v)[K], const scalar_t* V, int r)
{
    constexpr int few = 16 / sizeof(scalar_t);
    #pragma unroll
    for (int c = 0; c < K; c += few) {
        const Vector x = *reinterpret_cast<const Vector*>(V + r * LD + c);
        #pragma unroll
        for (int e = 0; e < few; ++e) v[c + e] = x.x[e];
    }
}

// T of K reflectors from tau and V^H V, by one warp, a row to a lane: T e_l = tau_l (e_l - T V^H v_l);
// store(c, l, T(c, l))
template <int K, class S, class Store> __device__ void form_t(const S& s, Store store)
{
    const int c = lane();
    if (c < K) {
        scalar_t sums[K] = {};
        #pragma unroll
        for (int l = 0; l < K; ++l) {
            const scalar_t tau = s.tau[l];
            const scalar_t t = c < l ? mul(mul(tau, sums[l]), real_t(-1)) : c == l ? tau : scalar_t{};
            store(c, l, t);
            if (l < c) continue;
            look_no_further_back();
            scalar_t z[K];
            row_of(z, s.z[0], l);
            #pragma unroll
            for (int j = l + 1; j < K; ++j) sums[j] = plus_inner(sums[j], conj(t), z[j]);
        }
    }
}
