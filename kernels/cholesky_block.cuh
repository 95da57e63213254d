// cholesky_block.cuh: A = L L^H of one matrix by a block, in tiles of 8 x 8 (tile.cuh).
//
// An upper triangle is the lower one of the transpose: the launcher swaps the strides, and what is
// factored is conj(A) = conj(U^T) conj(U^T)^H.
//
// A panel is COLUMNS tile columns in shared memory, from the diagonal down; warp w works on the
// tile rows w, w + WARPS, ... of it, ROWS of them. With ROWS WARPS <= COLUMNS the panel is the
// whole matrix. Else what the columns left of a panel take off it is subtracted as it is loaded:
// they are read from the result, mostly from the L2 cache, a row by its warp and the rows of the
// diagonal by all warps.
//
// A tile column goes by two barriers. Before the first, all warps solve with the diagonal tile and
// take what they found off the diagonal tiles of their rows. Before the second, the warp that has
// the next diagonal tile factors it, and all take off the next tile column what the columns of the
// panel before it make. All of it is a loop, short enough for the instruction cache: unrolled,
// with the matrix in registers, it took twice the time.
//
// A right-hand SIDE goes down with the panel that is the whole matrix: its rows of a tile are
// solved with the diagonal tile, and a warp takes off its rows what the column makes. All tiles of
// L stay in shared memory then, for the way up, which is one warp's.
//
// Double precision solves by the inverse of the diagonal tile and one step of refinement, which
// makes the backward error that of substitution; all is done by the tensor cores. Single precision
// solves by substitution, a row to a lane, and multiplies by fma.
#pragma once
#include "cholesky_tile.cuh"
#include "solve_up.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int COLUMNS = 4, ROWS = 4, BLOCKS = 1;
#endif
constexpr bool RESIDENT = ROWS * WARPS <= COLUMNS;
static_assert(RESIDENT || !SIDE);

// -- the matrix in memory

constexpr int BESIDE = RESIDENT ? (COLUMNS + WARPS - 1) / WARPS : 8;

// A factorization under way
struct Work {
    Strided<const scalar_t> A;
    Strided<scalar_t> C;
    int n;
    bool both, a_packs, c_packs;  // A is not C; pairs of neighbours can be moved at once
    Diagonal& diagonal;
    scalar_t *room, *side;        // side: of as many tiles, zeros past n
    int first, rows;              // of the panel: its first tile row, tile rows from there on
    Tile c[ROWS];                 // the next tile column, this warp's part below the diagonal
    scalar_t* out[ROWS];          // where the result has the lane's part of the tiles of a column
    scalar_t beside[BESIDE][2];   // of the other triangle, on its way from A to C

    __device__ static int row(int q) { return WARPS * q + warp(); }
    // Tile (I, J) of the panel
    __device__ scalar_t* tile(int I, int J) const { return tile_of(room, rows, I, J); }
    __device__ int tiles_of_panel() const
    {
        const int columns = min(COLUMNS, rows);
        return columns * rows - columns * (columns - 1) / 2;
    }
    __device__ bool below(int q, int k) const { return row(q) > k && row(q) < rows; }

