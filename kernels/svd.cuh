// svd.cuh: singular value decomposition A = T S W^H of tall matrices (m >= n) by one-sided Jacobi.
//
// Rotations from the right make the columns of X = A W orthogonal; then S are their lengths, T the
// columns divided by them. Columns lie one after the other with their part of W below, and what
// rotates X rotates W with it. A rotation sees two columns relative to their own lengths, so small
// singular values of a graded matrix keep their digits.
//
// Blocks of WIDTH columns meet in a tournament: each of GROUPS groups of LANES lanes takes two
// blocks into registers, rotates the WIDTH^2 pairs between them, and puts them back; nb - 1 rounds,
// a barrier after each, are a sweep. Pairs inside a block have their turn in the first round. Lane
// l of a group holds `ROWS` rows of X and as many of W of every column. Of the WIDTH disjoint pairs
// of a step those numbered l, l + HOLDERS, ... modulo as many have their angles found by lane l,
// and the others get them by shuffles. Sweeps end when one has met no pair with a cosine above a
// few eps. What crosses shared memory is every column, both ways, in every round: of short columns
// that takes longer than their rotations.
//
// Columns that STAY, of members of no more than 2 GROUPS blocks, cross lanes, and half as often:
// blocks stand in a row, group g holds places 2 g and 2 g + 1 and in every second step 2 g + 1 and
// 2 g + 2, and blocks that have met change places. After 2 GROUPS steps all have met once, and the
// row is reversed. From step to step a group passes one of its blocks to its neighbour, by shuffles
// where a warp has the team, and keeps the other. (Odd-even ordering: Luk, Park, SIAM J. Sci. Stat.
// Comput. 10, 1989.)
//
// TILED: the columns of two blocks meet by their products (svd_tiles.cuh), and cross memory once for
// all their rotations.
//
// The angle is found in float32: any tau = tan(theta / 2) that is near enough makes a product of
// two columns 10^7 times smaller, and sin = 2 tau / (1 + tau^2) makes the rotation orthogonal to
// full precision whatever tau is. (Golub, Van Loan: Matrix Computations, 8.6.3; Demmel, Veselic,
// SIAM J. Matrix Anal. Appl. 13, 1992.)
#pragma once
#include "scalar.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int ROWS = 4;     // rows of X in a lane
constexpr int LANES = 16;   // of a group
constexpr int WIDTH = 4;    // columns in a block
constexpr int GROUPS = 8;   // that work on a matrix
constexpr int SHARED = 1;   // columns lie in shared memory; 0: in global memory
constexpr int SPREAD = 0;   // 1: they begin where they meet no bank of it twice
constexpr int STAY = 0;     // 1: all of them stay in a team's registers from sweep to sweep
constexpr int TILED = 0;    // a warp takes two blocks of eight columns, so many tiles of 8 rows at a
                            // time (svd_tiles.cuh)
constexpr int BLOCKS = 1;   // per multiprocessor for which registers are rationed
#endif
constexpr int TEAM = LANES * GROUPS;
#include "teams.cuh"

static_assert(LANES <= 32 && (LANES & (LANES - 1)) == 0);

__host__ __device__ constexpr int power_from(int x)
{
    return x > 1 ? 2 * power_from((x + 1) / 2) : 1;
}
// Lanes that share a step's pairs, and pairs to each of them
constexpr int HOLDERS = LANES < WIDTH ? LANES : power_from(WIDTH);
constexpr int EACH = (WIDTH + HOLDERS - 1) / HOLDERS;

constexpr int WORDS = ROWS * (1 + VECTORS);  // of a column in a lane
constexpr int LONGEST = LANES * ROWS;        // m and n are at most this
constexpr int LINE = 16 / sizeof(scalar_t);
constexpr int PACK = ROWS % LINE == 0 ? LINE : ROWS % 2 == 0 ? 2 : 1;   // rows of X side by side

__host__ __device__ constexpr int twos(int x) { return x % 2 ? 0 : 1 + twos(x / 2); }
// From one column to the next. Of columns that are SPREAD a group reads LANES packs side by side,
// the next WIDTH columns further on, and the next team goes on like that: if that distance has as
// many factors of two as LANES they meet no bank twice.
constexpr int BANKS = 128 / (PACK * sizeof(scalar_t));  // packs in all of them
constexpr int EVEN = twos(LANES) > twos(WIDTH) ? 1 << (twos(LANES) - twos(WIDTH)) : 1;
constexpr int PACKS = (LANES * WORDS / PACK + EVEN - 1) / EVEN;
constexpr int LD = SPREAD && LANES < BANKS ? (PACKS | 1) * EVEN * PACK : LANES * WORDS + LINE;
constexpr int SWEEPS = 60;  // 7 to 11 are usual; rounding left by a rank takes the rest

