// orgqr_small.cu: the first n columns of Q for a batch of m x n matrices, m <= N, Q the product of
// the first k reflectors of geqrf.
//
// Columns are dealt to the lanes of a block as one line: a team of `lanes` lanes, any number, has a
// member, and teams lie side by side, across warps where that leaves fewer lanes without work (33
// columns in whole warps leave every second). V of a team is in shared memory
// (small_reflectors.cuh). A lane has columns in registers, one at a time: what it multiplies is its
// own, and nothing waits. A column begins as that of the identity, which reflectors past it leave as
// it is; STEP rows that a reflector does not reach are left out together.
//
// The floor: what is below the diagonal of QR is read and Q written, once: m k - k^2 / 2 + m n
// scalars; 4 m n k - 2 (m + n) k^2 + 4 k^3 / 3 operations.
#include "launch.cuh"
#include "small_reflectors.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
orgqr_small(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
            size tau_next, scalar_t* Q, size o_row, size o_col, size o_next, size ms, size ns,
            size ks, size lanes, size apart, size batch)
{
    wait_for_stream();
    const int wide = int(lanes), team = thread() / wide, lane = thread() - team * wide;
    const size b = size(blockIdx.x) * (THREADS / wide) + team;
    const bool here = team < THREADS / wide && b < batch;
    const int m = here ? size_of(ms, b) : 0, n = here ? size_of(ns, b) : 0;
    const int k = here ? size_of(ks, b) : 0;
    scalar_t* const V = reinterpret_cast<scalar_t*>(dynamic_shared) + team * int(apart);
    scalar_t* const taus = V + k * LD;
    if (here)
        load(V, taus, matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, tau_next, b), m, k,
             false, false, lane, wide);
    if (WARPS == 1 || 32 % wide == 0) __syncwarp();
    else __syncthreads();  // nothing below waits for another lane
    if (!here) return;
    const auto q = matrix_of(Q, o_row, o_col, o_next, b);
    #pragma unroll 1
    for (int column = lane; column < n; column += wide) {
        scalar_t a[N];
        #pragma unroll
        for (int i = 0; i < N; ++i) a[i] = scalar_t{real_t(i == column)};
        #pragma unroll 1
        for (int j = k - 1; j >= 0; --j) {  // all lanes of a warp at the same
            if (j <= column) reflect(a, V + j * LD, taus[j], j);
        }
        #pragma unroll
        for (int i = 0; i < N; ++i)
            if (i < m) q(i, column) = a[i];
    }
}
