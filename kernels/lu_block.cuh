// lu_block.cuh: LU of one matrix by the threads of a block, in panels of NB columns.
//
// A panel is in registers, ROWS rows to a thread. Its rows stay with their threads and carry their
// places, so that a step costs one barrier: every warp offers its best row, all choose among the
// offers. The pivot is LAPACK's, the largest |re| + |im|, of equals the one in the lowest place,
// and so is the arithmetic; without PIVOT one that is zero counts as 1. The columns beside the
// panel are permuted and solved with its triangle by a thread each; what is below is a product of
// the panel and these rows.
//
// RESIDENT: the whole matrix is in shared memory, and crosses memory once each way. Else the
// matrix is worked on where the result goes; shared memory holds the panel and CHUNK columns of U
// at a time, and the rest crosses n / NB times.
#pragma once
#include "async.cuh"
#include "compiling.cuh"
#include "multiply.cuh"
#include "pivot.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int NB = 16, ROWS = 1, RESIDENT = 1, CHUNK = 64, TM = 16, TN = 16, UNROLL = 1,
              BLOCKS = 1;
#endif

struct alignas(16) Offer {  // a warp's best row
    scalar_t row[NB], inverse;
    unsigned hi, lo;
    int place;
};

// What the threads of a block share while they factor
struct Shared {
    Offer offer[2][WARPS];
    int from[NB], to[NB];  // the rows that a panel brings to its top, and where those there go
};

// Rows of the panel at `p`, of which the first `steps` columns exist, m rows below its top.
struct Panel {
    scalar_t a[ROWS][NB];
    int place[ROWS];

    static __device__ int row(int q) { return thread() + THREADS * q; }

    __device__ void load(ByRows<scalar_t> p, int m, int width)
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            place[q] = row(q) < m ? row(q) : -1;
            #pragma unroll
            for (int j = 0; j < NB; j += VECTOR) {
                Vector v{};
                if (row(q) < m && j + VECTOR <= width) v = vector_of(p, row(q), j);
                else
                    #pragma unroll
                    for (int e = 0; e < VECTOR; ++e)
                        if (row(q) < m && j + e < width) v.x[e] = p(row(q), j + e);
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e) a[q][j + e] = v.x[e];
            }
        }
    }

    __device__ void store(ByRows<scalar_t> p, int width)
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            if (place[q] < 0) continue;
            #pragma unroll
            for (int j = 0; j < NB; j += VECTOR) {
                Vector v;
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e) v.x[e] = a[q][j + e];
                if (j + VECTOR <= width) *reinterpret_cast<Vector*>(&p(place[q], j)) = v;
                else
                    #pragma unroll
                    for (int e = 0; e < VECTOR; ++e)
                        if (j + e < width) p(place[q], j + e) = v.x[e];
            }
        }
    }

    // A warp's best row for step r, into its offer: what step r updates with it, zeros after that
    template <bool PIVOT> __device__ void bid(Offer& offer, int r)
    {
        unsigned hi = 0, lo = 0;
        int at = 1 << 30, own = 0;
        scalar_t best = real_t(1);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const real_t size = abs1(a[q][0]);
            const unsigned h = upper_word(size), l = lower_word(size);
            const bool better = (PIVOT ? place[q] >= r : place[q] == r)
                && (h > hi || (h == hi && (l > lo || (l == lo && place[q] < at))));
            hi = better ? h : hi, lo = better ? l : lo, at = better ? place[q] : at;
            own = better ? q : own, best = better ? a[q][0] : best;
        }
        const bool one = !PIVOT && abs1(best) == 0;
        const scalar_t inverse = one ? scalar_t{1} : inverse_of(best);
        if (!(PIVOT ? lane_id() == winner(hi, lo, at) : hi != 0)) return;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (q == own)
                #pragma unroll
                for (int j = 0; j < NB; j += VECTOR) {
                    Vector v;
                    #pragma unroll
                    for (int e = 0; e < VECTOR; ++e)
                        v.x[e] = j + e < NB - r ? a[q][j + e] : scalar_t{};
                    *reinterpret_cast<Vector*>(&offer.row[j]) = v;
                }
        offer.inverse = inverse, offer.hi = hi, offer.lo = lo, offer.place = at;
    }

    // Factor `steps` columns; returns the first of them, from 1, whose pivot is zero, else 0.
    // piv[r] := first + the place of row r's partner
    //
    // Every step turns the rows by one, so that its column is the first and the loop need not be
    // unrolled: code that runs once a panel would be fetched all the time. After NB steps they are
    // as they were.
    template <bool PIVOT> __device__ int factor(Shared& s, int steps, int* piv, int first)
    {
        int info = 0;
        #pragma unroll UNROLL
        for (int r = 0; r < NB; ++r) {
            scalar_t u[NB], l[ROWS];
            #pragma unroll
            for (int j = 0; j < NB; ++j) u[j] = scalar_t{};
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) l[q] = scalar_t{};
            bool below[ROWS] = {};
            if (r < steps) {
                Offer (&offers)[WARPS] = s.offer[r % 2];
                bid<PIVOT>(offers[PIVOT ? warp() : 0], r);
                int best = 0;
                if (WARPS == 1) __syncwarp();
                else {
                    __syncthreads();
                    if (PIVOT) {
                        const bool is = lane_id() < WARPS;
                        const Offer& o = offers[is ? lane_id() : 0];
                        best = winner(is ? o.hi : 0, is ? o.lo : 0, is ? o.place : 1 << 30);
                    }
                }
                const Offer& chosen = offers[best];
                #pragma unroll
                for (int j = 0; j < NB; j += VECTOR) {
                    const Vector v = *reinterpret_cast<const Vector*>(&chosen.row[j]);
                    #pragma unroll
                    for (int e = 0; e < VECTOR; ++e) u[j + e] = v.x[e];
                }
                const scalar_t inverse = chosen.inverse;
                const int p = chosen.place;
                const bool zero = abs1(u[0]) == 0, tiny = abs1(u[0]) < TINY && (PIVOT || !zero);
                if (zero && !info) info = r + 1;
                if (PIVOT && thread() == 0) piv[r] = first + p;
                #pragma unroll
                for (int q = 0; q < ROWS; ++q) {
                    const int was = place[q];
                    place[q] = was == p ? r : was == r ? p : was;
                    below[q] = place[q] > r;
                    l[q] = below[q] ? mul(tiny ? mul(a[q][0], LIFT) : a[q][0], inverse)
                                    : scalar_t{};
                }
            }
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) {
                const scalar_t last = below[q] ? l[q] : a[q][0];
                #pragma unroll
                for (int j = 1; j < NB; ++j) a[q][j - 1] = minus_product(a[q][j], l[q], u[j]);
                a[q][NB - 1] = last;
            }
        }
        return info;
    }

    // The interchanges of `steps` columns as two lists
    __device__ void lists(Shared& s, int steps)
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            if (place[q] < 0) continue;
            if (place[q] < steps) s.from[place[q]] = row(q);
            if (row(q) < steps) s.to[row(q)] = place[q];
        }
    }
};

