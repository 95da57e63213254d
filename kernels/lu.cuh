// lu.cuh: LU of the matrix of a team, with partial pivoting unless UNPIVOTED.
//
// Rows never move, but in a lane alone. Each carries a tag, its place in the factor so far and its
// number in the lane's matrix; interchanging two rows is exchanging their places, and storing to
// them applies P.
// The pivot is LAPACK's: the largest |re| + |im|, of equals the one in the lowest place.
#pragma once
#include "factors.cuh"
#include "tiles.cuh"

#ifndef BLASX
constexpr int UNPIVOTED = 0;  // 1: the pivot of step k is row k's, and counts as 1 where it is zero
#endif
constexpr int PLACE = 8;    // a tag is place << PLACE | row; -1 for a row that does not exist
constexpr int ROW = (1 << PLACE) - 1;
using Tags = int[RN];

__device__ inline int place(int tag) { return tag >> PLACE; }

// What of a number's size decides first, as an unsigned: one more than its high word, so that any
// number is more than the 0 of a row that takes no part; and what decides between equals.
__device__ inline unsigned high(float x) { return (__float_as_uint(x) & 0x7fffffff) + 1; }
__device__ inline unsigned high(double x) { return (unsigned(__double2hiint(x)) & 0x7fffffff) + 1; }
template <class R> __device__ unsigned high(complex<R> x) { return high(abs1(x)); }
__device__ inline unsigned low(float) { return 0; }
__device__ inline unsigned low(double x) { return unsigned(__double2loint(x)); }
template <class R> __device__ unsigned low(complex<R> x) { return low(abs1(x)); }

// What follows is rare. Where there are many steps they share one text of it, for which the
// instruction cache has no room else.
constexpr bool APART = N > 8;

// Of a lane's rows whose sizes begin as the pivot's does the best has the lower word `low` and this
// tag, ALL where it has none: the tag of the pivot
__device__ inline unsigned settled(unsigned low, unsigned tag)
{
    const unsigned second = team_max(tag == ALL ? 0 : low);
    return team_min(low == second ? tag : ALL);
}
__device__ __noinline__ unsigned settled_apart(unsigned low, unsigned tag)
{
    return settled(low, tag);
}

struct Unusual {       // of a pivot that is tiny, or huge, or nan
    scalar_t inverse;  // of LIFT times it, where tiny; 0 of zero, whose column is zero, too, or 1
                       // where it counts so
    bool tiny, zero;
};
__device__ inline Unusual unusual(scalar_t pivot)
{
    const real_t size = abs1(pivot);
    const bool zero = size == 0, tiny = size < TINY && !(UNPIVOTED && zero);
    const scalar_t of_zero{real_t(UNPIVOTED)};
    return {zero ? of_zero : reciprocal(tiny ? mul(pivot, LIFT) : pivot), tiny, zero};
}
__device__ __noinline__ Unusual unusual_apart(scalar_t pivot) { return unusual(pivot); }

// The tag of the pivot among the rows at place k and after
__device__ inline int choose(const Column& c, const Tags& tag, int k)
{
    unsigned hi[RN], most = 0;
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        hi[i] = tag[i] >= k << PLACE ? high(c[i]) : 0;
        most = most < hi[i] ? hi[i] : most;
    }
    most = team_max(most);
    bool any = false, twice = false;
    int own = 0;
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        const bool it = hi[i] == most;
        twice = twice || (it && any);
        any = any || it;
        own = it ? tag[i] : own;
    }
    const unsigned lanes = team_ballot(any);
    const bool tie = (twice || (lanes & (lanes - 1)) != 0) && (FULL || team() < TEAMS);
    if (!__any_sync(ALL, tie)) return from(own, __ffs(lanes) - 1);
    unsigned best = 0, its = ALL;
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        const unsigned size = low(c[i]);
        if (hi[i] == most && (size > best || (size == best && unsigned(tag[i]) < its)))
            best = size, its = tag[i];
    }
    return int(APART ? settled_apart(best, its) : settled(best, its));
}

// TOLD, row `at` of the lane of which it is said, from column k on, to all lanes of its team
__device__ inline void tell(const Block& a, int at, bool said, int k, scalar_t (&row)[N])
{
    #pragma unroll
    for (int s = k / PAD * PAD; s < N; ++s) {
        row[s] = a[0][s];
        #pragma unroll
        for (int q = 1; q < RN; ++q) row[s] = q == at ? a[q][s] : row[s];
    }
    if (said) write_row(staged(k), row, k);
    __syncwarp();
    read_row(staged(k), row, k);
}

struct alignas(16) Beside { scalar_t inverse; int tag; };
__device__ inline Beside& beside(int k)  // the row that is told, STAGED of 2
{
    static_assert(STAGED < 2 || sizeof(Beside) == BESIDE * sizeof(Quad));
    return *reinterpret_cast<Beside*>(staged(k) + ((N - 1) / PAD + 1) * PAD);
}

