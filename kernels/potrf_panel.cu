// potrf_panel.cu: the first columns of the Cholesky factor of one large matrix, or all of them.
//
// The lower triangle is cut into blocks of T x T, T = 8 TILES; block (i, j) is
//
//     L_ij = (A_ij - sum_{k < j} L_ik L_jk^H) L_jj^-H ,
//
// and all of them are made in one launch, without a barrier of the grid: whoever has made one
// says so, and whoever needs it waits for that. One block of threads, the chain, is alone
// on the critical path, and on its multiprocessor: it takes the last product off A_jj, factors it,
// and solves for L_(j+1)j, which makes that product for the next. All others take blocks by turns,
// column by column: each subtracts its products in the order of k, as they come to be, and solves.
// Those on the chain are fed to it with all their products, and what is needed last for that,
// L_i(j-1) for A_ij with i = j + 1, is made by the same block of threads, which multiplies by it
// at once. Whoever waits, waits for lower turns or for the chain, which the first block to start
// becomes: nothing is asked of which blocks run at the same time, and results do not depend on it.
//
// Finished blocks lie twice in memory: in A, and as tiles of tile.cuh, one column of tiles after
// the other, in a workspace from which 16 bytes at a time go to shared memory, however A lies. A
// warp holds WR x WC tiles of a block's accumulators in registers; a ring of STAGES times DEPTH
// tile columns of both operands passes through shared memory.
//
// Floor: n^3 / 3 operations, TWOFOLD three times as many of the tensor cores, and the chain: n
// columns one after the other, each a reciprocal root and a few dependent operations, and for each
// T of them two small products and the way of a flag. A product reads 2 T numbers from L2 for T^2
// multiplications. Where the chain is what is waited for it is slower with TWOFOLD: see the rows.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int TILES = 8;    // a side of a block
constexpr int WARPS = 8;
constexpr int WR = 4;       // tile rows of a warp
constexpr int GROUPS = 2;   // of warps, that share the columns of a stage
constexpr int DEPTH = 2;    // tile columns in a stage
constexpr int STAGES = 3;
constexpr int BLOCKS = 1;   // of threads to a multiprocessor
constexpr int TWOFOLD = 0;    // 1: tensor cores multiply parts of numbers of single precision
#endif
#include "cholesky_tile.cuh"
#include "flags.cuh"
#include "launch.cuh"

constexpr int T = 8 * TILES, NUMBERS = T * T;
constexpr int SHARE = WARPS / GROUPS;  // warps of a group, which have all tiles among them
constexpr int WC = TILES * TILES / (SHARE * WR), ACROSS = TILES / WC;  // tile columns of a warp
constexpr int FRONT = TILES / 2;       // warps of the chain; the others store what it makes
constexpr int STAGE = 64 * TILES * DEPTH, CHUNKS = TILES / DEPTH;
constexpr int SLOT = 160;   // numbers that have room for a Diagonal
static_assert(WARPS == 2 * FRONT && SHARE * WR * WC == TILES * TILES);
static_assert(TILES % DEPTH == 0 && DEPTH % GROUPS == 0 && STAGES >= 2);
static_assert(sizeof(Diagonal) <= SLOT * sizeof(scalar_t));
static_assert(!TWOFOLD || sizeof(scalar_t) == 4);

struct Panel {
    Strided<scalar_t> A;               // the matrix from the panel's first element on
    int n, rows, columns;              // its order; blocks down and across the panel
    scalar_t* blocks;                  // the workspace: finished blocks, column by column
    scalar_t* diagonals;               // and TILES slots for each column
    int *done;                         // of each row: WARPS times the blocks that are finished,
    int *fed;                          // of blocks (j, j), then (j + 1, j), then (j + 2, j): WARPS
                                       // where all but the last product is subtracted

