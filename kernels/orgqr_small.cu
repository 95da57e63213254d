// orgqr_small.cu: the first n columns of Q for a batch of m x n matrices, m <= N, Q the product of
// the first k reflectors of geqrf.
//
// V of a team is in shared memory (small_reflectors.cuh). PARTS of 1: columns are dealt to the lanes
// of a block as one line: a team of `lanes` lanes, any number, has a member, and teams lie side by
// side, across warps where that leaves fewer lanes without work (33 columns in whole warps leave
// every second). A lane has columns in registers, one at a time: what it multiplies is its own, and
// nothing waits. PARTS of more: so many lanes share a column, each with every PARTS-th pack of its
// rows and of v, which is read once; two or more sums a reflector are sent to be one. That needs
// fewer registers, and a warp has few columns, all of which begin late or early. Teams are whole
// warps then, `lanes` a multiple of 32.
//
// A column begins as that of the identity, which reflectors past it leave as it is; rows that a
// reflector does not reach are left out STEP, or PARTS packs, together.
//
// The floor: what is below the diagonal of QR is read and Q written, once: m k - k^2 / 2 + m n
// scalars; 4 m n k - 2 (m + n) k^2 + 4 k^3 / 3 operations.
#include "launch.cuh"
#include "shuffle.cuh"
#include "small_reflectors.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
constexpr int PARTS = 1;    // lanes to a column
#endif

// A column by PARTS lanes, this one the `part`; all lanes of a warp come here. `last`: the largest
// column of theirs, past which no reflector is.
__device__ inline void by_parts(const Strided<scalar_t>& q, const scalar_t* V, const scalar_t* taus,
                                int m, int n, int k, int column, int part, int last)
{
    constexpr int PACKS = N / FEW, EACH = (PACKS + PARTS - 1) / PARTS;
    const auto row = [=](int p, int e) { return (PARTS * p + part) * FEW + e; };
    const auto outside = [=](int p, int j) {  // nothing of v is there, or no row
        return PARTS * (p + 1) * FEW <= j || (PARTS * (p + 1) > PACKS && PARTS * p + part >= PACKS);
    };
    scalar_t a[EACH][FEW];
    #pragma unroll
    for (int p = 0; p < EACH; ++p)
        #pragma unroll
        for (int e = 0; e < FEW; ++e) a[p][e] = scalar_t{real_t(row(p, e) == column)};
    #pragma unroll 1
    for (int j = last < k - 1 ? last : k - 1; j >= 0; --j) {
        const scalar_t tau = taus[j];
        if (abs1(tau) == 0) continue;
        Vector x[EACH];
        scalar_t sums[2] = {};
        #pragma unroll
        for (int p = 0; p < EACH; ++p) {
            if (outside(p, j)) continue;
            x[p] = *reinterpret_cast<const Vector*>(V + j * LD + row(p, 0));
            #pragma unroll
            for (int e = 0; e < FEW; ++e)
                sums[e % 2] = plus_inner(sums[e % 2], x[p].x[e], a[p][e]);
        }
        scalar_t sum = add(sums[0], sums[1]);
        #pragma unroll
        for (int d = 1; d < PARTS; d *= 2) sum = add(sum, across(sum, d));
        if (j > column) continue;
        const scalar_t w = mul(tau, sum);
        #pragma unroll
        for (int p = 0; p < EACH; ++p) {
            if (outside(p, j)) continue;
            #pragma unroll
            for (int e = 0; e < FEW; ++e) a[p][e] = minus_product(a[p][e], x[p].x[e], w);
        }
    }
    #pragma unroll
    for (int p = 0; p < EACH; ++p)
        #pragma unroll
        for (int e = 0; e < FEW; ++e)
            if (row(p, e) < m && column < n) q(row(p, e), column) = a[p][e];
}

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
        load<(PARTS > 1)>(V, taus, matrix_of(QR, q_row, q_col, q_next, b),
                          array_of(tau, tau_next, b), m, k, false, false, lane, wide);
    if (WARPS == 1 || 32 % wide == 0) __syncwarp();
    else __syncthreads();  // nothing below waits for another warp
    if (!here) return;
    const auto q = matrix_of(Q, o_row, o_col, o_next, b);
    if (PARTS == 1) {
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
        return;
    }
    #pragma unroll 1
    for (int begin = (lane & ~31) / PARTS; begin < n; begin += wide / PARTS)  // of the warp
        by_parts(q, V, taus, m, n, k, begin + lane % 32 / PARTS, lane % PARTS,
                 begin + 32 / PARTS - 1);
}
