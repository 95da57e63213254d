// gemm_wgmma.cu: C := alpha A B^T + beta C in single precision by the tensor cores of Hopper, from
// lines of A and of B that are sums of pairs of half precision (pairs.cuh).
//
// A block has a multiprocessor to itself and takes tiles of C in turn, 64 GROUPS rows and BN
// columns. The first four of its warps are the producer, of which one thread asks for boxes: both
// parts of 64 of k of the tile's lines, STAGES of them under way, and those of the next tile while
// this one is stored. A group of four warps each multiplies 64 rows: low high + high low + high
// high of a stage, 3 products for 1, in registers. Groups begin in turn, so that one adds while
// another multiplies.
//
// The tensor cores cut off what does not fit a sum of 25 bits, so after 64 of k what they have is
// added to a sum of a few such parts, rounded; EACH of them are added to the sums of the tile, and
// the rounding's error, exactly known (Kahan), is what the next few start from. What is left is the
// tensor cores' error in 64 of k, and the rounding of sums that are a small part of the whole.
//
// With x' and y' what pairs have of the scaled lines x and y of an element, it lacks
//
//     sum x y - x' y' = sum (x - x') y + sum x' (y - y'),
//
// of which what was not lost makes no more than 2^-22 of a term. A number that was lost is off by
// 2^-25 at most, so that lost numbers of x take from the first sum at most 2^-25 min(2^TOP count of
// them, sum |y|), and those of y as much from the second (pairs.cuh). An element 2^21 times as large
// as both is good to 2^-21 |C| <= 2^-21 |A| |B|. Of the others few are harmed, but only where numbers
// were lost can that be seen, and who looks there may as well add what is lacking: an element is
// mended, by its warp, from these numbers alone, where no more than one in RARE was lost.
//
// The rest, and elements of lines that are not finite, are computed again from A and B, in double
// precision: one by one, all lanes along k, or, where that is more than ONE_BY_ONE for a warp, all
// of its group's tile by the tensor cores. Those that have a line with FEW numbers are made of these,
// each by its lane: so A times a permutation is that of A.
//
// Whatever the numbers and k, an element is off by less than 145 2^-25 |A| |B| = 4.3e-6: by 24 for
// pairs, 84 for four products of high parts of 16 of k, of which each cuts off 17 terms at 2^-25 of
// the largest and their sum at 2^-23, 20 for what is rounded, EACH of 8, and 16 for numbers lost.
//
// HALF_OF_C: of C that half (strips.cuh), nothing else is touched. BIAS: beta is of a number for each
// column, in place of C.
//
// HIGH_ONLY: one product of half precision for those who asked for no more: good is what is good to
// 2^-11, and of a number that is not lost the high part is, however few there are. Sums are added to
// those of the tile after EACH times 64 of k only, and no group waits for another's turn.
//
// Floor: 6 m n k operations of the tensor cores at 990 Tflop/s, or what 700 W allow, 216 to 247
// Tflop/s of 2 m n k; a third of it for HIGH_ONLY, and 8 bytes an element of C that is not new.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int GROUPS = 2;   // of four warps that multiply
constexpr int BN = 128;     // columns of a tile
constexpr int STAGES = 3;   // in shared memory
constexpr int EACH = 8;     // parts of 64 of k that are added before the sums of the tile are
constexpr int WIDE = 16;    // tiles of rows that follow each other before the next tile of columns
// An element is mended if of k numbers its two lines lost k / RARE, and counts as one of MENDED then
constexpr int ONE_BY_ONE = 8, RARE = 8, MENDED = 6;
constexpr int A_ACROSS = 0, B_ACROSS = 0;  // 1: its lines lie side by side
constexpr int COMPLEX = 0;  // 1: what are multiplied are parts of complex numbers
constexpr int HIGH_ONLY = 0;  // 1: the high parts of both, their product alone
constexpr int BIAS = 0;     // 1: columns have one
constexpr int HALF_OF_C = 0;  // 1: elements not right of the diagonal, 2: not left of it
#endif
#include "async.cuh"
#include "hopper.cuh"
#include "launch.cuh"
#include "operand_lines.cuh"
#include "shuffle.cuh"
#include "strips.cuh"
#include "tensor.cuh"

