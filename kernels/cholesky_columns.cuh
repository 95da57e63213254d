// cholesky_columns.cuh: A = L L^H of one matrix by a block, the lower triangle in its registers. N is
// the order n rounded up to whole tiles of 8.
//
// Columns of 8 x 8 tiles are dealt to the warps, warp w has those numbered w, w + WARPS, ..., from
// the diagonal down (tile.cuh). A warp factors its column alone, every lane the diagonal tile for
// itself and every 32nd row below it, and leaves it by rows in shared memory; all warps take its
// product off their columns, first the one that has the next column, which factors that while the
// others multiply: a barrier to a column. What is factored goes to memory at the end, all at once.
// Out of place what is above the diagonal waits for that in shared memory. Rows past n are those of
// the identity.
//
// A right-hand SIDE is in shared memory. It goes down one column behind the factorization, so that
// no column waits for it: while the next is factored, the warp that has just factored one solves
// with its diagonal tile and takes what is below that off the side. On the way up L stays in the
// registers: as soon as a tile of the solution is known, all lanes multiply it by their numbers of L
// in its rows, each for a part of the sums over rows, which the warp that has the next column adds
// up before it solves with the diagonal tile, every lane for itself: a barrier to a column, too.
//
// Moves to memory and from there have an address for each column and a step from tile to tile: with
// products of strides for every tile the kernel is 3 to 8 % slower, though they are no part of the
// loop. Which tests stand outside their loops, and what is chosen at run time, is 1 to 7 %, too.
//
// An upper triangle is the lower one of the transpose: the launcher swaps the strides, and what is
// factored is conj(A) = conj(U^T) conj(U^T)^H.
#pragma once
#include "async.cuh"
#include "block.cuh"
#include "panel_rows.cuh"
#include "reciprocal.cuh"
#include "shuffle.cuh"
#include "tile.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 128;      // the order in whole tiles
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
constexpr int AHEAD = 0;    // 1: of a column in shared memory a pair of tiles waits for the last
constexpr int ODD_ROWS = 0; // 1: rows are of odd length, as those of a member of odd order
#endif
constexpr int NT = N / 8, COLUMNS = (NT + WARPS - 1) / WARPS;
static_assert(N % 8 == 0);

struct Shared {
    alignas(16) scalar_t panel[2][panel_row(N)];
    int info[2];            // by the columns of either parity: read before it is written again
};
struct Side {               // b, then from above L^-1 b, then from below L^-H L^-1 b
    alignas(16) scalar_t x[N];
    alignas(16) real_t inverse[N];  // of the diagonal of L
};
using Column = Tile[NT];    // a lane's part; of column J what is above tile J means nothing
using Columns = Column[COLUMNS];

// f(column, its number J, first) for the columns that the warp has, the B-th and after; those in the
// same place of all warps begin with number `first`, a constant to the compiler
template <int B = 0, class F> __device__ __forceinline__ void each_column(Columns& a, F f)
{
    if constexpr (B < COLUMNS) {
        const int J = B * WARPS + warp();
        if ((B + 1) * WARPS <= NT || J < NT) f(a[B], J, B * WARPS);
        each_column<B + 1>(a, f);
    }
}
// Whether such a column has tile I
__device__ inline bool has(int J, int first, int I)
{
    return I >= first && (I >= first + WARPS - 1 || I >= J);
}

// -- to memory and from there

