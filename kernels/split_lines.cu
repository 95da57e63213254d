// split_lines.cu: both operands of a product, line by line, scaled and split to pairs of half
// precision (pairs.cuh), each half in a plane of its own: one launch, one read.
//
// A line along which numbers lie side by side belongs to a team of warps, and its halves lie side
// by side, too. Lines that lie side by side themselves, LINES of them, belong to a CLUSTER of
// blocks, each with its part of k, and stay as they lie: nothing is turned. A thread has groups of
// four numbers, which wait in places of its own in shared memory, HELD of them, from the search for
// the largest of their lines to the split; more are read again. Of COMPLEX operands see
// operand_lines.cuh.
//
// That a line may have FEW numbers that are not zero (pairs.cuh) is seen from how many threads have
// zeros alone, which costs next to nothing where there are none; then all enter theirs in a list.
//
// Which numbers are lost, a bit for each, is written after the rest, by lines that have more than a
// few; where lines lie side by side each block of their cluster writes whole words, of its own part.
//
// Floor: 8 bytes an entry, read and written once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;     // of a block
constexpr int HELD = 16;     // groups of four numbers of a thread
constexpr int LINES = 32;    // side by side
constexpr int CLUSTER = 8;
constexpr int COMPLEX = 0;
#endif
#include "async.cuh"
#include "cluster.cuh"
#include "launch.cuh"
#include "operand_lines.cuh"
#include "shuffle.cuh"

constexpr int THREADS = 32 * WARPS, LANES = LINES / 4;  // threads side by side
constexpr int BLOCKS = 65536 / 64 / THREADS;  // of a multiprocessor: 64 registers to a thread
static_assert(LANES <= 32 && 32 % LANES == 0);
struct alignas(8) Halves { unsigned x[2]; };

#ifndef BLASX_SIM           // the launch says how much
extern __shared__ __align__(128) char dynamic_shared[];
#endif

// Of a line's patterns the largest, and how many threads have zeros alone
struct alignas(8) Found {
    unsigned most;
    int empty;

    __device__ void take(Found other)
    {
        most = most < other.most ? other.most : most;
        empty += other.empty;
    }
    __device__ bool finite() const { return most < 0x7f800000; }
    // Whether it may have few numbers, of so many `parts` of it that a thread may have
    __device__ bool may_be_few(int parts) const
    {
        return finite() && most > 0 && parts - empty <= FEW;
    }
};

// Of a line that may have few numbers nothing is known yet.
constexpr int NOWHERE = 0x7fffffff;
constexpr About UNKNOWN = {{0, 0, 0, 0}, 0, {NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE,
                                             NOWHERE, NOWHERE}};
static_assert(FEW == 8);
// One more: the list ends up in order whoever comes first, for each entry keeps the smallest place
// that has come by, and the others go on.
__device__ inline void enter(About& about, int place)
{
    const int before = atomicAdd(&about.few, 1);
    if (before == FEW) atomicAdd(&about.line.lost, -ONLY_FEW);
    for (int i = 0; i < FEW && before < FEW && place != NOWHERE; ++i)
        place = max(place, atomicMin(&about.places[i], place));
}

// A thread's own places in shared memory
struct Held {
    Four* mine;
    __device__ Held() : mine(reinterpret_cast<Four*>(dynamic_shared) + threadIdx.x) {}
    __device__ Four& at(size g) const { return mine[g * THREADS]; }
    __device__ void bring(const Share& share) const
    {
        #pragma unroll 4
        for (int g = 0; g < HELD; ++g)
            if (g < share.groups) share.bring(at(g), g);
        end_group();
    }
    // f(g, four numbers) for all groups
    template <class F> __device__ void each(const Share& share, F f) const
    {
        const int held = share.groups < HELD ? int(share.groups) : HELD;
        #pragma unroll 4
        for (int g = 0; g < held; ++g) f(g, at(g));
        #pragma unroll 1
        for (size g = HELD; g < share.groups; ++g) f(g, share.read(g));
    }
    // f(g, e) for number e of group g where it is not zero; of complex ones e is even
    template <class F> __device__ void each_but_zeros(const Share& share, F f) const
    {
        const auto some = [&](int g, int e) {
            return (g < HELD ? at(g).x[e] : share.X[g * share.next + e * share.step]) != 0;
        };
        #pragma unroll 1
        for (int g = 0; g < int(share.groups); ++g)
            #pragma unroll 1
            for (int e = 0; e < share.count(g); e += 1 + COMPLEX)
                if (some(g, e) || (COMPLEX && some(g, e + 1))) f(g, e);
    }
};

