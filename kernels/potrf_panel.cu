// potrf_panel.cu: the first columns of the Cholesky factor of one large matrix, or all of them.
//
// The lower triangle is cut into blocks of T x T, T = 8 TILES; block (i, j) is
//
//     L_ij = (A_ij - sum_{k < j} L_ik L_jk^H) L_jj^-H ,
//
// and all of them are made in one launch, without a barrier of the grid: whoever has made one
// raises its flag, and whoever needs it waits for that. One block of threads, the chain, is alone
// on the critical path: it takes the last product off A_jj, factors it, and solves for L_(j+1)j,
// which makes that product for the next. All others take blocks by turns, column by column: each
// subtracts its products in the order of k, as they come to be. What comes below the chain's two
// blocks is solved for, too; those two are only fed to the chain, with their products. Whoever
// waits, waits for lower turns or for the chain, which the first block to start becomes: nothing
// is asked of which blocks run at the same time, and results do not depend on it.
//
// Finished blocks lie twice in memory: in A, and as tiles of tile.cuh, one column of tiles after
// the other, in a workspace from which 16 bytes at a time go to shared memory, however A lies. A
// warp holds WR tile rows of a block's accumulators, in registers; a ring of STAGES times DEPTH
// tile columns of both operands passes through shared memory.
//
// Floor: n^3 / 3 operations, and the chain: n columns one after the other, each a reciprocal root
// and four dependent operations, and for each T of them two small products and the way of a flag.
// A product reads 2 T numbers from L2 for T^2 multiplications.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int TILES = 8;    // a side of a block
constexpr int WARPS = 8;
constexpr int WR = 2;       // tile rows of a warp
constexpr int DEPTH = 2;    // tile columns in a stage
constexpr int STAGES = 4;
constexpr int BLOCKS = 2;   // of threads to a multiprocessor
#endif
#include "cholesky_tile.cuh"
#include "flags.cuh"
#include "launch.cuh"

constexpr int T = 8 * TILES, NUMBERS = T * T;
constexpr int WC = TILES * TILES / (WARPS * WR), ACROSS = TILES / WC;  // tile columns of a warp
constexpr int STAGE = 64 * TILES * DEPTH, CHUNKS = TILES / DEPTH;
constexpr int SLOT = 160;   // numbers that have room for a Diagonal
constexpr int FED = 1, DONE = 2;
static_assert(WARPS * WR * WC == TILES * TILES && TILES % DEPTH == 0 && STAGES >= 2);
static_assert(sizeof(Diagonal) <= SLOT * sizeof(scalar_t));

struct Panel {
    Strided<scalar_t> A;               // the matrix from the panel's first element on
    int n, rows, columns;              // its order; blocks down and across the panel
    Strided<const scalar_t> products;  // what else is to be taken off A, there if `with_products`
    bool with_products;                // for the blocks on which the panel's diagonal lies
    scalar_t* blocks;                  // the workspace: finished blocks, column by column
    scalar_t* diagonals;               // and TILES slots for each column
    int* flags;                        // of each block

    __device__ int number(int i, int j) const { return j * rows - j * (j - 1) / 2 + i - j; }
    __device__ scalar_t* block(int i, int j) const { return blocks + size(NUMBERS) * number(i, j); }
    __device__ scalar_t* diagonal(int j) const { return diagonals + size(SLOT) * TILES * j; }
    __device__ void wait(int i, int j, int value) const { await(flags + number(i, j), value); }
    // By all threads, when what they wrote is to be seen
    __device__ void tell(int i, int j, int value) const
    {
        __syncthreads();
        if (thread() == 0) announce(flags + number(i, j), value);
    }
};

__device__ inline scalar_t* tile(scalar_t* block, int r, int c)
{
    return block + 64 * (TILES * c + r);
}
__device__ inline Diagonal& diagonal(scalar_t* slots, int k)
{
    return *reinterpret_cast<Diagonal*>(slots + SLOT * k);
}

// `count` numbers on their way to shared memory
__device__ inline void bring(scalar_t* to, const scalar_t* from, int count)
{
    constexpr int some = 16 / sizeof(scalar_t);
    for (int e = some * thread(); e < count; e += some * THREADS)
        copy_async<16, true>(to + e, from + e, 16);
}

// -- L_ij for blocks that the chain does not make

