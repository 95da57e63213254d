// svd_tiles.cuh: two blocks of eight columns, P, meet (svd.cuh) by products of the tensor cores.
//
// A warp makes G = P^H P, in shared memory, diagonal by a round of rotations R_1, R_2, ... of all
// pairs of a column of either block, in a sweep's first round of all pairs there are, and P := P R_1
// R_2 ... = P + P K: what is small stays small, so that columns which are nearly orthogonal lose no
// digits. What crosses memory: X of sixteen columns once for G, and X and W of them once more both
// ways where a pair has a cosine that matters, n / 8 - 1 times in a sweep of n columns: an eighth of
// what rotations of single columns move. A sweep is 4 m n^2 fused operations for X and 2 n^3 for W.
//
// Of tiles of 8 x 8 lane (g, t) = (lane / 4, lane % 4) has numbers 2 t and 2 t + 1 of line g, k = t
// and t + 4 of a product being these.
#include "tensor.cuh"

constexpr int MEETING = 16;  // columns
static_assert(!TILED || (WIDTH == 8 && LANES == 32 && GROUPS == WARPS));
constexpr int AT_ONCE = TILED > 0 ? TILED : 1;  // tiles whose loads are on their way

struct alignas(16) Pairs {  // a warp's
    scalar_t G[MEETING][MEETING + 1], K[MEETING][MEETING + 1];
    Rotation turns[MEETING / 2];
};
struct alignas(sizeof(scalar_t) < 16 ? 2 * sizeof(scalar_t) : 16) Both { scalar_t x[2]; };

// The eight pairs of round k: of `all` columns i and j with i + j = 2 k modulo 15, and k and the
// last; else one of either block
__device__ inline int earlier(bool all, int k, int h) { return all ? (k + h) % (MEETING - 1) : h; }
__device__ inline int later(bool all, int k, int h)
{
    if (!all) return 8 + (k + h) % 8;
    return h ? (k + MEETING - 1 - h) % (MEETING - 1) : MEETING - 1;
}

// What a rotation adds of x to y
__device__ inline real_t crossing(const Turn<real_t>& r) { return r.sin; }
template <class R> __device__ complex<R> crossing(const Turn<complex<R>>& r) { return r.phase; }

// G := P^H P
__device__ inline void find_products(const scalar_t* a, const scalar_t* b, int rows, Pairs& pairs)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const scalar_t *const p = a + g * LD + 2 * t, *const q = b + g * LD + 2 * t;
    scalar_t of_a[4] = {}, of_b[4] = {};  // the columns of G
    #pragma unroll AT_ONCE
    for (int r = 0; r < rows; r += 8) {
        const Both x = *reinterpret_cast<const Both*>(p + r);
        const Both y = *reinterpret_cast<const Both*>(q + r);
        const scalar_t left[4] = {conj(x.x[0]), conj(y.x[0]), conj(x.x[1]), conj(y.x[1])};
        tensor_product(of_a, left, x.x);
        tensor_product(of_b, left, y.x);
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        pairs.G[e / 2 * 8 + g][2 * t + e % 2] = of_a[e];
        pairs.G[e / 2 * 8 + g][8 + 2 * t + e % 2] = of_b[e];
    }
    __syncwarp();
}

// Whether there is anything to do, of what rotation() would do; `moved` if a cosine is above the
// square root of `limit`
__device__ inline bool some_meet(const Pairs& pairs, bool all, double limit, bool& moved)
{
    constexpr double LITTLE = 1.0 / 64;  // of the limit
    bool some = false;
    for (int e = threadIdx.x % 32; e < MEETING * MEETING; e += 32) {
        const int i = e / MEETING, j = e % MEETING;
        if (all ? i >= j : i >= 8 || j < 8) continue;
        const scalar_t g = pairs.G[i][j];
        const real_t a = real(pairs.G[i][i]), b = real(pairs.G[j][j]);
        if (a < NULL_SQUARE || b < NULL_SQUARE || largest(g) < TINY) continue;
        const double product = wide_square(g), cross = double(a) * double(b);
        some |= product > LITTLE * limit * cross;
        moved |= product > limit * cross;
    }
    return __any_sync(ALL, some);
}