// Of a tile a lane moves its part, the pair at once where rows lie in pairs. Rows of odd length
// (ODD_ROWS) are moved by EIGHT lanes each: else a load touches all rows of a tile for every other
// number of them. Lane 8 r + c has the numbers (r, c) and (r + 4, c ^ 1): the first of an even lane is
// in an even column, and the second of an odd one. So the numbers of even columns go to the lanes
// whose parts they are at once, one from each lane and one to each, and then all others.
template <bool EIGHT> __device__ inline int moved_row(int e)
{
    return EIGHT ? threadIdx.x % 32 / 8 + 4 * e : tile_row();
}
template <bool EIGHT> __device__ inline int moved_col(int e)
{
    return EIGHT ? threadIdx.x % 8 ^ e : tile_col(e);
}
// From what lanes move to their parts, and back; by value, else on Blackwell the compiler chooses by
// address and keeps all tiles in memory
__device__ inline Tile to_parts(Tile x)
{
    const bool odd = threadIdx.x % 2;
    const int from = g() % 4 * 8 + 2 * t() + g() / 4;
    return {of_lane(odd ? x.x[1] : x.x[0], from), of_lane(odd ? x.x[0] : x.x[1], from ^ 1)};
}
__device__ inline Tile to_rows(Tile x)
{
    const int lane = threadIdx.x % 32, odd = lane % 2;
    const int from = lane / 8 * 4 + lane % 8 / 2 + 16 * odd;
    const scalar_t of_even = of_lane(x.x[0], from), of_odd = of_lane(x.x[1], from ^ 16);
    return {odd ? of_odd : of_even, odd ? of_even : of_odd};
}
__device__ __forceinline__ void all_to_parts(Columns& a)
{
    each_column(a, [&](Column& c, int J, int top) {
        #pragma unroll
        for (int I = top; I < NT; ++I)
            if (has(J, top, I)) c[I] = to_parts(c[I]);
    });
}

// Whether rows of A are moved by pairs, or if ODD_ROWS by eight lanes: the warp's word, by which the
// compiler knows that its lanes stay together
template <class T> __device__ bool in_rows(const Strided<T>& A, int n, size next)
{
    if constexpr (PAIR < 2) return false;
    else if constexpr (ODD_ROWS) return __all_sync(ALL, A.cs == 1);
    else return A.template in_packs<PAIR>(n, next);
}

// f(x, where, I) for the tiles I of column J of A, `where` the first is that the lane moves of it
template <bool EIGHT, class T, class F>
__device__ __forceinline__ void each_tile(Column& c, int J, int first, const Strided<T>& A, F f)
{
    const size down = 8 * A.rs;
    T* where = &A(8 * first + moved_row<EIGHT>(0), 8 * J + moved_col<EIGHT>(0));
    #pragma unroll
    for (int I = first; I < NT; ++I, where += down)
        if (has(J, first, I)) f(c[I], where, I);
}
// From the first number that a lane moves of a tile to the second
template <bool EIGHT, class T> __device__ inline size beside(const Strided<T>& A)
{
    return (EIGHT ? 4 * A.rs : size(0)) + (moved_col<EIGHT>(1) - moved_col<EIGHT>(0)) * A.cs;
}

// What lanes move of the lower triangle of A, zeros elsewhere
template <bool EIGHT>
__device__ __forceinline__ void load_numbers(Columns& a, const Strided<const scalar_t>& A, int n)
{
    const size apart = beside<EIGHT>(A);
    const auto wanted = [=](int I, int J, int e) {
        return (I > J || moved_col<EIGHT>(e) <= moved_row<EIGHT>(e))
               && (I < NT - 1 || 8 * I + moved_row<EIGHT>(e) < n);
    };
    each_column(a, [&](Column& c, int J, int top) {
        each_tile<EIGHT>(c, J, top, A, [&](Tile& x, const scalar_t* p, int I) {
            x = {};
            if (wanted(I, J, 0)) x.x[0] = p[0];
            if (wanted(I, J, 1)) x.x[1] = p[apart];
        });
    });
}
__device__ __forceinline__ void load(Columns& a, const Strided<const scalar_t>& A, int n, bool rows)
{
    if (PAIR == 2 && rows) {
        if constexpr (ODD_ROWS) {
            load_numbers<true>(a, A, n);
        } else {
            const bool first = tile_col(0) <= tile_row();
            each_column(a, [&](Column& c, int J, int top) {
                each_tile<false>(c, J, top, A, [&](Tile& x, const scalar_t* p, int I) {
                    x = {};
                    if ((I > J || first) && (I < NT - 1 || 8 * I + tile_row() < n))
                        x = *reinterpret_cast<const Tile*>(p);
                });
            });
        }
    } else {
        load_numbers<false>(a, A, n);
    }
}
// Rows past n := those of the identity
__device__ __forceinline__ void ones_past(Columns& a, int n)
{
    const bool past = warp() == (NT - 1) % WARPS && 8 * NT - 8 + tile_row() >= n;
    #pragma unroll
    for (int e = 0; e < 2; ++e) {
        scalar_t& x = a[(NT - 1) / WARPS][NT - 1].x[e];
        x = past ? scalar_t{real_t(tile_row() == tile_col(e))} : x;
    }
}