using Sums = Tile[WC][WR];
__device__ inline int first_row() { return warp() / ACROSS * WR; }
__device__ inline int first_column() { return warp() % ACROSS * WC; }

// f(tile, r, c) for each of this warp's tiles
template <class F> __device__ void for_tiles(Sums& sums, F f)
{
    #pragma unroll
    for (int c = 0; c < WC; ++c)
        #pragma unroll
        for (int r = 0; r < WR; ++r) f(sums[c][r], first_row() + r, first_column() + c);
}

// A_ij less the products that are there already; of double precision its negative, to which the
// tensor cores add
__device__ inline void start(Sums& sums, const Panel& p, int i, int j)
{
    const int n = p.n;
    const auto wanted = [=](int i, int j) { return i < n && j <= i; };
    for_tiles(sums, [&](Tile& x, int r, int c) {
        x = load_tile<false>(p.A, TILES * i + r, TILES * j + c, wanted);
        if (p.with_products && i < p.columns) {
            const Tile y = load_tile<false>(p.products, TILES * i + r, TILES * j + c, wanted);
            #pragma unroll
            for (int e = 0; e < 2; ++e) x.x[e] = minus_product(x.x[e], y.x[e], scalar_t{1});
        }
        #pragma unroll
        for (int e = 0; e < 2; ++e) x.x[e] = mul(x.x[e], real_t(TENSOR ? -1 : 1));
    });
}

// The products of a stage
__device__ inline void subtract(Sums& sums, scalar_t* a, scalar_t* b)
{
    #pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
        scalar_t* const left = tile(a, first_row(), k);
        scalar_t* const right = tile(b, first_column(), k);
        if constexpr (TENSOR) {
            Tile x[WR];
            #pragma unroll
            for (int r = 0; r < WR; ++r) x[r] = get(left + 64 * r);
            #pragma unroll
            for (int c = 0; c < WC; ++c) add_adjoint<1>(sums[c], x, get(right + 64 * c));
        } else {
            #pragma unroll
            for (int h = 0; h < 8; h += CHUNK) {
                Quad x[WR];
                #pragma unroll
                for (int r = 0; r < WR; ++r) x[r] = quad(left + 64 * r, g(), h);
                #pragma unroll
                for (int c = 0; c < WC; ++c) {
                    const Quad y[2] = {quad(right + 64 * c, 2 * t(), h),
                                       quad(right + 64 * c, 2 * t() + 1, h)};
                    #pragma unroll
                    for (int r = 0; r < WR; ++r) subtract(sums[c][r], x[r], y);
                }
            }
        }
    }
}

// sums -= L_ik L_jk^H for k < upto, as they come to be
__device__ inline void subtract_products(Sums& sums, const Panel& p, int i, int j, int upto,
                                         scalar_t* ring)
{
    const int chunks = CHUNKS * upto;
    const auto fetch = [&](int q) {
        if (q < chunks) {
            const int k = q / CHUNKS, part = q % CHUNKS * STAGE;
            if (part == 0) p.wait(i, k, DONE), p.wait(j, k, DONE);
            scalar_t* const to = ring + q % STAGES * 2 * STAGE;
            bring(to, p.block(i, k) + part, STAGE);
            bring(to + STAGE, p.block(j, k) + part, STAGE);
        }
        end_group();
    };
    #pragma unroll
    for (int q = 0; q < STAGES - 1; ++q) fetch(q);
    #pragma unroll 1
    for (int q = 0; q < chunks; ++q) {
        await_groups<STAGES - 2>();
        __syncthreads();
        fetch(q + STAGES - 1);
        scalar_t* const stage = ring + q % STAGES * 2 * STAGE;
        subtract(sums, stage, stage + STAGE);
    }
    await_groups<0>();
    __syncthreads();
}

// Tiles `at` := those tiles L_kk^-H
template <int ROWS> __device__ void solve_tiles(scalar_t* const (&at)[ROWS], Diagonal& d)
{
    if constexpr (TENSOR) {
        const Tile l = get(d.factor), y = get(d.inverse);
        Tile c[ROWS], x[ROWS];
        bool fine = true;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) c[q] = get(at[q]);
        times_inverse(x, c, l, y);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) fine = fine && is_finite(x[q]);
        const bool all = !__any_sync(ALL, !fine);
        #pragma unroll 1
        for (int q = 0; q < ROWS && !all; ++q) substitute(at[q], l);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (all) put(at[q], x[q]);
    } else {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (lane() / 8 == q) solve_row(at[q], lane() % 8, d);
    }
    __syncwarp();
}

