// gemm_thread.cu: C := alpha A B + beta C of every member of a batch of very small members by rows.
//
// A thread owns PM x PN elements of one member's C; DOWN x ACROSS threads hold a member of up to
// PM DOWN rows and PN ACROSS columns, and neighbouring threads neighbouring members. Rows of A and
// B come from the L1 cache, where the threads of a member meet, 16 bytes at a time where all lie so;
// no thread waits for another. The launcher sends what does not lie by rows to gemm_warp.cu, which
// in single precision sums in the same order and so to the same bits.
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

// V numbers, as one if WHOLE; or one by one, of which `there` exist, the others zero
template <bool WHOLE> __device__ Vector load(const scalar_t* from, int there)
{
    if constexpr (WHOLE) {
        return *reinterpret_cast<const Vector*>(from);
    } else {
        Vector v;
        #pragma unroll
        for (int e = 0; e < V; ++e) v.x[e] = e < there ? from[e] : scalar_t{};
        return v;
    }
}
template <bool WHOLE> __device__ void store(scalar_t* to, const Vector& v, int there)
{
    if constexpr (WHOLE) {
        *reinterpret_cast<Vector*>(to) = v;
    } else {
        #pragma unroll
        for (int e = 0; e < V; ++e)
            if (e < there) to[e] = v.x[e];
    }
}

struct Element {  // the first of a thread; what there is from it on
    const scalar_t *a, *b, *c;
    scalar_t* o;
    int rows, columns, k;
    size lda, ldb, crs, ccs, ors;
    scalar_t alpha, beta;
};

template <bool WHOLE> __device__ void multiply(const Element& my)
{
    const int lda = int(my.lda), ldb = int(my.ldb);
    scalar_t sum[PM][PN] = {};
    #pragma unroll 2
    for (int p = 0; p < my.k; p += V) {
        Vector x[PM];
        #pragma unroll
        for (int r = 0; r < PM; ++r)
            x[r] = load<WHOLE>(my.a + (r < my.rows ? r : 0) * lda + p, my.k - p);
        #pragma unroll
        for (int q = 0; q < V; ++q) {
            if (!WHOLE && p + q >= my.k) break;
            #pragma unroll
            for (int c = 0; c < PN; c += V) {
                if (c >= my.columns) break;
                const Vector y = load<WHOLE>(my.b + (p + q) * ldb + c, my.columns - c);
                #pragma unroll
                for (int r = 0; r < PM; ++r)
                    #pragma unroll
                    for (int e = 0; e < V; ++e)
                        sum[r][c + e] = minus_product(sum[r][c + e], mul(x[r].x[q], real_t(-1)),
                                                      y.x[e]);
            }
        }
    }
    const bool read = abs1(my.beta) != 0;
    #pragma unroll
    for (int r = 0; r < PM; ++r) {
        if (r >= my.rows) break;
        #pragma unroll
        for (int c = 0; c < PN; c += V) {
            if (c >= my.columns) break;
            Vector out;
            #pragma unroll
            for (int e = 0; e < V; ++e) {
                const scalar_t old = read && (WHOLE || c + e < my.columns)
                    ? mul(my.beta, my.c[r * my.crs + (c + e) * my.ccs]) : scalar_t{};
                out.x[e] = minus_product(old, mul(my.alpha, real_t(-1)), sum[r][c + e]);
            }
            store<WHOLE>(my.o + r * my.ors + c, out, my.columns - c);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
gemm_thread(size m, size n, size k, size, size, const scalar_t* A, size ars, size, size abs, size,
            const scalar_t* B, size brs, size, size bbs, size, const scalar_t* C, size crs,
            size ccs, size cbs, scalar_t* O, size ors, size, size obs, size alpha_re,
            size alpha_im, size beta_re, size beta_im, size batch)
{
    wait_for_stream();
    const size work = size(blockIdx.x) * THREADS + thread(), member = work / (DOWN * ACROSS);
    const int cell = int(work % (DOWN * ACROSS)), i = cell / ACROSS * PM, j = cell % ACROSS * PN;
    const int rows = int(m) - i, columns = int(n) - j;
    if (member >= batch || rows <= 0 || columns <= 0) return;
    const Element my{A + member * abs + i * ars, B + member * bbs + j,
                     C + member * cbs + i * crs + j * ccs, O + member * obs + i * ors + j, rows,
                     columns, int(k), ars, brs, crs, ccs, ors, number(alpha_re, alpha_im),
                     number(beta_re, beta_im)};
    if (n % V == 0 && k % V == 0 && in_vectors(A, ars, 1, abs) && in_vectors(B, brs, 1, bbs)
        && in_vectors(O, ors, 1, obs))
        multiply<true>(my);
    else
        multiply<false>(my);
}