// The lower triangle to C; of a failed factorization the columns before `end`
__device__ __forceinline__ void store(Columns& a, const Strided<scalar_t>& C, int n, int end,
                                      bool rows)
{
    const auto wanted = [=](int i, int j) {
        return i < n && j <= i && (j < end || (j == end && i == j));
    };
    if (PAIR == 2 && rows && (ODD_ROWS || end == n)) {
        if constexpr (ODD_ROWS) {
            const size apart = beside<true>(C);
            each_column(a, [&](Column& c, int J, int top) {
                each_tile<true>(c, J, top, C, [&](const Tile& x, scalar_t* p, int I) {
                    const Tile y = to_rows(x);
                    const auto at = [=](int e) {
                        return wanted(8 * I + moved_row<true>(e), 8 * J + moved_col<true>(e));
                    };
                    if (at(0)) p[0] = y.x[0];
                    if (at(1)) p[apart] = y.x[1];
                });
            });
        } else {
            each_column(a, [&](Column& c, int J, int top) {
                each_tile<false>(c, J, top, C, [&](Tile& x, scalar_t* p, int I) {
                    if (I < NT - 1 || 8 * I + tile_row() < n) {
                        if (I > J || tile_col(1) <= tile_row()) *reinterpret_cast<Tile*>(p) = x;
                        else if (tile_col(0) <= tile_row()) *p = x.x[0];
                    }
                });
            });
        }
    } else {
        const size apart = beside<false>(C);
        each_column(a, [&](Column& c, int J, int top) {
            each_tile<false>(c, J, top, C, [&](Tile& x, scalar_t* p, int I) {
                const int i = 8 * I + tile_row();
                if (wanted(i, 8 * J + tile_col(0))) p[0] = x.x[0];
                if (wanted(i, 8 * J + tile_col(1))) p[apart] = x.x[1];
            });
        });
    }
}

// move(line, i, x) for a thread's part of what is above the diagonal, V numbers from the i-th of a
// line on with their place x in shared memory. Lines are rows if `across`, else columns; an eighth of
// the threads has one of 8 neighbours, and one as far from the end: together they are N + 8 long.
template <int V, class Move>
__device__ __forceinline__ void each_above(scalar_t* room, int n, bool across, Move move)
{
    constexpr int EACH = THREADS / 8;
    const int of_8 = thread() / EACH;
    #pragma unroll 1
    for (int of_pair = 0; 2 * of_pair < NT; ++of_pair) {
        const int other = NT - 1 - of_pair;
        const int length = across ? N - 8 * of_pair : 8 * of_pair + 8, skip = across ? 8 : 0;
        scalar_t* const its = room + (8 * of_pair + of_8) * (N + 8);
        #pragma unroll 1
        for (int c = thread() % EACH * V; c < N + 8; c += EACH * V) {
            const bool second = c >= length;
            const int of_line = second ? other : of_pair, line = 8 * of_line + of_8;
            const int i = c - (second ? length : 0) + skip * of_line;
            const bool above = across ? i + V > line + 1 : i < line;
            if (above && line < n && i < n && !(second && of_pair == other)) move(line, i, its + c);
        }
    }
}
template <int V>
__device__ __forceinline__ void fetch_above(scalar_t* room, const Strided<const scalar_t>& A, int n,
                                            bool across)
{
    constexpr int bytes = V * sizeof(scalar_t);
    each_above<V>(room, n, across, [&](int line, int i, scalar_t* x) {
        copy_async<bytes>(x, across ? &A(line, i) : &A(i, line), bytes);
    });
    end_group();
}
template <int V>
__device__ __forceinline__ void put_above(scalar_t* room, const Strided<scalar_t>& C, int n,
                                          bool across)
{
    await_groups<0>();  // what a thread puts it has fetched
    each_above<V>(room, n, across, [&](int line, int i, const scalar_t* x) {
        if (V == PAD && i > line) {  // in packs lines are rows
            *reinterpret_cast<Quad*>(&C(line, i)) = *reinterpret_cast<const Quad*>(x);
        } else {
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (across ? i + e > line : i + e < line)
                    (across ? C(line, i + e) : C(i + e, line)) = x[e];
        }
    });
}