constexpr int BM = 64 * GROUPS, BK = TILE_ROW / 2, SUMS = BN / 2;
// Where all of a group's tile is computed again: of k at a time, and slices of so many numbers of 64
// rows and columns
constexpr int DEEP = 8, SLICES = 4, SLICE = 128 * DEEP;
constexpr int NOT_A_NUMBER = 0x7fffffff;
constexpr int WORDS = SUMS / 32;  // of bits, one for each sum
constexpr int PARTS = HIGH_ONLY ? 1 : 2;
constexpr unsigned PART_A = BM * TILE_ROW, PART_B = BN * TILE_ROW;
constexpr unsigned STAGE = PARTS * (PART_A + PART_B);
// Registers of a thread at the start, of a producer's, and of one that multiplies: of 65536 for all
constexpr int AT_START = 512 / (GROUPS + 1) / 8 * 8, GIVEN = 24;
constexpr int LEFT = ((GROUPS + 1) * AT_START - GIVEN) / GROUPS / 8 * 8;
constexpr int TAKEN = LEFT < 240 ? LEFT : 240;

// Of C, in strips WIDE tiles high, along which blocks that run at a time share lines
using Tiles = Strips<BM, BN / (1 + COMPLEX)>;

// The ring's position: a stage and the phase of its barriers
struct Place {
    unsigned stage, phase;
    __device__ void next()
    {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
};

// Both parts of `lines` lines and BK of k: one box, or, where they lie side by side, a box for each
// 64 of them
template <int ACROSS, int LINES>
__device__ void load_lines(unsigned to, const TensorMap& X, unsigned full, int k, int line)
{
    if (!ACROSS) return load_box(to, X, full, k, line, 0);
    #pragma unroll
    for (int l = 0; l < LINES; l += 64)
        load_box(to + PARTS * l * TILE_ROW, X, full, line + l, k, 0);
}
// The parts of the lines from `first` on
template <int ACROSS, int LINES> struct Parts {
    word high, low;
    __device__ Parts(unsigned at, int first)
        : high(tile_at<ACROSS>(at + first * TILE_ROW * (ACROSS ? PARTS : 1),
                               PARTS * 64 * TILE_ROW)),
          low(high + ((ACROSS ? 64 : LINES) * TILE_ROW >> 4))
    {}
};

__device__ inline void produce(const TensorMap& A, const TensorMap& B, Tiles tiles, int chunks,
                               unsigned shared, unsigned full, unsigned empty)
{
    Place at{0, 0};
    for (int tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
        int i, j;
        if (!tiles.place(tile, i, j)) continue;
        for (int c = 0; c < chunks; ++c, at.next()) {
            await(empty + 8 * at.stage, at.phase ^ 1);
            expect(full + 8 * at.stage, STAGE);
            const unsigned to = shared + at.stage * STAGE;
            load_lines<A_ACROSS, BM>(to, A, full + 8 * at.stage, c * BK, i * BM);
            load_lines<B_ACROSS, BN>(to + PARTS * PART_A, B, full + 8 * at.stage, c * BK, j * BN);
        }
    }
}

// sums += A B^T, or sums := A B^T, for product `step` of a stage
template <int fresh> __device__ void products(float (&sums)[SUMS], word a, word b, int step)
{
    multiply<fresh, A_ACROSS, B_ACROSS>(sums, a + step * ONE_PRODUCT<A_ACROSS>,
                                        b + step * ONE_PRODUCT<B_ACROSS>, half());
}

// sums := A B^T for the 64 rows of a group
__device__ inline void multiply_tile(float (&sums)[SUMS], Place& at, int chunks, int group,
                                     unsigned shared, unsigned full, unsigned empty)
{
    float part[SUMS], few[SUMS];
    #pragma unroll
    for (int e = 0; e < SUMS; ++e) sums[e] = part[e] = few[e] = 0;
    for (int c = 0; c < chunks; ++c, at.next()) {
        await(full + 8 * at.stage, at.phase);
        const unsigned from = shared + at.stage * STAGE;
        const Parts<A_ACROSS, BM> a(from, 64 * group);
        const Parts<B_ACROSS, BN> b(from + PARTS * PART_A, 0);
        wait_turn(group);
        keep(part);
        begin_products();
        products<FRESH>(part, a.low, b.high, 0);
        #pragma unroll
        for (int p = 1; p < 4; ++p) products<0>(part, a.low, b.high, p);
        #pragma unroll
        for (int p = 0; p < 4; ++p) products<0>(part, a.high, b.low, p);
        #pragma unroll
        for (int p = 0; p < 4; ++p) products<0>(part, a.high, b.high, p);
        end_products();
        give_turn(group + 1 < GROUPS ? group + 1 : 0);
        await_products<0>();
        keep(part);
        if (threadIdx.x % 128 == 0) arrive(empty + 8 * at.stage);
        #pragma unroll
        for (int e = 0; e < SUMS; ++e) few[e] += part[e];
        if (c % EACH != EACH - 1 && c != chunks - 1) continue;
        #pragma unroll
        for (int e = 0; e < SUMS; ++e) {
            const float step = sums[e] + few[e] - sums[e];  // exact, but for early large ones
            few[e] -= step;
            sums[e] += step;
        }
    }
}

// The same by the high parts; one stage is multiplied while the next is asked for
__device__ inline void multiply_high(float (&sums)[SUMS], Place& at, int chunks, int group,
                                     unsigned shared, unsigned full, unsigned empty)
{
    #pragma unroll
    for (int e = 0; e < SUMS; ++e) sums[e] = 0;
    for (int first = 0; first < chunks; first += EACH) {
        float part[SUMS];
        unsigned before = 0;
        #pragma unroll
        for (int e = 0; e < SUMS; ++e) part[e] = 0;
        keep(part);
        for (int c = first; c < min(first + EACH, chunks); ++c, at.next()) {
            await(full + 8 * at.stage, at.phase);
            const unsigned from = shared + at.stage * STAGE;
            const Parts<A_ACROSS, BM> a(from, 64 * group);
            const Parts<B_ACROSS, BN> b(from + PARTS * PART_A, 0);
            begin_products();
            #pragma unroll
            for (int p = 0; p < 4; ++p) products<0>(part, a.high, b.high, p);
            end_products();
            await_products<1>();
            if (c > first && threadIdx.x % 128 == 0) arrive(before);
            before = empty + 8 * at.stage;
        }
        await_products<0>();
        keep(part);
        if (threadIdx.x % 128 == 0) arrive(before);
        #pragma unroll
        for (int e = 0; e < SUMS; ++e) sums[e] += part[e];
    }
}

// What the last step of an element needs
struct Result {
    float alpha, beta;
    float* C;
    size ld;
    const float* bias;
    unsigned m, n;

