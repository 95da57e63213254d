// gemm_small.cu: C := alpha op(A) op(B) + beta C, for products that weigh less than their launch.
//
// A block of 16 x 16 threads owns a TILE x TILE tile of C, and a thread (TILE / 16)^2 of its
// elements, in registers: rows y, y + 16, ... and columns x, x + 16, ... Slices of op(A) and op(B),
// 16 deep, pass through shared memory once per tile; neighbouring threads walk whichever stride
// is one. Every element is summed by one thread in the order of k, so its bits depend on nothing
// else. The sum is kept negated, for minus_product.
//
// Floor: (m k + k n + m n) elements and 2 m n k operations, under a microsecond at 64 x 64 x 64:
// what counts is that one call is one cheap launch.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int TILE = 32;    // rows and columns of C per block, a multiple of 16
#endif
#include "launch.cuh"
#include "scalar.cuh"

constexpr int SIDE = 16, PER = TILE / SIDE;
static_assert(TILE % SIDE == 0);

using size = long long;

// slice[k][i] := op(X)(first + i, k0 + k), zeros past the edges; rs and cs are the strides of op(X)
__device__ void load_slice(scalar_t (&slice)[SIDE][TILE + 1], const scalar_t* X, size rs, size cs,
                           bool conjugate, size first, size rows, size k0, size depth)
{
    const int thread = threadIdx.y * SIDE + threadIdx.x;
    #pragma unroll
    for (int e = 0; e < PER; ++e) {
        const int at = e * SIDE * SIDE + thread;
        const int i = rs == 1 ? at % TILE : at / SIDE, k = rs == 1 ? at / TILE : at % SIDE;
        scalar_t x{};
        if (first + i < rows && k0 + k < depth) x = X[(first + i) * rs + (k0 + k) * cs];
        slice[k][i] = conjugate ? conj(x) : x;
    }
}

extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
gemm_small(size m, size n, size depth, scalar_t alpha, const scalar_t* A, size ars, size acs,
           int conj_a, const scalar_t* B, size brs, size bcs, int conj_b, scalar_t beta,
           int with_c, scalar_t* C, size crs, size ccs)
{
    wait_for_stream();
    __shared__ scalar_t a[SIDE][TILE + 1], b[SIDE][TILE + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const size i0 = size(blockIdx.x) * TILE, j0 = size(blockIdx.y) * TILE;

    scalar_t sum[PER][PER] = {};
    for (size k0 = 0; k0 < depth; k0 += SIDE) {
        load_slice(a, A, ars, acs, conj_a, i0, m, k0, depth);
        load_slice(b, B, bcs, brs, conj_b, j0, n, k0, depth);
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < SIDE; ++k)
            #pragma unroll
            for (int p = 0; p < PER; ++p)
                #pragma unroll
                for (int q = 0; q < PER; ++q)
                    sum[p][q] = minus_product(sum[p][q], a[k][x + SIDE * p], b[k][y + SIDE * q]);
        __syncthreads();
    }

    #pragma unroll
    for (int p = 0; p < PER; ++p)
        #pragma unroll
        for (int q = 0; q < PER; ++q) {
            const size i = i0 + x + SIDE * p, j = j0 + y + SIDE * q;
            if (i >= m || j >= n) continue;
            scalar_t& c = C[i * crs + j * ccs];
            c = minus_product(with_c ? mul(beta, c) : scalar_t{}, alpha, sum[p][q]);
        }
}