    __device__ int number(int i, int j) const { return j * rows - j * (j - 1) / 2 + i - j; }
    __device__ scalar_t* block(int i, int j) const { return blocks + size(NUMBERS) * number(i, j); }
    __device__ scalar_t* diagonal(int j) const { return diagonals + size(SLOT) * TILES * j; }
    // Blocks of a row are finished from left to right: the number of those that are, if more than j
    __device__ int wait(int i, int j) const { return await(done + i, WARPS * (j + 1)) / WARPS; }
    __device__ void wait_fed(int i, int j) const { await(fed + j + (i - j) * columns, WARPS); }
    // By every warp, when it has written its part: the share of each in what all add
    __device__ void tell(int i, int share) const { arrive(done + i, share); }
    __device__ void tell_fed(int i, int j) const { arrive(fed + j + (i - j) * columns, 1); }
    // True if L_ij is made by those who feed the next column with it
    __device__ bool is_kept(int i, int j) const { return i == j + 2 && j + 1 < columns; }
};

__device__ inline scalar_t* tile(scalar_t* block, int r, int c)
{
    return block + 64 * (TILES * c + r);
}
__device__ inline Diagonal& diagonal(scalar_t* slots, int k)
{
    return *reinterpret_cast<Diagonal*>(slots + SLOT * k);
}

// `count` numbers on their way to shared memory, brought by all or by a warp for itself
template <int LANES = THREADS>
__device__ void bring(scalar_t* to, const scalar_t* from, int count)
{
    constexpr int some = 16 / sizeof(scalar_t), step = some * LANES;
    const int mine = some * (thread() % LANES);
    for (int e = 0; e < count; e += step)
        if (e + step <= count || e + mine < count)
            copy_async<16, true>(to + e + mine, from + e + mine, 16);
}
__device__ inline void await_all()
{
    end_group();
    await_groups<0>();
}

// -- L_ij for blocks that the chain does not make

using Sums = Tile[WC][WR];
__device__ inline int group() { return warp() / SHARE; }
__device__ inline int first_row() { return warp() % SHARE / ACROSS * WR; }
__device__ inline int first_column() { return warp() % ACROSS * WC; }

// f(tile, r, c) for each of this warp's tiles
template <class F> __device__ void for_tiles(Sums& sums, F f)
{
    #pragma unroll
    for (int c = 0; c < WC; ++c)
        #pragma unroll
        for (int r = 0; r < WR; ++r) f(sums[c][r], first_row() + r, first_column() + c);
}

// What tensor cores add to is the negative: of a sum, or of a block
__device__ inline void take(Tile& x, const Tile& y)
{
    #pragma unroll
    for (int e = 0; e < 2; ++e) x.x[e] = mul(y.x[e], real_t(TENSOR ? -1 : 1));
}

// A_ij, for one group, and zeros
__device__ inline void start(Sums& sums, const Panel& p, int i, int j)
{
    const int n = p.n;
    if (group()) return for_tiles(sums, [](Tile& x, int, int) { x = {}; });
    const auto wanted = [=](int i, int j) { return i < n && j <= i; };
    for_tiles(sums, [&](Tile& x, int r, int c) {
        x = load_tile<false>(p.A, TILES * i + r, TILES * j + c, wanted);
        take(x, x);
    });
}

// TWOFOLD: numbers are sums of a high and a low part (tensor.cuh). Tensor cores cut off the end of
// what they add to, so products of high parts begin at zero in each stage and are then subtracted,
// rounded; those with low parts, 2^-11 of them, are added up there and subtracted last.
constexpr int TWOS = (WR + 1) / 2;  // of tiles, one above the other
struct Rough { float x[WC][TWOS][4]; };

__device__ inline void subtract(Sums& sums, const Rough& rough)
{
    #pragma unroll
    for (int c = 0; c < WC; ++c)
        #pragma unroll
        for (int r = 0; r < WR; ++r)
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const real_t x = rough.x[c][r / 2][2 * (r % 2) + e];
                if (TWOFOLD) sums[c][r].x[e] = add(sums[c][r].x[e], scalar_t{-x});
            }
}