    __device__ bool wanted(unsigned i, unsigned j) const
    {
        const unsigned column = j / (1 + COMPLEX);
        return i < m && j < n && !(HALF_OF_C == 1 && column > i) && !(HALF_OF_C == 2 && column < i);
    }
    __device__ float* at(unsigned i, unsigned j) const { return C + i * ld + j; }
    // What beta is of
    __device__ const float* beside(unsigned i, unsigned j) const
    {
        return BIAS ? bias + j : at(i, j);
    }
    __device__ float of(float product, float before) const
    {
        return beta == 0 ? alpha * product : fmaf(alpha, product, beta * before);
    }
    __device__ void store(unsigned i, unsigned j, float product) const
    {
        *at(i, j) = of(product, beta == 0 ? 0 : *beside(i, j));
    }
};

// The entries of which the lines of an operand were made (operand_lines.cuh), strides in floats, and
// what is known of these
struct Entries {
    const float* X;
    size next, step;
    int how;
    const About* about;

    __device__ bool twice() const { return COMPLEX && how & TWICE; }
    // Whether the parts of the numbers of a line are the other way round
    __device__ bool turned(unsigned line) const { return twice() && line % 2; }
    __device__ const float* at(unsigned line, size p) const
    {
        if (!COMPLEX) return X + line * next + p * step;
        return X + (line >> twice()) * next + p / 2 * step + (p % 2 ^ turned(line));
    }
    __device__ bool negative(unsigned line, size p) const
    {
        const bool odd = COMPLEX && p % 2, second = turned(line);
        return (twice() && odd && !second) != (odd != second && how & CONJUGATED);
    }
    __device__ float operator()(unsigned line, size p) const
    {
        const float x = *at(line, p);
        return COMPLEX && negative(line, p) ? -x : x;
    }
    // Of numbers 64 w to 64 w + 63 of a line, of so many, which are lost
    __device__ word lost(size lines, size k, unsigned line, size w) const
    {
        const word bits = reinterpret_cast<const word*>(
            lost_bits(about, lines, k, line >> twice()))[w];
        constexpr word EVEN = 0x5555555555555555;
        return turned(line) ? (bits & EVEN) << 1 | (bits >> 1 & EVEN) : bits;
    }
};

// What the store of a warp's part of a tile needs, asked for when the tile begins: its lines, of 16
// rows and BN columns, come to shared memory, and C, if it counts, to the L2 cache.
struct Lines {
    Line rows[16], cols[BN];
    char room[SLICES * SLICE - (16 + BN) * sizeof(Line)];  // four warps' are the slices', too

