// gemm_lines.cu: C := alpha A B + beta C of every member of a batch whose matrices lie by rows
// without gaps, of lengths that are no multiple of 16 bytes.
//
// Rows then begin anywhere in 16 bytes, but what follows each other is one line, of which all
// copies are 16 bytes, from the last multiple before it on, and which lies in shared memory as it
// does in memory. A team of DOWN x ACROSS warps owns 16 RM DOWN rows of one member's C and has
// these rows of A there, and B by slices of DEEP rows, of which all but one of STAGES are on their
// way. A warp holds RM x RN tiles of 16 x 8 of C in registers, as far apart as the team has warps,
// so that what is past the last column is missing from all of them alike. At the end the team's
// part of C is put together where A was, and goes out as one line.
//
// The tensor cores multiply (tensor.cuh), single precision as three products of parts. The lanes
// t = 0 ... 3 of a group want numbers that are neighbours along k; here they take those of the
// quarters of 128 bytes: rows an odd number of numbers apart are then read from different banks,
// along k and across.
//
// k > 0. The floor is (m k + k n + m n) elements a member, C read too if beta is not zero.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int DOWN = 1, ACROSS = 1;  // warps of a team; of a team of one a block has WARPS
constexpr int RM = 3, RN = 5;        // tiles of a warp
constexpr int DEEP = 64;             // rows of B in a slice
constexpr int STAGES = 1;            // slices in shared memory; 1: there is one in all
constexpr int BLOCKS = 1;            // per multiprocessor for which registers are rationed
#endif
#include "launch.cuh"
#include "async.cuh"
#include "block.cuh"
#include "operands.cuh"
#include "tensor.cuh"

constexpr int TEAM = DOWN * ACROSS, TEAMS = WARPS / TEAM, MEET = 32 * TEAM;
constexpr int ROWS = 16 * RM * DOWN;              // of C that a team owns
constexpr int PACK = 16 / sizeof(scalar_t);       // numbers to 16 bytes
constexpr int QUARTER = 32 / sizeof(scalar_t), CHUNK = 4 * QUARTER;
constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;
static_assert(WARPS % TEAM == 0 && (TEAM == 1 || TEAMS == 1) && DEEP % CHUNK == 0);

__device__ inline int in_team() { return TEAM == 1 ? threadIdx.x % 32 : threadIdx.x; }
__device__ inline void meet()
{
    if (TEAM == 1) __syncwarp();
    else __syncthreads();
}

// The room of a line of so many numbers, wherever it begins in 16 bytes
__host__ __device__ constexpr int room(int count) { return (count + 2 * PACK - 2) / PACK * PACK; }
// How far past a multiple of 16 bytes p is
__device__ inline int past(const scalar_t* p) { return int(size(p) % 16 / sizeof(scalar_t)); }

// `to` := the line of `count` numbers at `from`, which is as far past a multiple of 16 bytes
__device__ inline void bring(scalar_t* to, const scalar_t* from, int count)
{
    const int before = past(from), end = count + before;
    for (int e = in_team() * PACK; e < end; e += MEET * PACK)
        copy_async<16, true>(to - before + e, from - before + e,
                             min(PACK, end - e) * int(sizeof(scalar_t)));
}

struct Part {  // of a member's C: `rows` rows, from A's row `a` on
    const scalar_t *a, *b;
    int rows, n, k;
};

