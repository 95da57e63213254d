// ormqr_small.cu: op(Q) C for a batch of C with m <= N rows, Q the product of the first k reflectors
// of geqrf.
//
// A team of LANES lanes of a warp has a member, V in shared memory (small_reflectors.cuh). A lane
// has columns of C in registers, one at a time, l, l + LANES, ...: what it multiplies is its own, and
// nothing waits. STEP rows that a reflector does not reach are left out together. C op(Q) is this
// for the transposes: what the launcher says by strides, `conjugated` and `adjoint`.
//
// The floor: what is below the diagonal of QR is read, C read and written, once: m k - k^2 / 2 +
// 2 m n scalars; 4 m n k - 2 n k^2 operations.
#include "launch.cuh"
#include "small_reflectors.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int LANES = 32;   // of a team
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
static_assert(32 % LANES == 0);

constexpr int TEAMS = THREADS / LANES;      // of a block

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
ormqr_small(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
            size tau_next, scalar_t* C, size c_row, size c_col, size c_next, size ms, size ns,
            size ks, size conjugated, size adjoint, size apart, size batch)
{
    wait_for_stream();
    const int team = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const size at = size(blockIdx.x) * TEAMS + team;
    const bool here = at < batch;
    const size b = here ? at : batch - 1;
    const int m = size_of(ms, b), n = size_of(ns, b), k = size_of(ks, b);
    const auto c = matrix_of(C, c_row, c_col, c_next, b);
    scalar_t* const V = reinterpret_cast<scalar_t*>(dynamic_shared) + team * int(apart);
    scalar_t* const taus = V + k * LD;
    load(V, taus, matrix_of(QR, q_row, q_col, q_next, b), array_of(tau, tau_next, b), m, k,
         conjugated, adjoint, lane, LANES);
    __syncwarp();  // nothing below waits for another lane
    if (!here) return;
    #pragma unroll 1
    for (int column = lane; column < n; column += LANES) {
        scalar_t a[N], *p = &c(0, column);
        #pragma unroll
        for (int i = 0; i < N; ++i, p += c.rs) a[i] = i < m ? *p : scalar_t{};
        #pragma unroll 1
        for (int turn = 0; turn < k; ++turn) {
            const int j = adjoint ? turn : k - 1 - turn;
            reflect(a, V + j * LD, taus[j], j);
        }
        p = &c(0, column);
        #pragma unroll
        for (int i = 0; i < N; ++i, p += c.rs)
            if (i < m) *p = a[i];
    }
}