constexpr int AT_ONCE = NB > 8 ? VECTOR : 1;  // numbers of a panel's triangle that are read together

// Column j of c, whose row 0 is the panel's top: its rows are interchanged, and solved with the
// triangle of `l` if SOLVE; the top goes to `top`, too, if COPY.
template <bool SOLVE, bool COPY, class C>
__device__ void beside(const Shared& s, const C& c, int j, ByRows<scalar_t> l, int steps,
                       ByRows<scalar_t> top, int at)
{
    scalar_t y[NB];
    #pragma unroll
    for (int i = 0; i < NB; ++i) if (i < steps) y[i] = c(s.from[i], j);
    #pragma unroll
    for (int i = 0; i < NB; ++i)
        if (i < steps && s.to[i] >= steps) c(s.to[i], j) = c(i, j);
    if (SOLVE)
        #pragma unroll
        for (int p = 0; p < NB; p += AT_ONCE) {
            if (p < steps)
                #pragma unroll
                for (int i = p + 1; i < NB; ++i)
                    if (i < steps) {
                        Vector v;
                        if (AT_ONCE > 1) v = vector_of(l, i, p);
                        else v.x[0] = l(i, p);
                        #pragma unroll
                        for (int e = 0; e < AT_ONCE; ++e)
                            if (p + e < i) y[i] = minus_product(y[i], v.x[e], y[p + e]);
                    }
            if (NB > 8) look_no_further_back();
        }
    #pragma unroll
    for (int i = 0; i < NB; ++i)
        if (i < steps) {
            c(i, j) = y[i];
            if (COPY) top(i, at) = y[i];
        }
}

// to := from, m x n, under way until await_all(). Neighbouring threads take neighbours in memory.
__device__ inline void begin_fetch(ByRows<scalar_t> to, Strided<const scalar_t> from, int m, int n)
{
    constexpr int word = sizeof(scalar_t);
    if (from.template in_packs<VECTOR>(n, 0)) {
        const int across = n / VECTOR;
        for (int e = thread(); e < m * across; e += THREADS) {
            const int i = e / across, j = (e - i * across) * VECTOR;
            copy_async<16>(&to(i, j), &from(i, j), 16);
        }
    } else {
        const bool by_rows = from.cs == 1;
        for_each(m, n, by_rows, [=](int i, int j) { copy_async<word>(&to(i, j), &from(i, j), word); });
    }
}
__device__ inline void await_all()
{
    end_group();
    await_groups<0>();
    __syncthreads();
}