    // The panel, this warp's rows of it
    __device__ void load() const
    {
        for (int I = warp(); I < rows; I += WARPS)
            #pragma unroll 2
            for (int J = 0; J <= I && J < COLUMNS; ++J)
                copy_tile(tile(I, J), A, a_packs, I, J, n);
        end_group();
    }
    // A tile of the panel that is solved; of a failed factorization the columns before `end`
    __device__ void store(const Tile& a, int I, int J, int end) const
    {
        store_tile(a, C, first + I, first + J, [=](int i, int j) {
            return i < n && j <= i && (j < end || (j == end && i == j));
        });
    }
    // Column k of the panel, this warp's part below the diagonal, into the result
    __device__ void store_column(int k, int end)
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            if (below(q, k)) {
                if (end < n) store(c[q], row(q), k, end);
                else if (8 * (first + row(q)) + tile_row() < n) {
                    const size second = (tile_col(1) - tile_col(0)) * C.cs;
                    if (c_packs && PAIR == 2) *reinterpret_cast<Tile*>(out[q]) = c[q];
                    else out[q][0] = c[q].x[0], out[q][second] = c[q].x[1];
                }
            }
            out[q] += 8 * C.cs;
        }
    }

    // move(x, i, j) for the lane's numbers x of the tiles J, J + WARPS ... of tile row I of the other
    // triangle, (i, j) of the matrix. Eight lanes move what lies side by side, wherever rows begin.
    template <class Move> __device__ void of_beside(int I, int J, Move move)
    {
        const bool by_rows = C.cs == 1;
        const int across = lane() % 8, down = lane() / 8;
        #pragma unroll
        for (int s = 0; s < BESIDE; ++s)
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int i = 8 * I + (by_rows ? down + 4 * e : across);
                const int j = 8 * (J + WARPS * s) + (by_rows ? across : down + 4 * e);
                if (j < n && j > i) move(beside[s][e], i, j);
            }
    }
    __device__ void fetch_beside(int I, int J)
    {
        of_beside(I, J, [&](scalar_t& x, int i, int j) { x = A(i, j); });
    }
    __device__ void put_beside(int I, int J)
    {
        of_beside(I, J, [&](scalar_t& x, int i, int j) { C(i, j) = x; });
    }
    // What a failed factorization has not reached, and the other triangle, as A has them
    __device__ void copy_rest(int info) const
    {
        const auto in = A;
        const auto out = C;
        for_each(n, n, C.cs == 1, [=](int i, int j) {
            if (j > i || (j >= info - 1 && i != j) || (i == j && j >= info)) out(i, j) = in(i, j);
        });
    }
};

// -- a panel

__device__ inline void barrier()
{
    if (WARPS == 1) __syncwarp();
    else __syncthreads();
}

// The diagonal tile of column k by the warp that has it. Rows past n are those of the identity.
__device__ inline void factor_diagonal(Work& w, int k)
{
    Diagonal& d = w.diagonal;
    Tile a = get(w.tile(k, k)), y;
    const int i = 8 * (w.first + k) + tile_row();
    if (i >= w.n)
        #pragma unroll
        for (int e = 0; e < 2; ++e) a.x[e] = scalar_t{real_t(tile_row() == tile_col(e))};
    scalar_t b = SIDE ? w.side[8 * k + tile_row()] : scalar_t{};
    const int failed = factor_tile<SIDE>(a, y, b, d.reciprocals);
    const int info = failed ? 8 * (w.first + k) + failed : 0;
    if (failed && lane() == 0) d.info = info;
    if constexpr (TENSOR) {
        put(d.factor, lower_half(a));
        put(d.inverse, y);
    } else {
        #pragma unroll
        for (int e = 0; e < 2; ++e) d.columns[2 * t() + e][g()] = conj(a.x[e]);
    }
    if constexpr (SIDE) {
        put(w.tile(k, k), a);
        __syncwarp();  // the four lanes of a row have read b
        if (t() == 0) w.side[8 * k + tile_row()] = b;
    }
    w.store(a, k, k, info ? info - 1 : w.n);
}

// The tiles below the diagonal in column k := those of L, in w.c, shared memory and the result
__device__ inline void solve_column(Work& w, int k, int end)
{
    scalar_t* at[ROWS];
    #pragma unroll
    for (int q = 0; q < ROWS; ++q) at[q] = w.tile(w.row(q), k);
    if constexpr (TENSOR) {
        const Tile l = get(w.diagonal.factor), y = get(w.diagonal.inverse);
        Tile x[ROWS];
        bool fine = true;
        times_inverse(x, w.c, l, y);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) fine = fine && (!w.below(q, k) || is_finite(x[q]));
        if (__any_sync(~0u, !fine)) {
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                if (w.below(q, k)) put(at[q], w.c[q]);
            #pragma unroll 1
            for (int I = w.row(0); I < w.rows; I += WARPS)
                if (I > k) substitute(w.tile(I, k), l);
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                if (w.below(q, k)) x[q] = get(at[q]);
        }
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (w.below(q, k)) put(at[q], w.c[q] = x[q]);
    } else {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (w.below(q, k)) put(at[q], w.c[q]);
        __syncwarp();
        #pragma unroll
        for (int slot = 0; slot < ROWS; slot += 4) {  // a row to a lane, of four slots
            const int q = slot + lane() / 8;
            if (q < ROWS && w.below(q, k)) solve_row(w.tile(w.row(q), k), lane() % 8, w.diagonal);
        }
        __syncwarp();
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (w.below(q, k)) w.c[q] = get(at[q]);
    }
    w.store_column(k, end);
}

