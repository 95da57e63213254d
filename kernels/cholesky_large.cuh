// cholesky_large.cuh: A = L L^H of a matrix of more than 32 rows by a warp, from memory to memory.
//
// The tiles on and below the diagonal are in registers (tiles.cuh), but for the first column of
// tiles, which is the first panel. That leaves room for little else: a lane has up to three rows of
// a panel in shared memory, from where it goes to C as soon as it is factored; the other triangle
// is copied through shared memory. ONE_LINE: a member that has no gaps and is not in place is there
// as a whole, comes and goes 16 bytes at a time, and panels go to their place in it: for orders at
// which the rows of a tile begin within 32 bytes of memory. Panels past n are skipped, in a panel
// rows past n are those of the identity. Panels are the body of a loop: unrolled altogether the
// code is longer than the instruction cache.
//
// A right-hand side goes down with the panels, a column beside them. L stays in shared memory then,
// in the line or where the other triangle was on its way, for the way up.
#pragma once
#include "async.cuh"
#include "cholesky_tiles.cuh"
#include "solve_up.cuh"

// A lane's two elements of a row of a tile, at p and `beside` it: of a pack both if the first is
// wanted, and to be stored if the second is
template <bool PACKS>
__device__ void get_pair(const scalar_t* p, size beside, bool first, bool second, scalar_t (&x)[2])
{
    if constexpr (PACKS && CV == 2) {
        if (!first) return;
        const Pack pack = *reinterpret_cast<const Pack*>(p);
        #pragma unroll
        for (int e = 0; e < CV; ++e) x[e] = pack.x[e];
    } else {
        if (first) x[0] = p[0];
        if (second) x[1] = p[beside];
    }
}
template <bool PACKS>
__device__ void put_pair(scalar_t* p, size beside, bool first, bool second, const scalar_t (&x)[2])
{
    if constexpr (PACKS && CV == 2) {
        Pack pack;
        #pragma unroll
        for (int e = 0; e < CV; ++e) pack.x[e] = x[e];
        if (second) *reinterpret_cast<Pack*>(p) = pack;
        else if (first) p[0] = x[0];
    } else {
        if (first) p[0] = x[0];
        if (second) p[beside] = x[1];
    }
}
template <class T> __device__ size beside(const Strided<T>& A)
{
    return (tile_col(1) - tile_col(0)) * A.cs;
}

// Row r of tile i of the panel: the places of 8 rows repeat
__device__ inline scalar_t* tile_row(Scratch& s, int i, int r)
{
    return s.rows + panel_row(8 * i) + panel_row(r);
}

// The first panel := the first column of tiles of A, zeros past n; it is under way.
template <bool PACKS>
__device__ void load_panel(Scratch& s, const Strided<const scalar_t>& A, int n)
{
    constexpr int some = PACKS ? CV : 1, bytes = some * sizeof(scalar_t);
    #pragma unroll
    for (int i = 0; i < NT; ++i) {
        const scalar_t* const p = &A(row(i) < n ? row(i) : 0, tile_col(0));
        #pragma unroll
        for (int e = 0; e < 2; e += some) {
            const bool wanted = row(i) < n && tile_col(e) <= row(i);
            copy_async<bytes>(tile_row(s, i, g()) + tile_col(e), p + e * beside(A),
                              wanted ? bytes : 0);
        }
    }
    end_group();
}

// The other tiles on and below the diagonal, likewise; what is above that means nothing.
template <bool PACKS>
__device__ void load_lower(Block& a, const Strided<const scalar_t>& A, int n)
{
    #pragma unroll
    for (int i = 1; i < NT; ++i) {
        scalar_t x[NT][2] = {};
        if (row(i) < n) {
            const scalar_t* const p = &A(row(i), tile_col(0));
            #pragma unroll
            for (int j = 1; j <= i; ++j)
                get_pair<PACKS>(p + 8 * j * A.cs, beside(A), j < i || tile_col(0) <= g(),
                                j < i || tile_col(1) <= g(), x[j]);
        }
        #pragma unroll
        for (int j = 1; j <= i; ++j) a[i][2 * j] = x[j][0], a[i][2 * j + 1] = x[j][1];
    }
}