// The tiles of a warp, J of them side by side
template <int J> struct Tiles {
    scalar_t c[RM][J][4];

    static __device__ int group() { return threadIdx.x % 32 / 4; }
    static __device__ int lane() { return threadIdx.x % 4; }
    static __device__ int warp_down() { return TEAM == 1 ? 0 : threadIdx.x / 32 / ACROSS; }
    static __device__ int warp_across() { return TEAM == 1 ? 0 : threadIdx.x / 32 % ACROSS; }
    // The rows of this lane's numbers of A, and the first of its columns of B
    static __device__ int row(int i, int half)
    {
        return 16 * (i * DOWN + warp_down()) + 8 * half + group();
    }
    static __device__ int first_column() { return 8 * warp_across(); }
    // of this lane's of C
    static __device__ int column(int j, int e)
    {
        return first_column() + 8 * ACROSS * j + 2 * lane() + e % 2;
    }

    // += the products of two of k, from where `a` and `b` point for this lane; `left` of the two are
    // there, or there are more.
    template <bool ALL>
    __device__ void step(const scalar_t* a, const int (&from)[RM][2], const scalar_t* b, int n,
                         int left)
    {
        scalar_t x[RM][4], y[J][2];
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const bool there = ALL || e < left;
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int half = 0; half < 2; ++half)
                    x[i][2 * e + half] = there ? a[from[i][half] + e] : scalar_t{};
            #pragma unroll
            for (int j = 0; j < J; ++j)
                y[j][e] = there ? b[e * n + 8 * ACROSS * j] : scalar_t{};
        }
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < J; ++j) tensor_product(c[i][j], x[i], y[j]);
    }

    // += the products of `depth` of k: A's from column p of its rows on, a slice of B's
    __device__ void add(const scalar_t* a, const int (&from)[RM][2], const scalar_t* b, int n,
                        int depth)
    {
        b += first_column() + group();
        int k = 0;
        for (; k + CHUNK <= depth; k += CHUNK)
            #pragma unroll 1
            for (int e = 0; e < QUARTER; e += 2) {
                const int mine = k + QUARTER * lane() + e;
                step<true>(a + mine, from, b + mine * n, n, 2);
            }
        // Of what is left each lane takes a quarter, or two.
        const int left = depth - k;
        int quarter = QUARTER;
        while (quarter > 2 && 2 * left <= 4 * quarter) quarter /= 2;
        #pragma unroll 1
        for (int e = 0; e < quarter && left > 0; e += 2) {
            const int mine = k + quarter * lane() + e;
            step<false>(a + mine, from, b + mine * n, n, depth - mine);
        }
    }

    // f(i, j, x) for all numbers of this lane's that are in C
    template <class F> __device__ void each(const Part& w, F f) const
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < J; ++j)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int r = row(i, e / 2), q = column(j, e);
                    if (r < w.rows && q < w.n) f(r, q, c[i][j][e]);
                }
    }

    // Whether the parts of single precision have come to sums that are not finite
    __device__ bool any_not_finite(const Part& w) const
    {
        scalar_t zero{};
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < J; ++j)
                #pragma unroll
                for (int e = 0; e < 4; ++e) zero = plus_product(zero, c[i][j][e], scalar_t{});
        bool found = false;
        if (!__any_sync(0xffffffffu, zero != zero)) return found;
        each(w, [&](int, int, scalar_t x) { found |= !(x - x == scalar_t{}); });
        return __any_sync(0xffffffffu, found);
    }

    // These, from registers, to `image`; where any is not finite all one product after the other
    __device__ void put(scalar_t* image, const Part& w, bool in_turn) const
    {
        if (!in_turn) return each(w, [=, &w](int i, int j, scalar_t x) { image[i * w.n + j] = x; });
        #pragma unroll 1
        for (int e = threadIdx.x % 32; e < 128 * RM * J; e += 32) {
            const int tile = e / 128, i = 16 * (tile / J * DOWN + warp_down()) + e % 128 / 8;
            const int j = 8 * (tile % J * ACROSS + warp_across()) + e % 8;
            if (i >= w.rows || j >= w.n) continue;
            scalar_t sum{};
            #pragma unroll 1
            for (int p = 0; p < w.k; ++p)
                sum = plus_product(sum, w.a[i * w.k + p], w.b[p * w.n + j]);
            image[i * w.n + j] = sum;
        }
    }
};