// The side's rows of this warp below column k -= that column times what is known of L^-1 b
__device__ inline void update_side(Work& w, int k)
{
    const scalar_t y[2] = {w.side[8 * k + tile_col(0)], w.side[8 * k + tile_col(1)]};
    scalar_t known[ROWS];
    #pragma unroll
    for (int q = 0; q < ROWS; ++q)
        known[q] = minus_product(minus_product(scalar_t{}, w.c[q].x[0], y[0]), w.c[q].x[1], y[1]);
    #pragma unroll
    for (int apart = 1; apart < 4; apart *= 2)
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) known[q] = add(known[q], across(known[q], apart));
    #pragma unroll
    for (int q = 0; q < ROWS; ++q)
        if (w.below(q, k) && t() == 0) {
            scalar_t& b = w.side[8 * w.row(q) + tile_row()];
            b = add(b, known[q]);
        }
    __syncwarp();
}

// The diagonal tiles of this warp's rows -= what column k takes off them
__device__ inline void update_diagonals(Work& w, int k)
{
    #pragma unroll
    for (int q = 0; q < ROWS; ++q)
        if (w.below(q, k) && w.row(q) < COLUMNS) {
            Tile c[1] = {get(w.tile(w.row(q), w.row(q)))};
            scalar_t* const left[1] = {w.tile(w.row(q), k)};
            subtract_product(c, left, left[0]);
            put(w.tile(w.row(q), w.row(q)), c[0]);
        }
}

// COUNT tiles of the next column, k, those of slot q and after of this warp, less what the columns
// of the panel before it take off them. Slots past the last row get what slot q gets.
template <int COUNT> __device__ void gather(Work& w, int q, int k)
{
    Tile c[COUNT];
    scalar_t* left[COUNT];
    scalar_t* right = w.tile(k, 0);
    #pragma unroll
    for (int e = 0; e < COUNT; ++e) {
        const int I = e && w.row(q + e) >= w.rows ? w.row(q) : w.row(q + e);
        c[e] = get(w.tile(I, k)), left[e] = w.tile(I, 0);
    }
    #pragma unroll 2
    for (int m = 0; m < k; ++m) {
        subtract_product(c, left, right);
        const int next = 64 * (w.rows - 1 - m);  // from tile (I, m) to (I, m + 1)
        right += next;
        #pragma unroll
        for (int e = 0; e < COUNT; ++e) left[e] += next;
    }
    #pragma unroll
    for (int e = 0; e < COUNT; ++e) w.c[q + e] = c[e];
}

// w.c := column k below the diagonal, less what the columns of the panel before it take off it
__device__ inline void gather_column(Work& w, int k)
{
    constexpr int COUNT = ROWS % 2 ? 1 : 2;
    #pragma unroll
    for (int q = 0; q < ROWS; q += COUNT)
        if (w.row(q + COUNT - 1) > k && w.row(q) < w.rows) gather<COUNT>(w, q, k);
}

// Returns info.
__device__ inline int factor_panel(Work& w)
{
    if (warp() == 0) factor_diagonal(w, 0);
    gather_column(w, 0);
    #pragma unroll
    for (int q = 0; q < ROWS; ++q)
        w.out[q] = w.C.p + (8 * (w.first + w.row(q)) + tile_row()) * w.C.rs
                   + (8 * w.first + tile_col(0)) * w.C.cs;
    #pragma unroll 1
    for (int k = 0; k < COLUMNS && k < w.rows; ++k) {
        if (RESIDENT && w.both) w.fetch_beside(k, k + warp());
        barrier();
        const int info = w.diagonal.info;
        solve_column(w, k, info ? info - 1 : w.n);
        if (info) return info;
        if constexpr (SIDE) update_side(w, k);
        update_diagonals(w, k);
        barrier();
        if (k + 1 < COLUMNS && k + 1 < w.rows) {
            if ((k + 1) % WARPS == warp()) factor_diagonal(w, k + 1);
            gather_column(w, k + 1);
        }
        if (RESIDENT && w.both) w.put_beside(k, k + warp());
    }
    return 0;
}