struct Pivot {
    scalar_t row[N];   // from column k on
    scalar_t inverse;  // near_reciprocal
    unsigned high;
    int tag;
};
// STAGED of 2, that of step k: a lane has the reciprocal of the best of its rows before it is known
// which lane's is the pivot; that one tells all, and nobody asks whose row it is.
__device__ inline Pivot told(const Block& a, const Column& c, const Tags& tag, int k)
{
    Pivot p;
    unsigned hi[RN], own = 0;
    int at = 0;
    scalar_t best = c[0];
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        const bool takes_part = UNPIVOTED ? row(i) == k : tag[i] >= k << PLACE;
        hi[i] = takes_part ? high(c[i]) : 0;
        const bool more = hi[i] > own;
        own = more ? hi[i] : own, at = more ? i : at, best = more ? c[i] : best;
    }
    scalar_t inverse = near_reciprocal(best);
    bool mine = own != 0;
    if constexpr (!UNPIVOTED) {
        p.high = team_max(own);
        const bool of_team = FULL || team() < TEAMS;  // rows of lanes left over are all alike
        mine = of_team && own == p.high;
        bool twice = false;
        #pragma unroll
        for (int i = 0; i < RN; ++i) twice = twice || (i != at && hi[i] == p.high);
        const unsigned lanes = team_ballot(mine);
        const bool tie = of_team && (twice || (lanes & (lanes - 1)) != 0);
        if (TEAM == 32 ? tie : __any_sync(ALL, tie)) {  // of 32 each has one row: the same tie
            unsigned lower = 0, its = ALL;
            #pragma unroll
            for (int i = 0; i < RN; ++i) {
                const unsigned size = low(c[i]);
                if (hi[i] == p.high && (size > lower || (size == lower && unsigned(tag[i]) < its)))
                    lower = size, its = tag[i];
            }
            const int chosen = int(APART ? settled_apart(lower, its) : settled(lower, its));
            mine = false;
            #pragma unroll
            for (int i = 0; i < RN; ++i)
                if (of_team && tag[i] == chosen)
                    mine = true, at = i, inverse = near_reciprocal(c[i]);
        }
    }
    if (mine) beside(k) = {inverse, pick(tag, at)};
    tell(a, at, mine, k, p.row);
    p.inverse = beside(k).inverse, p.tag = beside(k).tag;
    if (UNPIVOTED) p.high = high(p.row[k]);
    return p;
}

// What is left to do of N steps where N - 1 are done: the last row is the pivot, of a team that has
// N of them.
__device__ inline void last_step(const Block& a, const Tags& tag, Factors& f, bool active)
{
    Column c;
    column(a, N - 1, c);
    scalar_t mine{};
    bool here = false, zero = false;
    int own = 0;
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        const bool last = tag[i] >= (N - 1) << PLACE;
        here = here || last;
        own = last ? tag[i] & ROW : own;
        mine = last ? c[i] : mine;
        zero = zero || (last && abs1(c[i]) == 0);
    }
    if (team_ballot(zero) && !f.info && active) f.info = N;
    const int source = __ffs(team_ballot(here)) - 1;
    const scalar_t pivot = from(mine, source);
    const bool tiny = abs1(pivot) < TINY;
    f.lifted |= unsigned(tiny) << (N - 1) % 32;
    keep(f.piv, N - 1, N - 1);
    keep(f.order, N - 1, from(own, source));
    keep(f.inverse, N - 1, reciprocal(tiny ? mul(pivot, LIFT) : pivot));
}