    __device__ void fetch(unsigned i, unsigned j, const About* a, const About* b,
                          const Result& result)
    {
        const unsigned lane = threadIdx.x % 32;
        __syncwarp();  // all have read those of the tile before
        #pragma unroll
        for (unsigned c = lane; c < BN; c += 32)
            copy_async<16, true>(&cols[c], &b[min(j + c, result.n - 1)].line, 16);
        if (lane < 16)
            copy_async<16, true>(&rows[lane], &a[min(i + lane, result.m - 1)].line, 16);
        end_group();
        if (BIAS || result.beta == 0) return;
        #pragma unroll
        for (unsigned e = lane; e < 16 * BN / 32; e += 32)
            prefetch(result.at(min(i + e % 16, result.m - 1), min(j + e / 16 * 32, result.n - 1)));
    }
    __device__ void await() const
    {
        await_groups<0>();
        __syncwarp();
    }
};

// Computes those of four elements (i + g + 8 (e / 2), j + 2 t + e % 2) of a lane, for bits e of `mine`,
// that have a line with few numbers, from these; returns the bits of the others.
__device__ inline unsigned compute_few(unsigned mine, unsigned i, unsigned j, const Line* rows,
                                       const Line* cols, const Entries& A, const Entries& B,
                                       const Result& result)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int* places[4];
    int few[4], most = 0;
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = g + 8 * (e / 2), c = 2 * t + e % 2;
        const bool by_row = rows[r].lost & ONLY_FEW, by_col = cols[c].lost & ONLY_FEW;
        const bool finite = rows[r].lost + cols[c].lost < NOT_FINITE;
        places[e] = by_row ? A.about[i + r].places : B.about[j + c].places;
        few[e] = !(mine >> e & 1) || !finite ? 0
               : by_row ? A.about[i + r].few : by_col ? B.about[j + c].few : 0;
        most = max(most, few[e]);
    }
    double sums[4] = {};
    #pragma unroll 1
    for (int f = 0; f < most; ++f) {
        size p[4];
        #pragma unroll
        for (int e = 0; e < 4; ++e) p[e] = f < few[e] ? (1 + COMPLEX) * places[e][f] : 0;
        #pragma unroll
        for (int part = 0; part < 1 + COMPLEX; ++part) {
            double x[4], y[4];
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                const unsigned row = i + g + 8 * (e / 2), col = j + 2 * t + e % 2;
                x[e] = f < few[e] ? A(row, p[e] + part) : 0;
                y[e] = f < few[e] ? B(col, p[e] + part) : 0;
            }
            #pragma unroll
            for (int e = 0; e < 4; ++e) sums[e] = fma(x[e], y[e], sums[e]);
        }
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (!few[e]) continue;
        result.store(i + g + 8 * (e / 2), j + 2 * t + e % 2, float(sums[e]));
        mine &= ~(1u << e);
    }
    return mine;
}

// What half precision has of a scaled number
__device__ inline float kept_of(float x)
{
    const float high = float(half(x));
    return HIGH_ONLY ? high : high + float(half(x - high));
}

