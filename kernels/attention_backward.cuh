// attention_backward.cuh: the gradients of attention (attention.cuh). A block has the ROWS lines of
// one side, X and Y, and goes through those of the other, U and W, in tiles of LINES:
//
//     S = c X U^T,    P = 2^(S + L),    dP = Y W^T,    dS = P (dP - D)
//
// By queries X = Q, Y = dY, U = K, W = V, and dQ = dS U. By keys all that is transposed: X = K,
// Y = V, U = Q, W = dY, and dK = dS U, dV = P W. L and D belong to queries: to rows, or to columns.
//
// Every block writes lines of its own, in one order of sums. dS is scaled for each warp and tile by
// the largest of its numbers there.
#pragma once
#include "attention.cuh"

using Sums = float[TILES][WIDTH / 8][4];
using Products = float[TILES][LINES / 8][4];

struct Given {  // lines X and Y, and U and W, of all
    Operand x, y, u, w;
    const float *L, *D;
    int rows, count, width;  // lines on this side, on the other, numbers of a line
};

template <bool KEYED> struct Walk {
    using Mine = Lines<ROWS>;
    using Ring = Lines<LINES>;
    // Bytes of a stage: two tiles, and L and D of its queries
    static constexpr int STAGE = 2 * Ring::BYTES + KEYED * 8 * LINES;

    const Given& given;
    const Looks& looks;
    int first, g = lane() / 4, t = lane() % 4, mine = first + 16 * TILES * warp();
    Mine x{0}, y{Mine::BYTES};

    __device__ static unsigned stage(int tile)
    {
        return unsigned(2 * Mine::BYTES + tile % STAGES * STAGE);
    }
    __device__ static float* numbers(int tile)  // L, then D, of a tile's queries
    {
        return reinterpret_cast<float*>(dynamic_shared + stage(tile) + 2 * Ring::BYTES);
    }
    __device__ void fetch(int tile, int end) const
    {
        const int width = PLANES == 2 ? WIDTH : given.width, line = tile * LINES;
        if (tile < end) {
            u(tile).fetch(given.u, line, given.count, width);
            w(tile).fetch(given.w, line, given.count, width);
            if (KEYED)
                for (int i = thread(); i < 2 * LINES; i += THREADS) {
                    const int at = line + i % LINES;
                    const bool there = at < given.count;
                    copy_async<4>(numbers(tile) + i,
                                  (i < LINES ? given.L : given.D) + (there ? at : 0),
                                  there ? 4 : 0);
                }
        }
        end_group();
    }

    __device__ static Ring u(int tile) { return {stage(tile)}; }
    __device__ static Ring w(int tile) { return {stage(tile) + Ring::BYTES}; }

    // f(s, ds, the tile) for tiles begin ... end - 1: P and dS of the tile, P scaled by 2^UP and dS
    // by the exponent that is given, too
    template <class C, class F>
    __device__ void through(int begin, int end, const C& factors, F f) const
    {
        const int width = PLANES == 2 ? WIDTH : given.width;
        x.fetch(given.x, first, given.rows, width);
        y.fetch(given.y, first, given.rows, width);
        #pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) fetch(begin + s, end);
        float L[TILES][2], D[TILES][2];
        if (!KEYED)
            #pragma unroll
            for (int i = 0; i < TILES; ++i)
                #pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int row = mine + 16 * i + 8 * h + g;
                    L[i][h] = row < given.rows ? given.L[row] : NOTHING;
                    D[i][h] = row < given.rows ? given.D[row] : 0.0f;
                }
        #pragma unroll 1
        for (int tile = begin; tile < end; ++tile) {
            await_groups<STAGES - 2>();
            __syncthreads();
            fetch(tile + STAGES - 1, end);
            const float* const of = numbers(tile);
            const int line = tile * LINES;
            float c, down;
            factors(line, c, down);
            Products s = {}, ds = {};
            multiply(s, x, u(tile));
            if (!(KEYED ? looks.all(line, mine + 16 * TILES - 1)
                        : looks.all(mine, line + LINES - 1)))
                looks.template hide<KEYED, TILES, LINES / 8>(
                    [&](int i, int j, int e) -> float& { return s[i][j][e]; }, mine, line);
            multiply(ds, y, w(tile));
            float most = 0;
            #pragma unroll
            for (int j = 0; j < LINES / 8; ++j)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int column = 8 * j + 2 * t + e % 2;
                    const float l = KEYED ? of[column] : 0, d = KEYED ? of[LINES + column] : 0;
                    #pragma unroll
                    for (int i = 0; i < TILES; ++i) {
                        float& p = s[i][j][e];
                        p = power_of(fmaf(p, c, KEYED ? l : L[i][e / 2]));
                        const float from = (KEYED ? d : D[i][e / 2]) * power(-UP);
                        ds[i][j][e] = p * fmaf(ds[i][j][e], down * power(-UP), -from);
                        most = fmaxf(most, fabsf(ds[i][j][e]));
                    }
                }
            f(s, ds, __float_as_uint(most), tile);
        }
    }
};

__device__ inline void put_gradient(scalar_t* to, size next, const Sums& x, int first, int count,
                                    int width)
{
    put_lines<TILES, WIDTH / 8>(to, next, [&](int i, int j, int e) { return x[i][j][e]; }, first,
                                count, width, [](int, int) { return 1.0f; });
}

// Adds dS U, times `scale`. U is scaled by 2^lift, and dS by a power of two: the one that takes its
// largest number (of the warp's, bits) to 2^TOP, or less, so that the product of both counts to
// 2^-130; bfloat16 needs none.
__device__ inline void add_gradient(Sums& sums, Products& ds, unsigned most, Lines<LINES> u,
                                    float scale, int lift)
{
    int e = 0;
    if (IS_HALF<number_t>) {
        const int fits = scale_of(__reduce_max_sync(ALL, most));
        e = fits < 120 - lift ? fits : 120 - lift;
        e = e < 100 ? e : 100;
        const float up = power(e);
        #pragma unroll
        for (int i = 0; i < TILES; ++i)
            #pragma unroll
            for (int j = 0; j < LINES / 8; ++j)
                #pragma unroll
                for (int q = 0; q < 4; ++q) ds[i][j][q] *= up;
    }
    const float down = scale * near_power(-e - lift);
    multiply_across(sums, Weights<LINES>(ds), u, [=](float sum, float part, int, int) {
        return fmaf(part, down, sum);
    });
}
