// tiles.cuh: a team of a whole warp that holds 8 x 8 tiles as the tensor cores do.
//
// With LR, LC, CV = 8, 4, 2 lane (g, t) holds row g and columns 2 t, 2 t + 1 of every tile, which
// is the accumulator of mma.m8n8k4; complex double, of which two do not fit a pack, has CV = 1 and
// columns t, t + 4, the same accumulator of a tile with its columns in another order. A
// factorization then goes by panels of 8 columns: a panel passes through shared memory to rows, one
// row to a lane, is factored there without a word from other lanes but the pivot row, and the tiles
// right of it take one product of rank 8 each: double and complex double on the tensor cores, the
// others on the vector units.
#pragma once
#include "lanes.cuh"
#include "panel_rows.cuh"
#include "reciprocal.cuh"
#include "tensor.cuh"

constexpr int NT = (N + 7) / 8;                     // tiles down and across
constexpr bool LARGE = N > 32;                      // more rows than lanes: Cholesky alone has that
constexpr int LESS = LARGE ? 8 : N;                 // the order of what the others need

// True for what lies in the tiles right of those on the diagonal
__device__ inline bool right_of_tiles(int i, int j) { return TILES && j >> 3 > i >> 3; }

// The column in its tile of a lane's element 0 or 1
__device__ inline int tile_col(int e) { return CV == 2 ? 2 * t() + e : 4 * e + t(); }

// What a warp has in shared memory. While it factors: the panel by rows, a pivot row on its way to
// all lanes, and the rows of U right of a panel, which start 32 bytes (mod 128) apart. While it
// solves: the whole factor by rows.
union Scratch {
    struct {
        alignas(16) scalar_t rows[N * (sizeof(scalar_t) == 16 ? 12 : 8) + N / 2 * PAD];
        alignas(16) scalar_t head[2][8];
        alignas(16) scalar_t u[8][LESS + 2 * PAD + 8];
    };
    alignas(16) scalar_t whole[LESS][LESS + PAD];

    __device__ scalar_t* panel(int r) { return rows + panel_row(r); }
    __device__ const scalar_t* panel(int r) const { return rows + panel_row(r); }
};

// A lane's two elements of a row of a tile, to and from the row's 8 elements in shared memory
template <class T> __device__ void write_pair(T* row, T x0, T x1)
{
    if constexpr (CV == 2) *reinterpret_cast<Pack*>(row + 2 * t()) = {x0, x1};
    else row[tile_col(0)] = x0, row[tile_col(1)] = x1;
}
template <class T> __device__ void read_pair(const T* row, T& x0, T& x1)
{
    if constexpr (CV == 2) {
        const Pack pair = *reinterpret_cast<const Pack*>(row + 2 * t());
        x0 = pair.x[0], x1 = pair.x[1];
    } else {
        x0 = row[tile_col(0)], x1 = row[tile_col(1)];
    }
}

// Rows m and after := those of the identity, as far as a warp's matrix goes
__device__ inline void ones_from(Block& a, int m)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            if (g() == tile_col(e) && row(i) >= m) a[i][2 * i + e] = scalar_t{1};
}

// Tile column k of a, from tile row `first` on, to the panel and back
__device__ inline void to_panel(const Block& a, int k, int first, Scratch& s)
{
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (i >= first) write_pair(s.panel(row(i)), a[i][2 * k], a[i][2 * k + 1]);
    __syncwarp();
}

__device__ inline void from_panel(Block& a, int k, int first, const Scratch& s)
{
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < NT; ++i)
        if (i >= first) read_pair(s.panel(row(i)), a[i][2 * k], a[i][2 * k + 1]);
}

// The operands of C -= A B with A 8 x 8 in the panel and B 8 x 8: a lane's part of B is one column
// of it on the tensor cores, which give the lanes two neighbouring columns of theirs, and on the
// vector units the columns of its part of C.
constexpr bool TENSOR = TILES && sizeof(real_t) == 8;
__device__ inline int tensor_col() { return CV == 2 ? g() : g() / 2 + g() % 2 * 4; }
struct Right { scalar_t x[TENSOR ? 2 : 16]; };

// B(r, c) = at(r, c)
template <class At> __device__ void right_operand(Right& b, At at)
{
    if constexpr (TENSOR) {
        b.x[0] = at(t(), tensor_col()), b.x[1] = at(t() + 4, tensor_col());
    } else {
        #pragma unroll
        for (int r = 0; r < 8; ++r)
            b.x[2 * r] = at(r, tile_col(0)), b.x[2 * r + 1] = at(r, tile_col(1));
    }
}

struct Left { scalar_t x[TENSOR ? 2 : 8]; };

// A lane's part of A, whose row in the panel is given; negated for the tensor cores, which add
template <class T> __device__ void left_operand(Left& l, const T* row)
{
    if constexpr (TENSOR) {
        l.x[0] = mul(row[t()], real_t(-1)), l.x[1] = mul(row[t() + 4], real_t(-1));
    } else {
        Row x;
        read_row(row, x);
        #pragma unroll
        for (int r = 0; r < 8; ++r) l.x[r] = x[r];
    }
}

// B = A^H: on the tensor cores a lane's part of it is its part of A, if the columns are in order
template <class At> __device__ void adjoint_operand(Right& b, const Left& a, At at)
{
    if constexpr (TENSOR && CV == 2)
        b.x[0] = mul(a.x[0], real_t(-1)), b.x[1] = mul(a.x[1], real_t(-1));
    else right_operand(b, at);
}

// (c0, c1) -= row of A times columns of B
template <class T> __device__ void rank_8(T& c0, T& c1, const Left& a, const Right& b)
{
    if constexpr (TENSOR) {
        #pragma unroll
        for (int h = 0; h < 2; ++h) tensor_product(c0, c1, a.x[h], b.x[h]);
    } else {
        #pragma unroll
        for (int r = 0; r < 8; ++r) {
            c0 = minus_product(c0, a.x[r], b.x[2 * r]);
            c1 = minus_product(c1, a.x[r], b.x[2 * r + 1]);
        }
    }
}

// The shared memory of the warp
__device__ inline Scratch& scratch()
{
    __shared__ Scratch all[WARPS];
    return all[threadIdx.x / 32];
}