// The panel from a member in shared memory
__device__ inline void take_panel(Scratch& s, const Strided<scalar_t>& A, int n)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const bool wanted = row(i) < n && tile_col(e) <= row(i);
            tile_row(s, i, g())[tile_col(e)] = wanted ? A(row(i), tile_col(e)) : scalar_t{};
        }
}

// What is on its way from A to C: tiles on the diagonal and to the right, a pair to a lane; or the
// member as a line, which begins as far past a multiple of 16 bytes as it does in memory
constexpr int IN_16 = 16 / sizeof(scalar_t);
union alignas(16) Upper {
    scalar_t x[NT * (NT + 1) / 2][32][2];
    scalar_t kept[NT * (NT + 1) / 2 * 64];  // L by rows, those of tile row I of 8 (I + 1) numbers
    scalar_t line[ONE_LINE ? N * N + 2 * IN_16 : 1];
};

#ifndef BLASX_SIM           // the launch says how much
extern __shared__ __align__(128) char dynamic_shared[];
#endif
__device__ inline Upper& upper()
{
    return reinterpret_cast<Upper*>(dynamic_shared)[threadIdx.x / 32];
}

// Where row r of L begins as it is kept
__device__ inline int kept_row(int r)
{
    const int I = r / 8;
    return 8 * (I + 1) * (4 * I + r % 8);
}

// Numbers of a member from p on that stand before it in its first 16 bytes
__device__ inline int before(const scalar_t* p) { return int(size(p) % 16) / sizeof(scalar_t); }

// The line := A of order n; it is under way.
__device__ inline void get_line(const scalar_t* A, int n)
{
    const int first = before(A), end = first + n * n;
    #pragma unroll 4
    for (int e = IN_16 * lane(); e < end; e += 32 * IN_16)
        copy_async<16, true>(upper().line + e, A - first + e,
                             int(sizeof(scalar_t)) * (end - e < IN_16 ? end - e : IN_16));
    end_group();
}

// C := the line
__device__ inline void put_line(scalar_t* C, int n)
{
    struct alignas(16) Pack16 { scalar_t x[IN_16]; };
    const int first = before(C), end = first + n * n;
    __syncwarp();
    #pragma unroll 4
    for (int e = IN_16 * lane(); e < end; e += 32 * IN_16) {
        const scalar_t* const from = upper().line + e;
        scalar_t* const to = C - first + e;
        if (e >= first && e + IN_16 <= end) {
            *reinterpret_cast<Pack16*>(to) = *reinterpret_cast<const Pack16*>(from);
        } else {
            #pragma unroll
            for (int q = 0; q < IN_16; ++q)
                if (e + q >= first && e + q < end) to[q] = from[q];
        }
    }
}

// move(pair, i, j) for the lane's pair of each of those tiles, which has row i and begins at column
// j; rows and tiles past n are left out.
template <class Move> __device__ void for_upper(int n, Move move)
{
    #pragma unroll 1
    for (int i = 0, tile = 0; i < NT; tile += NT - i++)
        #pragma unroll 1
        for (int j = i; row(i) < n && 8 * j < n; ++j)
            move(upper().x[tile + j - i][lane()], row(i), 8 * j);
}

template <bool PACKS> __device__ void get_upper(const Strided<const scalar_t>& A, int n)
{
    constexpr int some = PACKS ? CV : 1, bytes = some * sizeof(scalar_t);
    for_upper(n, [=](scalar_t (&x)[2], int i, int j) {
        #pragma unroll
        for (int e = 0; e < 2; e += some) {
            const int c = j + tile_col(e);
            if (c < n) copy_async<bytes>(x + e, &A(i, c), bytes);
        }
    });
    end_group();
}

template <bool PACKS> __device__ void put_upper(const Strided<scalar_t>& C, int n)
{
    for_upper(n, [=](scalar_t (&x)[2], int i, int j) {
        put_pair<PACKS>(&C(i, j + tile_col(0)), beside(C), j + tile_col(0) < n,
                        j + tile_col(1) < n, x);
    });
}

// Tile column k to the panel
__device__ inline void write_panel(const Block& a, int k, Scratch& s)
{
    #pragma unroll
    for (int i = k; i < NT; ++i) write_pair(tile_row(s, i, g()), a[i][2 * k], a[i][2 * k + 1]);
    __syncwarp();
}