// The largest entry is scaled to about 2^TOP, so that lengths between NULL and the longest have
// squares, and the squares of double precision products, in range.
constexpr int TOP = sizeof(real_t) == 8 ? 240 : 54;
constexpr real_t EPS = sizeof(real_t) == 8 ? real_t(0x1p-52) : real_t(0x1p-23);
constexpr real_t NULL_SQUARE = sizeof(real_t) == 8 ? real_t(0x1p-480) : real_t(0x1p-115);

struct alignas(PACK * sizeof(scalar_t)) Pack { scalar_t x[PACK]; };
using Part = scalar_t[WORDS];   // a lane's part of a column

__device__ inline int l() { return threadIdx.x % LANES; }
__device__ inline int group()
{
    if (FULL) return threadIdx.x % TEAM / LANES;
    return left_over() ? NOWHERE : member() / LANES;
}
__device__ inline void team_sync()
{
    if (TEAM > 32) __syncthreads();
    else __syncwarp();
}

template <class T> __device__ T from(T x, int source)   // of a lane of the group
{
    return LANES == 1 ? x : of_lane<LANES>(x, source);
}

// f over the team, the same for all of it; `room` for a number of each warp
template <class F> __device__ real_t over_team(real_t x, real_t* room, F f)
{
    if constexpr (FULL) {
        #pragma unroll
        for (int d = 1; d < (TEAM < 32 ? TEAM : 32); d *= 2) x = f(x, across(x, d));
    } else {
        x = brought_together(x, f);
    }
    if (TEAM > 32) {
        if (threadIdx.x % 32 == 0) room[warp()] = x;
        __syncthreads();
        x = room[0];
        for (int w = 1; w < WARPS; ++w) x = f(x, room[w]);
        __syncthreads();
    }
    return x;
}
__device__ inline real_t larger(real_t x, real_t y) { return x > y || x != x ? x : y; }
__device__ inline real_t smaller(real_t x, real_t y) { return x < y ? x : y; }
__device__ inline real_t sum(real_t x, real_t y) { return x + y; }

__device__ inline real_t square(real_t x) { return x * x; }
__device__ inline real_t square(complex<real_t> x) { return fma(x.re, x.re, x.im * x.im); }
__device__ inline double wide_square(real_t x) { return double(x) * double(x); }
__device__ inline double wide_square(complex<real_t> x)
{
    return fma(double(x.re), double(x.re), double(x.im) * double(x.im));
}
__device__ inline real_t largest(real_t x) { return fabs(x); }
__device__ inline real_t largest(complex<real_t> x) { return larger(fabs(x.re), fabs(x.im)); }
__device__ inline real_t shifted(real_t x, int k) { return ldexp(x, k); }
__device__ inline complex<real_t> shifted(complex<real_t> x, int k)
{
    return {ldexp(x.re, k), ldexp(x.im, k)};
}
// c + conj(a) b
__device__ inline real_t plus_product(real_t c, real_t a, real_t b) { return fma(a, b, c); }
__device__ inline complex<real_t> plus_product(complex<real_t> c, complex<real_t> a,
                                               complex<real_t> b)
{
    return {fma(a.im, b.im, fma(a.re, b.re, c.re)), fma(-a.im, b.re, fma(a.re, b.im, c.im))};
}

// -- columns in registers

__device__ inline void take(Part& x, const scalar_t* column, bool valid)
{
    #pragma unroll
    for (int i = 0; i < WORDS; i += PACK) {
        Pack pack{};
        if (valid)
            pack = *reinterpret_cast<const Pack*>(column + PACK * (l() + LANES * (i / PACK)));
        #pragma unroll
        for (int e = 0; e < PACK; ++e) x[i + e] = pack.x[e];
    }
}
__device__ inline void give(const Part& x, scalar_t* column)
{
    #pragma unroll
    for (int i = 0; i < WORDS; i += PACK) {
        Pack pack;
        #pragma unroll
        for (int e = 0; e < PACK; ++e) pack.x[e] = x[i + e];
        *reinterpret_cast<Pack*>(column + PACK * (l() + LANES * (i / PACK))) = pack;
    }
}
// The lane's part of x^H y; two chains halve the wait
__device__ inline scalar_t dot(const Part& x, const Part& y)
{
    scalar_t s{}, r{};
    #pragma unroll
    for (int i = 0; i < ROWS; i += 2) {
        s = plus_product(s, x[i], y[i]);
        if (i + 1 < ROWS) r = plus_product(r, x[i + 1], y[i + 1]);
    }
    return add(s, r);
}
// The number of the lane's first pair
__device__ inline int first_pair() { return l() % HOLDERS; }

