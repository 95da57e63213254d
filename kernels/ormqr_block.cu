// ormqr_block.cu: op(Q) C for a batch, Q the product of the first k reflectors of geqrf.
//
// A block has a member: C is m x n and stays in global memory, read twice and written once for
// every panel; 4 m n k - 2 n k^2 operations. C op(Q) is this for the transposes: what the launcher
// says by strides, `conjugated` and `adjoint`.
#include "launch.cuh"
#include "qr_panels.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
ormqr_block(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
            size tau_next, scalar_t* C, size c_row, size c_col, size c_next, size ms, size ns,
            size ks, size conjugated, size adjoint)
{
    wait_for_stream();
    __shared__ Shared s;
    const size b = blockIdx.x;
    apply_q(matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, tau_next, b), conjugated,
            adjoint, matrix_of(C, c_row, c_col, c_next, b), panel_memory(s), s, size_of(ms, b),
            size_of(ns, b), size_of(ks, b), false);
}