// Lines that begin anywhere in 16 bytes, but those of C where those of A do, are moved 16 bytes at a
// time where all of these is above the diagonal, and in shared memory a line begins as they do. Lines
// L and N - 1 - L have N - 1 numbers there, and with what is before each and between them N + 8.
template <class T> __device__ Strided<T> lines_of(const Strided<T>& A, bool across)
{
    return across ? A : Strided<T>{A.p, A.cs, A.rs};
}
template <class T, class U>
__device__ bool alike(const Strided<T>& A, const Strided<U>& C, bool across)
{
    const auto a = lines_of(A, across);
    const auto c = lines_of(C, across);
    return PAD > 1 && a.cs == 1 && c.cs == 1
           && (size(a.p) - size(c.p) | (a.rs - c.rs) * size(sizeof(scalar_t))) % 16 == 0;
}
// whole(p, x) for 16 bytes of A at p with their place x in shared memory, one(p, x) for a number
template <class T, class Whole, class One>
__device__ __forceinline__ void each_shifted(scalar_t* room, const Strided<T>& A, int n, bool across,
                                             Whole whole, One one)
{
    constexpr int EACH = THREADS / 8;
    const auto lines = lines_of(A, across);
    const unsigned begin = unsigned(size(lines.p)) / sizeof(scalar_t), apart = unsigned(lines.rs);
    #pragma unroll 1
    for (int L = thread() / EACH; 2 * L < N; L += 8) {
        scalar_t* const its = room + L * (N + 8);
        const int length = ((across ? N - 1 - L : L) + 2 * PAD - 2) / PAD * PAD;
        #pragma unroll 1
        for (int c = thread() % EACH * PAD; c < N + 8; c += EACH * PAD) {
            const bool second = c >= length;
            const int line = second ? N - 1 - L : L;
            const int first = across ? line + 1 : 0, end = across ? n : line < n ? line : 0;
            const int i = first - int((begin + line * apart + first) % PAD) + c - second * length;
            T* const p = lines.p + line * lines.rs + i;
            if (i >= first && i + PAD <= end) {
                whole(p, its + c);
            } else {
                #pragma unroll
                for (int e = 0; e < PAD; ++e)
                    if (i + e >= first && i + e < end) one(p + e, its + c + e);
            }
        }
    }
}
__device__ __forceinline__ void fetch_shifted(scalar_t* room, const Strided<const scalar_t>& A,
                                              int n, bool across)
{
    constexpr int bytes = sizeof(scalar_t);
    each_shifted(room, A, n, across,
                 [](const scalar_t* p, scalar_t* x) { copy_async<16>(x, p, 16); },
                 [](const scalar_t* p, scalar_t* x) { copy_async<bytes>(x, p, bytes); });
    end_group();
}
__device__ __forceinline__ void put_shifted(scalar_t* room, const Strided<scalar_t>& C, int n,
                                            bool across)
{
    await_groups<0>();  // as above
    each_shifted(room, C, n, across,
                 [](scalar_t* p, const scalar_t* x) {
                     *reinterpret_cast<Quad*>(p) = *reinterpret_cast<const Quad*>(x);
                 },
                 [](scalar_t* p, const scalar_t* x) { *p = *x; });
}