// to += X Y^T for one part of each
__device__ inline void multiply(Rough& to, const float (&x)[TWOS][4], const float (&y)[WC][2])
{
    #pragma unroll
    for (int c = 0; c < WC; ++c)
        #pragma unroll
        for (int r = 0; r < TWOS; ++r) rough_product(to.x[c][r], x[r], y[c]);
}

// The products of a stage; other types compile what is for TWOFOLD, too, and drop it
__device__ inline void subtract(Sums& sums, Rough& low, scalar_t* a, scalar_t* b)
{
    [[maybe_unused]] Rough high = {};
    #pragma unroll
    for (int s = 0; s < DEPTH; s += GROUPS) {
        const int k = s + group();
        scalar_t* const left = tile(a, first_row(), k);
        scalar_t* const right = tile(b, first_column(), k);
        if constexpr (TWOFOLD) {
            float x_high[TWOS][4], x_low[TWOS][4], y_high[WC][2], y_low[WC][2];
            #pragma unroll
            for (int r = 0; r < TWOS; ++r) {
                const Tile x = get(left + 128 * r), y = 2 * r + 1 < WR ? get(left + 128 * r + 64)
                                                                      : Tile{};
                const float both[] = {float(real(x.x[0])), float(real(y.x[0])),
                                      float(real(x.x[1])), float(real(y.x[1]))};
                split(both, x_high[r], x_low[r]);
            }
            #pragma unroll
            for (int c = 0; c < WC; ++c) {
                const Tile y = get(right + 64 * c);
                const float own[] = {float(real(y.x[0])), float(real(y.x[1]))};
                split(own, y_high[c], y_low[c]);
            }
            multiply(low, x_low, y_high);
            multiply(high, x_high, y_high);
            multiply(low, x_high, y_low);
        } else if constexpr (TENSOR) {
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
    subtract(sums, high);
}

// sums -= L_ik L_jk^H for k < upto, as they come to be
__device__ inline void subtract_products(Sums& sums, const Panel& p, int i, int j, int upto,
                                         scalar_t* ring)
{
    const int chunks = CHUNKS * upto;
    Rough low = {};
    int there = 0;  // blocks of both rows
    const auto fetch = [&](int q) {
        if (q < chunks) {
            const int k = q / CHUNKS, part = q % CHUNKS * STAGE;
            if (k >= there) there = min(p.wait(i, k), p.wait(j, k));
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
        subtract(sums, low, stage, stage + STAGE);
    }
    subtract(sums, low);
    await_groups<0>();
    __syncthreads();
}

// Tiles `at`, of which two may be one, := those tiles L_kk^-H; by substitution if not `fast`
template <int ROWS>
__device__ void solve_tiles(scalar_t* const (&at)[ROWS], Diagonal& d, bool fast = true)
{
    if constexpr (TENSOR) {
        const Tile l = get(d.factor), y = get(d.inverse);
        Tile c[ROWS], x[ROWS];
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) c[q] = get(at[q]);
        times_inverse(x, c, l, y);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) fast = fast && is_finite(x[q]);
        fast = !__any_sync(ALL, !fast);
        #pragma unroll 1
        for (int q = 0; q < ROWS && !fast; ++q)
            if (q == 0 || at[q] != at[0]) substitute(at[q], l);
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (fast) put(at[q], x[q]);
    } else {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (lane() / 8 == q && (q == 0 || at[q] != at[0])) solve_row(at[q], lane() % 8, d);
    }
    __syncwarp();
}

// Tiles (r, c) of X, for one or two rows r, -= left right^H
template <int ROWS>
__device__ void subtract_at(scalar_t* X, const int (&rows)[ROWS], int c,
                            scalar_t* const (&left)[ROWS], scalar_t* right)
{
    Tile x[ROWS];
    #pragma unroll
    for (int q = 0; q < ROWS; ++q) x[q] = get(tile(X, rows[q], c));
    subtract_product(x, left, right);
    #pragma unroll
    for (int q = 0; q < ROWS; ++q) put(tile(X, rows[q], c), x[q]);
}

// X := X L^-H, so many tile rows to a warp: in registers, or where that makes what is not finite,
// by substitution
constexpr int TOGETHER = TENSOR && PAIR == 1 ? 1 : 2;
constexpr int EACH = sizeof(scalar_t) == 4 ? 1 : TOGETHER;  // where all warps solve

__device__ inline bool solved(scalar_t* X, scalar_t* L, scalar_t* slots, int row)
{
    Tile c[TILES][TOGETHER];
    bool fine = true;
    #pragma unroll
    for (int k = 0; k < TILES; ++k)
        #pragma unroll
        for (int r = 0; r < TOGETHER; ++r) c[k][r] = get(tile(X, row + r, k));
    #pragma unroll
    for (int k = 0; k < TILES; ++k) {
        Tile x[TOGETHER];
        times_inverse(x, c[k], get(diagonal(slots, k).factor), get(diagonal(slots, k).inverse));
        #pragma unroll
        for (int r = 0; r < TOGETHER; ++r) c[k][r] = x[r], fine = fine && is_finite(x[r]);
        #pragma unroll
        for (int m = k + 1; m < TILES; ++m) add_adjoint<-1>(c[m], x, get(tile(L, m, k)));
    }
    if (__any_sync(ALL, !fine)) return false;
    #pragma unroll
    for (int k = 0; k < TILES; ++k)
        #pragma unroll
        for (int r = 0; r < TOGETHER; ++r) put(tile(X, row + r, k), c[k][r]);
    return true;
}
template <int ROWS>
__device__ inline void solve_rows(scalar_t* X, scalar_t* L, scalar_t* slots, int r)
{
    if constexpr (TENSOR)
        if (solved(X, L, slots, r)) return;
    #pragma unroll 1
    for (int k = 0; k < TILES; ++k) {
        scalar_t* left[ROWS];
        int rows[ROWS];
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) rows[q] = r + q, left[q] = tile(X, r + q, k);
        solve_tiles(left, diagonal(slots, k), false);
        #pragma unroll 1
        for (int m = k + 1; m < TILES; ++m) subtract_at(X, rows, m, left, tile(L, m, k));
        __syncwarp();
    }
}