// sums[e] := the sum over the group of v[q], q = first_pair() + HOLDERS e, or 0 past the last
template <class T> __device__ void scattered(T (&sums)[EACH], const T (&v)[WIDTH])
{
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
        T x[HOLDERS];
        #pragma unroll
        for (int i = 0; i < HOLDERS; ++i) x[i] = HOLDERS * e + i < WIDTH ? v[HOLDERS * e + i] : T{};
        #pragma unroll
        for (int d = 1; d < HOLDERS; d *= 2) {
            const bool second = l() & d;
            #pragma unroll
            for (int i = 0; i < HOLDERS && HOLDERS * e + i < WIDTH; i += 2 * d)
                x[i] = add(second ? x[i + d] : x[i], across(second ? x[i] : x[i + d], d));
        }
        #pragma unroll
        for (int d = HOLDERS; d < LANES; d *= 2) x[0] = add(x[0], across(x[0], d));
        sums[e] = x[0];
    }
}

// -- rotations: x, y := cos x - conj(sin phase) y, sin phase x + cos y
//
// cos = 1 - sin tau makes the error of a column's length as small as the angle: most are small, and
// a thousand turns, or phases, that are off by a rounding each would show in singular values.

template <class T> struct Turn {
    real_t sin, tau;
    T phase;           // of a complex one sin phase
};
using Rotation = Turn<scalar_t>;

template <class T> __device__ void apply(real_t& x, real_t& y, const Turn<T>& r)
{
    const real_t u = fma(r.tau, x, y), w = fma(-r.tau, y, x);
    x = fma(-r.sin, u, x);
    y = fma(r.sin, w, y);
}
template <class T>
__device__ void apply(complex<real_t>& x, complex<real_t>& y, const Turn<T>& r)
{
    const real_t less = r.sin * r.tau;
    const complex<real_t> s = r.phase, was = x;
    x.re = fma(-s.im, y.im, fma(-s.re, y.re, fma(-less, x.re, x.re)));
    x.im = fma(s.im, y.re, fma(-s.re, y.im, fma(-less, x.im, x.im)));
    y.re = fma(-s.im, was.im, fma(s.re, was.re, fma(-less, y.re, y.re)));
    y.im = fma(s.im, was.re, fma(s.re, was.im, fma(-less, y.im, y.im)));
}
__device__ inline void apply(Part& x, Part& y, const Rotation& r)
{
    #pragma unroll
    for (int i = 0; i < WORDS; ++i) apply(x[i], y[i], r);
}
__device__ inline Rotation from(const Rotation& r, int source)
{
    Rotation q{from(r.sin, source), from(r.tau, source), r.phase};
    if constexpr (sizeof(scalar_t) > sizeof(real_t)) q.phase = from(r.phase, source);
    return q;
}

__device__ inline real_t modulus(real_t g, real_t& phase)
{
    phase = 1;
    return g;
}
__device__ inline real_t modulus(complex<real_t> g, complex<real_t>& phase)
{
    const real_t s = mirror(largest(g));
    const complex<real_t> q = mul(g, s);
    const real_t root = sqrt(square(q)), inverse = 1 / root;
    phase = mul(q, inverse);
    return root * mirror(s);
}