// -- a column

// The lane's part of tile I of the column in shared memory
__device__ inline Tile part_of(const scalar_t* panel, int I)
{
    const scalar_t* const row = panel + panel_row(tile_row()) + panel_row(8 * I);
    if constexpr (PAIR == 2) return *reinterpret_cast<const Tile*>(row + 2 * t());
    else return {row[tile_col(0)], row[tile_col(1)]};
}
__device__ inline void put_part(scalar_t* panel, int I, const Tile& a)
{
    scalar_t* const row = panel + panel_row(tile_row()) + panel_row(8 * I);
    if constexpr (PAIR == 2) *reinterpret_cast<Tile*>(row + 2 * t()) = a;
    else row[tile_col(0)] = a.x[0], row[tile_col(1)] = a.x[1];
}

// Column J less what the column of L in `panel` takes off it
__device__ __forceinline__ void update(Column& a, int J, int first, const scalar_t* panel)
{
    if constexpr (TENSOR) {
        const Tile right = part_of(panel, J);
        #pragma unroll
        for (int I = first; I < NT; I += 2) {
            const int next = I + 1 < NT ? I + 1 : I;
            if (!has(J, first, next)) continue;
            if (AHEAD) __syncwarp();
            Tile c[2] = {a[I], a[next]};
            const Tile left[2] = {part_of(panel, I), part_of(panel, next)};
            add_adjoint<-1>(c, left, right);
            a[I] = c[0];
            if (next > I) a[next] = c[1];
        }
    } else {
        Row right[2];
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            read_row(panel + panel_row(8 * J) + panel_row(tile_col(e)), right[e]);
        #pragma unroll
        for (int I = first; I < NT; ++I) {
            if (!has(J, first, I)) continue;
            if (AHEAD) __syncwarp();
            Row left;
            read_row(panel + panel_row(tile_row()) + panel_row(8 * I), left);
            #pragma unroll
            for (int q = 0; q < 8; ++q)
                #pragma unroll
                for (int e = 0; e < 2; ++e)
                    a[I].x[e] = minus_product(a[I].x[e], left[q], conj(right[e][q]));
        }
    }
}

// Column k := that of L, there and in `panel`, by the warp that has it. Returns 0, or 1 + the first
// of its columns whose pivot is not positive; those from there on mean nothing.
__device__ __forceinline__ int factor(Column& a, int k, int first, scalar_t* panel,
                                      [[maybe_unused]] Side* side)
{
    #pragma unroll
    for (int I = first; I < NT; ++I)
        if (has(k, first, I)) put_part(panel, I, a[I]);
    __syncwarp();
    Row d[8];
    real_t r[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) read_row(panel + panel_row(8 * k) + panel_row(i), d[i]);
    __syncwarp();
    int failed = 0;
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
        const real_t pivot = real(d[j][j]);
        if (in_range(pivot)) {  // and so says every lane
            r[j] = near_rsqrt(pivot);
        } else {
            if (!(pivot > 0) && !failed) failed = j + 1;
            r[j] = failed ? real_t(1) : rsqrt(pivot);
        }
        #pragma unroll
        for (int i = j + 1; i < 8; ++i) d[i][j] = mul(d[i][j], r[j]);
        #pragma unroll
        for (int c = j + 1; c < 8; ++c)
            #pragma unroll
            for (int i = c; i < 8; ++i) d[i][c] = minus_product(d[i][c], d[i][j], conj(d[c][j]));
    }
    if constexpr (SIDE) {
        if (threadIdx.x % 32 == 0)
            #pragma unroll
            for (int j = 0; j < 8; ++j) side->inverse[8 * k + j] = r[j];
    }
    #pragma unroll 1
    for (int i = 8 * k + threadIdx.x % 32; i < N; i += 32) {
        Row x;
        read_row(panel + panel_row(i), x);
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            if (sizeof(scalar_t) > sizeof(real_t) && i == 8 * k + j) x[j] = scalar_t{real(x[j])};
            x[j] = mul(x[j], r[j]);
            #pragma unroll
            for (int c = j + 1; c < 8; ++c) x[c] = minus_product(x[c], x[j], conj(d[c][j]));
        }
        write_row(panel + panel_row(i), x);
    }
    __syncwarp();
    #pragma unroll
    for (int I = first; I < NT; ++I)
        if (has(k, first, I)) a[I] = part_of(panel, I);
    return failed;
}

