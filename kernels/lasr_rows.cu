// lasr_rows.cu: V := V G for a batch, G the rotations that steqr_lane left, and its columns sorted.
//
// A row of V is rotated without a word from the others: a block has ROWS rows of a member, column
// by column in shared memory, and a thread EACH of them. WAVE sweeps pass through the columns
// together, each two columns behind the one before it, so that a thread reads and writes an element
// once for WAVE rotations of 4 operations (8 complex), none of which waits for another. The
// block's rotations come through shared memory in two turns, in the places of their columns with
// identities around them; to bring one to all lanes takes as long as 32 EACH of its operations.
// 1.2 n^2 rotations of n rows: 4.8 n^3 operations.
//
// Where `first` Q comes from the reflectors, if `forms`, which takes all rows in one block: a
// thread has a column, 4/3 n^3 operations. Else it is what V holds, without its first row and
// column, those of the identity. Later passes read and write V.
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"
#include "tridiagonal.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int ROWS = 32;    // of a member in a block
constexpr int EACH = 2;     // rows of a thread
constexpr int WAVE = 4;     // sweeps that pass together
#endif
static_assert(ROWS % EACH == 0 && ROWS <= EACH * THREADS);
constexpr int LD = ROWS | 1, PAD = 2 * WAVE, APART = ROWS / EACH;
constexpr int COLUMN = sizeof(scalar_t) == sizeof(real_t) ? 512 : 256;  // bytes in registers
constexpr bool FORMS = EACH == 1 && ROWS % 8 == 0 && ROWS * sizeof(scalar_t) <= COLUMN;  // Q

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

// WAVE sweeps in shared memory: that of sweep k and column i is at [k][i + PAD], and the columns
// low ... high are touched
struct Wave { int low, high; };

// Starts to copy sweeps `from` and on of `count`; `turn` moves past them.
__device__ inline Wave copy_wave(Turn* to, const Turn*& turn, const int* sweeps, int from,
                                 int count, int n)
{
    const int pitch = n + 2 * PAD;
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
        for (int i = all.low - PAD + thread(); i < all.high + PAD; i += THREADS) {
            Turn* const at = to + k * pitch + i + PAD;
            if (i >= low[k] && i < high[k])
                copy_async<sizeof(Turn)>(at, turn + (high[k] - 1 - i), sizeof(Turn));
            else *at = {1, 0};
        }
        turn += high[k] - low[k];
    }
    return all;
}

// Applies a wave to the thread's rows, elements LD apart
__device__ inline void pass(scalar_t* row, const Turn* turns, Wave wave, int n)
{
    const int pitch = n + 2 * PAD;
    scalar_t held[EACH][WAVE], behind[EACH][WAVE];   // of sweep k, columns i + 2 k + 1, i + 2 k
    Turn turn[WAVE];
    #pragma unroll
    for (int k = 0; k < WAVE; ++k) {
        turn[k] = turns[k * pitch + wave.high + 2 * k + PAD];
        #pragma unroll
        for (int r = 0; r < EACH; ++r) held[r][k] = behind[r][k] = scalar_t{};
    }
    #pragma unroll
    for (int r = 0; r < EACH; ++r) behind[r][0] = row[wave.high * LD + r * APART];
    #pragma unroll 2
    for (int i = wave.high; i > wave.low - PAD; --i) {
        // What the next step wants is on its way while this one works.
        scalar_t ahead[EACH];
        Turn later[WAVE];
        #pragma unroll
        for (int r = 0; r < EACH; ++r)
            ahead[r] = row[(i > wave.low ? i - 1 : wave.low) * LD + r * APART];
        #pragma unroll
        for (int k = 0; k < WAVE; ++k) later[k] = turns[k * pitch + i + 2 * k + PAD - 1];
        #pragma unroll
        for (int k = 0; k < WAVE; ++k)
            #pragma unroll
            for (int r = 0; r < EACH; ++r) rotate(behind[r][k], held[r][k], turn[k]);
        #pragma unroll
        for (int r = 0; r < EACH; ++r) {
            if (i + PAD - 1 <= wave.high)
                row[(i + PAD - 1) * LD + r * APART] = held[r][WAVE - 1];
            #pragma unroll
            for (int k = WAVE - 1; k >= 0; --k) {
                if (k < WAVE - 1) behind[r][k + 1] = held[r][k];   // column i + 2 k + 1
                held[r][k] = behind[r][k];
            }
            behind[r][0] = ahead[r];
        }
        #pragma unroll
        for (int k = 0; k < WAVE; ++k) turn[k] = later[k];
    }
}