// X := X L^-H, two tile rows to a warp
__device__ inline void solve(scalar_t* X, scalar_t* L, scalar_t* slots)
{
    #pragma unroll 1
    for (int r = 2 * warp(); r < TILES; r += 2 * WARPS)
        #pragma unroll 1
        for (int k = 0; k < TILES; ++k) {
            scalar_t* const left[2] = {tile(X, r, k), tile(X, r + 1, k)};
            solve_tiles(left, diagonal(slots, k));
            #pragma unroll 2
            for (int m = k + 1; m < TILES; ++m) {
                Tile c[2] = {get(tile(X, r, m)), get(tile(X, r + 1, m))};
                subtract_product(c, left, tile(L, m, k));
                put(tile(X, r, m), c[0]);
                put(tile(X, r + 1, m), c[1]);
            }
            __syncwarp();
        }
}

// Block (i, j), finished, to the workspace and to A
__device__ inline void store(const Panel& p, int i, int j, scalar_t* X)
{
    const int n = p.n;
    scalar_t* const block = p.block(i, j);
    for (int q = warp(); q < TILES * TILES; q += WARPS) {
        const int r = q % TILES, c = q / TILES;
        if (i == j && r < c) continue;
        const Tile x = get(tile(X, r, c));
        put(tile(block, r, c), x);
        store_tile<false>(x, p.A, TILES * i + r, TILES * j + c,
                          [=](int i, int j) { return i < n && j <= i; });
    }
}

__device__ inline void make_block(const Panel& p, int i, int j, scalar_t* room)
{
    const bool fed = i <= j + 1;
    Sums sums;
    start(sums, p, i, j);
    subtract_products(sums, p, i, j, i == j ? max(j - 1, 0) : j, room);
    scalar_t* const to = fed ? p.block(i, j) : room;
    for_tiles(sums, [&](Tile& x, int r, int c) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) x.x[e] = mul(x.x[e], real_t(TENSOR ? -1 : 1));
        put(tile(to, r, c), x);
    });
    if (!fed) {
        scalar_t *const L = room + NUMBERS, *const slots = L + NUMBERS;
        p.wait(j, j, DONE);
        bring(L, p.block(j, j), NUMBERS);
        bring(slots, p.diagonal(j), SLOT * TILES);
        end_group();
        await_groups<0>();
        __syncthreads();
        solve(room, L, slots);
        __syncthreads();
        store(p, i, j, room);
    }
    p.tell(i, j, fed ? FED : DONE);
}

// -- the chain

// Tile (k, k) of D, the panel's column `first` on: factored by one warp
__device__ inline void factor_tile(scalar_t* D, scalar_t* slots, int k, int first, int n,
                                   int& failed)
{
    Diagonal& d = diagonal(slots, k);
    Tile a = get(tile(D, k, k)), y;
    if (first + 8 * k + tile_row() >= n)
        #pragma unroll
        for (int e = 0; e < 2; ++e) a.x[e] = scalar_t{real_t(tile_row() == tile_col(e))};
    const int at = factor_tile(a, y, d.reciprocals);
    if (at && lane() == 0 && !failed) failed = first + 8 * k + at;
    put(tile(D, k, k), a);
    if constexpr (TENSOR) {
        put(d.factor, lower_half(a));
        put(d.inverse, y);
    } else {
        #pragma unroll
        for (int e = 0; e < 2; ++e) d.columns[2 * t() + e][g()] = conj(a.x[e]);
    }
}

// D := its factor. Warp w has the tile rows w, w + WARPS, ...: the one that has the next diagonal
// tile factors it while the others bring what is right of column k up to date.
__device__ inline void factor(scalar_t* D, scalar_t* slots, int first, int n, int& failed)
{
    if (warp() == 0) factor_tile(D, slots, 0, first, n, failed);
    #pragma unroll 1
    for (int k = 0; k + 1 < TILES; ++k) {
        __syncthreads();
        #pragma unroll 1
        for (int I = warp(); I < TILES; I += WARPS)
            if (I > k) {
                scalar_t* const at[1] = {tile(D, I, k)};
                solve_tiles(at, diagonal(slots, k));
            }
        __syncthreads();
        #pragma unroll 1
        for (int I = warp(); I < TILES; I += WARPS) {
            if (I <= k) continue;
            scalar_t* const left[1] = {tile(D, I, k)};
            #pragma unroll 1
            for (int J = k + 1; J <= I; ++J) {
                Tile c[1] = {get(tile(D, I, J))};
                subtract_product(c, left, tile(D, J, k));
                put(tile(D, I, J), c[0]);
            }
            __syncwarp();
            if (I == k + 1) factor_tile(D, slots, k + 1, first, n, failed);
        }
    }
    __syncthreads();
}

