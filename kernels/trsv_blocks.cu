// trsv_blocks.cu: X := L^-1 B for a large triangular matrix and one or a few right-hand sides.
//
// An upper triangle, or the transpose, is a lower one whose rows and columns are counted from the
// other end: the launcher turns strides round. A block of threads takes 64 rows, by turns: it
// subtracts their products with x as x comes to be, 64 numbers after 64, and solves with the block
// on the diagonal, a warp to a right-hand side, two rows to a lane. Whoever waits, waits for lower
// turns, and asks less often while it is not the next. What is waited for brings its own flag: x travels in words of 64 bits, half number and
// half sign that it is there, so that one write, and one read, is the way from a block to the next.
//
// Columns of L that are not waited for any more are on their way, a tile ahead of its use: each
// thread has 64 * 64 / THREADS numbers, of neighbouring rows to neighbouring lanes, or of
// neighbouring columns, as L lies.
//
// `state`, if there is one, says whether X is still wanted: refinement queues steps ahead of the
// answer, and those that turn out not to be needed end here.
//
// Floor: half of n^2 numbers read; and the chain: n / 64 times the way of a word through L2 and 16
// steps of a shuffle and four products.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of the block
constexpr int SIDES = 4;    // right-hand sides that go together
#endif
#include "block.cuh"
#include "launch.cuh"
#include "shuffle.cuh"

constexpr int AT_ONCE = 4;  // numbers of x that are solved for between two exchanges of lanes
constexpr int B = 64, EACH = B * B / THREADS, PARTS = THREADS / B;
constexpr int WORDS = sizeof(scalar_t) / 4, NAP = 100;  // ns
static_assert(THREADS % B == 0 && SIDES <= WARPS);

using word = unsigned long long;

// A number in WORDS words, each with the sign that it is there
__device__ inline void send(word* to, scalar_t x)
{
    unsigned half[WORDS];
    memcpy(half, &x, sizeof x);
    #pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        const word whole = word(1) << 32 | half[w];
#ifndef BLASX_SIM
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(to + w), "l"(whole) : "memory");
#else
        to[w] = whole;
#endif
    }
}
__device__ inline scalar_t receive(const word* from, bool next)
{
    unsigned half[WORDS];
    #pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        word whole;
        do {
#ifndef BLASX_SIM
            asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                         : "=l"(whole) : "l"(from + w) : "memory");
            if (!next && !(whole >> 32)) __nanosleep(NAP);
#else
            whole = from[w];
            if (!(whole >> 32)) sim::give_way();
#endif
        } while (!(whole >> 32));
        half[w] = unsigned(whole);
    }
    scalar_t x;
    memcpy(&x, half, sizeof x);
    return x;
}

struct Shared {
    scalar_t x[SIDES][B];            // of the columns at work
    scalar_t part[PARTS][SIDES][B];  // of rows, what groups of threads have subtracted
    scalar_t diagonal[B][B + 1];     // (j, i): L(i, j) / L(i, i)
    scalar_t over[B];                // 1 / L(i, i)
    int turn;
};

struct System {
    const scalar_t* L;
    size rs, cs;
    bool conjugate, unit;
    scalar_t* X;
    size xs, next;
    int n, count;  // right-hand sides
    word* words;

    __device__ scalar_t at(int i, int j) const
    {
        const scalar_t x = i < n && j < n ? L[i * rs + j * cs] : scalar_t{};
        return conjugate ? conj(x) : x;
    }
    __device__ scalar_t* x(int i, int q) const { return X + i * xs + q * next; }
    __device__ word* sent(int i, int q) const { return words + WORDS * (size(i) * SIDES + q); }
};

