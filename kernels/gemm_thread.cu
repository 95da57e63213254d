// gemm_thread.cu: C := alpha A B + beta C of every member of a batch of very small members by rows.
//
// A thread owns PM x PN elements of one member's C; DOWN x ACROSS threads hold a member of up to
// PM DOWN rows and PN ACROSS columns, and neighbouring threads neighbouring members. Rows of A and
// B come 16 bytes at a time from the L1 cache, where the threads of a member meet; no thread waits
// for another. The launcher sends what does not lie by rows in 16 bytes to gemm_warp.cu, which sums
// in the same order and so to the same bits.
//
// Floor: (m k + k n + m n) elements a member; 2 m n k operations.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int PM = 1;       // rows to a thread
constexpr int PN = 8;       // columns, a multiple of 16 bytes
constexpr int DOWN = 8;     // threads down and across a member
constexpr int ACROSS = 1;
#endif
#include "gemm.cuh"
#include "launch.cuh"

constexpr int V = VECTOR;
static_assert(PN % V == 0);

extern "C" __global__ void __launch_bounds__(THREADS)
gemm_thread(size m, size n, size k, size, size, const scalar_t* A, size ars, size, size abs, size,
            const scalar_t* B, size brs, size, size bbs, size, const scalar_t* C, size crs,
            size ccs, size cbs, scalar_t* O, size ors, size, size obs, size alpha_re,
            size alpha_im, size beta_re, size beta_im, size batch)
{
    wait_for_stream();
    const size work = size(blockIdx.x) * THREADS + thread(), member = work / (DOWN * ACROSS);
    const int cell = int(work % (DOWN * ACROSS)), i = cell / ACROSS * PM, j = cell % ACROSS * PN;
    const int rows = int(m) - i, columns = int(n) - j;  // a multiple of V columns
    if (member >= batch || rows <= 0 || columns <= 0) return;
    const scalar_t* a = A + member * abs + i * ars;
    const scalar_t* b = B + member * bbs + j;
    const int lda = int(ars), ldb = int(brs);

    scalar_t sum[PM][PN] = {};
    #pragma unroll 2
    for (int p = 0; p < int(k); p += V) {
        Vector x[PM];
        #pragma unroll
        for (int r = 0; r < PM; ++r)
            x[r] = *reinterpret_cast<const Vector*>(a + (r < rows ? r : 0) * lda + p);
        #pragma unroll
        for (int q = 0; q < V; ++q) {
            #pragma unroll
            for (int c = 0; c < PN; c += V) {
                if (c >= columns) break;
                const Vector y = *reinterpret_cast<const Vector*>(b + (p + q) * ldb + c);
                #pragma unroll
                for (int r = 0; r < PM; ++r)
                    #pragma unroll
                    for (int e = 0; e < V; ++e)
                        sum[r][c + e] = minus_product(sum[r][c + e], mul(x[r].x[q], real_t(-1)),
                                                      y.x[e]);
            }
        }
    }
    const scalar_t alpha = number(alpha_re, alpha_im), beta = number(beta_re, beta_im);
    const bool read = abs1(beta) != 0;
    const scalar_t* const from = C + member * cbs + i * crs + j * ccs;
    scalar_t* const to = O + member * obs + i * ors + j;
    #pragma unroll
    for (int r = 0; r < PM; ++r) {
        if (r >= rows) break;
        #pragma unroll
        for (int c = 0; c < PN; c += V) {
            if (c >= columns) break;
            Vector out;
            #pragma unroll
            for (int e = 0; e < V; ++e) {
                const scalar_t old = read ? mul(beta, from[r * crs + (c + e) * ccs]) : scalar_t{};
                out.x[e] = minus_product(old, mul(alpha, real_t(-1)), sum[r][c + e]);
            }
            *reinterpret_cast<Vector*>(to + r * ors + c) = out;
        }
    }
}
