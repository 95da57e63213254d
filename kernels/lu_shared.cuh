// lu_shared.cuh: LU of one matrix that lies in shared memory, by a block, with partial pivoting
// unless UNPIVOTED.
//
// The first PANEL warps factor panels of 8 columns, one after the other, ROWS rows to a lane; the
// last 32 rows are the first warp's alone. In a panel rows stay with their lanes and carry their
// places: a step is the choice of the pivot by each warp and among the warps, its row through
// shared memory, and products within the lanes. The other warps bring the columns beside the panel
// up to date, TN at a time: they interchange rows, solve with the panel's 8 x 8 L, a column to a
// lane, and subtract the product of the L below and these rows. The columns of the next panel are
// the first warps' own, so that they factor while the others still update, and all meet once a
// panel.
//
// The pivot is LAPACK's, the largest |re| + |im|, of equals the one in the lowest place, and so is
// the arithmetic. UNPIVOTED, row k is that of step k, no row moves, and a pivot that is zero counts
// as 1. Rows and columns come in eights: what lies between n and there means nothing, and is never
// looked at by others. Rows are LD apart whatever n is, so that an element is at a constant
// distance from the lane's first.
#pragma once
#include "moves.cuh"
#include "pivot.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int N = 64;       // the largest order
constexpr int PANEL = 1, TN = 16, BLOCKS = 1;
constexpr int WINDOW = 64;  // columns in shared memory at a time: all, or fewer (lu_windows.cuh)
constexpr int TIGHT = 0;    // 1: no gap between rows, where another block has room then
constexpr int UNPIVOTED = 0;  // 1: no row moves
#endif
constexpr int NB = 8;       // columns of a panel
constexpr int ROWS = (N + 32 * PANEL - 1) / (32 * PANEL);
constexpr bool TENSOR = sizeof(real_t) == 8;
// Rows an odd number of 16 bytes (s, c) or 32 (d) apart meet no bank twice, vector by vector or by
// the tensor cores' operands.
constexpr bool IN_WINDOWS = WINDOW < N;
constexpr int ACROSS = WINDOW + BESIDE;
constexpr int LD = ACROSS + (TIGHT ? 0 : sizeof(scalar_t) == sizeof(real_t) ? 4 : 2);
// Two panels of a matrix in windows, rows apart so that no bank is met twice
constexpr int PITCH = TENSOR ? 12 : NB + VECTOR, PASSING = IN_WINDOWS ? 2 * PITCH : 0;
static_assert(N % NB == 0 && BESIDE % NB == 0 && TN <= 32 && PANEL <= WARPS);

__host__ __device__ constexpr int whole_panels(int n) { return (n + NB - 1) / NB * NB; }

struct alignas(16) Four { int x[4]; };
struct Head {              // a row that may become the pivot's, on its way to all lanes
    alignas(16) scalar_t row[NB], inverse;
    Four bid;              // its upper word, its place, its lower word
};
struct Exchange {          // where the rows are that a panel brings to its top, and where those
    Four from[2], to[2];   // there go: how far from the top, in numbers
};
struct Shared {            // lies behind the matrix
    Head head[2][PANEL];
    Exchange exchange[2];  // of this panel and of the next
    int info;
};

// Element (i, j) of what begins at p, rows APART apart
template <int APART = LD> __device__ inline scalar_t* at(scalar_t* p, int i, int j)
{
    return p + i * APART + j;
}

using Row = scalar_t[NB];

__device__ inline Vector& vector_at(scalar_t* p) { return *reinterpret_cast<Vector*>(p); }

// A row of a panel in shared memory, and back; those before column `first` need not come along.
__device__ inline void read_row(const scalar_t* from, Row& x, int first = 0)
{
    #pragma unroll
    for (int j = 0; j < NB; j += VECTOR) {
        if (j + VECTOR <= first) continue;
        const Vector v = *reinterpret_cast<const Vector*>(from + j);
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) x[j + e] = v.x[e];
    }
}
__device__ inline void write_row(scalar_t* to, const Row& x, int first = 0)
{
    #pragma unroll
    for (int j = 0; j < NB; j += VECTOR) {
        if (j + VECTOR <= first) continue;
        Vector v;
        #pragma unroll
        for (int e = 0; e < VECTOR; ++e) v.x[e] = x[j + e];
        vector_at(to + j) = v;
    }
}

