// syrk_lines.cu: C := alpha A A^T, or alpha A A^H, of every member of a batch whose matrices lie by
// rows without gaps, of lengths that are no multiple of 128 bytes but where they are PADDED. One
// triangle of C is that, the other zero; what C was is neither read nor kept.
//
// As in gemm_lines.cu what lies without gaps is one line (lines.cuh). A team of TEAM warps owns a
// member. A comes as a whole, a line, or in slices of DEEP of its columns, a line for each row, of
// which all but one of STAGES are on their way. Its rows are TEAM groups of 16 RM, in a circle: a
// warp holds the products of its own group with itself, but for tiles below the diagonal, and with
// the groups after it, half the way round, tiles of 16 x 8 in registers. So any two groups meet
// once, and all warps do the same; if the groups are even, those half the way round are for the
// first half of the warps. Rows of A are columns of A^T, too: for its group with itself a warp loads
// them once. At the end C is put together where A was, each product with the zero of its mirror
// image, as many rows as there is room for after the other, and goes out as a line.
//
// The tensor cores multiply (tensor.cuh), single precision as three products of parts. The lanes
// t = 0 ... 3 of a group want numbers that are neighbours along k. They are given others, so that
// those of eight rows are read from different banks: where rows are an odd number of numbers apart,
// those at the quarters of 128 bytes; twice an odd number, ADJACENT = 2: two and two neighbours, at
// the halves; four times, ADJACENT = 4, or PADDED: neighbours.
//
// k > 0. The floor is n (k + n) elements a member, and n (n + 1) k operations.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int TEAM = 1;              // warps of a member; of a team of one a block has WARPS
constexpr int RM = 3;                // tiles of a group, one below the other
constexpr int DEEP = 64;             // of k in a slice
constexpr int STAGES = 1;            // slices in shared memory; 1: there is one in all, A
constexpr int ADJACENT = 0;          // of k the lanes of a group that take neighbours; 0: none do
constexpr int PADDED = 0;            // 1: rows are apart in shared memory (lines.cuh)
constexpr int BULK = 0;              // 1: the hardware brings A as a whole (lines.cuh)
constexpr int BLOCKS = 1;            // per multiprocessor for which registers are rationed
#endif
#include "launch.cuh"
#include "lines.cuh"
#include "operands.cuh"
#include "tensor.cuh"

constexpr int TEAMS = WARPS / TEAM;
constexpr int SIDE = 16 * RM, ACROSS = 2 * RM;    // rows of a group, and tiles that are as wide
constexpr int MET = TEAM / 2 + 1;                 // groups half the way round the circle
constexpr int AHEAD = STAGES > 1 ? STAGES - 1 : 1;
constexpr int NEAR = PADDED ? 4 : ADJACENT ? ADJACENT : 1;  // lanes side by side
constexpr int APART = 4 / NEAR;                             // such groups
static_assert(WARPS % TEAM == 0 && (TEAM == 1 || TEAMS == 1) && !(BULK && (STAGES > 1 || PADDED)));

struct Member {
    const scalar_t* a;  // n x k
    int n, k;
    bool hermitian;
    const scalar_t* end;  // of the array
};

// Slices of A in the team's shared memory, or all of it
struct Slices {
    scalar_t* a;
    int apart;

    __device__ Slices(const Member& w, scalar_t* own)
        : a(own + past(w.a)), apart(room(w.n * slice_pitch(w.k))) {}
    static __device__ int pitch(const Member& w)
    {
        return STAGES > 1 ? slice_pitch(w.k) : row_pitch(w.k, 4);
    }
    static __device__ int deep(const Member& w) { return STAGES > 1 ? DEEP : w.k; }
    // From column p of A on
    __device__ void bring_from(const Member& w, int p, int stage) const
    {
        if (STAGES > 1) bring_slice(a + stage * apart, w.a, w.n, w.k, p, min(DEEP, w.k - p));
        else if (!BULK) bring(a, pitch(w), w.a, w.n, w.k);
        else if (in_team() == 0) deliver(stage, Line(a, w.a, w.n * w.k, w.end), Line());
    }
};

// Where the rows that a lane reads begin; past the last one that for nothing
struct Rows {
    int own[RM][2], met[MET][ACROSS];
};

struct Answer {  // of a member
    scalar_t* o;
    bool lower;
    scalar_t alpha;
};

