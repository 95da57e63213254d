// ormqr_small.cu: op(Q) C for a batch of C with m <= N rows, Q the product of the first k reflectors
// of geqrf; or Q's first columns, where C begins as the identity.
//
// A team of LANES lanes of a warp has a member. V is in shared memory, by columns, with its zeros
// and ones: whole rows of it reach all lanes at once. A lane has columns of C in registers, one at a
// time, l, l + LANES, ...: what it multiplies is its own, and nothing waits. STEP rows that a
// reflector does not reach are left out together. C op(Q) is this for the transposes: what the
// launcher says by strides, `conjugated` and `adjoint`.
//
// The floor: what is below the diagonal of QR is read, C read and written, once: m k - k^2 / 2 +
// 2 m n scalars; 4 m n k - 2 n k^2 operations.
#include "block.cuh"
#include "launch.cuh"
#include "qr.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 32;       // the largest m
constexpr int LANES = 32;   // of a team
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
static_assert(32 % LANES == 0 && N % 4 == 0);

constexpr int FEW = 16 / sizeof(scalar_t);  // numbers that are read at once
constexpr int STEP = N < 8 ? N : 8;         // rows
constexpr int LD = N + FEW;                 // from a column of V to the next: other banks
constexpr int TEAMS = THREADS / LANES;      // of a block

struct alignas(16) Vector { scalar_t x[FEW]; };

// V's m x k numbers and tau to shared memory, zeros in the rows from m on
__device__ inline void load(scalar_t* V, scalar_t* taus, const Strided<const scalar_t>& qr,
                            const scalar_t* tau, int m, int k, bool conjugated, bool adjoint)
{
    const int lane = threadIdx.x % LANES;
    const auto place = [&](int i, int j) {
        const scalar_t x = i > j && i < m ? qr(i, j) : scalar_t{real_t(i == j)};
        V[j * LD + i] = conjugated ? conj(x) : x;
    };
    if (qr.rs == 1)
        for (int j = 0; j < k; ++j)
            for (int i = lane; i < N; i += LANES) place(i, j);
    else
        for (int j = lane; j < k; j += LANES)
            #pragma unroll 8
            for (int i = 0; i < N; ++i) place(i, j);
    for (int j = lane; j < k; j += LANES) taus[j] = conjugated != adjoint ? conj(tau[j]) : tau[j];
}

// f(row, number of v) for the rows that the reflector j reaches, and some before it
template <class F> __device__ void each(const scalar_t* v, int j, F f)
{
    #pragma unroll
    for (int first = 0; first < N; first += STEP) {
        if (first + STEP <= j) continue;
        #pragma unroll
        for (int i = first; i < first + STEP && i < N; i += FEW) {
            const Vector x = *reinterpret_cast<const Vector*>(v + i);
            #pragma unroll
            for (int e = 0; e < FEW; ++e) f(i + e, x.x[e]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
ormqr_small(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* tau,
            size tau_next, scalar_t* C, size c_row, size c_col, size c_next, size ms, size ns,
            size ks, size conjugated, size adjoint, size identity, size apart, size batch)
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
         conjugated, adjoint);
    __syncwarp();  // nothing below waits for another lane
    if (!here) return;
    #pragma unroll 1
    for (int column = lane; column < n; column += LANES) {
        scalar_t a[N];
        #pragma unroll
        for (int i = 0; i < N; ++i) {
            a[i] = scalar_t{real_t(i == column)};
            if (!identity) a[i] = i < m ? c(i, column) : scalar_t{};
        }
        #pragma unroll 1
        for (int turn = 0; turn < k; ++turn) {
            const int j = adjoint ? turn : k - 1 - turn;
            const scalar_t* const v = V + j * LD;
            if (abs1(taus[j]) == 0) continue;
            scalar_t sums[2] = {};
            each(v, j, [&](int i, scalar_t x) { sums[i % 2] = plus_inner(sums[i % 2], x, a[i]); });
            const scalar_t w = mul(taus[j], add(sums[0], sums[1]));
            each(v, j, [&](int i, scalar_t x) { a[i] = minus_product(a[i], x, w); });
        }
        #pragma unroll
        for (int i = 0; i < N; ++i)
            if (i < m) c(i, column) = a[i];
    }
}