// c := c - a b and a := a b if `it`, without a branch and without a select
#ifndef BLASX_SIM
__device__ inline void subtract_if(bool it, double& c, double a, double b)
{
    asm("{.reg .pred p; setp.ne.s32 p, %3, 0; @p fma.rn.f64 %0, %1, %2, %0;}"
        : "+d"(c) : "d"(-a), "d"(b), "r"(int(it)));
}
__device__ inline void subtract_if(bool it, float& c, float a, float b)
{
    asm("{.reg .pred p; setp.ne.s32 p, %3, 0; @p fma.rn.f32 %0, %1, %2, %0;}"
        : "+f"(c) : "f"(-a), "f"(b), "r"(int(it)));
}
__device__ inline void scale_if(bool it, double& a, double b)
{
    asm("{.reg .pred p; setp.ne.s32 p, %2, 0; @p mul.rn.f64 %0, %0, %1;}"
        : "+d"(a) : "d"(b), "r"(int(it)));
}
__device__ inline void scale_if(bool it, float& a, float b)
{
    asm("{.reg .pred p; setp.ne.s32 p, %2, 0; @p mul.rn.f32 %0, %0, %1;}"
        : "+f"(a) : "f"(b), "r"(int(it)));
}
#else
template <class R> void subtract_if(bool it, R& c, R a, R b) { if (it) c = fma(-a, b, c); }
template <class R> void scale_if(bool it, R& a, R b) { if (it) a = a * b; }
#endif
template <class R>
__device__ void subtract_if(bool it, complex<R>& c, complex<R> a, complex<R> b)
{
    subtract_if(it, c.re, a.re, b.re);
    subtract_if(it, c.re, -a.im, b.im);
    subtract_if(it, c.im, a.re, b.im);
    subtract_if(it, c.im, a.im, b.re);
}
template <class R> __device__ void scale_if(bool it, complex<R>& a, complex<R> b)
{
    const complex<R> product = mul(a, b);
    a = it ? product : a;
}

// -- a panel, by one warp

// The pivot of a warp, where more than one of its rows begins with the same upper word, or the
// reciprocal of such a number is out of the ordinary
struct Settled {
    scalar_t inverse;  // of the lane's own row
    unsigned second;   // the pivot's lower word
    int where;         // its place
};

// The best of a lane's rows in question is `own`, with the lower word `low`; `place` is past all
// places where there is none. Rare, and so one text for all steps of all panels.
__device__ __noinline__ Settled settled(scalar_t own, unsigned low, unsigned place)
{
    const unsigned second = __reduce_max_sync(EVERY, low);
    const unsigned where = __reduce_min_sync(EVERY, low == second ? place : EVERY);
    return {inverse_of(own), second, int(where)};
}

// Leaves its key to the pivot alone.
template <int R>
__device__ Settled settle(const Row (&x)[R], int r, const int (&place)[R], unsigned (&key)[R],
                          unsigned most)
{
    unsigned best = 0, at = EVERY;
    scalar_t own = real_t(1);
    #pragma unroll
    for (int q = 0; q < R; ++q) {
        const unsigned low = lower_word(abs1(x[q][r]));
        if (key[q] == most && (low > best || (low == best && unsigned(place[q]) < at)))
            best = low, at = place[q], own = x[q][r];
    }
    const Settled all = settled(own, best, at);
    #pragma unroll
    for (int q = 0; q < R; ++q) key[q] = place[q] == all.where ? key[q] : 0;
    return all;
}

// The rows below the pivot in place `where` are lifted as the reciprocal of a tiny one is.
template <int R>
__device__ void lift(Row (&x)[R], int r, const int (&place)[R], int where)
{
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (place[q] >= r && place[q] != where) x[q][r] = mul(x[q][r], LIFT);
}

// UNPIVOTED, inverse_of a pivot that is tiny, huge or nan, or zero, which counts as 1. Rare.
__device__ __noinline__ scalar_t unusual_inverse(scalar_t pivot)
{
    return abs1(pivot) == 0 ? scalar_t{1} : inverse_of(pivot);
}

// All of the warps that factor a panel wait for each other.
template <int P> __device__ void meet()
{
    if constexpr (P == 1) {
        __syncwarp();
    } else {
#ifndef BLASX_SIM
        asm volatile("bar.sync 1, %0;" :: "n"(32 * P) : "memory");
#else
        sim::meet(32 * P);
#endif
    }
}