// The products of a warp's group with itself, which is WIDE tiles, and with those that it meets
template <int WIDE> struct Tiles {
    scalar_t c[MET][RM][ACROSS][4];

    static __device__ int eighth() { return threadIdx.x % 32 / 4; }
    static __device__ int lane() { return threadIdx.x % 4; }
    static __device__ int group() { return TEAM == 1 ? 0 : threadIdx.x / 32; }
    static __device__ int met(int b) { return (group() + b) % TEAM; }
    // Whether group b of those met is this warp's, and not the one's that meets it there
    static __device__ bool ours(int b) { return 2 * b < TEAM || group() < b; }
    // Whether there is this tile of group b
    static __device__ constexpr bool has(int b, int i, int j)
    {
        return b > 0 || (2 * i <= j && j < WIDE);
    }
    static __device__ int row(int i, int half)
    {
        return SIDE * group() + 16 * i + 8 * half + eighth();
    }
    static __device__ int column(int b, int j, int e)
    {
        return SIDE * met(b) + 8 * j + 2 * lane() + e % 2;
    }

    static __device__ Rows rows(const Member& w)
    {
        Rows begin;
        const int pitch = Slices::pitch(w);
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                begin.own[i][half] = min(row(i, half), w.n - 1) * pitch;
        #pragma unroll
        for (int b = 1; b < MET; ++b)
            #pragma unroll
            for (int j = 0; j < ACROSS; ++j)
                begin.met[b][j] = min(SIDE * met(b) + 8 * j + eighth(), w.n - 1) * pitch;
        return begin;
    }

    // += the products of two of k, from where `a` points for this lane; so many of k are `left` from
    // there on, or ALL.
    template <bool ALL>
    __device__ void step(const scalar_t* a, const Rows& begin, bool hermitian, int left)
    {
        scalar_t x[RM][4];
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int half = 0; half < 2; ++half)
                    x[i][2 * e + half] = 2 * i + half < WIDE && (ALL || NEAR * e < left)
                        ? raised(a[begin.own[i][half] + NEAR * e]) : scalar_t{};
        #pragma unroll
        for (int b = 0; b < MET; ++b) {
            if (!ours(b)) continue;
            #pragma unroll
            for (int j = 0; j < ACROSS; ++j) {
                scalar_t y[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (b == 0) y[e] = x[j / 2][2 * e + j % 2];
                    else y[e] = ALL || NEAR * e < left ? raised(a[begin.met[b][j] + NEAR * e])
                                                       : scalar_t{};
                    y[e] = turned(y[e], hermitian);
                }
                #pragma unroll
                for (int i = 0; i < RM; ++i)
                    if (has(b, i, j)) tensor_product(c[b][i][j], x[i], y);
            }
        }
    }

    // += the products of `depth` of k
    __device__ void add(const scalar_t* a, const Rows& begin, bool hermitian, int depth)
    {
        const int which = lane() / NEAR, place = lane() % NEAR;
        int part = CHUNK / APART, k = 0;
        for (; k + CHUNK <= depth; k += CHUNK)
            #pragma unroll 1
            for (int e = 0; e < CHUNK / APART; e += 2 * NEAR)
                step<true>(a + k + part * which + place + e, begin, hermitian, CHUNK);
        // What is left is divided likewise, in parts as small as hold it.
        const int left = depth - k;
        while (part > 2 * NEAR && part * APART >= 2 * left) part /= 2;
        #pragma unroll 1
        for (int e = 0; e < min(part, left); e += 2 * NEAR) {
            const int mine = k + part * which + place + e;
            step<false>(a + mine, begin, hermitian, depth - mine);
        }
    }

    __device__ void end() { lower(c); }

    // f(b, i, j, x) for this lane's numbers of group b of those met that are in C, each pair of rows
    // once
    template <class F> __device__ void each(int n, F f) const
    {
        #pragma unroll
        for (int b = 0; b < MET; ++b)
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int j = 0; j < ACROSS; ++j)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int r = row(i, e / 2), q = column(b, j, e);
                        if (has(b, i, j) && r < n && q < n && (b == 0 ? r <= q : ours(b)))
                            f(b, r, q, c[b][i][j][e]);
                    }
    }

    // Whether the parts of single precision have come to sums that are not finite
    __device__ bool any_not_finite(int n) const
    {
        const real_t zero = plus_nothing(real_t(0), c);
        bool found = false;
        if (!__any_sync(0xffffffffu, zero != zero)) return found;
        each(n, [&](int, int, int, scalar_t x) { found |= !(as_one(x) - as_one(x) == 0); });
        return __any_sync(0xffffffffu, found);
    }

    // To `image`, `count` rows of C from `first` on; where any is not finite all one product after
    // the other
    __device__ void put(scalar_t* image, const Member& w, const Answer& answer, int first,
                        int count, bool in_turn) const
    {
        const int n = w.n, pitch = row_pitch(n, 4);
        image -= first * pitch;
        const auto store = [=, &w, &answer](int row, int column, scalar_t x, bool diagonal) {
            if (unsigned(row - first) < unsigned(count)) {
                const bool is_real = w.hermitian && diagonal;
                x = plus_product(scalar_t{}, answer.alpha, is_real ? real_part(x) : x);
                image[row * pitch + column] = is_real ? real_part(x) : x;
            }
            if (!diagonal && unsigned(column - first) < unsigned(count))
                image[column * pitch + row] = scalar_t{};
        };
        // x is the product of rows r and q; below the diagonal or above, it is wanted so or mirrored
        const auto put_one = [=, &w, &answer](int b, int r, int q, scalar_t x) {
            const bool below = b > 0 && group() + b >= TEAM, diagonal = b == 0 && r == q;
            if (below == answer.lower) store(r, q, x, diagonal);
            else store(q, r, turned(x, w.hermitian), diagonal);
        };
        if (!in_turn) return each(n, put_one);
        #pragma unroll 1
        for (int e = threadIdx.x % 32; e < MET * SIDE * SIDE; e += 32) {
            const int b = e / (SIDE * SIDE), r = SIDE * group() + e / SIDE % SIDE;
            const int q = SIDE * met(b) + e % SIDE;
            if (r >= n || q >= n || (b == 0 ? r > q : !ours(b))) continue;
            scalar_t sum{};
            #pragma unroll 1
            for (int p = 0; p < w.k; ++p)
                sum = plus_product(sum, w.a[r * w.k + p], turned(w.a[q * w.k + p], w.hermitian));
            put_one(b, r, q, sum);
        }
    }
};

