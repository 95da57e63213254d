// line_products.cuh: products of members whose matrices lie by rows without gaps: the body of
// gemm_lines.cu and of symm_lines.cu.
//
// Rows then may begin anywhere in 16 bytes, or in 128, but what follows each other is one line, of
// which all copies are 16 bytes, from the last multiple before it on, and which lies in shared
// memory as it does in memory. A team of DOWN x ACROSS warps owns 16 RM DOWN rows of one member's
// C. B comes in slices, DEEP rows of it, a line, of which all but one of STAGES are on their way;
// these rows of A as a line (RESIDENT), or in slices, too, a line for each row. A warp holds RM x
// RN tiles of 16 x 8 of C in registers, as far apart as the team has warps, so that what is past
// the last column is missing from all of them alike. At the end C is put together where the slices
// were, all of the team's or a row of tiles after the other, and goes out as a line.
//
// The tensor cores multiply (tensor.cuh), single precision as three products of parts. The lanes
// t = 0 ... 3 of a group want numbers that are neighbours along k; unless ADJACENT they take those
// of the quarters of 128 bytes here: rows an odd number of numbers apart are then read from
// different banks, along k and across. Those four times an odd number apart are as neighbours,
// along k. Where rows are multiples of 16 bytes they may be PADDED: in shared memory apart, so that
// neighbours are read from different banks.
//
// What the operands are is told by a `Kind`: before the first products it completes the slices, and
// it says what the elements of A and B are where these lie in memory.
#pragma once
#include "operands.cuh"
#include "tensor.cuh"

constexpr int TEAM = DOWN * ACROSS;
#include "lines.cuh"

constexpr int TEAMS = WARPS / TEAM;
constexpr int ROWS = 16 * RM * DOWN;              // of C that a team owns
constexpr int NEXT = ADJACENT || PADDED ? 4 : 1;  // from one k of a lane to its next
constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;
constexpr int TOGETHER = RESIDENT ? RM : 1;       // rows of tiles of C that go out at once
constexpr int OUT = 16 * TOGETHER * DOWN;         // rows of C that these are
static_assert((STAGES > 1 || RESIDENT) && !(BULK && PADDED));
static_assert(WARPS % TEAM == 0 && (TEAM == 1 || TEAMS == 1));

struct Part {  // of a member's C: `rows` rows, from A's row `a` on
    const scalar_t *a, *b;
    int rows, n, k;
    const scalar_t *a_end, *b_end;  // of the arrays
};

// From a row of A, of B and of C to the next in shared memory
__host__ __device__ constexpr int pitch_of_a(int k)
{
    return RESIDENT ? row_pitch(k, 4) : slice_pitch(k);
}
__host__ __device__ constexpr int pitch_of_b(int n) { return row_pitch(n, QUARTER); }
__host__ __device__ constexpr int pitch_of_c(int n) { return row_pitch(n, 4); }

// A's rows or a slice of them at the beginning of shared memory, then one of B and what warps read
// past its last row, where no copy is under way; a_apart and b_apart: from these to the next
struct Slices {
    scalar_t *a, *b;
    int a_apart, b_apart;

    __device__ Slices(const Part& w, int rows, scalar_t* own)
    {
        const int of_a = room(rows * pitch_of_a(w.k)), pitch = pitch_of_b(w.n);
        a = own + past(w.a), b = own + of_a + past(w.b);
        b_apart = room(min(DEEP, w.k) * pitch + max(0, 8 * RN * ACROSS - pitch))
                  + (RESIDENT ? 0 : of_a);
        a_apart = RESIDENT ? 0 : b_apart;
    }
    // From column p of A and row p of B on
    __device__ void bring_from(const Part& w, int p, int stage) const
    {
        const int depth = min(DEEP, w.k - p);
        scalar_t* const to = b + stage * b_apart;
        const scalar_t* const from = w.b + size(p) * w.n;
        const bool all_of_a = RESIDENT && p == 0;
        if (!BULK) {
            bring(to, pitch_of_b(w.n), from, depth, w.n);
            if (all_of_a) bring(a, pitch_of_a(w.k), w.a, w.rows, w.k);
        } else if (in_team() == 0)
            deliver(stage, Line(to, from, depth * w.n, w.b_end),
                    all_of_a ? Line(a, w.a, w.rows * w.k, w.a_end) : Line());
        if (!RESIDENT) bring_slice(a + stage * a_apart, w.a, w.rows, w.k, p, depth);
    }
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

