// qr_strips.cuh: op(Q) times strips of columns, a strip to a block.
//
// The COLUMNS of a strip, all their rows, stay in shared memory while the panels of Q go by
// (qr_left.cuh): C is read and written once, 2 m n numbers, and every strip reads V, which L2 has
// for the strips of a member that are under way together: m k / 2 numbers from L2, twice.
#pragma once
#include "block.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int NB = 16;      // reflectors of a panel
constexpr int COLUMNS = 16; // of a strip
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int ROWS = 1;     // no panel is factored here
constexpr int WIDTH = COLUMNS;
// Rows 2 t and columns g of a tile meet no bank twice
constexpr int LD = WIDTH + (sizeof(scalar_t) == 4 ? 4 : sizeof(scalar_t) == 8 ? 2 : 1);
#include "qr_left.cuh"

// C := op(Q) C in shared memory, of Q `count` reflectors; T as larft_panels leaves it. Where C began
// as columns `first` and on of the identity, the panels right of these change nothing.
__device__ inline void apply_panels(Strided<const scalar_t> QR, const scalar_t* T, scalar_t* C,
                                    bool adjoint, bool identity, int m, int count, int first)
{
    constexpr int K = NB / 8, I = (COLUMNS + 15) / 16;
    const int tiles = (m + 7) / 8;
    scalar_t* const parts = C + 8 * tiles * LD;
    int panels = (count + NB - 1) / NB;
    if (identity && panels > (first + COLUMNS - 1) / NB + 1) panels = (first + COLUMNS - 1) / NB + 1;
    const auto at = [=](int i) {
        const int j = (adjoint ? i : panels - 1 - i) * NB;
        return Reflectors<K>({QR.p + j * (QR.rs + QR.cs), QR.rs, QR.cs}, j, m, count - j);
    };
    scalar_t v[2][K] = {};
    if (panels) at(0).template ask<true>(v, own_tile(at(0).top / 8));
    #pragma unroll 1
    for (int i = 0; i < panels; ++i) {
        const auto V = at(i);
        const int tile = own_tile(V.top / 8);
        Product<K, I> w;
        project<false, K, I>(w, V, v, C, tile, tiles);
        V.template ask<false>(v, tile);
        times_t<K, I>(w, parts, T + V.top * NB);
        scalar_t next[2][K] = {};
        if (i + 1 < panels) {
            const auto other = at(i + 1);
            other.template ask<true>(next, own_tile(other.top / 8));
        }
        subtract<K, I>(w, V, v, C, tile, tiles);
        copy(v, next);
    }
    __syncthreads();
}