// Of numbers' patterns the largest, and the smallest that is not zero less 1
struct Range {
    unsigned most = 0, least = ~0u;

    __device__ void take(float x)
    {
        const unsigned u = pattern(x);
        most = most < u ? u : most;
        least = least < u - 1 ? least : u - 1;
    }
    __device__ void take(Range other)
    {
        most = most < other.most ? other.most : most;
        least = least < other.least ? least : other.least;
    }
    __device__ bool may_lose(Scale scale) const
    {
        return least != ~0u && scale.of(__int_as_float(int(least + 1))) < NONE_LOST;
    }
};

// Numbers whose pairs are not good, a bit for each
__device__ inline unsigned lost_of(const Four& v, Scale scale)
{
    unsigned lost = 0;
    #pragma unroll
    for (int e = 0; e < 4; ++e) lost |= unsigned(is_lost(scale.of(v.x[e]), v.x[e])) << e;
    return lost;
}

// Marks those of a line of which a warp has numbers from `first` on, 128 side by side, each time
// `stride` further on
__device__ inline void mark_lost(const Held& held, const Share& share, Scale scale, unsigned* bits,
                                 size k, size first, size stride)
{
    const int lane = threadIdx.x % 32;
    const size end = 64 * lost_words(k);
    #pragma unroll 1
    for (size g = 0, p = first; p - 4 * lane < k; ++g, p += stride) {
        unsigned word = 0;
        if (g < share.groups) word = lost_of(g < HELD ? held.at(g) : share.read(g), scale);
        word <<= 4 * (lane % 8);
        for (int mask = 1; mask < 8; mask *= 2) word |= across(word, mask);
        if (lane % 8 == 0 && p < end) bits[p / 32] = word;
    }
}

__device__ inline void store(unsigned short* to, size plane, Pair a, Pair b)
{
    *reinterpret_cast<Halves*>(to) = {a.high, b.high};
    *reinterpret_cast<Halves*>(to + plane) = {a.low, b.low};
}

// -- of complex numbers, whose two parts share a word

constexpr unsigned REAL = 0x8000, IMAGINARY = 0x80000000;  // their signs
__device__ inline Pair negated(Pair p, unsigned parts) { return {p.high ^ parts, p.low ^ parts}; }
__device__ inline unsigned swapped(unsigned x) { return x >> 16 | x << 16; }
__device__ inline Pair swapped(Pair p) { return {swapped(p.high), swapped(p.low)}; }
__device__ inline unsigned reals(unsigned x, unsigned y) { return (x & 0xffff) | y << 16; }
__device__ inline unsigned imaginaries(unsigned x, unsigned y)
{
    return x >> 16 | (y & 0xffff0000u);
}