// Whether bid a is ahead of b: larger, or as large and in a lower place. Without a branch, across
// which the bids would be loaded one after the other.
__device__ inline bool ahead(const Four& a, const Four& b)
{
    const unsigned hi = a.x[0], most = b.x[0], lo = a.x[2], second = b.x[2];
    bool even = hi == most, more = hi > most;
    if (sizeof(real_t) == 8) more = more | (even & (lo > second)), even = even & (lo == second);
    return more | (even & (a.x[1] < b.x[1]));
}

// The pivot among the warps' offers: its bid, its row from column r on, its reciprocal. All bids are
// on their way before one is looked at; of a warp without a row only the upper word means anything.
template <int P>
__device__ Four best_of(const Head (&heads)[PANEL], Row& u, scalar_t& inverse, int r)
{
    Four bid[P];
    #pragma unroll
    for (int w = 0; w < P; ++w) bid[w] = heads[w].bid, bid[w].x[3] = w;
    #pragma unroll
    for (int apart = 1; apart < P; apart *= 2)
        #pragma unroll
        for (int w = 0; w + apart < P; w += 2 * apart) {
            const bool other = ahead(bid[w + apart], bid[w]);
            #pragma unroll
            for (int e = 0; e < 4; ++e) bid[w].x[e] = other ? bid[w + apart].x[e] : bid[w].x[e];
        }
    const Head& head = heads[bid[0].x[3]];
    read_row(head.row, u, r);
    inverse = head.inverse;
    return bid[0];
}

// Step r where rows stay in their order, by way of `head`; true if the pivot is zero
template <int R, int P>
__device__ bool step_in_order(Row (&x)[R], int r, const int (&place)[R], Head& head)
{
    if (thread() == r) {
        const real_t size = abs1(x[0][r]);
        const bool usual = size >= TINY && size < HUGE;
        head.inverse = usual ? near_reciprocal(x[0][r]) : unusual_inverse(x[0][r]);
        write_row(head.row, x[0], r);
    }
    meet<P>();
    Row u;
    read_row(head.row, u, r);
    const scalar_t inverse = head.inverse;
    const real_t size = abs1(u[r]);
    if (size < TINY && size != 0) lift(x, r, place, r);
    #pragma unroll
    for (int q = 0; q < R; ++q) {
        const bool below = place[q] > r;
        scale_if(below, x[q][r], inverse);
        #pragma unroll
        for (int c = r + 1; c < NB; ++c) subtract_if(below, x[q][c], x[q][r], u[c]);
    }
    return size == 0;
}