// This lane's share of what an element lacks for numbers lost, scaled:
//
//     x y - x' y' = (x - x') y + x' (y - y')
//
// for pairs x' and y', of which the first counts where x is lost, the second where y is.
__device__ inline double lost_between(unsigned row, unsigned col, size k, const Line& of_row,
                                      const Line& of_col, const Entries& A, const Entries& B,
                                      const Result& result)
{
    const Scale a(of_row), b(of_col);
    const size words = lost_words(k);
    constexpr int LOADS = 4;
    double sum = 0;
    #pragma unroll 1
    for (size w = threadIdx.x % 32; w < words; w += 32) {
        word left[2] = {of_row.lost ? A.lost(result.m, k, row, w) : 0,
                        of_col.lost ? B.lost(result.n, k, col, w) : 0};
        while (left[0] | left[1]) {  // loads of a few of each are under way together
            float x[2 * LOADS], y[2 * LOADS];
            #pragma unroll
            for (int f = 0; f < 2 * LOADS; ++f) {
                word& bits = left[f / LOADS];
                const size p = 64 * w + (bits ? __ffsll(bits) - 1 : 0);
                x[f] = bits ? A(row, p) : 0;
                y[f] = bits ? B(col, p) : 0;
                bits &= bits - 1;
            }
            #pragma unroll
            for (int f = 0; f < 2 * LOADS; ++f) {
                const double x_kept = kept_of(a.of(x[f])), y_all = b.exactly(y[f]);
                sum = f < LOADS ? fma(a.exactly(x[f]) - x_kept, y_all, sum)
                                : fma(x_kept, y_all - kept_of(b.of(y[f])), sum);
            }
        }
    }
    return sum;
}

// An operand's 64 lines from `first` on: DEEP of k at a time, as they are in memory, to a slice of
// shared memory, without their signs. A thread brings number q of every 16th line, neighbours in memory
// by neighbours, 32 bytes of them.
template <int ACROSS> struct Slices {
    const Entries& of;
    unsigned first;     // this thread's
    int line, q, left;  // the line in the slice; how many there are from it on
    const float* next;

    __device__ Slices(const Entries& of, unsigned begin, unsigned lines) : of(of)
    {
        const int thread = threadIdx.x % 128;
        line = ACROSS ? thread / 64 * 8 + thread % 8 : thread / DEEP;
        q = ACROSS ? thread / 8 % DEEP : thread % DEEP;
        first = begin + line;
        left = int(lines) - int(first);
        next = of.at(first, q);
    }
    // What a warp reads together, four q of eight lines, is in different banks
    __device__ static int place(int line, int q) { return DEEP * line + (q ^ (line & 4)); }

    // The slices one after the other, of which the next begins at p
    __device__ void bring(float* slice, size p, size k)
    {
        const float* x = next;
        const int some = p + q < k ? left : 0;
        next += DEEP / (1 + COMPLEX) * of.step;
        #pragma unroll
        for (int e = 0; e < 64; e += 16, x += (16 >> of.twice()) * of.next)
            copy_async<4>(slice + place(line, q) + DEEP * e, e < some ? x : of.X, e < some ? 4 : 0);
    }
};