// 64 rows from `first` on, of up to Q right-hand sides; DOWN: rows, not columns, are neighbours
template <bool DOWN, int Q> __device__ void solve_rows(const System& y, int first, Shared& s)
{
    constexpr int SUMS = DOWN ? 1 : EACH / (B / 32);  // rows of this thread
    const int lane = thread() % 32, q = warp();
    const auto row = [](int e) {
        return DOWN ? thread() % B : thread() / 32 + WARPS * (e / (B / 32));
    };
    const auto column = [](int e) {
        return DOWN ? thread() / B + PARTS * e : thread() % 32 + 32 * (e % (B / 32));
    };
    scalar_t ahead[EACH], r[2] = {}, sums[SUMS][Q] = {};
    const auto fetch = [&](int from) {
        #pragma unroll
        for (int e = 0; e < EACH; ++e) ahead[e] = y.at(first + row(e), from + column(e));
    };
    fetch(first);
    #pragma unroll
    for (int h = 0; h < 2; ++h)
        if (q < y.count && first + lane + 32 * h < y.n) r[h] = *y.x(first + lane + 32 * h, q);
    if (thread() < B) {
        const int i = first + thread();
        s.over[thread()] = y.unit || i >= y.n ? scalar_t{1} : reciprocal(y.at(i, i));
    }
    __syncthreads();
    #pragma unroll
    for (int e = 0; e < EACH; ++e) s.diagonal[column(e)][row(e)] = mul(ahead[e], s.over[row(e)]);

    if (first) fetch(0);
    for (int k = 0; k < first; k += B) {
        for (int e = thread(); e < B * Q; e += THREADS)
            s.x[e / B][e % B] = e / B < y.count ? receive(y.sent(k + e % B, e / B), k + B == first)
                                                : scalar_t{};
        __syncthreads();
        scalar_t now[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) now[e] = ahead[e];
        if (k + B < first) fetch(k + B);
        #pragma unroll
        for (int e = 0; e < EACH; ++e)
            #pragma unroll
            for (int p = 0; p < Q; ++p) {
                scalar_t& sum = sums[DOWN ? 0 : e / (B / 32)][p];
                sum = minus_product(sum, now[e], s.x[p][column(e)]);
            }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < SUMS; ++i)
        #pragma unroll
        for (int p = 0; p < Q; ++p) {
            scalar_t sum = sums[i][p];
            if (DOWN) {
                s.part[thread() / B][p][thread() % B] = sum;
            } else {
                #pragma unroll
                for (int half = 16; half; half /= 2) sum = add(sum, across(sum, half));
                if (lane == 0) s.part[0][p][warp() + WARPS * i] = sum;
            }
        }
    __syncthreads();
    if (q >= y.count) return;
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
        #pragma unroll
        for (int p = 0; p < (DOWN ? PARTS : 1); ++p) r[h] = add(r[h], s.part[p][q][lane + 32 * h]);
        r[h] = mul(r[h], s.over[lane + 32 * h]);
    }
    #pragma unroll
    for (int h = 0; h < 2; ++h)
        #pragma unroll 2
        for (int j = 0; j < 32; j += AT_ONCE) {
            scalar_t x[AT_ONCE];  // every lane finishes them for itself: a shuffle takes six products
            #pragma unroll
            for (int e = 0; e < AT_ONCE; ++e) x[e] = of_lane(r[h], j + e);
            #pragma unroll
            for (int e = 0; e < AT_ONCE; ++e) {
                const int k = j + e;
                const scalar_t* const l = s.diagonal[k + 32 * h];
                #pragma unroll
                for (int i = e + 1; i < AT_ONCE; ++i)
                    x[i] = minus_product(x[i], l[j + i + 32 * h], x[e]);
                if (h == 0) r[1] = minus_product(r[1], l[lane + 32], x[e]);
                if (lane > k) r[h] = minus_product(r[h], l[lane + 32 * h], x[e]);
            }
        }
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
        send(y.sent(first + lane + 32 * h, q), r[h]);
        if (first + lane + 32 * h < y.n) *y.x(first + lane + 32 * h, q) = r[h];
    }
}

// `words`, of all rows in 64s, and `turns`: zeros. X is left alone where *state is not `open`.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
trsv_blocks(const scalar_t* L, size rs, size cs, size conjugate, size unit, scalar_t* X, size xs,
            size next, size n, size count, word* words, int* turns, const int* state, size open)
{
    wait_for_stream();
    if (state && *state != open) return;
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    const System y{L, rs, cs, conjugate != 0, unit != 0, X, xs, next, int(n), int(count), words};
    const bool down = rs == 1 || rs == -1;
    for (;;) {
        __syncthreads();
        if (thread() == 0) s.turn = atomicAdd(turns, 1);
        __syncthreads();
        const size first = size(B) * s.turn;
        if (first >= n) return;
        if (count == 1 && down) solve_rows<true, 1>(y, int(first), s);
        else if (count == 1) solve_rows<false, 1>(y, int(first), s);
        else if (down) solve_rows<true, SIDES>(y, int(first), s);
        else solve_rows<false, SIDES>(y, int(first), s);
    }
}