// A right-hand side in shared memory, with zeros past n
using Side = scalar_t[N];

// Panel k := that of L, R rows to a lane
template <bool SIDE, int R>
__device__ void factor_rows(int k, Factors& f, Scratch& s, scalar_t* side)
{
    const int first = 8 * k + lane(), last = first + 32 * (R - 1);
    Row x[R] = {};
    scalar_t b[R] = {};
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (q < R - 1 || last < N) {
            read_row(s.panel(first + 32 * q), x[q]);
            if (SIDE) b[q] = side[first + 32 * q];
        }
    factor_panel<SIDE>(x, b, first, k, f, s);
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (q < R - 1 || last < N) {
            write_row(s.panel(first + 32 * q), x[q]);
            if (SIDE) side[first + 32 * q] = b[q];
        }
    __syncwarp();
}

// The same with as few as what is left of the rows asks for, R at most
template <bool SIDE, int R>
__device__ void factor_left(int k, Factors& f, Scratch& s, scalar_t* side)
{
    if constexpr (R > 1)
        if (N - 8 * k <= 32 * (R - 1)) return factor_left<SIDE, R - 1>(k, f, s, side);
    factor_rows<SIDE, R>(k, f, s, side);
}

// Panel k to C as far as it is L's, and the pivot that is not positive; `keep` it, too
__device__ inline void store_panel(const Strided<scalar_t>& C, bool packs, int k, int n,
                                   const Factors& f, Scratch& s, bool keep)
{
    const int done = (f.info ? f.info - 1 : n) - 8 * k;  // columns
    scalar_t* p = &C(8 * k + g(), 8 * k + tile_col(0));
    #pragma unroll
    for (int i = 0; i < NT; ++i, p += 8 * C.rs) {
        if (8 * (k + i) + g() >= n) break;
        const auto wanted = [=](int c) {
            return i > 0 ? c < done : c <= g() && c < done + (g() == done);
        };
        scalar_t x[2];
        read_pair(tile_row(s, k + i, g()), x[0], x[1]);
        if (keep) write_pair(upper().kept + kept_row(8 * (k + i) + g()) + 8 * k, x[0], x[1]);
        if (packs) put_pair<true>(p, beside(C), wanted(tile_col(0)), wanted(tile_col(1)), x);
        else put_pair<false>(p, beside(C), wanted(tile_col(0)), wanted(tile_col(1)), x);
    }
}

// The product with panel k off the tiles right of it. On the vector units 16 bytes of every row of
// the panel are used at a time: there are no registers for more.
__device__ inline void update(Block& a, int k, Scratch& s)
{
    if constexpr (TENSOR) {
        Left l[NT];
        #pragma unroll
        for (int i = k + 1; i < NT; ++i) left_operand(l[i], tile_row(s, i, g()));
        #pragma unroll
        for (int j = k + 1; j < NT; ++j) {
            Right u;
            adjoint_operand(u, l[j], [&](int q, int c) { return conj(tile_row(s, j, c)[q]); });
            #pragma unroll
            for (int i = j; i < NT; ++i) rank_8(a[i][2 * j], a[i][2 * j + 1], l[i], u);
        }
    } else {
        const auto quad = [&](int i, int r, int from) {
            return *reinterpret_cast<const Quad*>(tile_row(s, i, r) + from);
        };
        #pragma unroll
        for (int j = k + 1; j < NT; ++j)
            #pragma unroll
            for (int from = 0; from < 8; from += PAD) {
                const Quad u0 = quad(j, tile_col(0), from), u1 = quad(j, tile_col(1), from);
                #pragma unroll
                for (int i = j; i < NT; ++i) {
                    const Quad l = quad(i, g(), from);
                    scalar_t &c0 = a[i][2 * j], &c1 = a[i][2 * j + 1];
                    #pragma unroll
                    for (int q = 0; q < PAD; ++q) {
                        c0 = minus_product(c0, l.x[q], conj(u0.x[q]));
                        c1 = minus_product(c1, l.x[q], conj(u1.x[q]));
                    }
                }
                __syncwarp();  // or they are all loaded at once
            }
    }
}

// do_it(k), unrolled for a k known only at run time
template <class Do> __device__ void for_panel(int k, Do do_it)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (i == k) do_it(i);
}