// Factor the first `steps` columns of the panel at `top`, m rows, which it puts in place; `update`:
// the product of the 8 columns to the left and the 8 rows above is subtracted first. Returns the
// first step, from 1, whose pivot is zero, else 0. piv[r] := first + the place of row r's partner.
template <int R, int P>
__device__ int factor_rows(scalar_t* top, int m, int steps, bool update, Shared& s,
                           Exchange& exchange, int* piv, int first)
{
    Row x[R];
    int place[R], info = 0, partner = 0;
    #pragma unroll
    for (int q = 0; q < R; ++q) {
        const int i = thread() + 32 * P * q;
        place[q] = i < m ? i : -1;
        read_row(at(top, i < m ? i : 0, 0), x[q]);
    }
    if (update)
        #pragma unroll 1
        for (int p = -NB; p < 0; p += VECTOR) {
            Vector l[R];
            #pragma unroll
            for (int q = 0; q < R; ++q)
                l[q] = vector_at(at(top, place[q] < 0 ? 0 : place[q], p));
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e) {
                Row u;
                read_row(at(top, p + e, 0), u);
                #pragma unroll
                for (int q = 0; q < R; ++q)
                    #pragma unroll
                    for (int c = 0; c < NB; ++c) x[q][c] = minus_product(x[q][c], l[q].x[e], u[c]);
            }
        }
    #pragma unroll
    for (int r = 0; r < NB; ++r) {
        if (r >= steps) break;
        if constexpr (UNPIVOTED) {
            if (step_in_order<R, P>(x, r, place, s.head[r % 2][0]) && !info) info = r + 1;
            continue;
        }
        unsigned key[R], own = 0;
        scalar_t best = x[0][r];
        #pragma unroll
        for (int q = 0; q < R; ++q) {
            key[q] = place[q] >= r ? upper_word(x[q][r]) : 0;
            best = key[q] > own ? x[q][r] : best;
            own = key[q] > own ? key[q] : own;
        }
        scalar_t inverse = near_reciprocal(best);
        const unsigned most = __reduce_max_sync(EVERY, own);
        bool any = false, twice = false;
        #pragma unroll
        for (int q = 0; q < R; ++q) {
            twice = twice || (any && key[q] == most);
            any = any || key[q] == most;
        }
        const unsigned who = __ballot_sync(EVERY, any);
        const unsigned more = R > 1 ? __ballot_sync(EVERY, twice) : 0;
        const unsigned least = upper_word(TINY), past = upper_word(HUGE);
        const bool none = P > 1 && most == 0;  // no row of this warp takes part
        if (!none && ((who & (who - 1)) | more | (most - least >= past - least))) {
            const Settled all = settle(x, r, place, key, most);
            inverse = all.inverse;
            if (P == 1 && most < least) {
                if (most == 1 && all.second == 0 && !info) info = r + 1;
                lift(x, r, place, all.where);
            }
        }
        Head (&heads)[PANEL] = s.head[r % 2];
        Head& mine = heads[P == 1 ? 0 : warp()];
        #pragma unroll
        for (int q = 0; q < R; ++q)
            if (key[q] == most && !none) {
                write_row(mine.row, x[q], r + 1);
                mine.inverse = inverse;
                if (P == 1) mine.bid.x[1] = place[q];
                else mine.bid = {{int(most), place[q], int(lower_word(abs1(x[q][r])))}};
            }
        if (none && lane_id() == 0) mine.bid.x[0] = 0;
        meet<P>();
        Four bid;
        Row u;
        if constexpr (P == 1) {
            bid.x[1] = mine.bid.x[1];
            read_row(mine.row, u, r + 1);
            inverse = mine.inverse;
        } else {
            bid = best_of<P>(heads, u, inverse, r + 1);
        }
        const int chosen = bid.x[1];
        if (P > 1 && unsigned(bid.x[0]) < least) {
            if (bid.x[0] == 1 && bid.x[2] == 0 && !info) info = r + 1;
            lift(x, r, place, chosen);
        }
        if (lane_id() == r) partner = chosen;
        #pragma unroll
        for (int q = 0; q < R; ++q) {
            const bool it = P == 1 ? key[q] == most : place[q] == chosen;
            const bool below = place[q] >= r && !it;
            place[q] = it ? r : place[q] == r ? chosen : place[q];
            scale_if(below, x[q][r], inverse);
            #pragma unroll
            for (int c = r + 1; c < NB; ++c) subtract_if(below, x[q][c], x[q][r], u[c]);
        }
    }
    int* const from = exchange.from[0].x, * const to = exchange.to[0].x;
    #pragma unroll
    for (int q = 0; q < R; ++q) {
        const int i = thread() + 32 * P * q;
        if (place[q] < 0) continue;
        write_row(at(top, place[q], 0), x[q]);
        if (UNPIVOTED) continue;
        if (place[q] < steps) from[place[q]] = i * LD;
        if (i < steps) to[i] = place[q] * LD;
    }
    if (piv && thread() < steps) piv[thread()] = first + partner;
    return info;
}

// The same, with no more rows to a lane than there are
template <int R, int P>
__device__ int factor(scalar_t* top, int m, int steps, bool update, Shared& s, Exchange& exchange,
                      int* piv, int first)
{
    if constexpr (R > 1)
        if (m <= 32 * P * (R - 1))
            return factor<R - 1, P>(top, m, steps, update, s, exchange, piv, first);
    return factor_rows<R, P>(top, m, steps, update, s, exchange, piv, first);
}

// -- the columns beside it

// A column whose row at the panel's top is `top`: its rows are interchanged if EXCHANGED, and solved
// with the triangle at `l`, rows APART apart, if SOLVE. Where a row at the top stays there what is
// written for it at first is written again.
template <bool SOLVE, bool EXCHANGED = !UNPIVOTED, int APART = LD>
__device__ void beside(const Exchange& exchange, scalar_t* top, scalar_t* l, int steps)
{
    Row y;
    if constexpr (EXCHANGED) {
        const Exchange e = exchange;
        Row z;
        #pragma unroll
        for (int i = 0; i < NB; ++i)
            if (i < steps) y[i] = top[e.from[i / 4].x[i % 4]], z[i] = *at(top, i, 0);
        #pragma unroll
        for (int i = 0; i < NB; ++i)
            if (i < steps) top[e.to[i / 4].x[i % 4]] = z[i];
    } else {
        #pragma unroll
        for (int i = 0; i < NB; ++i) if (i < steps) y[i] = *at(top, i, 0);
    }
    if (SOLVE)
        #pragma unroll
        for (int i = 1; i < NB; ++i) {
            if (i >= steps) break;
            Row x;
            read_row(at<APART>(l, i, 0), x);
            #pragma unroll
            for (int p = 0; p < i; ++p) y[i] = minus_product(y[i], x[p], y[p]);
        }
    #pragma unroll
    for (int i = 0; i < NB; ++i)
        if (i < steps) *at(top, i, 0) = y[i];
}

