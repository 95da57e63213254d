// solve_lines.cuh: T x = y by a warp, T a triangle that passes by in lines as they lie in memory.
//
// x stays in shared memory, first y. T goes by in panels of LINES rows and columns. The square of a
// panel on the diagonal comes to shared memory, the next one while one is used; LANES lanes hold a
// row of it and of x. Where lines are rows of T, products with what is known are gathered before,
// lanes side by side along the lines, with CHUNKS LINES loads each under way, and their sums, by
// halves, come to the row's lanes. Where lines are columns, products with what was found are taken
// off what is to come, lanes side by side along the lines, too. A warp waits for memory once for
// 32 CHUNKS numbers of all lines, and LINES times a panel for a number that goes to all lanes; other
// warps of the multiprocessor have loads under way meanwhile.
#pragma once
#include "async.cuh"
#include "block.cuh"
#include "operands.cuh"
#include "reciprocals.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int LINES = 16;   // of a panel: 8, 16 or 32
constexpr int CHUNKS = 1;   // of 32 numbers of every line, whose loads are under way at once
constexpr int BLOCKS = 1;   // per multiprocessor for which registers are rationed
#endif
constexpr int LANES = 32 / LINES, PITCH = LINES + 1;

__device__ inline int lane() { return threadIdx.x % 32; }
__device__ inline int own() { return lane() / LANES; }

// T(i, j) is p[i rs + j cs], or its conjugate.
struct Triangle {
    const scalar_t* p;
    size rs, cs;
    bool conjugated, unit, real_diagonal;

    __device__ scalar_t at(const scalar_t* q) const { return turned(*q, conjugated); }
};

// The shared memory of a warp: two squares and n numbers of x
struct Scratch {
    scalar_t *squares, *x;
};

// What a warp solves: a right-hand side of a member, `parts` to each; x has room for `room` numbers.
struct Side {
    size member;
    int number, n;
    Scratch s;

    __device__ Side(size parts, size room)
    {
        const size work = size(blockIdx.x) * WARPS + warp();
        member = work / parts, number = int(work - member * parts);
        scalar_t* const own = reinterpret_cast<scalar_t*>(dynamic_shared) + warp() * room;
        s = {own, own + 2 * LINES * PITCH};
    }
    // Calls f(i) for every row, the lanes sharing them.
    template <class F> __device__ void each(F f) const
    {
        for (int i = lane(); i < n; i += 32) f(i);
        __syncwarp();
    }
};

// The numbers of CHUNKS times 32 places along the lines, a lane's, from place j on, as far as `end`:
// line l's at q + l next
struct Chunks {
    scalar_t line[CHUNKS][LINES];

    template <bool ALL_THERE>
    __device__ void load(const scalar_t* q, size next, size step, int rows, int j, int end)
    {
        #pragma unroll
        for (int u = 0; u < CHUNKS; ++u) {
            const bool there = j + 32 * u < end;
            #pragma unroll
            for (int l = 0; l < LINES; ++l)
                line[u][l] = there && (ALL_THERE || l < rows) ? q[l * next + 32 * u * step]
                                                              : scalar_t{};
        }
    }
};

// sums -= the lines' numbers from `from` to `end` times what of x is known there
template <bool ALL_THERE>
__device__ void gather(scalar_t (&sums)[LINES], const Triangle& t, const scalar_t* lines, size next,
                       size step, int rows, const scalar_t* x, int from, int end)
{
    #pragma unroll 1
    for (int j = from + lane(); j < end; j += 32 * CHUNKS) {
        Chunks a;
        a.template load<ALL_THERE>(lines + j * step, next, step, rows, j, end);
        #pragma unroll
        for (int u = 0; u < CHUNKS; ++u) {
            const scalar_t known = j + 32 * u < end ? x[j + 32 * u] : scalar_t{};
            #pragma unroll
            for (int l = 0; l < LINES; ++l)
                sums[l] = minus_product(sums[l], turned(a.line[u][l], t.conjugated), known);
        }
    }
}

// x from `from` to `end` -= the lines' numbers there times what was found
template <bool ALL_THERE>
__device__ void scatter(const Triangle& t, const scalar_t* lines, size next, size step, int rows,
                        const scalar_t* found, scalar_t* x, int from, int end)
{
    #pragma unroll 1
    for (int i = from + lane(); i < end; i += 32 * CHUNKS) {
        Chunks a;
        a.template load<ALL_THERE>(lines + i * step, next, step, rows, i, end);
        #pragma unroll
        for (int u = 0; u < CHUNKS; ++u) {
            if (i + 32 * u >= end) break;
            scalar_t rest = x[i + 32 * u];
            #pragma unroll
            for (int l = 0; l < LINES; ++l)
                if (ALL_THERE || l < rows)
                    rest = minus_product(rest, turned(a.line[u][l], t.conjugated), found[l]);
            x[i + 32 * u] = rest;
        }
    }
}