// The team's member; the first slices are on their way to `own`, where it has `shared` numbers.
template <int WIDE>
__device__ void multiply(const Member& w, const Slices& slices, scalar_t* own, int shared,
                         const Answer& answer)
{
    using T = Tiles<WIDE>;
    T tiles{};
    const Rows begin = T::rows(w);
    int now = 0, next = AHEAD;
    for (int p = 0; p < w.k; p += Slices::deep(w)) {
        if (BULK) await(barrier_of(0), 0);
        else await_groups<AHEAD - 1>(), meet();
        if (STAGES > 1) {
            if (p + AHEAD * DEEP < w.k) slices.bring_from(w, p + AHEAD * DEEP, next);
            end_group();
            next = next + 1 == STAGES ? 0 : next + 1;
        }
        tiles.add(slices.a + now * slices.apart, begin, w.hermitian,
                  min(Slices::deep(w), w.k - p));
        now = now + 1 == STAGES ? 0 : now + 1;
    }
    tiles.end();
    bool in_turn = false;
    if constexpr (sizeof(real_t) == 4) in_turn = tiles.any_not_finite(w.n);
    const int pitch = row_pitch(w.n, 4), together = min(w.n, (shared - PACK + 1) / pitch);
    #pragma unroll 1
    for (int first = 0; first < w.n; first += together) {
        scalar_t* const to = answer.o + first * w.n;
        const int count = min(together, w.n - first);
        meet();
        tiles.put(own + past(to), w, answer, first, count, in_turn);
        meet();
        send(to, own + past(to), pitch, count, w.n, [](scalar_t x) { return x; });
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
syrk_lines(size n, size k, size shared, size lower, size hermitian, const scalar_t* A, size a_next,
           scalar_t* O, size o_next, size alpha_re, size alpha_im, size batch)
{
    wait_for_stream();
    const size member = TEAM == 1 ? size(blockIdx.x) * TEAMS + warp() : size(blockIdx.x);
    if (member >= batch) return;  // the whole team
    const Member w{A + member * a_next, int(n), int(k), hermitian != 0,
                   A + (batch - 1) * a_next + n * k};
    scalar_t* const own = reinterpret_cast<scalar_t*>(dynamic_shared)
                          + (TEAM == 1 ? warp() * int(shared) : 0);
    const Slices slices(w, own);
    if (BULK) make_barriers();
    #pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s * DEEP < w.k) slices.bring_from(w, s * DEEP, s);
        end_group();
    }
    const Answer answer{O + member * o_next, lower != 0, number(alpha_re, alpha_im)};
    if (TEAM > 1 || w.n > 8 * (ACROSS - 1)) multiply<ACROSS>(w, slices, own, shared, answer);
    else if constexpr (TEAM == 1) multiply<ACROSS - 1>(w, slices, own, shared, answer);
}
