// larft_panels.cu: T of every panel of reflectors, H_1 ... H_NB = I - V T V^H, for a batch.
//
// A block has a panel: its warps share the tiles of eight rows of V, whose V^H V the tensor cores
// multiply, the sums meet in shared memory, and one warp forms T (qr_columns.cuh). V is read once,
// m k - k^2 / 2 numbers; T is left in the order in which lanes of qr_left.cuh read it, conjugated,
// or transposed for Q C in place of Q^H C.
#include "block.cuh"
#include "launch.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int NB = 16;      // reflectors of a panel
#endif
constexpr int ROWS = 1;     // no panel is factored here
constexpr int CHAIN = 4;    // tiles
constexpr int WIDTH = 16;
constexpr int LD = NB + 16 / sizeof(scalar_t);
#include "qr_left.cuh"

struct Shared {
    alignas(16) scalar_t z[NB][LD];   // V^H V
    scalar_t tau[NB];
};

extern "C" __global__ void __launch_bounds__(THREADS)
larft_panels(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* TAU,
             size tau_next, scalar_t* TS, size ts_next, size ms, size ks, size adjoint, size panels)
{
    wait_for_stream();
    constexpr int K = NB / 8;
    __shared__ Shared s;
    const size b = blockIdx.x / panels;
    const int k = int(blockIdx.x % panels) * NB, m = size_of(ms, b), count = size_of(ks, b) - k;
    if (count <= 0) return;
    const auto QR_b = matrix_of(QR, q_row, q_col, q_next, b);
    const Reflectors<K> V({QR_b.p + k * (QR_b.rs + QR_b.cs), QR_b.rs, QR_b.cs}, k, m, count);
    scalar_t* const T = array_of(TS, ts_next, b) + k * NB;

    // Where reflectors are alike a sum is rounded to one side all the way down, and T carries that to
    // every column of C: sums of CHAIN tiles are added.
    scalar_t z[K / 2][K][4] = {}, v[2][K];
    int tile = own_tile(k / 8);
    V.ask<true>(v, tile);
    #pragma unroll 1
    while (tile < (m + 7) / 8) {
        scalar_t part[K / 2][K][4] = {};
        #pragma unroll 1
        for (int c = 0; c < CHAIN && tile < (m + 7) / 8; ++c, tile += WARPS) {
            scalar_t next[2][K];
            V.ask<true>(next, tile + WARPS);
            V.trim<true>(v, tile);
            #pragma unroll
            for (int i = 0; i < K / 2; ++i) {
                const scalar_t a[4] = {conj(v[0][2 * i]), conj(v[0][2 * i + 1]),
                                       conj(v[1][2 * i]), conj(v[1][2 * i + 1])};
                #pragma unroll
                for (int l = 0; l < K; ++l) tensor_product(part[i][l], a, {v[0][l], v[1][l]});
            }
            copy(v, next);
        }
        #pragma unroll
        for (int i = 0; i < K / 2; ++i)
            #pragma unroll
            for (int l = 0; l < K; ++l)
                #pragma unroll
                for (int e = 0; e < 4; ++e) z[i][l][e] = add(z[i][l][e], part[i][l][e]);
    }
    if (thread() < NB)
        s.tau[thread()] = thread() < count ? array_of(TAU, tau_next, b)[k + thread()] : scalar_t{};
    #pragma unroll 1
    for (int w = 0; w < WARPS; ++w) {     // one after the other, so that the bits are the same
        if (warp() == w)
            #pragma unroll
            for (int i = 0; i < K / 2; ++i)
                #pragma unroll
                for (int l = 0; l < K; ++l)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        scalar_t& sum = s.z[K * g() + 2 * i + e / 2][K * (2 * t() + e % 2) + l];
                        sum = w ? add(sum, z[i][l][e]) : z[i][l][e];
                    }
        __syncthreads();
    }
    if (warp() == 0)
        form_t<NB>(s, [=](int c, int l, scalar_t x) {
            T[adjoint ? place<K>(c, l) : place<K>(l, c)] = adjoint ? conj(x) : x;
        });
}
