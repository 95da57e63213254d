// attention.cuh: what the kernels of attention share: lines of operands in shared memory, their
// products on the tensor cores, and which query looks at which key.
//
// Queries Q and keys K, values V, of each member (a head of one of the batch) are lines of up to
// WIDTH numbers. With S = scale Q K^T, P = softmax(S) along the keys, Y = P V,
//
//     D = rows of dY . Y,    dS = P (dY V^T - D),    dQ = scale dS K,  dK = scale dS^T Q,
//     dV = P^T dY
//
// and neither S nor P is ever in memory: a block has ROWS lines of one side in shared memory and
// goes through those of the other in tiles, STAGES of them in a ring; a warp has TILES times 16 of
// the ROWS lines. S and P are in the registers that the tensor cores leave them in, which are those
// that a further product takes P from.
//
// Operands are numbers of two bytes. Those of single precision are pairs (attention_pairs.cu): a
// line has WIDTH high parts and then WIDTH low ones, 64 lines have a scale of their own, and a
// product is three: low by high, high by low, high by high. Tensor cores cut off what they add:
// small products go first, and what a tile gives is added to the answers' sums by ordinary ones. P
// is scaled by 2^UP, so that a weight counts to 2^-39, or 2^-22 of itself.
#pragma once
#include "attention_weights.cuh"
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"

constexpr int PLANES = sizeof(scalar_t) == 4 ? 2 : 1, CHUNKS = WIDTH / 8;
constexpr int ROWS = 16 * TILES * WARPS, ALIKE = 64;  // ALIKE: lines of the same scale
static_assert(WIDTH % 16 == 0 && STAGES >= 2);

// Lines of one member in memory
struct Operand {
    const number_t* p;
    size next;
};
__device__ inline Operand operand(const number_t* p, size batch, size head, size next, int member,
                                  int heads)
{
    return {p + member / heads * batch + member % heads * head, next};
}

// LINES lines in shared memory
template <int LINES> struct Lines {
    static constexpr int LINE = 2 * WIDTH, PLANE = LINES * LINE, BYTES = PLANES * PLANE;
    unsigned at;  // in the block's shared memory

    // Where chunk c ^ odd of 16 bytes of line + lane is: of eight lines that are read together no two
    // are in the same banks. Apart from what differs between lanes all are constants.
    __device__ char* place(int plane, int line, int lane, int c, int odd = 0) const
    {
        constexpr int GROUP = CHUNKS % 8 == 0 ? 8 : CHUNKS % 4 == 0 ? 4 : 2;
        const int turn = lane / (8 / GROUP) % GROUP;
        const int mine = lane * LINE + 16 * (c % GROUP ^ odd ^ turn);
        return dynamic_shared + (at + unsigned(mine + plane * PLANE + line * LINE
                                               + c / GROUP * (16 * GROUP)));
    }
    // Asks for the lines from `first` on; zeros stand for those past `count`, and for numbers past
    // `width`.
    __device__ void fetch(Operand from, int first, int count, int width) const
    {
        constexpr int EACH = PLANES * CHUNKS, STEP = THREADS / EACH;  // a thread's lines are apart
        const int plane = thread() % EACH / CHUNKS, c = thread() % CHUNKS, mine = thread() / EACH;
        const number_t* p = from.p + (first + mine) * from.next + plane * WIDTH + 8 * c;
        count = 8 * c < width ? count - first : 0;
        #pragma unroll
        for (int k = 0; k < LINES; k += STEP, p += STEP * from.next) {
            const int line = k + mine;
            if (mine >= STEP || (LINES % STEP != 0 && line >= LINES)) continue;
            copy_async<16, true>(STEP % 8 == 0 ? place(plane, k, mine, c) : place(plane, 0, line, c),
                                 line < count ? p : from.p, line < count ? 16 : 0);
        }
    }
    // A tile A (half.cuh) of 16 lines and 16 k; tiles B of 16 lines; of 16 k that are lines
    __device__ void get_rows(unsigned (&x)[4], int plane, int line, int k) const
    {
        load_tiles<false>(x, place(plane, line, lane() % 16, k / 8, lane() / 16));
    }
    __device__ void get_columns(unsigned (&x)[4], int plane, int line, int k) const
    {
        load_tiles<false>(x, place(plane, line, lane() % 8 + lane() / 16 * 8, k / 8,
                                   lane() / 8 % 2));
    }
    __device__ void get_across(unsigned (&x)[4], int plane, int k, int column) const
    {
        load_tiles<true>(x, place(plane, k, lane() % 16, column / 8, lane() / 16));
    }
};

// A tile of numbers, by planes
using Tile = unsigned[PLANES][4];

