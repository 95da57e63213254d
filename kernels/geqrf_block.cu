// geqrf_block.cu: QR factorization of a batch of m x n matrices by panels.
//
// A block has a matrix, which stays in global memory (in L2, for it is used again and again): a
// panel goes through shared memory, the columns right of it are updated where they are. An
// element is read twice and written once for every panel left of it, so that m n^2 / (2 NB) of
// each cross L2; 2 m n^2 - 2/3 n^3 operations; every column waits for one barrier.
#include "launch.cuh"
#include "qr_panels.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif

// A to QR, each column scaled where its squares might over- or underflow; `sizes` are then those of
// the columns. True if any was scaled.
__device__ inline bool scaled_copy(Strided<const scalar_t> A, Strided<scalar_t> QR, Shared& s,
                                   real_t* sizes, int m, int n)
{
    bool unusual = false;
    moved<32>(m, n, QR.cs == 1, [=](int i, int j) { return A(i, j); },
        [&](int i, int j, scalar_t x) {
            if (!is_usual(larger(0, x))) unusual = true;
            if (A.p != QR.p) QR(i, j) = x;
        });
    if (block_most(unusual, s) == 0) return false;
    for (int j = thread(); j < n; j += THREADS) {
        real_t most = 0;
        for (int i = 0; i < m; ++i) most = larger(most, QR(i, j));
        sizes[j] = most;
    }
    __syncthreads();
    for_each(m, n, QR.cs == 1, [=](int i, int j) {
        if (!is_usual(sizes[j])) QR(i, j) = to_one(sizes[j]).times(QR(i, j));
    });
    __syncthreads();
    return true;
}

// A of one member to QR and tau. V: rows of LD numbers in shared memory, m of them.
__device__ inline void qr(Strided<const scalar_t> A, Strided<scalar_t> QR, scalar_t* tau,
                          scalar_t* V, real_t* sizes, Shared& s, int m, int n)
{
    const bool scaled = scaled_copy(A, QR, s, sizes, m, n);
    const int steps = m < n ? m : n;
    #pragma unroll 1
    for (int k = 0; k < steps; k += NB) {
        const int rows = m - k, count = steps - k < NB ? steps - k : NB;
        const int width = n - k < NB ? n - k : NB;
        const Strided<scalar_t> panel{&QR(k, k), QR.rs, QR.cs}, inside{V, LD, 1};
        moved<PB>(rows, NB, QR.cs == 1,
            [=](int i, int j) { return j < width ? panel(i, j) : scalar_t{}; },
            [=](int i, int j, scalar_t x) { inside(i, j) = x; });
        __syncthreads();
        #pragma unroll 1
        for (int p = 0; p < NB; p += PB) {
            factor_panel(V + p * LD + p, s, rows - p, count - p, p);
            __syncthreads();
            moved<PB>(rows, width - p < PB ? width - p : PB, QR.cs == 1,
                      [=](int i, int j) { return inside(i, p + j); },
                      [=](int i, int j, scalar_t x) { panel(i, p + j) = x; });
            if (p + PB < NB && warp() == 0) form_t<PB>(s);
            __syncthreads();
            make_trapezoid<PB>(V + p * LD + p, rows - p, count - p);
            for (int e = thread(); e < p * PB; e += THREADS)
                if (e / PB < rows) inside(e / PB, p + e % PB) = scalar_t{};
            __syncthreads();
            if (p + PB < NB) apply_to_strips<true, PB, 1>(V, s, {V + PB, LD, 1}, rows, PB);
            __syncthreads();
        }
        if (warp() == 0) {
            if (NB > PB) form_z(V, s, rows, PB);
            form_t<NB>(s);
        }
        if (thread() < count) tau[k + thread()] = s.tau[thread()];
        __syncthreads();
        const int right = k + NB;
        if (right < n)
            apply_to_strips<true, NB, EACH>(V, s, {&QR(k, right), QR.rs, QR.cs}, rows, n - right);
        __syncthreads();
    }
    if (scaled)
        for_each(steps, n, QR.cs == 1, [=](int i, int j) {
            if (i <= j && !is_usual(sizes[j]))
                QR(i, j) = to_one(sizes[j]).inverse().times(QR(i, j));
        });
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_block(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
            size q_col, size q_next, scalar_t* tau, size ms, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b);
    scalar_t* const V = panel_memory(s);
    real_t* const sizes = reinterpret_cast<real_t*>(V + m * LD);
    qr(matrix_of(A, a_row, a_col, a_next, b), matrix_of(QR, q_row, q_col, q_next, b),
       array_of(tau, m < n ? m : n, b), V, sizes, s, m, n);
}