// The elements of a group's tile for which its lanes have bits, in double precision, 64 columns at a
// time, of slices of which all but one are under way
__device__ inline void compute_tile(unsigned (&again)[WORDS], unsigned i, unsigned j, size k,
                                    float* slices, int group, const Entries& A, const Entries& B,
                                    const Result& result)
{
    const int warp = threadIdx.x / 32 % 4, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    #pragma unroll 1
    for (int c = 0; c < BN; c += 64, j += 64) {
        const unsigned mine = again[0];
        #pragma unroll
        for (int w = 1; w < WORDS; ++w) again[w - 1] = again[w];
        if (!any_of_group(mine != 0, group)) continue;
        Slices<A_ACROSS> a(A, i - 16 * warp, result.m);
        Slices<B_ACROSS> b(B, j, result.n);
        size p = 0;  // of what is brought next
        const auto bring = [&] {
            float* const slice = slices + unsigned(p / DEEP) % SLICES * SLICE;
            a.bring(slice, p, k);
            b.bring(slice + SLICE / 2, p, k);
            end_group();
            p += DEEP;
        };
        // Lines that a lane multiplies differ by even numbers, and so do the k
        const float of_a = A.negative(g, t) ? -1 : 1, of_b = B.negative(g, t) ? -1 : 1;
        double sums[8][4] = {};
        #pragma unroll 1
        for (int s = 0; s < SLICES - 1; ++s) bring();
        #pragma unroll 1
        for (unsigned s = 0; DEEP * size(s) < k; ++s) {
            await_groups<SLICES - 2>();
            meet(group);  // this slice has come, and nobody reads the one before
            bring();
            const float* const x = slices + s % SLICES * SLICE;
            double u[4], v[2];
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                u[e] = of_a * x[a.place(16 * warp + g + e % 2 * 8, t + e / 2 * 4)];
            #pragma unroll
            for (int q = 0; q < 8; ++q) {
                #pragma unroll
                for (int e = 0; e < 2; ++e)
                    v[e] = of_b * x[SLICE / 2 + b.place(8 * q + g, t + 4 * e)];
                tensor_product(sums[q], u, v);
            }
        }
        await_groups<0>();
        meet(group);
        #pragma unroll
        for (int e = 0; e < 32; ++e)
            if (mine >> e & 1)
                result.store(i + g + 8 * (e / 2 % 2), j + 8 * (e / 4) + 2 * t + e % 2,
                             float(sums[e / 4][e % 4]));
    }
}

// Elements (i + g + 8 (e / 2 % 2), j + 8 (e / 4) + 2 t + e % 2) for the bits e of this lane's
// `again`, from A and B, or from `found` and what it lacks, 16 bits at a time
__device__ inline void compute_again(unsigned (&again)[WORDS], float (&found)[SUMS], unsigned i,
                                     unsigned j, size k, Lines& lines, int group, const Entries& A,
                                     const Entries& B, const Result& result)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto mended_of = [&](unsigned rest, int first) {
        unsigned mended = 0;
        #pragma unroll
        for (int e = 0; e < 16; ++e) {
            const int by_row = lines.rows[g + 8 * (e / 2 % 2)].lost;
            const int by_col = lines.cols[first + 8 * (e / 4) + 2 * t + e % 2].lost;
            const bool marked = (by_row == 0 || by_row > UNMARKED)
                && (by_col == 0 || by_col > UNMARKED);
            mended |= unsigned(marked && by_row + by_col <= int(k / RARE)) << e;
        }
        return mended & rest;
    };
    const auto take_turns = [&](unsigned last) {
        #pragma unroll
        for (int w = 0; w < WORDS; ++w)
            again[w] = again[w] >> 16 | (w + 1 < WORDS ? again[w + 1] : last) << 16;
    };
    unsigned work = 0;
    #pragma unroll
    for (int w = 0; w < WORDS; ++w) work |= again[w];
    if (__any_sync(ALL, work)) {
        work = 0;
        #pragma unroll 1
        for (int first = 0; first < BN; first += 32) {
            const unsigned mine = again[0] & 0xffff;
            unsigned rest = 0;
            if (__any_sync(ALL, mine))
                #pragma unroll 1
                for (int q = 0; q < 4; ++q)
                    rest |= compute_few(mine >> 4 * q & 15, i, j + first + 8 * q, lines.rows,
                                        lines.cols + first + 8 * q, A, B, result) << 4 * q;
            if (rest) work += MENDED * __popc(rest) - (MENDED - 1) * __popc(mended_of(rest, first));
            take_turns(rest);
        }
        work = __reduce_add_sync(ALL, work);
    }
    if (any_of_group(work > MENDED * ONE_BY_ONE, group))
        return compute_tile(again, i, j, k, reinterpret_cast<float*>(&lines - threadIdx.x / 32 % 4),
                            group, A, B, result);
    #pragma unroll 1
    for (int first = 0; work > 0 && first < BN; first += 32, j += 32) {
        const unsigned rest = again[0] & 0xffff, mended = mended_of(rest, first);
        float those[16];
        take_turns(0);
        #pragma unroll
        for (int e = 0; e < SUMS; ++e) {
            if (e < 16) those[e] = found[e];
            found[e] = e + 16 < SUMS ? found[e + 16] : 0;
        }
        if (!__any_sync(ALL, rest)) continue;
        #pragma unroll 1
        for (int e = 0; e < 16; ++e) {
            const unsigned by_lost = __ballot_sync(ALL, mended >> e & 1);
            float before = 0;
            #pragma unroll
            for (int f = 0; f < 16; ++f) before = e == f ? those[f] : before;
            for (unsigned left = __ballot_sync(ALL, rest >> e & 1); left; left &= left - 1) {
                const int of = __ffs(left) - 1, r = of / 4 + 8 * (e / 2 % 2);
                const int c = 8 * (e / 4) + 2 * (of % 4) + e % 2;
                const bool mend = by_lost >> of & 1;
                const unsigned row = i + r, col = j + c;
                const Line& of_row = lines.rows[r];
                const Line& of_col = lines.cols[first + c];
                double sum = 0;
                if (mend)
                    sum = lost_between(row, col, k, of_row, of_col, A, B, result);
                #pragma unroll 4
                for (size p = mend ? k : lane; p < k; p += 32)
                    sum = fma(double(A(row, p)), double(B(col, p)), sum);
                for (int step = 16; step; step /= 2) sum += across(sum, step);
                if (lane != of) continue;
                result.store(row, col, mend ? float(before + sum) * (of_row.down * of_col.down)
                                                  * (of_row.rest * of_col.rest) : float(sum));
            }
        }
    }
}