// The rotation that makes columns with product g and squared lengths a, b orthogonal; a and b as
// they become. `moved` if their cosine was above the square root of `limit`.
__device__ inline Rotation rotation(scalar_t g, real_t& a, real_t& b, double limit, bool active,
                                    bool& moved)
{
    Rotation r{0, 0, scalar_t{}};
    const double cross = double(a) * double(b);
    const double product = wide_square(g);
    if (!active || !(product > double(EPS) * EPS * cross) || a < NULL_SQUARE || b < NULL_SQUARE
        || largest(g) < TINY)
        return r;
    moved |= product > limit * cross;
    const real_t h = modulus(g, r.phase), d = b - a;
    const real_t s = mirror(larger(fabs(d), fabs(h)));
    const float x = fabsf(float(d * s)), y = float(2 * (h * s));
    const float inverse = 1 / (x + sqrtf(fmaf(x, x, y * y))), t = y * inverse;
    const real_t half = 2 * (h * s) * real_t(inverse / (1 + sqrtf(fmaf(t, t, 1.0f))));
    r.tau = d < 0 ? -half : half;   // which is less than a float can be where lengths differ so
    r.sin = 2 * r.tau / fma(r.tau, r.tau, real_t(1));
    const real_t c = fma(-r.sin, r.tau, real_t(1)), cc = c * c, ss = r.sin * r.sin;
    const real_t cs = 2 * c * r.sin * h, was = a;
    a = fma(cc, was, fma(ss, b, -cs));
    b = fma(ss, was, fma(cc, b, cs));
    a = a > 0 ? a : 0;
    b = b > 0 ? b : 0;
    if (sizeof(scalar_t) > sizeof(real_t)) r.phase = mul(r.phase, r.sin);
    return r;
}

#include "svd_tiles.cuh"

// n[e] := the squared length of column first_pair() + HOLDERS e
__device__ inline void own_lengths(real_t (&n)[EACH], const Part (&x)[WIDTH])
{
    real_t v[WIDTH];
    #pragma unroll
    for (int q = 0; q < WIDTH; ++q) v[q] = real(dot(x[q], x[q]));
    scattered(n, v);
}

// n[e], which was column q's = first_pair() + HOLDERS e, is that of column (q + 1) % WIDTH.
__device__ inline void turn(real_t (&n)[EACH])
{
    const int p = first_pair(), pair_0 = l() - p;
    if (EACH == 1) {
        n[0] = from(n[0], pair_0 + (p + 1) % WIDTH);
        return;
    }
    const real_t first = from(n[0], pair_0);
    real_t next[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) next[e] = from(n[e], pair_0 + (p + 1) % HOLDERS);
    #pragma unroll
    for (int e = 0; e < EACH; ++e)
        n[e] = p + HOLDERS * e == WIDTH - 1 ? first
             : p + 1 < HOLDERS ? next[e] : next[(e + 1) % EACH];
}

// The pairs inside both blocks, in rounds of H disjoint ones of each: columns i and j with i + j =
// 2 k modulo an odd number, and where WIDTH is even k and the last.
__device__ inline void inside(Part (&x)[WIDTH], Part (&y)[WIDTH], double limit, bool active,
                              bool& moved)
{
    constexpr int H = WIDTH / 2, ODD = WIDTH - 1 + WIDTH % 2;
    const auto one = [](int k, int h) { return (k + h + WIDTH % 2) % ODD; };
    const auto other = [](int k, int h) {
        h += WIDTH % 2;
        return h ? (k + ODD - h) % ODD : ODD;
    };
    #pragma unroll
    for (int k = 0; k < ODD; ++k) {
        scalar_t v[WIDTH]{}, g[EACH];
        real_t va[WIDTH]{}, vb[WIDTH]{}, a[EACH], b[EACH];
        #pragma unroll
        for (int h = 0; h < H; ++h) {
            const int i = one(k, h), j = other(k, h);
            v[h] = dot(x[i], x[j]);
            v[H + h] = dot(y[i], y[j]);
            va[h] = real(dot(x[i], x[i]));
            va[H + h] = real(dot(y[i], y[i]));
            vb[h] = real(dot(x[j], x[j]));
            vb[H + h] = real(dot(y[j], y[j]));
        }
        scattered(g, v);
        scattered(a, va);
        scattered(b, vb);
        Rotation r[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) r[e] = rotation(g[e], a[e], b[e], limit, active, moved);
        #pragma unroll
        for (int h = 0; h < H; ++h) {
            const int i = one(k, h), j = other(k, h);
            apply(x[i], x[j], from(r[h / HOLDERS], h % HOLDERS));
            apply(y[i], y[j], from(r[(H + h) / HOLDERS], (H + h) % HOLDERS));
        }
    }
}