__device__ inline void store_along(const Operand& of, unsigned short* to, size plane, Pair a,
                                   Pair b)
{
    if (COMPLEX && of.how & CONJUGATED) a = negated(a, IMAGINARY), b = negated(b, IMAGINARY);
    if (of.twice()) {
        store(to + of.room, plane, swapped(a), swapped(b));
        a = negated(a, IMAGINARY), b = negated(b, IMAGINARY);
    }
    store(to, plane, a, b);
}
__device__ inline void store_across(const Operand& of, unsigned short* to, size plane, Pair a,
                                    Pair b)
{
    if (COMPLEX && of.how & CONJUGATED) a = negated(a, IMAGINARY), b = negated(b, IMAGINARY);
    if (!COMPLEX || of.twice()) store(to, plane, a, b);
    if (of.twice())
        store(to + of.room, plane, negated(swapped(a), REAL), negated(swapped(b), REAL));
    if (COMPLEX && !of.twice())
        for (int part = 0; part < 2; ++part, to += of.room) {
            const auto both = part ? imaginaries : reals;
            *reinterpret_cast<unsigned*>(to) = both(a.high, b.high);
            *reinterpret_cast<unsigned*>(to + plane) = both(a.low, b.low);
        }
}

// Lines of WARPS / team teams, the first `line`
__device__ inline void split_along(const Operand& of, size line)
{
    __shared__ Found of_warp[WARPS];
    __shared__ float sums[WARPS];   // of sizes
    __shared__ About about[WARPS];  // of the lines
    const int warp = threadIdx.x / 32, team = int(of.team), own = warp / team;
    const size stride = 128 * team, first = 4 * (threadIdx.x % (32 * team));
    line += own;
    const bool there = line < of.lines;
    const Share share{of.X + line * of.next + first * of.step, stride * of.step, of.step,
                      there && first < of.k ? (of.k - first + stride - 1) / stride : 0,
                      of.k - first, stride,
                      of.step == 1 && (size(of.X) | 4 * of.next) % 16 == 0};
    const Held held;
    held.bring(share);
    if (threadIdx.x < WARPS) about[threadIdx.x] = UNKNOWN;
    await_groups<0>();
    Range range;
    held.each(share, [&](size, const Four& v) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) range.take(v.x[e]);
    });
    const unsigned largest = __reduce_max_sync(ALL, range.most);
    const int empty = __popc(__ballot_sync(ALL, range.most == 0));
    if (threadIdx.x % 32 == 0) of_warp[warp] = {largest, empty};
    __syncthreads();
    Found found{};
    for (int w = own * team; w < (own + 1) * team; ++w) found.take(of_warp[w]);
    const bool finite = found.finite(), may_be_few = found.may_be_few(32 * team);
    const int exponent = scale_of(found.most);
    const Scale scale(exponent);
    const int copies = 1 + of.twice();
    unsigned short* const to = of.pairs + copies * line * of.room + first;
    float sum = 0;
    held.each(share, [&](size g, const Four& v) {
        float x[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) x[e] = scale.of(finite ? v.x[e] : 0);
        sum += fabsf(x[0]) + fabsf(x[1]) + (fabsf(x[2]) + fabsf(x[3]));
        store_along(of, to + g * stride, copies * of.lines * of.room, pairs_of(x[0], x[1]),
                    pairs_of(x[2], x[3]));
    });
    for (int step = 16; step; step /= 2) sum += across(sum, step);
    if (threadIdx.x % 32 == 0) sums[warp] = sum;
    if (finite && range.may_lose(scale)) {
        int lost = 0;
        held.each(share, [&](size, const Four& v) { lost += __popc(lost_of(v, scale)); });
        if (lost) atomicAdd(&about[own].line.lost, lost);
    }
    if (may_be_few)
        held.each_but_zeros(share, [&](int g, int e) {
            enter(about[own], (int(first) + g * int(stride) + e) / (1 + COMPLEX));
        });
    __syncthreads();
    if (there && (about[own].line.lost & (ONLY_FEW - 1)) > UNMARKED)
        mark_lost(held, share, scale, lost_bits(of.about, copies * of.lines, of.k, line), of.k,
                  first, stride);
    if (there && threadIdx.x % (32 * team) == 0) {
        About mine = about[own];
        const Line known = line_of(exponent);
        mine.line.down = known.down;
        mine.line.rest = known.rest;
        mine.line.lost = finite ? mine.line.lost + may_be_few * ONLY_FEW : NOT_FINITE;
        for (int w = 1; w < team; ++w) sum += sums[warp + w];
        mine.line.sizes = sizes_of(sum);
        for (int i = 0; i < copies; ++i) of.about[copies * line + i] = mine;
    }
}