// One text for the two that ask for it: of complex numbers the compiler else takes long. A chain of
// real ones cannot afford the call (float: a fifth of the time at n = 1024).
__device__ __noinline__ void solve_apart(scalar_t* X, scalar_t* L, scalar_t* slots, int r)
{
    solve_rows<TOGETHER>(X, L, slots, r);
}
template <int ROWS = TOGETHER>
__device__ inline void solve(scalar_t* X, scalar_t* L, scalar_t* slots, int r)
{
    if constexpr (sizeof(scalar_t) > sizeof(real_t)) solve_apart(X, L, slots, r);
    else solve_rows<ROWS>(X, L, slots, r);
}

// Tile (r, c) of block (i, j), finished, to the workspace and to A
__device__ inline void store_tile(const Panel& p, int i, int j, scalar_t* X, int r, int c)
{
    const int n = p.n;
    const Tile x = get(tile(X, r, c));
    put(tile(p.block(i, j), r, c), x);
    store_tile(x, p.A, TILES * i + r, TILES * j + c,
               [=](int i, int j) { return i < n && j <= i; });
}

// The whole block, by warps `first` and after
__device__ inline void store(const Panel& p, int i, int j, scalar_t* X, int first)
{
    for (int q = warp() - first; q < TILES * TILES; q += WARPS - first)
        store_tile(p, i, j, X, q % TILES, q / TILES);
}

// Block (i, j): its sums, to which nothing is to be added, to tiles; over `spare`
__device__ inline void finish(Sums& sums, scalar_t* to, scalar_t* spare)
{
    if (GROUPS > 1) {
        __syncthreads();
        if (group()) for_tiles(sums, [&](Tile& x, int r, int c) { put(tile(spare, r, c), x); });
        __syncthreads();
    }
    if (group() == 0)
        for_tiles(sums, [&](Tile& x, int r, int c) {
            if (GROUPS > 1) {
                const Tile y = get(tile(spare, r, c));
                #pragma unroll
                for (int e = 0; e < 2; ++e) x.x[e] = add(x.x[e], y.x[e]);
            }
            take(x, x);
            put(tile(to, r, c), x);
        });
}