// Tile k of the side := that of L^-1 b, those below it less what column k of L, in `panel`, takes
// off them, by one warp
__device__ __forceinline__ void go_down(Side& side, int k, const scalar_t* panel)
{
    Row y, l;
    read_row(side.x + 8 * k, y);
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        read_row(panel + panel_row(8 * k) + panel_row(i), l);
        #pragma unroll
        for (int j = 0; j < i; ++j) y[i] = minus_product(y[i], l[j], y[j]);
        y[i] = mul(y[i], side.inverse[8 * k + i]);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) write_row(side.x + 8 * k, y);
    #pragma unroll 1
    for (int i = 8 * k + 8 + threadIdx.x % 32; i < N; i += 32) {
        read_row(panel + panel_row(i), l);
        scalar_t b = side.x[i];
        #pragma unroll
        for (int j = 0; j < 8; ++j) b = minus_product(b, l[j], y[j]);
        side.x[i] = b;
    }
    __syncwarp();
}

// The columns from number B WARPS on, one after the other, to the end or to a pivot that is not
// positive, which s.info says then
template <int B>
__device__ __forceinline__ void factor_from(Columns& a, Shared& s, Side* side = nullptr)
{
    if constexpr (B < COLUMNS) {
        constexpr int first = B * WARPS;
        #pragma unroll 1
        for (int w = 0; w < WARPS; ++w) {
            const int k = first + w, own = first + warp();
            if (k >= NT || s.info[(k + 1) % 2]) return;
            const scalar_t* const before = s.panel[(k + 1) % 2];
            if (k && own >= k && own < NT) update(a[B], own, first, before);
            if (own == k) {
                const int failed = factor(a[B], k, first, s.panel[k % 2], side);
                if (thread() % 32 == 0) s.info[k % 2] = failed ? 8 * k + failed : 0;
            }
            if (k)
                each_column<B + 1>(a, [&](Column& c, int J, int top) { update(c, J, top, before); });
            if constexpr (SIDE) {
                if (k && (k - 1) % WARPS == warp()) go_down(*side, k - 1, before);
            }
            __syncthreads();
        }
        factor_from<B + 1>(a, s, side);
    }
}

// -- a member

// The block's number as if it were not known, so that no register holds what follows from it
__device__ inline size block()
{
#ifdef BLASX_SIM
    return blockIdx.x;
#else
    unsigned b;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(b));
    return b;
#endif
}

// The lower triangle of A; what is above it, if C is another matrix, is on its way
__device__ __forceinline__ void fetch(Columns& a, const Strided<const scalar_t>& A, size a_next,
                                      const Strided<scalar_t>& C, size c_next, int n)
{
    scalar_t* const above = reinterpret_cast<scalar_t*>(dynamic_shared);
    const bool rows = in_rows(A, n, a_next);
    load(a, A, n, rows);
    if (A.p != C.p) {
        if (A.in_packs<PAD>(n, a_next) && C.in_packs<PAD>(n, c_next))
            fetch_above<PAD>(above, A, n, true);
        else if (alike(A, C, A.cs == 1)) fetch_shifted(above, A, n, A.cs == 1);
        else fetch_above<1>(above, A, n, A.cs == 1);
    }
    if (ODD_ROWS && rows) all_to_parts(a);
    ones_past(a, n);
}
// L to C, with what is above the diagonal, and what a failed factorization has not reached, as A has
// it. Returns info.
__device__ __forceinline__ int put_back(Columns& a, Shared& s, const Strided<const scalar_t>& A,
                                        size a_next, const Strided<scalar_t>& C, size c_next, int n)
{
    scalar_t* const above = reinterpret_cast<scalar_t*>(dynamic_shared);
    const int found = s.info[0] + s.info[1];
    store(a, C, n, found ? found - 1 : n, in_rows(C, n, c_next));
    if (A.p != C.p) {
        if (A.in_packs<PAD>(n, a_next) && C.in_packs<PAD>(n, c_next))
            put_above<PAD>(above, C, n, true);
        else if (alike(A, C, A.cs == 1)) put_shifted(above, C, n, A.cs == 1);
        else put_above<1>(above, C, n, A.cs == 1);
        if (found)  // what it has not reached, as A has it
            for_each(n, n, C.cs == 1, [=](int i, int j) {
                if (j <= i && !(j < found - 1 || (j == found - 1 && i == j))) C(i, j) = A(i, j);
            });
    }
    return found;
}

