// orgqr_block.cu: the first n columns of Q for a batch, Q the product of k reflectors of geqrf.
//
// A block has a member: Q begins as the identity in global memory, and the panels, the last first,
// change it from their own row and column on. 4 m n k - 2 (m + n) k^2 + 4/3 k^3 operations.
#include "launch.cuh"
#include "qr_panels.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
orgqr_block(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
            size tau_next, scalar_t* Q, size o_row, size o_col, size o_next, size ms, size ns,
            size ks)
{
    wait_for_stream();
    __shared__ Shared s;
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b), k = size_of(ks, b);
    const auto out = matrix_of(Q, o_row, o_col, o_next, b);
    for_each(m, n, out.cs == 1, [=](int i, int j) { out(i, j) = scalar_t{real_t(i == j)}; });
    __syncthreads();
    apply_q(matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, tau_next, b), false, false, out,
            panel_memory(s), s, m, n, k, true);
}