// All of shared memory that a block of threads has
struct Room {
    scalar_t* X;      // a block that is solved for
    scalar_t* L;      // one to solve with, or to multiply by
    scalar_t* slots;
    scalar_t* ring;   // in place of L
};

// X := L_ij from A_ij less all products, stored but not told
__device__ inline void make_block(const Panel& p, int i, int j, const Room& room)
{
    __syncthreads();
    p.wait(j, j);
    bring(room.L, p.block(j, j), NUMBERS);
    bring(room.slots, p.diagonal(j), SLOT * TILES);
    await_all();
    __syncthreads();
    #pragma unroll 1
    for (int r = EACH * warp(); r < TILES; r += EACH * WARPS)
        solve<EACH>(room.X, room.L, room.slots, r);
    __syncthreads();
    store(p, i, j, room.X, 0);
}

// L_ij, or where `fed` what the chain wants of it, i = j or j + 1: of the latter all products but
// that by L_i(j-1) are subtracted before what that waits for is known.
__device__ inline void make(const Panel& p, int i, int j, const Room& room)
{
    const bool fed = i <= j + 1;
    Sums sums;
    start(sums, p, i, j);
    subtract_products(sums, p, i, j, fed ? max(j - 1, 0) : j, room.ring);
    if (fed && i > j && j) {
        finish(sums, p.block(i, j), room.L);
        p.wait_fed(i, j - 1);
        bring(room.X, p.block(i, j - 1), NUMBERS);
        make_block(p, i, j - 1, room);
        for_tiles(sums, [&](Tile& x, int r, int c) {
            x = {};
            if (group() == 0) take(x, get(tile(p.block(i, j), r, c)));
        });
        p.wait(j, j - 1);
        bring(room.L, p.block(j, j - 1), NUMBERS);
        await_all();
        __syncthreads();
        if (warp() == WARPS - 1) p.tell(i, WARPS);
        Rough low = {};
        #pragma unroll 1
        for (int k = 0; k < TILES; k += DEPTH)
            subtract(sums, low, tile(room.X, 0, k), tile(room.L, 0, k));
        subtract(sums, low);
    }
    const bool later = fed || p.is_kept(i, j);
    finish(sums, later ? p.block(i, j) : room.X, room.L);
    if (later) return p.tell_fed(i, j);
    make_block(p, i, j, room);
    p.tell(i, 1);
}

// -- the chain

// Two columns of a diagonal tile, j and j + 1, and two rows of its inverse (as eliminate does one).
// The reciprocals of both pivots are there after one chain: with a, b over b', c on the diagonal,
// the second pivot is s = (a c - |b|^2) / a, and 1 / s is a over that determinant.
__device__ inline void eliminate_two(Tile& a, Tile& y, int j, bool& usual, real_t* reciprocals)
{
    const int p = place_of(j), q = place_of(j + 1);
    const scalar_t own = p % 2 ? a.x[1] : a.x[0], its = q % 2 ? a.x[1] : a.x[0];
    const real_t first = of_lane(real(own), 4 * p + p / 2);
    const scalar_t between = of_lane(own, 4 * q + p / 2);
    const real_t last = of_lane(real(its), 4 * q + q / 2);
    const real_t determinant = real(minus_product(scalar_t{first * last}, between, conj(between)));
    const real_t over = near_reciprocal(first), inverse = first * near_reciprocal(determinant);
    const real_t second = determinant * over;
    usual = usual && in_range(first) && in_range(determinant) && in_range(second);
    const real_t root = near_rsqrt(first), other = near_rsqrt(second);
    if (!TENSOR && lane() == j) reciprocals[j] = root;
    if (!TENSOR && lane() == j + 1) reciprocals[j + 1] = other;

    const scalar_t link = conj(mul(between, over));
    const scalar_t left = of_lane(own, 4 * g() + p / 2);
    const scalar_t next = minus_product(of_lane(its, 4 * g() + q / 2), left, link);
    const scalar_t m = mul(left, over), n = mul(next, inverse);
    const int i = tile_row();
    #pragma unroll
    for (int e = 0; e < 2; ++e) {
        const int c = tile_col(e);
        const scalar_t right = of_lane(own, 4 * (2 * t() + e) + p / 2);
        const scalar_t after = minus_product(of_lane(its, 4 * (2 * t() + e) + q / 2), right, link);
        if (i > j + 1 && c > j + 1)
            a.x[e] = minus_product(minus_product(a.x[e], m, conj(right)), n, conj(after));
        if (c == j && i >= j) a.x[e] = i == j ? scalar_t{first * root} : mul(left, root);
        if (c == j + 1 && i > j)
            a.x[e] = i == j + 1 ? scalar_t{second * other} : mul(next, other);
        if constexpr (TENSOR) {
            const scalar_t above = of_lane(y.x[e], 4 * p + t());
            const scalar_t below = minus_product(of_lane(y.x[e], 4 * q + t()), conj(link), above);
            if (i > j + 1) y.x[e] = minus_product(minus_product(y.x[e], m, above), n, below);
            if (i == j) y.x[e] = mul(above, root);
            if (i == j + 1) y.x[e] = mul(below, other);
        }
    }
}