// -- columns left of a panel

// What a lane takes of its row of L at a time: a pair of a tile for the tensor cores, else 16 bytes
constexpr int STEP = TENSOR ? 8 : CHUNK;
template <bool TENSORS> struct Left { using type = Tile; };
template <> struct Left<false> { using type = Quad; };
using Part = Left<TENSOR>::type;
template <class T> __device__ Tile part_as_tile(const T& x) { return {x.x[0], x.x[1]}; }
template <class T> __device__ Quad part_as_quad(const T& x)
{
    Quad q;
    #pragma unroll
    for (int e = 0; e < CHUNK; ++e) q.x[e] = x.x[e];
    return q;
}

template <bool PACKS> __device__ Part load_part(const scalar_t* p, size cs)
{
    Part x;
    if constexpr (PACKS && (!TENSOR || PAIR == 2)) {
        x = *reinterpret_cast<const Part*>(p);
    } else {
        #pragma unroll
        for (int e = 0; e < int(sizeof x / sizeof(scalar_t)); ++e)
            x.x[e] = p[e * (TENSOR ? tile_col(1) - tile_col(0) : 1) * cs];
    }
    return x;
}

// The panel := A less what the columns of L to its left take off it. The rows of L that cross the
// panel's diagonal go to shared memory, all others to their warps, DEPTH parts of a row ahead. What
// rows past n get means nothing.
template <bool PACKS> __device__ void load_and_subtract(Work& w, scalar_t* crossing)
{
    constexpr int COUNT = ROWS % 2 ? 1 : 2;
    constexpr int most = 65536 / (THREADS * BLOCKS), registers = most < 255 ? most : 255;
    constexpr int tile = 2 * sizeof(scalar_t) / 4, part = sizeof(Part) / 4;
    constexpr int room = (registers - 64 - COLUMNS * ROWS * tile) / (ROWS * part);
    constexpr int DEPTH = room < 1 ? 1 : room > 4 ? 4 : room;
    const auto L = w.C;
    const int n = w.n, first = w.first;
    for (int m = warp(); m < first; m += WARPS)
        #pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            copy_tile(crossing + 64 * (COLUMNS * m + j), L, w.c_packs, first + j, m, n);
    end_group();

    Tile c[COLUMNS][ROWS];
    Part ahead[DEPTH][ROWS];
    const scalar_t* left[ROWS];
    const auto wanted = [=](int i, int j) { return i < n && j <= i; };
    const int own = TENSOR ? tile_row() : g();
    const size next = STEP * L.cs;
    #pragma unroll
    for (int q = 0; q < ROWS; ++q) {
        const int I = first + w.row(q);
        #pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            c[j][q] = w.a_packs ? load_tile<true>(w.A, I, first + j, wanted)
                                : load_tile<false>(w.A, I, first + j, wanted);
        left[q] = &L(min(8 * I + own, n - 1), TENSOR ? tile_col(0) : 0);
    }
    const auto used = [&](int q) { return w.row(q / COUNT * COUNT) < w.rows; };
    const auto fetch = [&](Part (&to)[ROWS]) {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            if (used(q)) to[q] = load_part<PACKS>(left[q], L.cs);
            left[q] += next;
        }
    };
    const int steps = 8 * first / STEP;
    #pragma unroll
    for (int d = 0; d < DEPTH; ++d)
        if (d < steps) fetch(ahead[d]);
    await_groups<0>();
    __syncthreads();
    #pragma unroll 1
    for (int step = 0; step < steps; step += DEPTH)
        #pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            if (step + d >= steps) break;
            const int k = STEP * (step + d);
            scalar_t* tiles = crossing + 64 * COLUMNS * (k / 8);
            #pragma unroll
            for (int q = 0; q < ROWS; q += COUNT) {
                if (!used(q)) continue;
                #pragma unroll
                for (int j = 0; j < COLUMNS; ++j) {
                    if constexpr (TENSOR) {
                        Tile some[COUNT], a[COUNT];
                        #pragma unroll
                        for (int e = 0; e < COUNT; ++e)
                            some[e] = c[j][q + e], a[e] = part_as_tile(ahead[d][q + e]);
                        add_adjoint<-1>(some, a, get(tiles + 64 * j));
                        #pragma unroll
                        for (int e = 0; e < COUNT; ++e) c[j][q + e] = some[e];
                    } else {
                        const Quad b[2] = {quad(tiles + 64 * j, 2 * t(), k % 8),
                                           quad(tiles + 64 * j, 2 * t() + 1, k % 8)};
                        #pragma unroll
                        for (int e = 0; e < COUNT; ++e)
                            subtract(c[j][q + e], part_as_quad(ahead[d][q + e]), b);
                    }
                }
            }
            if (step + d + DEPTH < steps) fetch(ahead[d]);
        }
    #pragma unroll
    for (int q = 0; q < ROWS; ++q)
        #pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            if (w.row(q) < w.rows && w.row(q) >= j) put(w.tile(w.row(q), j), c[j][q]);
}