// 8 rows and 8 WIDE columns of C, and 8 columns of L beside them, the lanes as the tensor cores
// want them: `c` and `l` are where a lane's parts begin
template <int WIDE> struct Tiles {
    scalar_t a[2], sum[WIDE][2];

    __device__ void load(scalar_t* c, scalar_t* l)
    {
        a[0] = mul(l[0], real_t(-1)), a[1] = mul(l[4], real_t(-1));
        #pragma unroll
        for (int j = 0; j < WIDE; ++j)
            #pragma unroll
            for (int e = 0; e < 2; e += VECTOR) {
                const Vector v = vector_at(c + 8 * j + e);
                #pragma unroll
                for (int f = 0; f < VECTOR; ++f) sum[j][e + f] = v.x[f];
            }
    }
    __device__ void multiply(const scalar_t (&b)[WIDE][2])
    {
        #pragma unroll
        for (int h = 0; h < 2; ++h)
            #pragma unroll
            for (int j = 0; j < WIDE; ++j)
                tensor_product(sum[j][0], sum[j][1], a[h], b[j][h]);
    }
    __device__ void store(scalar_t* c) const
    {
        #pragma unroll
        for (int j = 0; j < WIDE; ++j)
            #pragma unroll
            for (int e = 0; e < 2; e += VECTOR) {
                Vector v;
                #pragma unroll
                for (int f = 0; f < VECTOR; ++f) v.x[f] = sum[j][e + f];
                vector_at(c + 8 * j + e) = v;
            }
    }
};

// C -= L U by one warp, C being m x W, both multiples of 8, m > 0; L has 8 columns and rows APART
// apart, U 8 rows
template <int W, int APART = LD> __device__ void subtract(scalar_t* c, scalar_t* l, scalar_t* u, int m)
{
    if constexpr (TENSOR) {
        const int g = lane_id() / 4, t = lane_id() % 4;
        scalar_t b[W / 8][2];
        #pragma unroll
        for (int j = 0; j < W / 8; ++j)
            #pragma unroll
            for (int h = 0; h < 2; ++h) b[j][h] = *at(u, t + 4 * h, 8 * j + g);
        c = at(c, g, 2 * t), l = at<APART>(l, g, t);
        Tiles<W / 8> now, next;
        now.load(c, l);
        #pragma unroll 1
        for (;;) {  // what comes next is loaded before this is stored
            scalar_t* const here = c;
            c = at(c, NB, 0), l = at<APART>(l, NB, 0), m -= NB;
            if (m > 0) next.load(c, l);
            now.multiply(b);
            now.store(here);
            if (m <= 0) break;
            now = next;
        }
    } else {
        constexpr int lanes = W / VECTOR, down = 32 / lanes;
        const int j = lane_id() % lanes * VECTOR;
        Vector b[NB];
        #pragma unroll
        for (int p = 0; p < NB; ++p) b[p] = vector_at(at(u, p, j));
        #pragma unroll 2
        for (int i = lane_id() / lanes; i < m; i += down) {
            Row a;
            read_row(at<APART>(l, i, 0), a);
            Vector sum = vector_at(at(c, i, j));
            #pragma unroll
            for (int p = 0; p < NB; ++p)
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    sum.x[e] = minus_product(sum.x[e], a[p], b[p].x[e]);
            vector_at(at(c, i, j)) = sum;
        }
    }
}