// The pairs of a column of x and one of y, whose squared lengths are nx and ny
__device__ inline void between(Part (&x)[WIDTH], Part (&y)[WIDTH], real_t (&nx)[EACH],
                               real_t (&ny)[EACH], double limit, bool active, bool& moved)
{
    #pragma unroll
    for (int s = 0; s < WIDTH; ++s) {   // columns q of x and (q + s) % WIDTH of y
        scalar_t v[WIDTH], g[EACH];
        #pragma unroll
        for (int q = 0; q < WIDTH; ++q) v[q] = dot(x[q], y[(q + s) % WIDTH]);
        scattered(g, v);
        Rotation r[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            r[e] = rotation(g[e], nx[e], ny[e], limit, active, moved);
        #pragma unroll
        for (int q = 0; q < WIDTH; ++q)
            apply(x[q], y[(q + s) % WIDTH], from(r[q / HOLDERS], q % HOLDERS));
        if (WIDTH > 1) turn(ny);
    }
}

// X has room for `columns` columns, lengths and inverses one number for each.
struct Scratch {
    scalar_t* X;
    real_t *lengths, *inverses, *sums;
    int* order;
    Pairs* pairs;  // TILED: of each warp
};

// One sweep over the nb blocks of a member; true if a cosine was above the limit. Teams of a warp
// go together: rounds and pairs that others have are not `valid`.
__device__ inline bool sweep(scalar_t* X, real_t* lengths, int nb, double limit, bool active)
{
    bool moved = false;
    const int p = first_pair();
    const int most = RAGGED ? most_of_warp<TEAM>(nb) : nb;  // a call takes registers here
    #pragma unroll 1
    for (int t = 0; t < most - 1; ++t) {
        #pragma unroll 1
        for (int first = 0; first < most / 2; first += GROUPS) {
            const int k = first + group();
            const bool valid = k < nb / 2 && (!RAGGED || t < nb - 1) && active;
            const int ba = k == 0 ? nb - 1 : (t + k) % (nb - 1);
            const int bb = k == 0 ? t : (t - k + nb - 1) % (nb - 1);
            scalar_t* const a = X + size(ba) * (WIDTH * LD);
            scalar_t* const b = X + size(bb) * (WIDTH * LD);
            Part x[WIDTH], y[WIDTH];
            #pragma unroll
            for (int q = 0; q < WIDTH; ++q) {
                take(x[q], a + q * LD, valid);
                take(y[q], b + q * LD, valid);
            }
            real_t nx[EACH], ny[EACH];
            if (t == 0) {
                if (WIDTH > 1) inside(x, y, limit, valid, moved);
                own_lengths(nx, x);
                own_lengths(ny, y);
            } else {
                #pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    const int q = p + HOLDERS * e;
                    nx[e] = valid && q < WIDTH ? lengths[ba * WIDTH + q] : 0;
                    ny[e] = valid && q < WIDTH ? lengths[bb * WIDTH + q] : 0;
                }
            }
            between(x, y, nx, ny, limit, valid, moved);
            __syncwarp();  // every lane has the lengths it began with
            if (valid) {
                #pragma unroll
                for (int q = 0; q < WIDTH; ++q) {
                    give(x[q], a + q * LD);
                    give(y[q], b + q * LD);
                }
                #pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    const int q = p + HOLDERS * e;
                    if (l() < HOLDERS && q < WIDTH) {
                        lengths[ba * WIDTH + q] = nx[e];
                        lengths[bb * WIDTH + q] = ny[e];
                    }
                }
            }
        }
        team_sync();
    }
    return moved;
}

// The same by tiles, a warp to two blocks, which are found in line here, too: said once, in a
// function, they cost the sweep above registers (220 bytes spilled became 680)
__device__ inline bool sweep_tiles(const Scratch& room, int m, int n, int nb, double limit,
                                   bool active)
{
    bool moved = false;
    #pragma unroll 1
    for (int t = 0; t < nb - 1; ++t) {
        #pragma unroll 1
        for (int k = group(); k < nb / 2 && active; k += GROUPS) {
            const int ba = k == 0 ? nb - 1 : (t + k) % (nb - 1);
            const int bb = k == 0 ? t : (t - k + nb - 1) % (nb - 1);
            moved |= meet(room.X + size(ba) * (WIDTH * LD), room.X + size(bb) * (WIDTH * LD), m, n,
                          room.pairs[group()], t == 0, limit);
        }
        team_sync();
    }
    return moved;
}