// Q to z, of n - 1 reflectors, n at most ROWS: column j of F, its ones left out, goes one place
// further right and down into z. A thread has a column of Q in registers, so that nobody waits.
__device__ inline void form_q(scalar_t* z, const scalar_t* F, size f_col, const scalar_t* tau,
                              bool turned, int n)
{
    constexpr int EIGHT = 8;
    for_each(ROWS, n, false, [=](int i, int j) {
        z[j * LD + i] = i > j && j > 0 && i < n ? F[(j - 1) * f_col + i - 1]
                                                : scalar_t(i == j ? 1 : 0);
    });
    __syncthreads();
    const int column = turned ? n - 1 - thread() : thread();
    scalar_t q[ROWS];
    #pragma unroll
    for (int i = 0; i < ROWS; ++i) q[i] = scalar_t(i == column ? 1 : 0);
    #pragma unroll 1
    for (int k = n - 1; k > 0; --k) {
        const scalar_t t = tau[k - 1];
        const scalar_t* const v = z + k * LD;
        scalar_t s[2] = {};
        #pragma unroll
        for (int first = 0; first < ROWS; first += EIGHT) {
            if (first + EIGHT <= k) continue;   // zeros of v
            #pragma unroll
            for (int i = first; i < first + EIGHT; ++i) s[i % 2] = plus_inner(s[i % 2], v[i], q[i]);
        }
        const scalar_t x = mul(add(s[0], s[1]), t);
        #pragma unroll
        for (int first = 0; first < ROWS; first += EIGHT) {
            if (first + EIGHT <= k) continue;
            #pragma unroll
            for (int i = first; i < first + EIGHT; ++i) q[i] = minus_product(q[i], v[i], x);
        }
    }
    __syncthreads();
    if (thread() < n)
        #pragma unroll
        for (int i = 0; i < ROWS; ++i) z[thread() * LD + i] = q[i];
}

__device__ inline void vectors(Strided<scalar_t> V, const scalar_t* F, size f_col,
                               const scalar_t* tau, bool forms, const Turn* turn, const int* sweeps,
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
    const int room = WAVE * (n + 2 * PAD);
    if constexpr (FORMS)
        if (first && forms) form_q(z, F, f_col, tau, state.turned, n);
    if (!(FORMS && first && forms))
        for_each(rows, n, V.cs == 1, [=](int r, int j) {
            const int i = row0 + r;
            const int to = first && state.turned ? n - 1 - j : j;
            z[to * LD + r] = first && (i == 0 || j == 0) ? scalar_t(i == j ? 1 : 0) : V(i, j);
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
        if (thread() < APART) pass(z + thread(), turns + turned * room, wave, n);
        await_groups<0>();
        __syncthreads();
        wave = next;
    }
    for_each(rows, n, V.cs == 1, [=](int r, int j) {
        V(row0 + r, j) = z[(final ? order[j] : j) * LD + r];
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
lasr_rows(scalar_t* V, size v_row, size v_col, size v_next, const scalar_t* F, size f_col,
          size f_next, const scalar_t* tau, size forms, const Turn* turns, size rooms,
          const int* sweeps, size most_sweeps, const State* states, const int* order,
          const real_t* most, size first, size last, size ns, size slabs)
{
    wait_for_stream();
    const unsigned each = unsigned(slabs);  // blocks of a member
    const size b = blockIdx.x / each;
    const int n = size_of(ns, b), row0 = int(blockIdx.x % each) * ROWS;
    if (RAGGED && row0 >= n) return;
    vectors(matrix_of(V, v_row, v_col, v_next, b), array_of(F, f_next, b), stride_of(f_col, b),
            array_of(tau, n, b), forms, array_of(turns, rooms, b),
            array_of(sweeps, most_sweeps, b), *array_of(states, 1, b), first, last,
            array_of(order, n, b), *array_of(most, 1, b), row0, n);
}
