// syrk_split.cu: C := alpha A B + beta C of every member of a batch in single precision, B = A^T or
// A^H, where i >= j (products.cuh), on the tensor cores: a real number is the sum of two of 11 bits,
// a product three of theirs (tensor.cuh).
//
// The floor is syrk_block's in bytes; of operations of the tensor cores 3 n (n + 1) k, complex 12.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int BM = 64, BN = 64;   // the tile of a team
constexpr int TM = 32, TN = 32;   // of a warp
constexpr int BK = 16;            // of k in a slice
constexpr int STAGES = 2;         // slices in shared memory
constexpr int RESIDENT = 0;       // 1: which are all there are
constexpr int BLOCKS = 1;         // per multiprocessor for which registers are rationed
#endif
#define SPLIT true
#include "launch.cuh"
#include "products.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
syrk_split(size m, size n, size k, size hermitian, size down, size across, const scalar_t* A,
           size ars, size acs, size abs, size conj_a, const scalar_t* B, size brs, size bcs,
           size bbs, size conj_b, const scalar_t* C, size crs, size ccs, size cbs, scalar_t* O,
           size ors, size ocs, size obs, size alpha_re, size alpha_im, size beta_re, size beta_im,
           size batch)
{
    wait_for_stream();
    product<RANK_K>(m, n, k, hermitian, down, across, A, ars, acs, abs, conj_a, B, brs, bcs, bbs,
        conj_b, C, crs, ccs, cbs, O, ors, ocs, obs, alpha_re, alpha_im, beta_re, beta_im, batch);
}
