// lasr_rows.cu: V := V G for a batch, G the rotations that steqr_lane left, and its columns sorted.
//
// A row of V is rotated without a word from the others: a block has ROWS rows of a member, column
// by column in shared memory, and a thread a row. WAVE sweeps pass through the columns together,
// each one column behind the one before it, so that a thread reads and writes an element once for
// WAVE rotations of 4 operations (8 complex). The block's rotations come through shared memory in
// two turns, in the places of their columns with identities around them. 1.2 n^2 rotations of n
// rows: 4.8 n^3 operations and 9.6 n^3 / WAVE bytes of shared memory, for double precision.
//
// V lies in global memory twice: Q is read and V written, in place. Where `first` Q lacks its
// first row and column, those of the identity.
#include "async.cuh"
#include "block.cuh"
#include "tridiagonal.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int ROWS = 32;    // of a member in a block
constexpr int WAVE = 4;     // sweeps that pass together
#endif
static_assert(ROWS <= THREADS);
constexpr int LD = ROWS | 1;

enum { RUNNING, FINISHED, FINISHED_BEFORE };
struct State { int sweeps, low, stage, total; };

__device__ inline void rotate(real_t& x, real_t& y, Turn t)
{
    const real_t u = fma(t.c, x, -(t.s * y));
    y = fma(t.s, x, t.c * y);
    x = u;
}
__device__ inline void rotate(complex<real_t>& x, complex<real_t>& y, Turn t)
{
    rotate(x.re, y.re, t);
    rotate(x.im, y.im, t);
}

// WAVE sweeps in shared memory: that of sweep w and column i is at [w][i + WAVE], and the columns
// low ... high are touched
struct Wave { int low, high; };

// Starts to copy sweeps `from` and on of `count`; `turn` moves past them.
__device__ inline Wave copy_wave(Turn* to, const Turn*& turn, const int* sweeps, int from,
                                 int count, int n)
{
    const int pitch = n + 2 * WAVE;
    int high[WAVE], low[WAVE];
    Wave all{n, 0};
    #pragma unroll
    for (int k = 0; k < WAVE; ++k) {
        const int packed = from + k < count ? sweeps[from + k] : 0;
        high[k] = packed >> 16;
        low[k] = packed & 0xffff;
        if (high[k] > low[k]) {
            all.low = min(all.low, low[k]);
            all.high = all.high > high[k] ? all.high : high[k];
        }
    }
    #pragma unroll
    for (int k = 0; k < WAVE; ++k) {
        for (int i = all.low - WAVE + thread(); i < all.high + WAVE; i += THREADS) {
            Turn* const at = to + k * pitch + i + WAVE;
            if (i >= low[k] && i < high[k])
                copy_async<sizeof(Turn)>(at, turn + (high[k] - 1 - i), sizeof(Turn));
            else *at = {1, 0};
        }
        turn += high[k] - low[k];
    }
    return all;
}

// Applies a wave to the thread's row, elements LD apart
__device__ inline void pass(scalar_t* row, const Turn* turns, Wave wave, int n)
{
    const int pitch = n + 2 * WAVE;
    scalar_t held[WAVE];    // of sweep k, column i + k + 1
    #pragma unroll
    for (int k = 0; k < WAVE; ++k) held[k] = scalar_t{};
    scalar_t ahead = row[wave.high * LD];
    #pragma unroll 2
    for (int i = wave.high; i >= wave.low - WAVE; --i) {
        scalar_t x = ahead;
        ahead = row[(i > wave.low ? i - 1 : wave.low) * LD];
        #pragma unroll
        for (int k = 0; k < WAVE; ++k) {
            rotate(x, held[k], turns[k * pitch + i + k + WAVE]);
            const scalar_t done = held[k];   // column i + k + 1
            held[k] = x;
            x = done;
        }
        if (i + WAVE <= wave.high) row[(i + WAVE) * LD] = x;
    }
}

__device__ inline void vectors(Strided<scalar_t> V, const Turn* turn, const int* sweeps,
                               State state, bool first, bool last, const int* order, real_t most,
                               int row0, int n)
{
    const bool final = state.stage == FINISHED || (state.stage == RUNNING && last);
    if (!final && state.stage != RUNNING) return;
    const int rows = n - row0 < ROWS ? n - row0 : ROWS;
    const real_t nan = most - most;   // 0 of a finite matrix
    if (nan != 0) {
        for_each(rows, n, V.cs == 1, [=](int r, int j) { V(row0 + r, j) = scalar_t(nan); });
        return;
    }
    scalar_t* const z = reinterpret_cast<scalar_t*>(dynamic_shared);
    Turn* const turns = reinterpret_cast<Turn*>(z + (n * LD + 15) / 16 * 16);
    const int room = WAVE * (n + 2 * WAVE);
    for_each(rows, n, V.cs == 1, [=](int r, int j) {
        const int i = row0 + r;
        z[j * LD + r] = first && (i == 0 || j == 0) ? scalar_t(i == j ? 1 : 0) : V(i, j);
    });
    Wave wave{n, 0}, next{n, 0};
    if (state.sweeps) wave = copy_wave(turns, turn, sweeps, 0, state.sweeps, n);
    end_group();
    await_groups<0>();
    __syncthreads();
    #pragma unroll 1
    for (int k = 0; k < state.sweeps; k += WAVE) {
        const int turned = k / WAVE % 2;
        if (k + WAVE < state.sweeps)
            next = copy_wave(turns + (1 - turned) * room, turn, sweeps, k + WAVE, state.sweeps, n);
        end_group();
        if (thread() < rows) pass(z + thread(), turns + turned * room, wave, n);
        await_groups<0>();
        __syncthreads();
        wave = next;
    }
    for_each(rows, n, V.cs == 1, [=](int r, int j) {
        V(row0 + r, j) = z[(final ? order[j] : j) * LD + r];
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
lasr_rows(scalar_t* V, size v_row, size v_col, size v_next, const Turn* turns, size room,
          const int* sweeps, size most_sweeps, const State* states, const int* order,
          const real_t* most, size first, size last, size ns)
{
    const int n = int(ns), slabs = (n + ROWS - 1) / ROWS;
    const size b = blockIdx.x / slabs;
    vectors(matrix_of(V, v_row, v_col, v_next, b), turns + b * room, sweeps + b * most_sweeps,
            states[b], first, last, order + b * n, most[b], int(blockIdx.x % slabs) * ROWS, n);
}