    // += the products of two of k, from where `a` and `b` point for this lane; so many of k are
    // `left` from there on, or ALL.
    template <bool ALL>
    __device__ void step(const scalar_t* a, const int (&from)[RM][2], const scalar_t* b, int pitch,
                         int left)
    {
        scalar_t x[RM][4], y[J][2];
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const bool there = ALL || NEXT * e < left;
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int half = 0; half < 2; ++half)
                    x[i][2 * e + half] = there ? raised(a[from[i][half] + NEXT * e])
                                               : scalar_t{};
            #pragma unroll
            for (int j = 0; j < J; ++j)
                y[j][e] = there ? raised(b[NEXT * e * pitch + 8 * ACROSS * j]) : scalar_t{};
        }
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < J; ++j) tensor_product(c[i][j], x[i], y[j]);
    }

    // += the products of `depth` of k: A's from column p of its rows on, a slice of B's
    __device__ void add(const scalar_t* a, const int (&from)[RM][2], const scalar_t* b, int pitch,
                        int depth)
    {
        b += first_column() + group();
        int k = 0;
        if (NEXT == 4) {
            a += lane(), b += lane() * pitch;
            #pragma unroll 1
            for (; k + 8 <= depth; k += 8) step<true>(a + k, from, b + k * pitch, pitch, 8);
            if (k < depth) step<false>(a + k, from, b + k * pitch, pitch, depth - k - lane());
            return;
        }
        for (; k + CHUNK <= depth; k += CHUNK)
            #pragma unroll 1
            for (int e = 0; e < QUARTER; e += 2) {
                const int mine = k + QUARTER * lane() + e;
                step<true>(a + mine, from, b + mine * pitch, pitch, CHUNK);
            }
        // Of what is left each lane takes a quarter, or two.
        const int left = depth - k;
        int quarter = QUARTER;
        while (quarter > 2 && 2 * left <= 4 * quarter) quarter /= 2;
        #pragma unroll 1
        for (int e = 0; e < quarter && left > 0; e += 2) {
            const int mine = k + quarter * lane() + e;
            step<false>(a + mine, from, b + mine * pitch, pitch, depth - mine);
        }
    }

    __device__ void end() { lower(c); }

    // f(i, j, x) for this lane's numbers that are in C, of tile rows from `first` to `last`
    template <class F> __device__ void each(const Part& w, int first, int last, F f) const
    {
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < J; ++j)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int r = row(i, e / 2), q = column(j, e);
                    if (i >= first && i < last && r < w.rows && q < w.n) f(r, q, c[i][j][e]);
                }
    }

    // Whether the parts of single precision have come to sums that are not finite
    __device__ bool any_not_finite(const Part& w) const
    {
        bool found = false;
        const real_t zero = plus_nothing(real_t(0), c);
        if (!__any_sync(0xffffffffu, zero != zero)) return found;
        each(w, 0, RM, [&](int, int, scalar_t x) { found |= !(as_one(x) - as_one(x) == 0); });
        return __any_sync(0xffffffffu, found);
    }

    // Tile rows from `first` on, TOGETHER of them, to `image`, which begins with the first's; where
    // any is not finite all one product after the other
    template <class Kind>
    __device__ void put(scalar_t* image, const Part& w, int first, bool in_turn,
                        const Kind& kind) const
    {
        const int pitch = pitch_of_c(w.n);
        image -= first * 16 * DOWN * pitch;
        if (!in_turn)
            return each(w, first, first + TOGETHER,
                        [=](int i, int j, scalar_t x) { image[i * pitch + j] = x; });
        #pragma unroll 1
        for (int e = threadIdx.x % 32; e < 128 * TOGETHER * J; e += 32) {
            const int tile = e / 128, j = 8 * (tile % J * ACROSS + warp_across()) + e % 8;
            const int i = 16 * ((first + tile / J) * DOWN + warp_down()) + e % 128 / 8;
            if (i >= w.rows || j >= w.n) continue;
            scalar_t sum{};
            #pragma unroll 1
            for (int p = 0; p < w.k; ++p)
                sum = plus_product(sum, kind.a(w, i, p), kind.b(w, p, j));
            image[i * pitch + j] = sum;
        }
    }
};

struct Answer {  // O := alpha x + beta old, of a member
    scalar_t* o;  // the first of the team's rows
    Strided<const scalar_t> old;
    int first;
    scalar_t alpha, beta;