// sums += A B for the warp's tiles A and two tiles B, sixteen of k: the small products, the large
template <int N>
__device__ void add_products(float (&sums)[TILES][N][4], int j, const Tile (&a)[TILES],
                             const Tile& b, bool small, bool large)
{
    const auto add = [&](int p, int q) {
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int s = 0; s < 2; ++s) {
                const unsigned column[2] = {b[q][2 * s], b[q][2 * s + 1]};
                tensor_product(sums[i][j + s], a[i][p], column, number_t());
            }
    };
    if (PLANES == 2 && small) add(PLANES - 1, 0), add(0, PLANES - 1);
    if (large) add(0, 0);
}

// sums += X Y^T for the warp's lines of X and all of Y: lane (g, t) has of tile i, columns 8 j on,
// (g, 2 t ..), (g + 8, 2 t ..) in sums[i][j]
template <int LINES>
__device__ void multiply(float (&sums)[TILES][LINES / 8][4], Lines<ROWS> X, Lines<LINES> Y)
{
    constexpr int AHEAD = WIDTH > 64 ? 1 : WIDTH / 16;  // or registers are short
    #pragma unroll
    for (int sweep = 0; sweep < PLANES; ++sweep)
        #pragma unroll AHEAD
        for (int k = 0; k < WIDTH; k += 16) {
            const bool small = sweep == 0, large = sweep == PLANES - 1;
            Tile a[TILES], b;
            #pragma unroll
            for (int p = 0; p < PLANES; ++p)
                #pragma unroll
                for (int i = 0; i < TILES; ++i)
                    if (p == 0 || small) X.get_rows(a[i][p], p, 16 * (warp() * TILES + i), k);
            #pragma unroll
            for (int j = 0; j < LINES; j += 16) {
                #pragma unroll
                for (int p = 0; p < PLANES; ++p)
                    if (p == 0 || small) Y.get_columns(b[p], p, j, k);
                add_products(sums, j / 8, a, b, small, large);
            }
        }
}

// What `multiply` left, as tiles A of a further product
template <int LINES> struct Weights {
    Tile x[LINES / 16][TILES];

    __device__ explicit Weights(const float (&s)[TILES][LINES / 8][4])
    {
        #pragma unroll
        for (int k = 0; k < LINES / 16; ++k)
            #pragma unroll
            for (int i = 0; i < TILES; ++i)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float (&from)[4] = s[i][2 * k + e / 2];
                    const float first = from[e % 2 * 2], second = from[e % 2 * 2 + 1];
                    if constexpr (PLANES == 2) {
                        const Pair pair = pairs_of(first, second);
                        x[k][i][0][e] = pair.high, x[k][i][PLANES - 1][e] = pair.low;
                    } else {
                        x[k][i][0][e] = two_of(first, second, number_t());
                    }
                }
    }
};

// f(x, part of X), for x := A Y: every number of the lines X that are TILES times 16 a warp
template <int LINES, class F>
__device__ void multiply_across(float (&x)[TILES][WIDTH / 8][4], const Weights<LINES>& a,
                                Lines<LINES> Y, F f)
{
    static_assert(PLANES == 1 || LINES <= 64);
    #pragma unroll
    for (int j = 0; j < WIDTH; j += 16) {
        if (PLANES == 1 && WIDTH > 64) __syncwarp();  // no more tiles at a time than there is room for
        float part[TILES][2][4] = {};
        #pragma unroll
        for (int sweep = 0; sweep < PLANES; ++sweep)
            #pragma unroll
            for (int k = 0; k < LINES / 16; ++k) {
                const bool small = sweep == 0, large = sweep == PLANES - 1;
                Tile b;
                #pragma unroll
                for (int p = 0; p < PLANES; ++p)
                    if (p == 0 || small) Y.get_across(b[p], p, 16 * k, j);
                add_products(part, 0, a.x[k], b, small, large);
            }
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int s = 0; s < 2; ++s)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    float& sum = x[i][j / 8 + s][e];
                    sum = f(sum, part[i][s][e], i, e / 2);
                }
    }
}

// The exponents by which lines are scaled: of Q, dY, K and V, each for all members
struct Scales {
    const int* p;
    int queries, keys, member, members;

    __device__ Scales(const int* p, int m, int n, int member, int members)
        : p(p), queries((m + ALIKE - 1) / ALIKE), keys((n + ALIKE - 1) / ALIKE),
          member(member), members(members) {}
    __device__ int at(size skip, int of_member, int line) const
    {
        return PLANES == 1 ? 0 : p[skip * members + member * size(of_member) + line / ALIKE];
    }
    __device__ int q(int line) const { return at(0, queries, line); }
    __device__ int dy(int line) const { return at(queries, queries, line); }
    __device__ int k(int line) const { return at(2 * queries, keys, line); }
    __device__ int v(int line) const { return at(2 * queries + keys, keys, line); }
};
