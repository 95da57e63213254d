// tile.cuh: an 8 x 8 tile in the registers of a warp, the accumulator of mma.m8n8k4.
//
// Lane (g, t) = (lane / 4, lane % 4) holds row of_place(g), columns of_place(2 t) and of_place(2 t
// + 1): places are in order but in complex double, where so placed four lanes take the whole of 64
// bytes at a time. For C -= A B^H in double precision the lane's part of A and its part of B are
// what the tensor cores want of it: tiles that it made by one product go into the next as they
// are.
#pragma once
#include "memory.cuh"
#include "tensor.cuh"

constexpr bool TENSOR = sizeof(real_t) == 8;
constexpr int PAIR = sizeof(scalar_t) == 16 ? 1 : 2;  // neighbours in a row that a lane has

__host__ __device__ constexpr int of_place(int p) { return PAIR == 2 ? p : p / 2 + p % 2 * 4; }
__host__ __device__ constexpr int place_of(int j) { return PAIR == 2 ? j : j % 4 * 2 + j / 4; }

__device__ inline int g() { return threadIdx.x % 32 / 4; }
__device__ inline int t() { return threadIdx.x % 4; }
__device__ inline int tile_row() { return of_place(g()); }
__device__ inline int tile_col(int e) { return of_place(2 * t() + e); }

struct alignas(PAIR * sizeof(scalar_t)) Tile { scalar_t x[2]; };  // a lane's part

// c[q] += SIGN a[q] b^H, in double precision
template <int SIGN, int COUNT, class T>
__device__ void add_adjoint(T (&c)[COUNT], const T (&a)[COUNT], const T& b)
{
    if constexpr (TENSOR) {
        const scalar_t right[2] = {mul(conj(b.x[0]), real_t(SIGN)),
                                   mul(conj(b.x[1]), real_t(SIGN))};
        #pragma unroll
        for (int q = 0; q + 1 < COUNT; q += 2) {
            scalar_t its[4] = {c[q].x[0], c[q].x[1], c[q + 1].x[0], c[q + 1].x[1]};
            const scalar_t left[4] = {a[q].x[0], a[q + 1].x[0], a[q].x[1], a[q + 1].x[1]};
            tensor_product(its, left, right);
            c[q] = {its[0], its[1]}, c[q + 1] = {its[2], its[3]};
        }
        if constexpr (COUNT % 2) tensor_product(c[COUNT - 1].x, a[COUNT - 1].x, right);
    }
}

// Tile (I, J) of a matrix, zeros where not wanted(i, j); a pair is loaded if its first is wanted
template <bool PACKS, class T, class Wanted>
__device__ Tile load_tile(const Strided<T>& A, int I, int J, Wanted wanted)
{
    const int i = 8 * I + tile_row();
    Tile a = {};
    if constexpr (PACKS && PAIR == 2) {
        const int j = 8 * J + tile_col(0);
        if (wanted(i, j)) {
            a = *reinterpret_cast<const Tile*>(&A(i, 0) + j);
        }
    } else {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int j = 8 * J + tile_col(e);
            if (wanted(i, j)) a.x[e] = A(i, j);
        }
    }
    return a;
}

template <class Wanted>
__device__ void store_tile(const Tile& a, const Strided<scalar_t>& A, int I, int J, Wanted wanted)
{
    const int i = 8 * I + tile_row();
    const bool first = wanted(i, 8 * J + tile_col(0)), second = wanted(i, 8 * J + tile_col(1));
    if (first) A(i, 8 * J + tile_col(0)) = a.x[0];
    if (second) A(i, 8 * J + tile_col(1)) = a.x[1];
}