template <class T> __device__ void exchange(T& x, T& y)
{
    const T was = x;
    x = y;
    y = was;
}
struct Neighbour {
    int group, lane;   // of the warp, where it has the team
};
// A block's columns and their squared lengths from a neighbour: by shuffles, or by places `at` and
// on of X and `lengths`, which are not written again before another barrier.
__device__ inline void pass(Part (&x)[WIDTH], real_t (&n)[EACH], Neighbour giver, scalar_t* X,
                            real_t* lengths, int at)
{
    if constexpr (TEAM <= 32) {
        #pragma unroll
        for (int q = 0; q < WIDTH; ++q)
            #pragma unroll
            for (int i = 0; i < WORDS; ++i) x[q][i] = of_lane(x[q][i], giver.lane);
        #pragma unroll
        for (int e = 0; e < EACH; ++e) n[e] = of_lane(n[e], giver.lane);
    } else {
        const int mine = (at + group()) * WIDTH, other = (at + giver.group) * WIDTH;
        #pragma unroll
        for (int q = 0; q < WIDTH; ++q) give(x[q], X + (mine + q) * LD);
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const int q = first_pair() + HOLDERS * e;
            if (l() < HOLDERS && q < WIDTH) lengths[mine + q] = n[e];
        }
        __syncthreads();
        #pragma unroll
        for (int q = 0; q < WIDTH; ++q) take(x[q], X + (other + q) * LD, true);
        #pragma unroll
        for (int e = 0; e < EACH; ++e) {
            const int q = first_pair() + HOLDERS * e;
            n[e] = q < WIDTH ? lengths[other + q] : 0;
        }
    }
}

// One sweep over the blocks that stay with a team, x at the earlier places; true if a cosine was
// above the limit. What stands first has no partner in odd steps and waits with the last group.
__device__ inline bool sweep_staying(Part (&x)[WIDTH], Part (&y)[WIDTH], scalar_t* X,
                                     real_t* lengths, double limit, bool active)
{
    const int lane = threadIdx.x % 32, g = group(), first = lane / TEAM * TEAM;
    const bool last = g == GROUPS - 1, apart = left_over();
    const Neighbour next{last ? 0 : g + 1, apart ? lane : last ? first + l() : lane + LANES};
    const Neighbour before{g ? g - 1 : GROUPS - 1,
                           apart ? lane : g ? lane - LANES : first + TEAM - LANES + l()};
    bool moved = false;
    real_t nx[EACH], ny[EACH];
    if (WIDTH > 1) inside(x, y, limit, active, moved);
    own_lengths(nx, x);
    own_lengths(ny, y);
    #pragma unroll 1
    for (int t = 0; t < GROUPS; ++t) {
        between(x, y, nx, ny, limit, active, moved);
        if (GROUPS == 1) break;
        pass(y, ny, next, X, lengths, 0);
        between(x, y, nx, ny, limit, active && !last, moved);
        if (last) {   // they have not met
            #pragma unroll
            for (int q = 0; q < WIDTH; ++q)
                #pragma unroll
                for (int i = 0; i < WORDS; ++i) exchange(x[q][i], y[q][i]);
            #pragma unroll
            for (int e = 0; e < EACH; ++e) exchange(nx[e], ny[e]);
        }
        pass(x, nx, before, X, lengths, GROUPS);
    }
    return moved;
}

// Calls f(i, j) once for each element of an m x n matrix, the team sharing them.
template <class F> __device__ void team_each(int m, int n, bool by_rows, F f)
{
    const int inner = by_rows ? n : m, total = m * n;
    for (int e = member(); e < total; e += TEAM) {
        const int o = e / inner, i = e - o * inner;
        if (by_rows) f(o, i);
        else f(i, o);
    }
}