// Columns j and after, `width` <= TN of them in eights, right of the panel at (k, k) of a
__device__ inline void right_of(const Exchange& exchange, scalar_t* a, int k, int down, int steps,
                                int j, int width)
{
    scalar_t* const top = at(a, k, j), * const panel = at(a, k, k);
    if (lane_id() < width) beside<true>(exchange, top + lane_id(), panel, steps);
    __syncwarp();
    if (steps < NB || down <= k + NB) return;  // no row is below, or no column right of it
    scalar_t* const c = at(top, NB, 0), * const l = at(panel, NB, 0);
    if (width == TN) {
        subtract<TN>(c, l, top, down - k - NB);
    } else {
        #pragma unroll 1
        for (int e = 0; e < width; e += NB) subtract<NB>(c + e, l, top + e, down - k - NB);
    }
}

// The columns of the panel at `next`, by the warps that will factor it, `together` or the first
// alone; in single precision they subtract the product later.
__device__ inline void next_panel(const Exchange& exchange, scalar_t* a, int next, int down,
                                  bool together)
{
    const auto meet_all = [=] {
        if (together) meet<PANEL>();
        else meet<1>();
    };
    scalar_t* const top = at(a, next - NB, next), * const before = at(a, next - NB, next - NB);
    if (thread() < NB) beside<true>(exchange, top + thread(), before, NB);
    meet_all();
    if (!TENSOR) return;
    const int rows = down - next;
    const int part = together ? (rows / NB + PANEL - 1) / PANEL * NB : rows, first = warp() * part;
    if (first < rows)
        subtract<NB>(at(a, next + first, next), at(before, NB + first, 0), top,
                         rows - first < part ? rows - first : part);
    meet_all();
}

// P A = L U of the m x n matrix `a` in shared memory; columns from whole_panels(n) to `cols` are
// right-hand sides, of which inv(L) P b is left. Pivots count from `above`. Returns info, in the
// first warp. All wait at the end.
__device__ inline int lu_in_shared(Shared& s, scalar_t* a, int* piv, int m, int n, int cols,
                                   int above = 0)
{
    const int order = m < n ? m : n, end = whole_panels(cols), down = whole_panels(m);
    int info = 0, turn = 0;
    #pragma unroll 1
    for (int k = -NB; k < order; k += NB, turn ^= 1) {  // the panel at k is done, the next one not
        const int steps = order - k < NB ? order - k : NB, next = k + NB;
        const Exchange& exchange = s.exchange[turn];
        const bool more = next < order;
        const int factoring = !more ? 0 : PANEL > 1 && m - next > 32 ? PANEL : 1;
        if (warp() < factoring) {
            const int left = order - next, few = left < NB ? left : NB;
            const bool update = !TENSOR && k >= 0;
            int* const pivots = piv ? piv + next : piv;
            scalar_t* const panel = at(a, next, next);
            int zero;
            if (k >= 0) next_panel(exchange, a, next, down, PANEL > 1 && factoring > 1);
            if (PANEL > 1 && factoring > 1) {
                zero = factor<ROWS, PANEL>(panel, m - next, few, update, s, s.exchange[turn ^ 1],
                                           pivots, above + next);
            } else {
                zero = factor<PANEL == 1 ? ROWS : 1, 1>(panel, m - next, few, update, s,
                                                        s.exchange[turn ^ 1], pivots, above + next);
            }
            if (zero && !info) info = next + zero;
        }
        const int busy = WARPS > factoring ? factoring : 0, first = next + (more ? NB : 0);
        if (k >= 0 && warp() >= busy) {
            const int right = first < end ? (end - first + TN - 1) / TN : 0;
            const int strips = right + (UNPIVOTED ? 0 : (k + 31) / 32);
            #pragma unroll 1
            for (int strip = warp() - busy; strip < strips; strip += WARPS - busy) {
                if (strip < right) {
                    const int j = first + strip * TN, width = end - j < TN ? end - j : TN;
                    right_of(exchange, a, k, down, steps, j, width);
                } else {
                    const int j = 32 * (strip - right) + lane_id();
                    if (j < k) beside<false>(exchange, at(a, k, j), at(a, k, k), steps);
                }
            }
        }
        __syncthreads();
    }
    return info;
}

// -- memory

// The matrix of a block, m rows, then two panels that pass by, then what the warps share
__device__ inline scalar_t* matrix_in_shared()
{
    return reinterpret_cast<scalar_t*>(dynamic_shared);
}
__device__ inline scalar_t* panels_behind(int m)
{
    return at(matrix_in_shared(), whole_panels(m), 0);
}
__device__ inline Shared& behind(int m)
{
    return *reinterpret_cast<Shared*>(at<PASSING>(panels_behind(m), whole_panels(m), 0));
}