struct Factored { Tile a, y; int failed; };

// Where a pivot is out of the ordinary, or none
__device__ __noinline__ Factored factored(Tile given, real_t* reciprocals)
{
    Factored f{given};
    f.failed = factor_tile(f.a, f.y, reciprocals);
    return f;
}

// Tile (k, k) of D, the panel's column `first` on, which comes in a: factored by one warp
__device__ inline void factor_tile(Tile a, scalar_t* D, scalar_t* slots, int k, int first, int n,
                                   int& failed)
{
    Diagonal& d = diagonal(slots, k);
    Tile y;
    if (first + 8 * k + tile_row() >= n)
        #pragma unroll
        for (int e = 0; e < 2; ++e) a.x[e] = scalar_t{real_t(tile_row() == tile_col(e))};
    const Tile given = a;
    bool usual = true;
    int at = 0;
    y = ones();
    #pragma unroll
    for (int j = 0; j < 8; j += 2) eliminate_two(a, y, j, usual, d.reciprocals);
    if (!usual) {
        const Factored f = factored(given, d.reciprocals);
        a = f.a, y = f.y, at = f.failed;
    }
    if (at && !failed) failed = first + 8 * k + at;
    put(tile(D, k, k), a);
    if constexpr (TENSOR) {
        put(d.factor, lower_half(a));
        put(d.inverse, y);
    } else {
        #pragma unroll
        for (int e = 0; e < 2; ++e) d.columns[2 * t() + e][g()] = conj(a.x[e]);
    }
}

// Row r of L_jj, and what is known of its diagonal tile, to memory, by one warp
__device__ inline void store_row(const Panel& p, int j, scalar_t* D, scalar_t* slots, int r)
{
    constexpr int some = 16 / sizeof(scalar_t);
    #pragma unroll 1
    for (int c = 0; c <= r; ++c) store_tile(p, j, j, D, r, c);
    for (int e = some * lane(); e < SLOT; e += some * 32)
        *reinterpret_cast<Quad*>(p.diagonal(j) + SLOT * r + e)
            = *reinterpret_cast<const Quad*>(slots + SLOT * r + e);
}