// Columns done ... count - 1 of T, orthonormal to those before. Each is what is left of the unit
// vector that the columns so far hold least of, taken off twice. `room` for 3 m numbers and a few,
// which two columns of X have: each third begins at 16 bytes, as many as are read at a time of the
// one before.
__device__ inline void complete(Strided<scalar_t> T, int m, int done, int count, scalar_t* room,
                                real_t* sums)
{
    const int third = (m + LINE - 1) / LINE * LINE;
    static_assert(!VECTORS || 2 * LD >= 2 * ((LONGEST + LINE - 1) / LINE * LINE) + LONGEST);
    scalar_t *const v = room, *const h = room + third;
    real_t* const held = reinterpret_cast<real_t*>(room + 2 * third);
    int steps = count > done ? count - done : 0;
    if (TEAM < 32) steps = int(__reduce_max_sync(ALL, unsigned(steps)));
    if (!steps) return;
    team_sync();
    for (int i = member(); i < m; i += TEAM) {
        real_t s = 0;
        for (int c = 0; c < done; ++c) s += square(T(i, c));
        held[i] = s;
    }
    for (int step = 0; step < steps; ++step) {
        const int j = done + step;
        const int rows = j < count ? m : 0, before = j < count ? j : 0;
        team_sync();
        real_t least = 2 * real_t(m);
        for (int i = member(); i < rows; i += TEAM) least = smaller(least, held[i]);
        least = over_team(least, sums, smaller);
        real_t where = m;
        for (int i = member(); i < rows; i += TEAM)
            if (held[i] == least) where = smaller(where, real_t(i));
        const int e = int(over_team(where, sums, smaller));
        for (int i = member(); i < rows; i += TEAM) {
            scalar_t x = scalar_t(i == e ? 1 : 0);
            for (int c = 0; c < before; ++c) x = minus_product(x, T(i, c), conj(T(e, c)));
            v[i] = x;
        }
        #pragma unroll 1
        for (int again = 0; again < 2; ++again) {
            team_sync();
            for (int c = member(); c < before; c += TEAM) {
                scalar_t s{};
                for (int i = 0; i < m; ++i) s = plus_product(s, T(i, c), v[i]);
                h[c] = s;
            }
            team_sync();
            for (int i = member(); i < rows; i += TEAM) {
                scalar_t x = v[i];
                for (int c = 0; c < before; ++c) x = minus_product(x, T(i, c), h[c]);
                v[i] = x;
            }
        }
        real_t s = 0;
        for (int i = member(); i < rows; i += TEAM) s += square(v[i]);
        const real_t inverse = 1 / sqrt(over_team(s, sums, sum));
        for (int i = member(); i < rows; i += TEAM) {
            const scalar_t x = mul(v[i], inverse);
            T(i, j) = x;
            held[i] += square(x);
        }
    }
    team_sync();
}

// Columns with those that fill up the last two blocks, or all that stay with several warps, who
// pass them by X
__device__ inline int columns_of(int n)
{
    return 2 * WIDTH * (STAY && TEAM > 32 ? GROUPS : (n + 2 * WIDTH - 1) / (2 * WIDTH));
}

// The block at this place of the row to the team's registers, or from there, where there is one
template <bool TAKE>
__device__ void move_block(Part (&x)[WIDTH], scalar_t* X, int block, bool valid)
{
    #pragma unroll
    for (int q = 0; q < WIDTH; ++q) {
        scalar_t* const column = X + size(block * WIDTH + q) * LD;
        if (TAKE) take(x[q], column, valid);
        else if (valid) give(x[q], column);
    }
}

// Sweeps until the n columns of m rows are orthogonal; true if they did not get so.
__device__ inline bool orthogonalized(Scratch room, int m, int n, bool active)
{
    const int nb = 2 * ((n + 2 * WIDTH - 1) / (2 * WIDTH));
    const double near = (32 + m / 8) * double(EPS), limit = near * near;
    if constexpr (STAY) {
        const int place = 2 * group();
        const bool any = active && !left_over();
        Part x[WIDTH], y[WIDTH];
        move_block<true>(x, room.X, place, any && place < nb);
        move_block<true>(y, room.X, place + 1, any && place + 1 < nb);
        team_sync();
        int count = 0;
        for (; count < SWEEPS && (TEAM > 32 ? active : __any_sync(ALL, active)); ++count) {
            const bool moved = sweep_staying(x, y, room.X, room.lengths, limit, active);
            active = over_team(moved ? 1 : 0, room.sums, larger) > 0;
        }
        team_sync();
        const bool reversed = GROUPS > 1 && count % 2;
        const int at = reversed ? 2 * GROUPS - 1 - place : place;
        const int beside = reversed ? at - 1 : at + 1;
        move_block<false>(x, room.X, at, any && at < nb);
        move_block<false>(y, room.X, beside, any && beside < nb);
        team_sync();
        return active;
    }
    for (int count = 0; count < SWEEPS; ++count) {
        const bool moved = TILED ? sweep_tiles(room, m, n, nb, limit, active)
                                 : sweep(room.X, room.lengths, nb, limit, active);
        active = over_team(moved ? 1 : 0, room.sums, larger) > 0;
        if (TEAM > 32 ? !active : !__any_sync(ALL, active)) break;
    }
    return active;
}

// The squared lengths of the columns and one over their lengths.
__device__ inline void measure(Scratch room, int columns)
{
    const int most = RAGGED ? most_of_warp<TEAM>(columns) : columns;
    for (int first = 0; first < most; first += GROUPS) {
        const int c = first + group();
        Part x;
        take(x, room.X + size(c) * LD, c < columns);
        real_t s = real(dot(x, x));
        #pragma unroll
        for (int d = 1; d < LANES; d *= 2) s += across(s, d);
        if (c < columns && l() == 0) {
            room.lengths[c] = s;
            room.inverses[c] = s < NULL_SQUARE ? 0 : 1 / sqrt(s);
        }
    }
    team_sync();
}