// to := from, m x n, several loads of a thread under way together. Lines run along to's unit
// stride. The caller synchronises.
template <class T, class U>
__device__ void copy_all(Strided<T> to, Strided<U> from, int m, int n)
{
    constexpr int TURNS = 8;
    const bool by_rows = to.cs == 1;
    const int outer = by_rows ? m : n, inner = by_rows ? n : m;
    const size to_o = by_rows ? to.rs : to.cs, to_i = by_rows ? to.cs : to.rs;
    const size from_o = by_rows ? from.rs : from.cs, from_i = by_rows ? from.cs : from.rs;
    for (int o = warp(); o < outer; o += WARPS)
        for (int i = lane_id(); i < inner; i += 32 * TURNS) {
            scalar_t x[TURNS];
            #pragma unroll
            for (int e = 0; e < TURNS; ++e)
                if (i + 32 * e < inner) x[e] = from.p[o * from_o + (i + 32 * e) * from_i];
            #pragma unroll
            for (int e = 0; e < TURNS; ++e)
                if (i + 32 * e < inner) to.p[o * to_o + (i + 32 * e) * to_i] = x[e];
        }
}

// C -= A B where C is in global memory: by rows and in packs, if it lies so
template <class A, class B>
__device__ void subtract_product(Strided<scalar_t> c, A a, B b, int m, int n, int k)
{
    const bool in_packs = (size(c.p) | size(c.rs * sizeof(scalar_t))) % 16 == 0;
    if (c.cs == 1 && in_packs && c.rs < 1 << 20)
        multiply<-1, TM, TN>(ByRows<scalar_t>{c.p, int(c.rs)}, a, b, m, n, k);
    else multiply<-1, TM, TN>(c, a, b, m, n, k);
}

// P A = L U of the m x n matrix `in`, to `out`, which may be the same; returns info.
template <bool PIVOT>
__device__ int lu_of_block(Strided<const scalar_t> in, Strided<scalar_t> out, int* piv, int m,
                           int n)
{
    __shared__ Shared s;
    scalar_t* const memory = reinterpret_cast<scalar_t*>(dynamic_shared);
    const int order = m < n ? m : n;
    int info = 0;
    if constexpr (RESIDENT) {
        const ByRows<scalar_t> c{memory, leading(n)};
        begin_fetch(c, in, m, n);
        await_all();
        for (int k = 0; k < order; k += NB) {
            const int steps = order - k < NB ? order - k : NB, after = k + steps;
            const auto top = part(c, k, k);
            Panel panel;
            panel.load(top, m - k, steps);
            const int zero = panel.factor<PIVOT>(s, steps, piv + k, k);
            if (zero && !info) info = k + zero;
            panel.lists(s, steps);
            __syncthreads();
            panel.store(top, steps);
            __syncthreads();
            for (int j = thread(); j < n - steps; j += THREADS) {
                if (j < k) beside<false, false>(s, part(c, k, 0), j, top, steps, top, 0);
                else beside<true, false>(s, part(c, k, 0), j + steps, top, steps, top, 0);
            }
            __syncthreads();
            multiply<-1, TM, TN>(part(c, after, after), part(c, after, k), part(c, k, after),
                                 m - after, n - after, steps);
            __syncthreads();
        }
        copy_all(out, Strided<scalar_t>{memory, leading(n), 1}, m, n);
    } else {
        const ByRows<scalar_t> p{memory, leading(NB)};
        const ByRows<scalar_t> u{memory + size(m) * p.ld, leading(n < CHUNK ? n : CHUNK)};
        if (in.p != out.p) copy_all(out, in, m, n);
        __syncthreads();
        for (int k = 0; k < order; k += NB) {
            const int steps = order - k < NB ? order - k : NB, after = k + steps;
            const auto here = part(out, k, k), left = part(out, k, 0);
            begin_fetch(p, {here.p, here.rs, here.cs}, m - k, steps);
            await_all();
            Panel panel;
            panel.load(p, m - k, steps);
            const int zero = panel.factor<PIVOT>(s, steps, piv + k, k);
            if (zero && !info) info = k + zero;
            panel.lists(s, steps);
            __syncthreads();
            panel.store(p, steps);
            __syncthreads();
            put(here, Strided<scalar_t>{p.p, p.ld, 1}, m - k, steps);
            if (PIVOT)
                for (int j = thread(); j < k; j += THREADS)
                    beside<false, false>(s, left, j, p, steps, u, 0);
            for (int first = after; first < n; first += CHUNK) {
                const int width = n - first < CHUNK ? n - first : CHUNK;
                for (int j = thread(); j < width; j += THREADS)
                    beside<true, true>(s, left, first + j, p, steps, u, j);
                __syncthreads();
                subtract_product(part(out, after, first), part(p, steps, 0), u, m - after, width,
                                 steps);
                __syncthreads();
            }
        }
    }
    return info;
}