    // `rows` rows of n from the team's row r on, of which `image` has x
    __device__ void put(const scalar_t* image, int r, int rows, int n) const
    {
        const int count = rows * n, pitch = pitch_of_c(n);
        scalar_t* to = o + r * n;
        if (abs1(beta) != 0) {
            for (int e = in_team(); e < count; e += MEET) {
                const int i = e / n, j = e - i * n;
                to[e] = plus_product(mul(beta, old(first + r + i, j)), alpha,
                                     image[PADDED ? i * pitch + j : e]);
            }
            return;
        }
        const scalar_t by = alpha;  // captured by value: through `this` it costs registers
        const auto times = [by](scalar_t x) { return plus_product(scalar_t{}, by, x); };
        send(to, image, pitch, rows, n, times);
    }
};

// The team's part of C; the first slices are on their way.
template <int J, class Kind>
__device__ void multiply(const Part& w, const Slices& slices, scalar_t* own, const Answer& answer,
                         const Kind& kind)
{
    using T = Tiles<J>;
    T tiles{};
    int from[RM][2];  // where rows of A begin; past the last one that for nothing
    #pragma unroll
    for (int i = 0; i < RM; ++i)
        #pragma unroll
        for (int half = 0; half < 2; ++half)
            from[i][half] = min(T::row(i, half), w.rows - 1) * pitch_of_a(w.k);
    int now = 0, next = AHEAD, phase = 0;
    for (int p = 0; p < w.k; p += DEEP) {
        if (!BULK || !RESIDENT) await_groups<AHEAD - 1>();
        if (BULK) await(barrier_of(now), phase);
        if (!BULK || STAGES > 1) meet();
        if (STAGES > 1) {
            if (p + AHEAD * DEEP < w.k) slices.bring_from(w, p + AHEAD * DEEP, next);
            end_group();
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        if (Kind::COMPLETES && p == 0) {
            kind.complete(w, slices);
            meet();
        }
        tiles.add(slices.a + (RESIDENT ? p : now * slices.a_apart), from,
                  slices.b + now * slices.b_apart, pitch_of_b(w.n), min(DEEP, w.k - p));
        now = now + 1 == STAGES ? 0 : now + 1;
        phase ^= now == 0;
    }
    tiles.end();
    bool in_turn = false;
    if constexpr (sizeof(real_t) == 4) in_turn = tiles.any_not_finite(w);
    scalar_t* const image = own + past(answer.o);
    #pragma unroll
    for (int i = 0; i < RM; i += TOGETHER) {
        const int r = 16 * DOWN * i;
        meet();
        tiles.put(image, w, i, in_turn, kind);
        meet();
        if (r < w.rows) answer.put(image, r, min(OUT, w.rows - r), w.n);
    }
}

template <class Kind>
__device__ void product(const Kind& kind, size m, size n, size k, size down, size shared,
                        const scalar_t* A, size a_next, const scalar_t* B, size b_next,
                        const scalar_t* C, size c_row, size c_col, size c_next, scalar_t* O,
                        size o_next, size alpha_re, size alpha_im, size beta_re, size beta_im,
                        size batch)
{
    const size work = TEAM == 1 ? size(blockIdx.x) * TEAMS + warp() : size(blockIdx.x);
    const size member = down == 1 ? work : work / down;
    if (member >= batch) return;  // the whole team
    const int first = int(work - member * down) * ROWS;
    const Part w{A + member * a_next + first * k, B + member * b_next, min(ROWS, int(m) - first),
                 int(n), int(k), A + (batch - 1) * a_next + m * k, B + (batch - 1) * b_next + k * n};
    scalar_t* const own = reinterpret_cast<scalar_t*>(dynamic_shared)
                          + (TEAM == 1 ? warp() * int(shared) : 0);
    const Slices slices(w, min(ROWS, int(m)), own);
    if (BULK) make_barriers();
    #pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s * DEEP < w.k) slices.bring_from(w, s * DEEP, s);
        end_group();
    }
    const Answer answer{O + member * o_next + first * n, matrix_of(C, c_row, c_col, c_next, member),
                        first, number(alpha_re, alpha_im), number(beta_re, beta_im)};
    constexpr int ONE_LESS = RN > 1 ? RN - 1 : 1;
    const int tiles = (w.n + 7) / 8 - Tiles<RN>::warp_across();  // from the warp's first on
    if (tiles > ONE_LESS * ACROSS) multiply<RN>(w, slices, own, answer, kind);
    else multiply<ONE_LESS>(w, slices, own, answer, kind);
}