// The decomposition of an m x n matrix A, m >= n, or of its conjugate: `k` columns of T (n, or m
// with zero or more beyond to complete the basis), n of W. T and W are stored as conjugates where
// asked for.
__device__ inline void svd(Strided<const scalar_t> A, bool conj_a, Strided<scalar_t> T,
                           bool conj_t, Strided<scalar_t> W, bool conj_w, real_t* S, int* info,
                           int m, int n, int k, bool here, Scratch room)
{
    const int columns = columns_of(n);
    scalar_t* const X = room.X;
    for (int e = member(); e < columns * LD; e += TEAM) {
        const int c = e / LD, i = e - c * LD;
        X[e] = scalar_t(VECTORS && i == LONGEST + c ? 1 : 0);
    }
    team_sync();
    real_t most = 0;
    if (here)
        team_each(m, n, A.cs == 1, [=, &most](int i, int j) {
            const scalar_t x = A(i, j);
            X[j * LD + i] = conj_a ? conj(x) : x;
            most = larger(most, largest(x));
        });
    most = over_team(most, room.sums, larger);
    const bool finite = most - most == 0;
    bool active = here && finite && most > 0;
    const int scale = active ? TOP - ilogb(most) : 0;
    team_sync();
    if (active)
        team_each(m, n, false, [=](int i, int j) {
            X[j * LD + i] = shifted(X[j * LD + i], scale);
        });
    team_sync();

    active = orthogonalized(room, m, n, active);
    measure(room, columns);
    real_t full = 0;
    for (int c = member(); c < n; c += TEAM) {
        const real_t s = room.lengths[c];
        int rank = finite ? 0 : c;   // lengths that are nan have no order
        for (int j = 0; j < n && finite; ++j)
            rank += room.lengths[j] > s || (room.lengths[j] == s && j < c);
        room.order[rank] = c;
        full += s >= NULL_SQUARE;
        if (here) S[rank] = finite ? shifted(sqrt(s), -scale) : most - most;
    }
    const int done = int(over_team(full, room.sums, sum));
    if (here && member() == 0) *info = !finite || active;
    if (!VECTORS) return;
    team_sync();
    const real_t nan = most - most;   // 0 of a finite matrix
    if (here) {
        team_each(n, n, W.cs == 1, [=](int i, int j) {
            const scalar_t x = X[room.order[j] * LD + LONGEST + i];
            W(i, j) = finite ? (conj_w ? conj(x) : x) : scalar_t(nan);
        });
        team_each(m, finite ? done : k, T.cs == 1, [=](int i, int j) {
            if (!finite) {
                T(i, j) = scalar_t(nan);
                return;
            }
            const int c = room.order[j];
            const scalar_t x = mul(X[c * LD + i], room.inverses[c]);
            T(i, j) = conj_t ? conj(x) : x;
        });
    }
    complete(T, m, here && finite ? done : k, k, X, room.sums);
}

// What one block needs of dynamic shared memory for each member of up to `most` columns, beside
// SHARED columns: two real numbers and an int for each column, and a number for each warp. `global`
// is the member's room for columns that are not.
__device__ inline Scratch scratch(scalar_t* global, int most)
{
    const int columns = columns_of(most);
    const size numbers = size(columns) * LD * sizeof(scalar_t);
    const size rest = (columns * (2 * sizeof(real_t) + sizeof(int)) + WARPS * sizeof(real_t) + 15)
        / 16 * 16;
    size apart = (SHARED ? numbers : 0) + rest + (TILED ? WARPS * sizeof(Pairs) : 0);
    if (SPREAD && SHARED) apart += (GROUPS * WIDTH * LD * size(sizeof(scalar_t)) - apart) & 127;
    char* p = dynamic_shared + team() * apart;
    Scratch s;
    s.X = SHARED ? reinterpret_cast<scalar_t*>(p) : global;
    s.lengths = reinterpret_cast<real_t*>(p + (SHARED ? numbers : 0));
    s.inverses = s.lengths + columns;
    s.sums = s.inverses + columns;
    s.order = reinterpret_cast<int*>(s.sums + WARPS);
    s.pairs = reinterpret_cast<Pairs*>(p + (SHARED ? numbers : 0) + rest);
    return s;
}