// D -= X X^H on and below the diagonal
__device__ inline void subtract_square(scalar_t* D, scalar_t* X)
{
    #pragma unroll 1
    for (int q = warp(); q < TILES * TILES / 2; q += WARPS) {
        const int r = q / TILES * 2, c = q % TILES;
        if (c > r + 1) continue;
        Tile sums[2] = {get(tile(D, r, c)), get(tile(D, r + 1, c))};
        #pragma unroll
        for (int k = 0; k < TILES; ++k) {
            scalar_t* const left[2] = {tile(X, r, k), tile(X, r + 1, k)};
            subtract_product(sums, left, tile(X, c, k));
        }
        put(tile(D, r, c), sums[0]);
        put(tile(D, r + 1, c), sums[1]);
    }
}

// Column j: L_jj and L_(j+1)j, which is left in X; the one before is there if `kept`.
__device__ inline void make_link(const Panel& p, int j, scalar_t* room, bool kept, int& failed,
                                 int* info, int before)
{
    scalar_t *const X = room, *const D = room + NUMBERS, *const slots = D + NUMBERS;
    if (thread() == 0) failed = 0;
    p.wait(j, j, FED);
    bring(D, p.block(j, j), NUMBERS);
    if (j && !kept) bring(X, p.block(j, j - 1), NUMBERS);
    end_group();
    await_groups<0>();
    __syncthreads();
    if (j) subtract_square(D, X);
    __syncthreads();
    factor(D, slots, T * j, p.n, failed);
    store(p, j, j, D);
    for (int e = thread(); e < SLOT * TILES; e += THREADS) p.diagonal(j)[e] = slots[e];
    p.tell(j, j, DONE);
    if (thread() == 0 && failed && !*info) *info = before + failed;
    if (j + 1 < p.rows) {
        p.wait(j + 1, j, FED);
        bring(X, p.block(j + 1, j), NUMBERS);
        end_group();
        await_groups<0>();
        __syncthreads();
        solve(X, D, slots);
        __syncthreads();
        store(p, j + 1, j, X);
        p.tell(j + 1, j, DONE);
    }
}

// `before`: columns of the matrix that are done. `flags`, zeros: blocks that have started, blocks
// of the matrix that are taken, and the flags. The products to be subtracted are there if their
// address is.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrf_panel(scalar_t* A, size a_row, size a_col, size n, size columns, size before,
            const scalar_t* products, size p_row, size p_col, scalar_t* blocks,
            scalar_t* diagonals, int* flags, int* info)
{
    wait_for_stream();
    __shared__ int number, failed;
    scalar_t* const room = reinterpret_cast<scalar_t*>(dynamic_shared);
    const int rows = int((n + T - 1) / T);
    const Panel p{{A, a_row, a_col}, int(n), rows, int(columns), {products, p_row, p_col},
                  products != nullptr, blocks, diagonals, flags + 2};
    const auto next = [&](int* counter) {
        __syncthreads();
        if (thread() == 0) number = atomicAdd(counter, 1);
        __syncthreads();
        return number;
    };
    // The chain's columns that are next for this block: all, or, if it is alone, each in its turn
    const bool alone = gridDim.x == 1;
    int link = 0, links = alone || next(flags) ? 0 : p.columns;
    for (int j = 0, above = 0;;) {  // `above`: blocks of the columns before j
        for (; link < links; ++link) make_link(p, link, room, !alone, failed, info, int(before));
        const int turn = next(flags + 1);
        while (j < p.columns && turn - above >= rows - j) above += rows - j++;
        if (j == p.columns) break;
        const int i = j + turn - above;
        make_block(p, i, j, room);
        if (alone && i == min(j + 1, rows - 1)) links = j + 1;
    }
}