// D := L_jj, a barrier to a tile column. After that of column k the first warp has row k + 1: column
// k - 1 taken off it, solved for, and its diagonal tile factored; others of the front, two rows to a
// warp, have the rows below, and what column k - 1 takes off all of them; and row k is stored.
// Returns, to the first warp, 0 or the first column whose pivot is not positive.
__device__ inline int factor(const Panel& p, int j, scalar_t* D, scalar_t* slots)
{
    const int first = T * j;
    int failed = 0;
    #pragma unroll 1
    for (int k = -1; k + 1 < TILES; ++k) {
        if (k >= 0) __syncthreads();
        if (warp() == 0) {
            const int r = k + 1;
            scalar_t *const at[1] = {tile(D, r, max(k, 0))};
            scalar_t *const left[1] = {tile(D, r, max(k - 1, 0))};
            Tile a[1] = {get(tile(D, r, r))};
            if (k > 0) {
                Tile c[1] = {get(at[0])};
                subtract_product(c, left, tile(D, k, k - 1));
                subtract_product(a, left, left[0]);
                put(at[0], c[0]);
                __syncwarp();
            }
            if (k >= 0) {
                solve_tiles(at, diagonal(slots, k));
                subtract_product(a, at, at[0]);
            }
            factor_tile(a[0], D, slots, r, first, p.n, failed);
        } else if (k >= 0 && warp() < FRONT) {
            const int upper = max(2 * warp(), k + 2), lower = 2 * warp() + 1;  // which may be one
            if (upper > lower) continue;
            if (k) {
                scalar_t* const left[2] = {tile(D, upper, k - 1), tile(D, lower, k - 1)};
                #pragma unroll 1
                for (int c = k; c <= lower; ++c)
                    subtract_at(D, {upper, lower}, c, left, tile(D, c, k - 1));
                __syncwarp();
            }
            scalar_t* const at[2] = {tile(D, upper, k), tile(D, lower, k)};
            solve_tiles(at, diagonal(slots, k));
        } else if (k >= 0 && warp() - FRONT == k % FRONT) {
            store_row(p, j, D, slots, k);
        }
    }
    __syncthreads();
    return failed;
}

// Two columns of D := what was fed less X X^H, if there is an X, on and below the diagonal
__device__ inline void start_link(const Panel& p, int j, scalar_t* D, scalar_t* X)
{
    const int columns[2] = {warp(), TILES - 1 - warp()};  // the second in the right half
    p.wait_fed(j, j);
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
        const int c = columns[s], r = c - c % 2;
        bring<32>(tile(D, r, c), tile(p.block(j, j), r, c), 64 * (TILES - r));
    }
    end_group();
    Tile sums[2][FRONT][2] = {};
    #pragma unroll 2
    for (int k = 0; k < (j ? TILES : 0); ++k)
        #pragma unroll
        for (int s = 0; s < 2; ++s)
            #pragma unroll
            for (int q = s * FRONT / 2; q < FRONT; ++q) {  // some above the diagonal: dropped
                scalar_t* const left[2] = {tile(X, 2 * q, k), tile(X, 2 * q + 1, k)};
                subtract_product(sums[s][q], left, tile(X, columns[s], k));
            }
    await_groups<0>();
    __syncwarp();
    #pragma unroll
    for (int s = 0; s < 2; ++s)
        #pragma unroll
        for (int q = s * FRONT / 2; q < FRONT; ++q)
            if (2 * q + 1 >= columns[s])
                #pragma unroll
                for (int r = 0; r < 2; ++r) {
                    scalar_t* const at = tile(D, 2 * q + r, columns[s]);
                    Tile x = get(at);
                    #pragma unroll
                    for (int e = 0; e < 2; ++e) x.x[e] = add(x.x[e], sums[s][q][r].x[e]);
                    put(at, x);
                }
}