// The way up, by one warp: x := L^-H y, L of order n > 0 and the side y in shared memory; of x lane
// l has the numbers l, l + 32, ...
constexpr int DOWN = (COLUMNS + 3) / 4;  // rows of a lane
__device__ inline void solve_for_side(scalar_t (&x)[DOWN], scalar_t* room, const scalar_t* side,
                                      int n)
{
    const int rows = (n + 7) / 8, c = lane() % 8;
    int column[DOWN];  // where the tiles begin that have this lane's columns, from row 0 on
    real_t inverse[DOWN];
    #pragma unroll
    for (int q = 0; q < DOWN; ++q) {
        const int J = min(4 * q + lane() / 8, rows - 1);
        column[q] = int(tile_of(room, rows, 0, J) - room);
        x[q] = side[8 * J + c];
        inverse[q] = near_reciprocal(real(room[column[q] + 64 * J + place_in_tile(c, c)]));
    }
    solve_up(x, n, [&](scalar_t y, int q) { return mul(y, inverse[q]); },
             [&](int K, int r, int q) {
                 return conj(room[column[q] + 8 * K + place_in_tile(r, c)]);
             });
}

// The lower triangle of A factored into C, the other one copied if they differ. `room`: in shared
// memory, the tiles of the first panel and, unless it is all, COLUMNS for each 8 rows of the
// matrix. `side` := L^-1 of it, if there is one. Returns info.
__device__ inline int cholesky_block(const Strided<const scalar_t>& A, const Strided<scalar_t>& C,
                                     int n, size a_next, size c_next, scalar_t* room,
                                     scalar_t* side = nullptr)
{
    __shared__ Diagonal diagonal;
    Work w{A, C, n, A.p != C.p, A.in_packs<PAIR>(n, a_next), C.in_packs<PAIR>(n, c_next), diagonal,
           room, side, 0, (n + 7) / 8};
    if (thread() == 0) diagonal.info = 0;
    if (!RESIDENT && w.both)
        for (int I = 0; I < w.rows; ++I)
            for (int J = I + warp(); J < w.rows; J += WARPS * BESIDE)
                w.fetch_beside(I, J), w.put_beside(I, J);
    scalar_t* const crossing = room + 64 * w.tiles_of_panel();
    const bool quads = C.in_packs<TENSOR ? PAIR : CHUNK>(n, c_next);
    #pragma unroll 1
    for (; w.rows > 0; w.first += COLUMNS, w.rows -= COLUMNS) {
        if (RESIDENT || !w.first) {
            w.load();
            await_groups<0>();
        } else if (quads) {
            load_and_subtract<true>(w, crossing);
        } else {
            load_and_subtract<false>(w, crossing);
        }
        if (SIDE) barrier();  // all have put their part of it there
        else __syncwarp();
        if (const int info = factor_panel(w)) {
            barrier();
            if (w.both) w.copy_rest(info);
            return info;
        }
        if (RESIDENT) break;
    }
    return 0;
}