// Of a line, how many numbers it lost and the sum of all, in units in which an element is good if it
// is no less than the lesser of one's count and the other's sum, and these the other way round
struct Damage {
    float lost, sizes, down, rest;

    // All elements of a line with few numbers, or that are not finite, are not numbers
    __device__ explicit Damage(const Line& line)
        : lost(TIMES * float(line.lost & (ONLY_FEW - 1))), sizes(TIMES / SIZES * float(line.sizes)),
          down(line.lost < (HIGH_ONLY ? NOT_FINITE : ONLY_FEW) ? line.down
                                                               : __int_as_float(NOT_A_NUMBER)),
          rest(line.rest)
    {}
    static constexpr float TIMES = (HIGH_ONLY ? 0x1p11f : 0x1p21f) * 0x1p-25f * (1 << TOP);
};
// The element, or not a number where it is not good
__device__ inline float if_good(float sum, const Damage& row, const Damage& col)
{
    const bool good = fabsf(sum) >= fminf(row.lost, col.sizes) + fminf(col.lost, row.sizes);
    return good ? sum * (row.down * col.down) * (row.rest * col.rest) : __int_as_float(NOT_A_NUMBER);
}

// Stores a group's tile; (i, j) is where the rows of this warp begin.
__device__ inline void store_tile(float (&sums)[SUMS], unsigned i, unsigned j, size k,
                                  Lines& lines, int group, const Entries& A, const Entries& B,
                                  const Result& result)
{
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const Damage rows[2] = {Damage(lines.rows[g]), Damage(lines.rows[g + 8])};
    // Neighbouring lanes exchange half of their pairs: an even one has four neighbours of 8
    // columns, an odd one of the next 8
    const bool odd = t % 2;
    const bool wide = ((size(result.C) | 4 * result.ld | (BIAS ? size(result.bias) : 0)) & 15) == 0;
    const auto whole = [&](int q, int r) {
        const unsigned row = i + g + 8 * r, col = j + 8 * (q + odd) + 4 * (t / 2);
        return wide && result.wanted(row, col + 3) && (!HALF_OF_C || result.wanted(row, col));
    };
    const auto place = [&](int q, int r) {
        return result.at(i + g + 8 * r, j + 8 * (q + odd) + 4 * (t / 2));
    };
    const auto beside = [&](int q, int r) {
        return result.beside(i + g + 8 * r, j + 8 * (q + odd) + 4 * (t / 2));
    };
    float4 old[2][2] = {};  // of C, read one step ahead
    const auto read = [&](int q) {
        #pragma unroll
        for (int r = 0; r < 2; ++r)
            if (result.beta != 0 && whole(q, r))
                old[q / 2 % 2][r] = *reinterpret_cast<const float4*>(beside(q, r));
    };
    unsigned again[WORDS] = {};
    read(0);
    #pragma unroll
    for (int q = 0; q < BN / 8; q += 2) {
        if (q + 2 < BN / 8) read(q + 2);
        const Line* const from = lines.cols + 8 * q + 2 * t;
        const Damage cols[4] = {Damage(from[0]), Damage(from[1]), Damage(from[8]),
                                Damage(from[9])};
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            float x[4];
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int at = 4 * (q + e / 2) + 2 * r + e % 2;
                const bool wanted = result.wanted(i + g + 8 * r, j + 8 * (q + e / 2) + 2 * t + e % 2);
                x[e] = if_good(sums[at], rows[r], cols[e]);
                if (wanted && x[e] != x[e]) again[at / 32] |= 1u << at % 32;
            }
            const float c0 = across(odd ? x[0] : x[2], 1), c1 = across(odd ? x[1] : x[3], 1);
            const float y[4] = {odd ? c0 : x[0], odd ? c1 : x[1], odd ? x[2] : c0, odd ? x[3] : c1};
            const bool all = y[0] == y[0] && y[1] == y[1] && y[2] == y[2] && y[3] == y[3];
            const float4 c = old[q / 2 % 2][r];
            if (all && whole(q, r)) {
                __stcs(reinterpret_cast<float4*>(place(q, r)),
                       make_float4(result.of(y[0], c.x), result.of(y[1], c.y),
                                   result.of(y[2], c.z), result.of(y[3], c.w)));
            } else {
                const unsigned row = i + g + 8 * r, col = j + 8 * (q + odd) + 4 * (t / 2);
                #pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (result.wanted(row, col + e) && y[e] == y[e])
                        result.store(row, col + e, y[e]);
            }
        }
    }
    compute_again(again, sums, i, j, k, lines, group, A, B, result);
}