// Column j: L_jj and L_(j+1)j, which is left in X; the one before is there if `kept`. While it is
// stored by others the front goes on.
__device__ inline void make_link(const Panel& p, int j, const Room& room, bool kept, int* info,
                                 int before)
{
    scalar_t *const X = room.X, *const D = room.L;
    const bool front = warp() < FRONT, below = j + 1 < p.rows;
    if (!kept) {
        __syncthreads();
        if (j) bring(X, p.block(j, j - 1), NUMBERS);
        await_all();
        __syncthreads();
    }
    if (front) start_link(p, j, D, X);
    __syncthreads();
    const int failed = factor(p, j, D, room.slots);
    if (front) {
        if (thread() == 0 && failed && !*info) *info = before + failed;
        if (below) {
            const int r = 2 * warp();
            p.wait_fed(j + 1, j);
            for (int c = 0; c < TILES; ++c)
                bring<32>(tile(X, r, c), tile(p.block(j + 1, j), r, c), 128);
            await_all();
            __syncwarp();
            for (int s = 0; s < 2; s += TOGETHER) solve(X, D, room.slots, r + s);
        }
    } else {
        if (warp() - FRONT == (TILES - 1) % FRONT) store_row(p, j, D, room.slots, TILES - 1);
        p.tell(j, 2);
    }
    __syncthreads();
    if (!front && below) {
        store(p, j + 1, j, X, FRONT);
        p.tell(j + 1, 2);
    }
}

// What one thread finds, for all
template <class Find> __device__ int found(int& number, Find find)
{
    __syncthreads();
    if (thread() == 0) number = find();
    __syncthreads();
    return number;
}

// Block (i, j) of the whole matrix := zeros above its diagonal
__device__ inline void clear(const Strided<scalar_t>& A, int i, int j, int n)
{
    const bool by_rows = A.cs == 1;
    for (int e = thread(); e < NUMBERS; e += THREADS) {
        const int inner = e % T, outer = e / T;
        const int r = T * i + (by_rows ? outer : inner), c = T * j + (by_rows ? inner : outer);
        if (r < c && c < n) A(r, c) = scalar_t{};
    }
}

// `before`: columns of the matrix that are done. `clean`: what is above the diagonal of all of it
// becomes zeros, block by block, by those who find nothing else to do while the chain ends. `flags`,
// zeros: blocks that have started, blocks of the matrix that are taken, 1 + the multiprocessor of
// the chain, blocks that have left it to the chain, and the flags of rows and columns.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potrf_panel(scalar_t* A, size a_row, size a_col, size n, size columns, size before, size clean,
            scalar_t* blocks, scalar_t* diagonals, int* flags, int* info)
{
    wait_for_stream();
    __shared__ int number;
    scalar_t* const shared = reinterpret_cast<scalar_t*>(dynamic_shared);
    const Room room{shared, shared + NUMBERS, shared + 2 * NUMBERS, shared + NUMBERS};
    const Panel p{{A, a_row, a_col}, int(n), int((n + T - 1) / T), int(columns), blocks, diagonals,
                  flags + 4, flags + 4 + int((n + T - 1) / T)};
    // The chain's columns that are next for this block: all, or, if it is alone, each in its turn
    const bool alone = gridDim.x == 1;
    int link = 0, links = 0, turn;
    if (!alone) {
        if (found(number, [=] { return atomicAdd(flags, 1); }) == 0) {
            links = p.columns;
            if (warp() == 0) arrive(flags + 2, 1 + multiprocessor());
        } else if (gridDim.x > BLOCKS && found(number, [=] {
            await(flags + 2, 1);
            return int(flags[2] == 1 + multiprocessor() && atomicAdd(flags + 3, 1) < BLOCKS - 1);
        })) {
            return;
        }
    }
    const auto take_turn = [=] { return atomicAdd(flags + 1, 1); };
    int above = 0;  // turns of the columns before j
    for (int j = 0;;) {
        for (; link < links; ++link)
            make_link(p, link, room, !alone, info, int(before));
        turn = found(number, take_turn);
        while (j < p.columns && turn - above >= p.rows - j) above += p.rows - j++;
        if (j == p.columns) break;
        const int i = j + turn - above;
        make(p, i, j, room);
        if (alone && i == min(j + 1, p.rows - 1)) links = j + 1;
    }
    const int order = int(before + n), columns_of_all = (order + T - 1) / T;
    const Strided<scalar_t> all{A - before * (a_row + a_col), a_row, a_col};
    for (int j = 0; clean; turn = found(number, take_turn)) {
        while (j < columns_of_all && turn - above > j) above += ++j;
        if (j == columns_of_all) break;
        clear(all, turn - above, j, order);
    }
}