// The team's part of C, to `image`. All of A's rows and the first slices of B are on their way to
// `a` and `slices`; `apart`: from a slice to the next.
template <int J>
__device__ void multiply(const Part& w, const scalar_t* a, scalar_t* slices, int apart,
                         scalar_t* image)
{
    using T = Tiles<J>;
    T tiles{};
    int from[RM][2];  // where rows of A begin; past the last one that for nothing
    #pragma unroll
    for (int i = 0; i < RM; ++i)
        #pragma unroll
        for (int half = 0; half < 2; ++half) from[i][half] = min(T::row(i, half), w.rows - 1) * w.k;
    int now = 0, next = AHEAD;
    for (int p = 0; p < w.k; p += DEEP) {
        await_groups<AHEAD - 1>();
        meet();
        if (STAGES > 1) {
            const int q = p + AHEAD * DEEP;
            if (q < w.k)
                bring(slices + next * apart, w.b + size(q) * w.n, min(DEEP, w.k - q) * w.n);
            end_group();
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        tiles.add(a + p, from, slices + now * apart, w.n, min(DEEP, w.k - p));
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    bool in_turn = false;
    if constexpr (sizeof(scalar_t) == 4) in_turn = tiles.any_not_finite(w);
    meet();
    tiles.put(image, w, in_turn);
}

// C's line := alpha x + beta old of the image's
__device__ inline void finish(scalar_t* to, const scalar_t* image, const Part& w, scalar_t alpha,
                              scalar_t beta, Strided<const scalar_t> old, int first)
{
    const int count = w.rows * w.n;
    if (beta != scalar_t{}) {
        for (int e = in_team(); e < count; e += MEET) {
            const int i = e / w.n;
            to[e] = plus_product(mul(beta, old(first + i, e - i * w.n)), alpha, image[e]);
        }
        return;
    }
    struct alignas(16) Pack { scalar_t x[PACK]; };
    const int before = past(to), end = count + before;
    to -= before, image -= before;
    for (int e = in_team() * PACK; e < end; e += MEET * PACK) {
        Pack pack = *reinterpret_cast<const Pack*>(image + e);
        #pragma unroll
        for (int u = 0; u < PACK; ++u) pack.x[u] = plus_product(scalar_t{}, alpha, pack.x[u]);
        if (e >= before && e + PACK <= end) {
            *reinterpret_cast<Pack*>(to + e) = pack;
        } else {
            #pragma unroll
            for (int u = 0; u < PACK; ++u)
                if (e + u >= before && e + u < end) to[e + u] = pack.x[u];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_lines(size m, size n, size k, size down, size shared, const scalar_t* A, size a_next,
           const scalar_t* B, size b_next, const scalar_t* C, size c_row, size c_col, size c_next,
           scalar_t* O, size o_next, size alpha_bits, size beta_bits, size batch)
{
    wait_for_stream();
    const size work = TEAM == 1 ? size(blockIdx.x) * TEAMS + warp() : size(blockIdx.x);
    const size member = down == 1 ? work : work / down;
    if (member >= batch) return;  // the whole team
    const int first = int(work - member * down) * ROWS;
    const Part w{A + member * a_next + first * k, B + member * b_next, min(ROWS, int(m) - first),
                 int(n), int(k)};
    const scalar_t alpha = number(alpha_bits, 0), beta = number(beta_bits, 0);
    scalar_t* const own = reinterpret_cast<scalar_t*>(dynamic_shared)
                          + (TEAM == 1 ? warp() * int(shared) : 0);
    scalar_t* const a = own + past(w.a);
    scalar_t* const slices = own + room(min(ROWS, int(m)) * w.k) + past(w.b);
    const int apart = room(min(DEEP, w.k) * w.n);
    bring(a, w.a, w.rows * w.k);
    #pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s * DEEP < w.k)
            bring(slices + s * apart, w.b + size(s) * DEEP * w.n, min(DEEP, w.k - s * DEEP) * w.n);
        end_group();
    }
    scalar_t* const o = O + member * o_next + first * n;
    scalar_t* const image = own + past(o);
    constexpr int FEWER = RN > 1 ? RN - 1 : 1;
    const int tiles = (w.n + 7) / 8 - Tiles<RN>::warp_across();  // from the warp's first on
    if (tiles > FEWER * ACROSS) multiply<RN>(w, a, slices, apart, image);
    else multiply<FEWER>(w, a, slices, apart, image);
    meet();
    finish(o, image, w, alpha, beta, matrix_of(C, c_row, c_col, c_next, member), first);
}