// x[0] := the sums over all lanes of x[own()]; MANY numbers go to the lane across, MANY stay.
template <int BIT = 16, int MANY = LINES / 2>
__device__ void collect(scalar_t (&x)[LINES])
{
    const bool upper = lane() & BIT;
    if constexpr (MANY == 0) {
        x[0] = add(x[0], across(x[0], BIT));
    } else {
        #pragma unroll
        for (int i = 0; i < MANY; ++i) {
            const scalar_t kept = upper ? x[i + MANY] : x[i], sent = upper ? x[i] : x[i + MANY];
            x[i] = add(kept, across(sent, BIT));
        }
    }
    if constexpr (BIT > 1) collect<BIT / 2, MANY / 2>(x);
}

// Row own() of x := that of T^-1 x of a square of `rows` rows, T(i, j) at i down + j right. Numbers
// of a column are not divided by its pivot beforehand, which would make a step shorter: quotients
// of rows of different sizes over- and underflow where their products with x do not.
template <bool DOWN>
__device__ scalar_t solve(const scalar_t* square, int down, int right, int rows, const Triangle& t,
                          scalar_t x)
{
    const int i = own();
    const scalar_t pivot = t.unit || i >= rows ? scalar_t{1} : t.at(square + i * (down + right));
    const Reciprocals<1> d([&](int) { return t.real_diagonal ? real_part(pivot) : pivot; });
    if (__any_sync(ALL, d.lift[0] != 1)) {
        #pragma unroll 1
        for (int step = 0; step < rows; ++step) {
            const int j = DOWN ? step : rows - 1 - step;
            const scalar_t found = of_lane(d.under(x, 0), j * LANES);
            const scalar_t below = t.at(square + min(i, rows - 1) * down + j * right);
            x = (DOWN ? i > j && i < rows : i < j) ? minus_product(x, below, found) : x;
        }
        return d.under(x, 0);
    }
    scalar_t c[LINES];  // of T's row
    #pragma unroll
    for (int j = 0; j < LINES; ++j) {
        const bool wanted = DOWN ? i > j && i < rows : i < j && j < rows;
        c[j] = t.at(square + (wanted ? i * down + j * right : 0));
    }
    const auto divided = [&](scalar_t y) { return t.unit ? y : mul(y, d.inverse[0]); };
    #pragma unroll
    for (int step = 0; step < LINES; ++step) {
        const int j = DOWN ? step : LINES - 1 - step;
        const scalar_t found = of_lane(divided(x), j * LANES);
        x = (DOWN ? i > j : i < j && j < rows) ? minus_product(x, c[j], found) : x;
    }
    return divided(x);
}

// x := T^-1 x, n of them; T is lower, DOWN, or upper.
template <bool DOWN> __device__ void sweep(const Triangle& t, const Scratch& s, int n)
{
    constexpr int bytes = sizeof(scalar_t);
    const bool by_rows = abs(t.cs) <= abs(t.rs);
    const size next = by_rows ? t.rs : t.cs, step = by_rows ? t.cs : t.rs;  // of lines, along them
    const int panels = (n + LINES - 1) / LINES;
    const auto begin = [=](int turn) { return (DOWN ? turn : panels - 1 - turn) * LINES; };
    const auto bring = [&](int turn) {
        const int k = begin(turn), rows = min(LINES, n - k);
        scalar_t* const to = s.squares + turn % 2 * (LINES * PITCH);
        #pragma unroll
        for (int e = 0; e < LINES * LINES; e += 32) {
            const int l = (e + lane()) / LINES, i = lane() % LINES;
            if (l < rows && i < rows && (by_rows == DOWN ? i <= l : i >= l))
                copy_async<bytes>(to + l * PITCH + i, t.p + (k + l) * next + (k + i) * step, bytes);
        }
    };
    bring(0);
    end_group();
    #pragma unroll 1
    for (int turn = 0; turn < panels; ++turn) {
        const int k = begin(turn), rows = min(LINES, n - k);
        const scalar_t* const lines = t.p + k * next;
        if (turn + 1 < panels) bring(turn + 1);
        end_group();
        scalar_t x = own() < rows ? s.x[k + own()] : scalar_t{};
        if (by_rows) {
            scalar_t sums[LINES] = {};
            const int from = DOWN ? 0 : k + LINES, end = DOWN ? k : n;
            if (rows == LINES) gather<true>(sums, t, lines, next, step, rows, s.x, from, end);
            else gather<false>(sums, t, lines, next, step, rows, s.x, from, end);
            collect(sums);
            x = add(x, sums[0]);
        }
        await_groups<1>();
        __syncwarp();
        x = solve<DOWN>(s.squares + turn % 2 * (LINES * PITCH), by_rows ? PITCH : 1,
                        by_rows ? 1 : PITCH, rows, t, x);
        if (lane() % LANES == 0 && own() < rows) s.x[k + own()] = x;
        __syncwarp();
        if (!by_rows) {
            const int from = DOWN ? k + LINES : 0, end = DOWN ? n : k;
            if (rows == LINES) scatter<true>(t, lines, next, step, rows, s.x + k, s.x, from, end);
            else scatter<false>(t, lines, next, step, rows, s.x + k, s.x, from, end);
            __syncwarp();
        }
    }
}