extern "C" __global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
gemm_wgmma(const __grid_constant__ TensorMap a_pairs, const __grid_constant__ TensorMap b_pairs,
           size m, size n, size k, const About* a_about, const About* b_about, const float* A,
           size a_next, size a_step, size a_how, const float* B, size b_next, size b_step,
           size b_how, float alpha, float beta, float* C, size ldc, const float* bias,
           const unsigned* asked)
{
    wait_for_stream();
    if (asked && !*asked) return;  // others have done it
    __shared__ word barriers[2 * STAGES];
    const unsigned shared = (shared_address(dynamic_shared) + 1023u) & ~1023u;
    const unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            make_barrier(full + 8 * s, 1);
            make_barrier(empty + 8 * s, GROUPS);
        }
        show_barriers();
    }
    __syncthreads();
    const Tiles tiles(m, n / (1 + COMPLEX), HALF_OF_C);
    const int chunks = int((k + BK - 1) / BK);
    if (threadIdx.x < 128) {
        give_registers<GIVEN>();
        if (threadIdx.x == 0) produce(a_pairs, b_pairs, tiles, chunks, shared, full, empty);
    } else {
        take_registers<TAKEN>();
        const int group = threadIdx.x / 128 - 1;
        const Result result{alpha, beta, C, ldc, bias, unsigned(m), unsigned(n)};
        Lines& lines = reinterpret_cast<Lines*>(dynamic_shared + STAGES * STAGE + 1024)[
            threadIdx.x / 32 - 4];
        Place at{0, 0};
        if (!HIGH_ONLY && group == GROUPS - 1) give_turn(0);
        for (int tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
            int i, j;
            if (!tiles.place(tile, i, j)) continue;
            i = i * BM + (threadIdx.x / 32 - 4) * 16, j *= BN;
            lines.fetch(i, j, a_about, b_about, result);
            float sums[SUMS];
            if constexpr (HIGH_ONLY)
                multiply_high(sums, at, chunks, group, shared, full, empty);
            else
                multiply_tile(sums, at, chunks, group, shared, full, empty);
            lines.await();
            store_tile(sums, i, j, k, lines, group, {A, a_next, a_step, int(a_how), a_about},
                       {B, b_next, b_step, int(b_how), b_about}, result);
        }
        if (!HIGH_ONLY && group == 0) wait_turn(0);
    }
}