// -- the way up

// Of what is left of the side in a warp's columns of tiles a lane has a part of two numbers each: the
// eight lanes with other rows of the same two columns have the rest
using Parts = scalar_t[COLUMNS][2];

// Tile J of the side := that of the solution, by the warp that has column J and these parts of it; the
// diagonal tile is in `panel`
__device__ __forceinline__ void solve_tile(Side& side, scalar_t (&b)[2], int J,
                                           const scalar_t* panel)
{
    #pragma unroll
    for (int apart = 4; apart < 32; apart *= 2)
        #pragma unroll
        for (int e = 0; e < 2; ++e) b[e] = add(b[e], across(b[e], apart));
    Row x, l;
    #pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = of_lane(b[place_of(j) % 2], place_of(j) / 2);
    #pragma unroll
    for (int i = 7; i >= 0; --i) {
        read_row(panel + panel_row(8 * J) + panel_row(i), l);
        x[i] = mul(x[i], side.inverse[8 * J + i]);
        #pragma unroll
        for (int j = 0; j < i; ++j) x[j] = minus_product(x[j], conj(l[j]), x[i]);
    }
    if (threadIdx.x % 32 == 0) write_row(side.x + 8 * J, x);
}

// The columns before number (B + 1) WARPS, one after the other, back to the first
template <int B>
__device__ __forceinline__ void solve_from(const Columns& a, Parts& b, Side& side,
                                           const scalar_t* panel)
{
    if constexpr (B >= 0) {
        constexpr int first = B * WARPS, count = NT - first < WARPS ? NT - first : WARPS;
        #pragma unroll 1
        for (int w = count - 1; w >= 0; --w) {
            if (warp() == w) solve_tile(side, b[B], first + w, panel);
            __syncthreads();
            const scalar_t x = side.x[8 * (first + w) + tile_row()];
            #pragma unroll
            for (int c = 0; c < count; ++c) {
                if (c != w) continue;  // registers have constant numbers
                #pragma unroll
                for (int own = 0; own <= B; ++own)
                    if (own < B || warp() < c)
                        #pragma unroll
                        for (int e = 0; e < 2; ++e)
                            b[own][e] = minus_product(b[own][e], conj(a[own][first + c].x[e]), x);
            }
        }
        solve_from<B - 1>(a, b, side, panel);
    }
}

// The side := the solution; the factorization has left of L^-1 b all but the last tile
__device__ __forceinline__ void solve_for_side(Columns& a, Shared& s, Side& side)
{
    if (warp() == (NT - 1) % WARPS) go_down(side, NT - 1, s.panel[(NT - 1) % 2]);
    Parts b;
    scalar_t* const panel = s.panel[NT % 2];
    each_column(a, [&](Column& c, int J, int first) {
        #pragma unroll
        for (int I = first; I < first + WARPS && I < NT; ++I)
            if (I == J) put_part(panel, I, c[I]);
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            b[first / WARPS][e] = g() ? scalar_t{} : side.x[8 * J + tile_col(e)];
    });
    __syncwarp();
    solve_from<COLUMNS - 1>(a, b, side, panel);
}
