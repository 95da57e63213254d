// gemm_lines.cu: C := alpha A B + beta C of every member of a batch whose matrices lie by rows
// without gaps, of lengths that are no multiple of 128 bytes but where they are PADDED
// (line_products.cuh).
//
// k > 0. The floor is (m k + k n + m n) elements a member, C read too if beta is not zero.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int DOWN = 1, ACROSS = 1;  // warps of a team; of a team of one a block has WARPS
constexpr int RM = 3, RN = 5;        // tiles of a warp
constexpr int DEEP = 64;             // of k in a slice
constexpr int STAGES = 1;            // slices in shared memory; 1: there is one in all
constexpr int RESIDENT = 1;          // 1: the rows of A come as a whole
constexpr int ADJACENT = 0;          // 1: of k the lanes of a group take neighbours
constexpr int PADDED = 0;            // 1: and rows are apart in shared memory
constexpr int BULK = 0;              // 1: the hardware brings lines (lines.cuh)
constexpr int BLOCKS = 1;            // per multiprocessor for which registers are rationed
#endif
#include "launch.cuh"
#include "line_products.cuh"

struct General {
    static constexpr bool COMPLETES = false;
    static __device__ void complete(const Part&, const Slices&) {}
    static __device__ scalar_t a(const Part& w, int i, int p) { return w.a[i * w.k + p]; }
    static __device__ scalar_t b(const Part& w, int p, int j) { return w.b[p * w.n + j]; }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_lines(size m, size n, size k, size down, size, size shared, const scalar_t* A, size a_next,
           const scalar_t* B, size b_next, const scalar_t* C, size c_row, size c_col, size c_next,
           scalar_t* O, size o_next, size alpha_re, size alpha_im, size beta_re, size beta_im,
           size batch)
{
    wait_for_stream();
    product(General{}, m, n, k, down, shared, A, a_next, B, b_next, C, c_row, c_col, c_next, O,
            o_next, alpha_re, alpha_im, beta_re, beta_im, batch);
}