__device__ inline void lu_by_columns(Block& a, Tags& tag, Factors& f, int m, int n)
{
    f.info = 0, f.lifted = 0;
    #pragma unroll
    for (int i = 0; i < RN; ++i) tag[i] = row(i) < m ? row(i) << PLACE | row(i) : -1;
    const int own = m < n ? m : n, steps = most_of_warp<TEAM>(own);
    #pragma unroll
    for (int k = 0; k < N - 1; ++k) {
        if (k >= steps) return;
        const bool active = !RAGGED || k < own;
        Column c;
        column(a, k, c);
        int chosen = k << PLACE | k;
        Pivot its;
        if constexpr (STAGED == 2) its = told(a, c, tag, k);
        if constexpr (!UNPIVOTED) chosen = STAGED == 2 ? its.tag : choose(c, tag, k);
        const int p = chosen & ROW;
        const int lane_row = p / LR, source = p % LR * LC;
        keep(f.piv, k, place(chosen));
        keep(f.order, k, p);

        if constexpr (TOLD && STAGED < 2) tell(a, lane_row, member() == source, k, its.row);
        const scalar_t pivot = TOLD ? its.row[k] : from(pick(c, lane_row), source);
        scalar_t r = STAGED == 2 ? its.inverse : near_reciprocal(pivot);
        const unsigned size = STAGED == 2 ? its.high : high(pivot);
        if (size - high(TINY) >= high(HUGE) - high(TINY)) {
            const Unusual u = APART ? unusual_apart(pivot) : unusual(pivot);
            if (u.zero && !f.info && active) f.info = k + 1;
            f.lifted |= unsigned(u.tiny) << k;
            r = u.inverse;
            #pragma unroll
            for (int i = 0; i < RN; ++i) if (u.tiny) c[i] = mul(c[i], LIFT);
        }
        #pragma unroll
        for (int i = 0; i < RN; ++i) c[i] = mul(c[i], r);
        keep(f.inverse, k, r);

        bool below[RN];  // the rows that are still to be eliminated
        #pragma unroll
        for (int i = 0; i < RN; ++i) {
            if constexpr (!UNPIVOTED) {
                const bool leaves = tag[i] >= k << PLACE && tag[i] < (k + 1) << PLACE;
                const int here = k << PLACE | (tag[i] & ROW);
                const int there = (chosen & ~ROW) | (tag[i] & ROW);
                tag[i] = !active ? tag[i] : tag[i] == chosen ? here : leaves ? there : tag[i];
            }
            below[i] = active && (UNPIVOTED ? row(i) > k : tag[i] >= (k + 1) << PLACE);
            a[i][slot_of(k)] = below[i] && t() == t_of(k) ? c[i] : a[i][slot_of(k)];
        }
        #pragma unroll
        for (int s = 0; s < CN; ++s) {
            if (last_col(s) <= k) continue;
            scalar_t u = a[0][s];
            if constexpr (TOLD) {
                u = its.row[s];
            } else {
                #pragma unroll
                for (int q = 1; q < RN; ++q) u = q == lane_row ? a[q][s] : u;
                u = from(u, source + t());
            }
            #pragma unroll
            for (int i = 0; i < RN; ++i)
                if (below[i] && (first_col(s) > k || col(s) > k))
                    a[i][s] = minus_product(a[i][s], c[i], u);
        }
    }
    if (steps == N) last_step(a, tag, f, !RAGGED || own == N);
}

// The matrix of a team that is one lane, which interchanges its rows: their tags are those of their
// numbers. Of f only info and piv are set.
__device__ inline void lu_alone(Block& a, Tags& tag, Factors& f, int m, int n)
{
    const int steps = m < n ? m : n;
    f.info = 0;
    #pragma unroll
    for (int i = 0; i < N; ++i) tag[i] = i < m ? i << PLACE | i : -1;
    #pragma unroll
    for (int k = 0; k < N; ++k) {
        if (k >= steps) return;
        int at = k;
        unsigned most = high(a[k][k]), second = low(a[k][k]);
        #pragma unroll
        for (int i = k + 1; i < N && !UNPIVOTED; ++i) {
            const unsigned hi = i < m ? high(a[i][k]) : 0, lo = low(a[i][k]);
            const bool more = (hi > most) | ((sizeof(real_t) == 8) & (hi == most) & (lo > second));
            most = more ? hi : most, second = more ? lo : second, at = more ? i : at;
        }
        f.piv[k] = at;
        #pragma unroll
        for (int s = 0; s < N && !UNPIVOTED; ++s) {
            const scalar_t leaves = a[k][s];
            #pragma unroll
            for (int i = k + 1; i < N; ++i) {
                const scalar_t x = a[i][s];
                a[k][s] = at == i ? x : a[k][s];
                a[i][s] = at == i ? leaves : x;
            }
        }
        const scalar_t pivot = a[k][k];
        scalar_t r = near_reciprocal(pivot);
        if (high(pivot) - high(TINY) >= high(HUGE) - high(TINY)) {
            const Unusual u = unusual_apart(pivot);
            if (u.zero && !f.info) f.info = k + 1;
            r = u.inverse;
            #pragma unroll
            for (int i = k + 1; i < N; ++i) if (u.tiny) a[i][k] = mul(a[i][k], LIFT);
        }
        #pragma unroll
        for (int i = k + 1; i < N; ++i) {
            a[i][k] = mul(a[i][k], r);
            #pragma unroll
            for (int s = k + 1; s < N; ++s) a[i][s] = minus_product(a[i][s], a[i][k], a[k][s]);
        }
    }
}

#include "lu_tiles.cuh"

// The place of row `lane()` of a matrix in tiles
__device__ inline int place_of_lane(const Tags& tag)
{
    int p = -1;
    #pragma unroll
    for (int i = 0; i < RN; ++i) {
        const int x = from(place(tag[i]), lane() % 8 * 4);
        p = lane() / 8 == i ? x : p;
    }
    return p;
}

__device__ inline void lu(Block& a, Tags& tag, Factors& f, int m, int n)
{
    if constexpr (TILES) lu_by_panels(a, tag, f, m, n);
    else lu_by_columns(a, tag, f, m, n);
}