// G := R^H G R, K := R - 1, R all rotations
__device__ inline void rotate(Pairs& pairs, bool all)
{
    const int lane = threadIdx.x % 32;
    auto& G = pairs.G;
    auto& K = pairs.K;
    for (int e = lane; e < MEETING * MEETING; e += 32) K[e / MEETING][e % MEETING] = scalar_t{};
    #pragma unroll 1
    for (int k = 0; k < (all ? MEETING - 1 : 8); ++k) {
        if (lane < MEETING / 2) {
            const int i = earlier(all, k, lane), j = later(all, k, lane);
            real_t a = real(G[i][i]), b = real(G[j][j]);
            bool moved = false;
            pairs.turns[lane] = rotation(G[i][j], a, b, 0, true, moved);
        }
        __syncwarp();
        const int s = lane % 8, i = earlier(all, k, s), j = later(all, k, s);
        const Rotation right = pairs.turns[s];
        #pragma unroll
        for (int h = lane / 8; h < 8; h += 4) {  // rows of two columns, by two lines each
            const int u = earlier(all, k, h), v = later(all, k, h);
            scalar_t x[2][2] = {{G[u][i], G[u][j]}, {G[v][i], G[v][j]}};
            apply(x[0][0], x[0][1], right);
            apply(x[1][0], x[1][1], right);
            const Rotation left = pairs.turns[h];
            #pragma unroll
            for (int c = 0; c < 2; ++c) {
                scalar_t above = conj(x[0][c]), below = conj(x[1][c]);
                apply(above, below, left);
                G[u][c ? j : i] = conj(above);
                G[v][c ? j : i] = conj(below);
            }
        }
        const scalar_t less = scalar_t(-right.sin * right.tau), over = crossing(right);
        const scalar_t back = mul(conj(over), real_t(-1));
        #pragma unroll
        for (int row = lane / 8; row < MEETING; row += 4) {
            scalar_t x = K[row][i], y = K[row][j];
            apply(x, y, right);
            if (row == i) x = add(x, less), y = add(y, over);
            if (row == j) x = add(x, back), y = add(y, less);
            K[row][i] = x;
            K[row][j] = y;
        }
        __syncwarp();
    }
}

// P := P + P K, rows `first` to `last`
__device__ inline void turn_rows(scalar_t* a, scalar_t* b, int first, int last,
                                 const scalar_t (&by)[2][4])
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    scalar_t *const p = a + g * LD + 2 * t, *const q = b + g * LD + 2 * t;
    const scalar_t *const u = a + 2 * t * LD + g, *const v = b + 2 * t * LD + g;
    #pragma unroll 1
    for (int r = first; r < last; r += 8 * AT_ONCE) {
        scalar_t c[AT_ONCE][4], of_a[AT_ONCE][2], of_b[AT_ONCE][2];
        #pragma unroll
        for (int e = 0; e < AT_ONCE; ++e) {
            const int at = r + 8 * e;
            if (at >= last) break;
            const Both x = *reinterpret_cast<const Both*>(p + at);
            const Both y = *reinterpret_cast<const Both*>(q + at);
            c[e][0] = x.x[0], c[e][1] = x.x[1], c[e][2] = y.x[0], c[e][3] = y.x[1];
            of_a[e][0] = u[at], of_a[e][1] = u[at + LD];
            of_b[e][0] = v[at], of_b[e][1] = v[at + LD];
        }
        __syncwarp();
        #pragma unroll
        for (int e = 0; e < AT_ONCE; ++e) {
            const int at = r + 8 * e;
            if (at >= last) break;
            tensor_product(c[e], by[0], of_a[e]);
            tensor_product(c[e], by[1], of_b[e]);
            *reinterpret_cast<Both*>(p + at) = {c[e][0], c[e][1]};
            *reinterpret_cast<Both*>(q + at) = {c[e][2], c[e][3]};
        }
    }
}

// The columns of two blocks, at a and b, become orthogonal to those of the other, or to `all`. True
// if a cosine was above the square root of `limit`.
__device__ inline bool meet(scalar_t* a, scalar_t* b, int m, int n, Pairs& pairs, bool all,
                            double limit)
{
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, rows = (m + 7) / 8 * 8;
    find_products(a, b, rows, pairs);
    bool moved = false;
    if (!some_meet(pairs, all, limit, moved)) return moved;
    rotate(pairs, all);
    scalar_t by[2][4];  // K^T: a line to a new column
    #pragma unroll
    for (int e = 0; e < 8; ++e)
        by[e / 4][e % 4] = pairs.K[e / 4 * 8 + 2 * t + e % 4 / 2][g + e % 2 * 8];
    turn_rows(a, b, 0, rows, by);
    if (VECTORS) turn_rows(a, b, LONGEST, LONGEST + (n + 7) / 8 * 8, by);
    return moved;
}
