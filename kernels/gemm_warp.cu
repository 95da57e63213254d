// gemm_warp.cu: C := alpha A B + beta C of every member of a batch, for members that weigh little.
//
// A warp owns a TM x TN tile of one member's C in registers (multiply.cuh) and reads A and B where
// they lie, DEPTH of k at a time. What a load brings is used for the whole tile, and where the tile
// is all of C each element of A and B is loaded once: the tensor cores' operands are whole sectors
// of memory whichever stride is 1. No shared memory, no barrier; lines that a load leaves half
// used wait in the L1 cache. A and B may be the same for all members (stride 0).
//
// symmetric = 1: A is symmetric, 2: Hermitian; only its elements (i, j), i >= j, are read.
// half: Part_of_C (operands.cuh)
//
// Floor: (m k + k n + m n) elements a member, C read too if beta is not zero; 2 m n k operations.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int TM = 16;      // rows of C to a warp
constexpr int TN = 16;      // columns
constexpr int DEPTH = 8;    // of k whose loads are under way together, a multiple of 4
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
#include "gemm.cuh"
#include "launch.cuh"

// A symmetric or Hermitian matrix from row `first` on, of which the lower triangle is stored
struct Symmetric {
    Operand x;
    int first;
    bool hermitian;

    __device__ scalar_t operator()(int i, int j) const
    {
        const int r = first + i;
        const scalar_t value = r >= j ? x(r, j) : x(j, r);
        if (!hermitian) return value;
        return r == j ? real_part(value) : r < j ? conj(value) : value;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_warp(size m, size n, size k, size half, size symmetric, const scalar_t* A, size ars,
          size acs, size abs, size conj_a, const scalar_t* B, size brs, size bcs, size bbs,
          size conj_b, const scalar_t* C, size crs, size ccs, size cbs, scalar_t* O, size ors,
          size ocs, size obs, size alpha_re, size alpha_im, size beta_re, size beta_im, size batch)
{
    wait_for_stream();
    const int across = (int(n) + TN - 1) / TN, tiles = (int(m) + TM - 1) / TM * across;
    const size work = size(blockIdx.x) * WARPS + warp();
    const size member = tiles == 1 ? work : work / tiles;
    if (member >= batch) return;  // the whole warp, and nothing waits for it
    const int number_of_tile = int(work - member * tiles);
    const int i = number_of_tile / across * TM, j = number_of_tile % across * TN;
    const bool upper = half & UPPER_OF_C;
    if (half && (upper ? j + TN <= i : i + TM <= j)) {
        if (!(half & OTHERS_ZERO)) return;
        k = 0;
    }

    const Operand a{A + member * abs + i * ars, ars, acs, int(conj_a)};
    const Operand b{B + member * bbs + j * bcs, brs, bcs, int(conj_b)};
    const Strided<const scalar_t> c{C + member * cbs + i * crs + j * ccs, crs, ccs};
    const Strided<scalar_t> o{O + member * obs + i * ors + j * ocs, ors, ocs};
    const bool vectors = in_vectors(O, ors, ocs, obs);
    const scalar_t alpha = number(alpha_re, alpha_im), beta = number(beta_re, beta_im);
    const int rows = int(m) - i, columns = int(n) - j;

    if (symmetric) {
        Tile<TM, TN, Symmetric, Operand> tile;
        tile.clear();
        tile.template stream<4>({{A + member * abs, ars, acs, int(conj_a)}, i, symmetric == 2}, b,
                                rows, columns, int(k));
        finish(tile, alpha, beta, c, o, vectors, int(half), i, j, rows, columns);
        return;
    }
    if constexpr (sizeof(real_t) == 4) {
        if (!conj_a && !conj_b && n % VECTOR == 0 && in_vectors(A, ars, acs, abs)
            && in_vectors(B, brs, bcs, bbs)) {
            using Rows = ByRows<const scalar_t>;
            Tile<TM, TN, Rows, Rows> tile;
            tile.clear();
            tile.template stream<DEPTH>({a.p, int(ars)}, {b.p, int(brs)}, rows, columns, int(k));
            finish(tile, alpha, beta, c, o, vectors, int(half), i, j, rows, columns);
            return;
        }
    }
    Tile<TM, TN, Operand, Operand> tile;
    tile.clear();
    tile.template stream<DEPTH>(a, b, rows, columns, int(k));
    finish(tile, alpha, beta, c, o, vectors, int(half), i, j, rows, columns);
}