// side := L^-H of it, L of order n in the line, which begins at `first` and has such strides, or as
// it is kept. All reads are of one array by a number: so they are from shared memory, and the rows
// of a tile follow by one addition.
__device__ inline void solve_for_side(bool whole, int first, int down, int right, scalar_t* side,
                                      int n)
{
    constexpr int R = (N + 31) / 32;
    const scalar_t* const l = upper().kept;
    const int next = whole ? right : 1;
    scalar_t x[R];
    real_t inverse[R];
    #pragma unroll
    for (int q = 0; q < R; ++q) {
        const int i = lane() + 32 * q;
        x[q] = i < n ? side[i] : scalar_t{};
        const int at = whole ? first + i * (down + right) : kept_row(i) + i;
        inverse[q] = near_reciprocal(i < n ? real(l[at]) : real_t(1));
    }
    solve_up(x, n, [&](scalar_t y, int q) { return mul(y, inverse[q]); },
             [&](int K, int r, int q) {
                 const int top = whole ? first + K * down : kept_row(K);
                 const int row = whole ? down : K + 8;
                 return conj(l[top + r * row + (lane() + 32 * q) * next]);
             });
    #pragma unroll
    for (int q = 0; q < R; ++q)
        if (lane() + 32 * q < N) side[lane() + 32 * q] = x[q];
    __syncwarp();
}

// C := L and, unless it is in place, A in the other triangle and in what a failed factorization has
// not reached; side := L^-H L^-1 b, if there is a SIDE, of which a lane gives every 32nd number.
// Returns the info.
template <bool SIDE>
__device__ int cholesky_large(const Strided<const scalar_t>& A, const Strided<scalar_t>& C,
                              bool A_packs, bool C_packs, int order, const scalar_t* b = nullptr,
                              scalar_t* side = nullptr)
{
    const int n = int(__reduce_max_sync(ALL, unsigned(order)));  // all have it: this says so
    Scratch& s = scratch();
    const bool both = A.p != C.p;
    Block a;
    Factors f;
    f.info = 0;
    const bool dense = (A.cs == 1 && A.rs == n) || (A.rs == 1 && A.cs == n);
    const bool whole = ONE_LINE && both && dense && A.rs == C.rs && A.cs == C.cs
                       && before(A.p) == before(C.p);
    Strided<scalar_t> to = C;
    if (whole) to.p = upper().line + before(A.p);
    if (whole) {
        get_line(A.p, n);
        await_groups<0>();
        __syncwarp();
        take_panel(s, to, n);
        load_lower<false>(a, {to.p, to.rs, to.cs}, n);
        __syncwarp();  // the first panel is written into the line
    } else if (A_packs) {
        load_panel<true>(s, A, n);
        if (both) get_upper<true>(A, n);
        load_lower<true>(a, A, n);
    } else {
        load_panel<false>(s, A, n);
        if (both) get_upper<false>(A, n);
        load_lower<false>(a, A, n);
    }
    ones_from(a, n);
    if (SIDE)
        #pragma unroll
        for (int q = 0; q < (N + 31) / 32; ++q)
            if (lane() + 32 * q < N) side[lane() + 32 * q] = b[q];
    await_groups<0>();
    if (both && !whole && C_packs) put_upper<true>(C, n);
    else if (both && !whole) put_upper<false>(C, n);
    #pragma unroll
    for (int e = 0; e < 2; ++e)
        if (g() == tile_col(e) && g() >= n) tile_row(s, 0, g())[tile_col(e)] = scalar_t{1};
    __syncwarp();
    #pragma unroll 1
    for (int k = 0; 8 * k < n; ++k) {
        factor_left<SIDE, (N + 31) / 32>(k, f, s, side);
        store_panel(to, C_packs && !whole, k, n, f, s, SIDE && !whole);
        for_panel(k, [&](int k) {
            update(a, k, s);
            __syncwarp();
            if (k + 1 < NT) write_panel(a, k + 1, s);
        });
    }
    if (whole) put_line(C.p, n);
    else if (f.info && both)
        for (int i = f.info; i < n; ++i)
            for (int j = f.info - 1 + lane(); j <= i; j += 32) C(i, j) = A(i, j);
    if (SIDE && !f.info) solve_for_side(whole, before(A.p), int(A.rs), int(A.cs), side, n);
    return f.info;
}