// LINES from `line` on, side by side, by a cluster of which this is block `rank`
__device__ inline void split_across(const Operand& of, size line, int rank)
{
    __shared__ Found found[LINES], all[LINES];
    __shared__ int gone[LINES], some_may_be_few;
    __shared__ float sums[WARPS][LINES];  // of sizes
    constexpr int ROWS = THREADS / LANES;
    constexpr int EACH = 1 + COMPLEX;  // lines along the planes that a k becomes; parts of a number
    const int col = 4 * (threadIdx.x % LANES), row = threadIdx.x / LANES;
    const size part = (of.k + 32 * CLUSTER - 1) / (32 * CLUSTER) * 32, end = (rank + 1) * part;
    const size from = rank * part + row, to = end < of.k ? end : of.k;
    const size there = of.lines - line - col;
    const Share share{of.X + (line + col) * of.next + from * of.step, ROWS * of.step, of.next,
                      there > 0 && from < to ? (to - from + ROWS - 1) / ROWS : 0, there, 0,
                      of.next == 1 && (size(of.X) | 4 * of.step) % 16 == 0};
    const Held held;
    held.bring(share);
    const int parts = COMPLEX && !of.twice() ? 2 : 1;  // side by side, of one line of pairs
    for (int i = threadIdx.x; i < LINES; i += THREADS) {
        found[i] = {};
        gone[i] = 0;
        if (rank == 0 && line + i < of.lines) of.about[(line + i) / parts] = UNKNOWN;
    }
    if (threadIdx.x == 0) some_may_be_few = 0;
    __syncthreads();
    await_groups<0>();
    Range range[4];
    held.each(share, [&](size, const Four& v) {
        #pragma unroll
        for (int e = 0; e < 4; ++e) range[e].take(v.x[e]);
    });
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        unsigned largest = range[e].most;
        #pragma unroll
        for (int mask = LANES; mask < 32; mask *= 2) {
            const unsigned other = across(largest, mask);
            largest = largest < other ? other : largest;
        }
        if (threadIdx.x % 32 < LANES) atomicMax(&found[col + e].most, largest);
        if (range[e].most == 0) atomicAdd(&found[col + e].empty, 1);
    }
    // Of a complex line a thread may have found both parts of one number
    const auto may_be_few = [](const Found& line) {
        return line.may_be_few((1 + COMPLEX) * ROWS * CLUSTER - COMPLEX * FEW);
    };
    meet_cluster<CLUSTER>();
    for (int i = threadIdx.x; i < LINES; i += THREADS) {
        Found of_all{};
        #pragma unroll
        for (int b = 0; b < CLUSTER; ++b) {
            of_all.take(in_cluster<CLUSTER>(found[i], b));
            if (COMPLEX) of_all.take(in_cluster<CLUSTER>(found[i ^ 1], b));
        }
        all[i] = of_all;
        if (may_be_few(of_all)) some_may_be_few = 1;
    }
    // Both parts of a number have theirs side by side
    unsigned* const bits = lost_bits(of.about, of.lines / parts, EACH * of.k, line / EACH);
    const int words = int(2 * lost_words(EACH * of.k)), before = rank * EACH * int(part / 32);
    const int past = EACH * int(end / 32);
    const int mine = (rank + 1 < CLUSTER && past < words ? past : words) - before;
    for (int w = threadIdx.x; w < LINES / EACH * mine; w += THREADS)
        if (line + EACH * (w / mine) < of.lines) bits[w / mine * words + before + w % mine] = 0;
    __syncthreads();  // what was read of other blocks has come: it is in `all`
    done_in_cluster<CLUSTER>();
    Scale scale[4];
    bool finite[4];
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        scale[e] = Scale(scale_of(all[col + e].most));
        finite[e] = all[col + e].finite();
    }
    unsigned short* const place = of.pairs + EACH * from * of.room + (line + col) / parts;
    float sum[4] = {};
    held.each(share, [&](size g, const Four& v) {
        float x[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            x[e] = scale[e].of(finite[e] ? v.x[e] : 0);
            sum[e] += fabsf(x[e]);
        }
        store_across(of, place + g * EACH * ROWS * of.room, EACH * of.k * of.room,
                     pairs_of(x[0], x[1]), pairs_of(x[2], x[3]));
    });
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        for (int mask = LANES; mask < 32; mask *= 2) sum[e] += across(sum[e], mask);
        if (threadIdx.x % 32 < LANES) sums[threadIdx.x / 32][col + e] = sum[e];
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        if (finite[e] && range[e].may_lose(scale[e])) {
            int lost = 0;
            held.each(share, [&](size g, const Four& v) {
                if (!is_lost(scale[e].of(v.x[e]), v.x[e])) return;
                ++lost;
                const size p = EACH * (from + g * ROWS) + e % EACH;
                atomicOr(bits + words * ((col + e) / EACH) + p / 32, 1u << p % 32);
            });
            if (lost) atomicAdd(&gone[col + e], lost);
        }
    if (some_may_be_few)
        held.each_but_zeros(share, [&](int g, int e) {
            if (!may_be_few(all[col + e])) return;
            for (int i = 0; i < 1 + of.twice(); ++i)
                enter(of.about[(line + col + e) / parts + i], int(from) + g * ROWS);
        });
    __syncthreads();
    for (int i = threadIdx.x; i < LINES && line + i < of.lines; i += THREADS) {
        if (i % parts) continue;
        Line* const about = &of.about[(line + i) / parts].line;
        int lost = gone[i] + (COMPLEX ? gone[i ^ 1] : 0);
        float sizes = 0;
        for (int w = 0; w < WARPS; ++w)
            sizes += sums[w][i] + (COMPLEX ? sums[w][i ^ 1] : 0);
        if (rank == 0) {
            const Line known = line_of(scale_of(all[i].most));
            about->down = known.down;
            about->rest = known.rest;
            if (may_be_few(all[i])) lost += ONLY_FEW;
            if (!all[i].finite()) lost = NOT_FINITE;
        }
        if (lost) atomicAdd(&about->lost, lost);
        atomicAdd(&about->sizes, sizes_of(sizes));
    }
    await_all_done<CLUSTER>();
}

__device__ inline void split_operand(Operand of, unsigned block)
{
    if (COMPLEX && of.team) of.k *= 2;
    if (COMPLEX && !of.team) of.lines *= 2;
    if (of.team) split_along(of, size(block) * (WARPS / of.team));
    else split_across(of, size(block / CLUSTER) * LINES, block % CLUSTER);
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, BLOCKS)
split_lines(size blocks, const float* A, size m, size k, size a_next, size a_step, size a_team,
            size a_how, unsigned short* a_pairs, size a_room, About* a_about, const float* B, size n,
            size b_next, size b_step, size b_team, size b_how, unsigned short* b_pairs, size b_room,
            About* b_about, const unsigned* asked)
{
    wait_for_stream();
    if (asked && !*asked) return;
    const bool left = blockIdx.x < blocks;  // which operand: one text for both
    split_operand({left ? A : B, left ? m : n, k, left ? a_next : b_next, left ? a_step : b_step,
                   left ? a_team : b_team, left ? a_how : b_how, left ? a_pairs : b_pairs,
                   left ? a_room : b_room, left ? a_about : b_about},
                  blockIdx.x - (left ? 0 : unsigned(blocks)));
}
