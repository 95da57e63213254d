// geqp3_panel.cu: QR with column pivoting, a panel of up to NB columns of one large matrix.
//
// With V of the panel's reflectors, F_i = tau_i A_i^H v_i for the matrix A_i as i reflectors have left
// it, the columns that are not factored yet are A - V F^H: only the pivot column and the row of R
// are made at each step, and A is read, once, for
//
//     F_k = tau (A^H v - F (V^H v)).
//
// The caller takes V F^H off what is below and to the right of the panel. Norms of columns are
// updated by the row of R; where that loses too much (LAPACK's safeguard) a norm is taken anew, of
// the column less its part of V F^H, at once: LAPACK ends the panel instead.
//
// All blocks are on the GPU together, and meet twice a step (grid.cuh). Columns are dealt out to
// blocks by turns: a block has their norms, rows of F and inner products, the rows of A split among
// its threads, x in registers. Rows are dealt out in parts to the first `parts` blocks: they
// exchange columns, make the pivot column x, and sums over their rows of x^H x and V^H x. Each block
// adds those up and makes the reflector for itself: v = (1, x scale). x is scaled by a power of two
// near its norm, so that no square leaves the range of numbers.
//
// Floor: the matrix that is left is read in each step, mn^2/2 - n^3/6 numbers in all, of which a
// part stays in the L2 cache: every other step goes through it backwards. A step takes two meetings,
// and what a block does between them, each a few trips to L2.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 16;
constexpr int NB = 32;      // columns of a panel
constexpr int EACH = 16;    // rows of x in the registers of a thread
constexpr int COLUMNS = 4;  // that a thread multiplies by at a time
constexpr int TALL = 2;     // warps down the rows of a part, the others beside them
#endif
#include "grid.cuh"
#include "launch.cuh"
#include "qr.cuh"

constexpr int TEAM = 8, TEAMS = THREADS / TEAM;  // lanes that finish a column
constexpr int MINE = NB / TEAM;                  // elements of a row of F for each
constexpr int ACROSS = WARPS / TALL, SHARE = NB / ACROSS;  // columns of V for a warp
// LAPACK's tol3z: what is left of a norm, squared, when it is taken anew
constexpr real_t SAFE = sizeof(real_t) == 8 ? real_t(0x1p-26) * real_t(0.70710678118654752)
                                            : real_t(0x1p-12);
static_assert(NB % TEAM == 0 && WARPS % TALL == 0 && NB % ACROSS == 0 && NB <= THREADS);

struct Shared {
    scalar_t part[WARPS][TEAMS + 1];  // inner products of columns with a warp's rows of x
    scalar_t sums[ACROSS][32 * TALL]; // of rows, what the warps take off the pivot column
    scalar_t products[TALL][NB];      // V^H x of a part
    scalar_t f[NB], w[NB], row[NB];   // conj(F) of the pivot column; V^H v; the row of V
    real_t some[WARPS], squares;
    Candidate best[WARPS + 1];
    int again;
};

struct Panel {
    scalar_t* A;
    size lda;
    int m, n, first;            // the first column of the panel, which is its first row, too
    real_t *norms, *exact;      // of columns: as updated, and when they were last taken
    int* jpvt;
    scalar_t *tau, *F;          // conj(F), a line of NB numbers for a column
    scalar_t *x, *sums;         // the pivot column; (V^H x, x^H x) of each part
    int parts;
    Shared& s;

    __device__ scalar_t& a(int i, int j) const { return A[i + j * lda]; }
    __device__ int from() const { return int(blockIdx.x) * per_part(); }
    __device__ int to() const { return min(m, from() + per_part()); }
    __device__ int per_part() const { return (m + parts - 1) / parts; }
    // The first column of this block from j on
    __device__ int own(int j) const
    {
        const int blocks = gridDim.x, b = blockIdx.x;
        return j + (b - j % blocks + blocks) % blocks;
    }
    // By all threads, op(what they have)
    template <class Op> __device__ real_t over_block(real_t x, Op op) const
    {
        #pragma unroll
        for (int mask = 1; mask < 32; mask *= 2) x = op(x, across(x, mask));
        if (lane() == 0) s.some[warp()] = x;
        __syncthreads();
        x = s.some[0];
        #pragma unroll
        for (int w = 1; w < WARPS; ++w) x = op(x, s.some[w]);
        __syncthreads();
        return x;
    }

    // The norm of column j from row `row` on, of which `count` columns of V take a part off; the
    // last of these is x times `scale`
    __device__ real_t norm_of(int j, int row, int count, scalar_t scale) const
    {
        const auto element = [&](int i) {
            scalar_t y = a(i, j);
            for (int k = 0; k < count; ++k) {
                const scalar_t v = k + 1 < count ? a(i, first + k) : mul(x[i], scale);
                y = minus_product(y, v, F[k + size(NB) * j]);
            }
            return y;
        };
        real_t most = 0, sum = 0;
        for (int i = row + thread(); i < m; i += THREADS) most = larger(most, element(i));
        most = over_block(most, [](real_t x, real_t y) { return larger(x, y); });
        const Power up = to_one(most);
        for (int i = row + thread(); i < m; i += THREADS) {
            const scalar_t y = up.times(element(i));
            sum = real(plus_inner(scalar_t{sum}, y, y));
        }
        sum = over_block(sum, [](real_t x, real_t y) { return x + y; });
        return up.inverse().times(sqrt(sum));
    }

    // All norms, to begin with
    __device__ void take_norms() const
    {
        for (int j = own(0); j < n; j += gridDim.x) {
            const real_t norm = norm_of(j, 0, 0, scalar_t{});
            if (thread() == 0) norms[j] = exact[j] = norm, jpvt[j] = j + 1;
        }
        __syncthreads();
    }

    // A part of the rows: columns `pivot` and first + k change places; x, and sums over its rows
    __device__ void bring(int k, int pivot, const Power& up) const
    {
        const int row = first + k, column = row, down = warp() % TALL, beside = warp() / TALL;
        if (thread() < NB) s.f[thread()] = thread() < k ? F[thread() + size(NB) * pivot] : scalar_t{};
        scalar_t products[SHARE] = {};
        real_t squares = 0;
        for (int base = from(); base < to(); base += 32 * TALL) {
            const int i = base + 32 * down + lane();
            const bool here = i < to(), below = here && i >= row;
            scalar_t v[SHARE], sum{};
            #pragma unroll
            for (int q = 0; q < SHARE; ++q) {
                const int c = beside + ACROSS * q;
                v[q] = below && c < k ? a(i, first + c) : scalar_t{};
            }
            scalar_t y = here ? a(i, pivot) : scalar_t{};
            const scalar_t old = here && beside == 0 ? a(i, column) : scalar_t{};
            __syncthreads();
            #pragma unroll
            for (int q = 0; q < SHARE; ++q) sum = minus_product(sum, v[q], s.f[beside + ACROSS * q]);
            s.sums[beside][32 * down + lane()] = sum;
            __syncthreads();
            if (below) {
                #pragma unroll
                for (int b = 0; b < ACROSS; ++b) y = add(y, s.sums[b][32 * down + lane()]);
                y = up.times(y);
            }
            if (beside == 0 && here) {
                if (pivot != column) a(i, pivot) = old;
                (below ? x[i] : a(i, column)) = y;
            }
            if (!here || i <= row) y = scalar_t{};
            #pragma unroll
            for (int q = 0; q < SHARE; ++q) products[q] = plus_inner(products[q], v[q], y);
            squares = real(plus_inner(scalar_t{squares}, y, y));
        }
        #pragma unroll
        for (int q = 0; q < SHARE; ++q) {
            scalar_t sum[1] = {products[q]};
            sum_over<0, 5>(sum);
            if (lane() == 0) s.products[down][beside + ACROSS * q] = sum[0];
        }
        #pragma unroll
        for (int mask = 1; mask < 32; mask *= 2) squares += across(squares, mask);
        if (lane() == 0 && beside == 0) s.some[down] = squares;
        __syncthreads();
        if (thread() <= NB) {
            scalar_t sum{};
            #pragma unroll
            for (int d = 0; d < TALL; ++d)
                sum = add(sum, thread() < NB ? s.products[d][thread() % NB] : scalar_t{s.some[d]});
            sums[thread() * size(parts) + blockIdx.x] = sum;
        }
    }

    // By all blocks, from the sums of all parts: the reflector of x, and V^H v
    __device__ Reflector reflect(int k) const
    {
        const int row = first + k;
        for (int i = warp(); i <= NB; i += WARPS) {
            if (i >= k && i < NB) continue;
            scalar_t sum[1] = {};
            for (int p = lane(); p < parts; p += 32) sum[0] = add(sum[0], sums[i * size(parts) + p]);
            sum_over<0, 5>(sum);
            if (lane() == 0 && i < NB) s.w[i] = sum[0];
            if (lane() == 0 && i == NB) s.squares = real(sum[0]);
        }
        if (thread() < NB) s.row[thread()] = thread() < k ? a(row, first + thread()) : scalar_t{};
        if (thread() == 0) s.again = 0;
        const scalar_t alpha = x[row];
        __syncthreads();
        const real_t squares = s.squares;
        const Reflector h = reflector(alpha, squares, squares == 0 && imaginary(alpha) == 0);
        if (thread() < NB)
            s.w[thread()] = thread() < k ? add(conj(s.row[thread()]), mul(s.w[thread()], h.scale))
                                         : scalar_t{};
        return h;
    }

    // The rows from which on inner products are taken, of which those up to `row` do not count
    __device__ static int top(int row) { return (row + 1) / 16 * 16; }

    // Of a batch of this block's columns, the q-th of it `column(q)`: inner products with x below
    // `row`, by each warp with its rows
    template <class Of> __device__ void inner_products(int row, int count, Of column) const
    {
        const int start = top(row);
        for (int base = start; base < m; base += THREADS * EACH) {
            scalar_t y[EACH];
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int i = base + e * THREADS + thread();
                y[e] = i > row && i < m ? x[i] : scalar_t{};
            }
            #pragma unroll 1
            for (int q = 0; q < count; q += COLUMNS) {
                scalar_t t[COLUMNS] = {};
                const scalar_t* p[COLUMNS];
                #pragma unroll
                for (int c = 0; c < COLUMNS; ++c) p[c] = &a(0, column(min(q + c, count - 1)));
                #pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    const int i = base + e * THREADS;
                    if (i >= m) break;
                    #pragma unroll
                    for (int c = 0; c < COLUMNS; ++c)
                        t[c] = plus_inner(t[c], p[c][min(i + thread(), m - 1)], y[e]);
                }
                sum_over<0, 5>(t);
                if (lane() < COLUMNS && q + lane() < count) {
                    scalar_t& sum = s.part[warp()][q + lane()];
                    sum = base == start ? t[0] : add(sum, t[0]);
                }
            }
        }
        if (start >= m && thread() < TEAMS)
            for (int w = 0; w < WARPS; ++w) s.part[w][thread()] = scalar_t{};
    }

    // The batches of this block's columns behind `row`, backwards in every other step
    struct Batches {
        int first, blocks, all, backwards;

        __device__ int count(int done) const { return min(TEAMS, all - done); }
        __device__ int column(int q) const { return first + (backwards ? all - 1 - q : q) * blocks; }
    };
    __device__ Batches batches(int k) const
    {
        const int first_one = own(first + k + 1), blocks = gridDim.x;
        return {first_one, blocks, first_one < n ? (n - first_one + blocks - 1) / blocks : 0, k % 2};
    }

    // All columns that are left: F, the row of R, norms; the best of them for the next step
    __device__ Candidate finish(int k, int pivot, const Reflector& h) const
    {
        const int row = first + k;
        const Batches mine = batches(k);
        Candidate best{NONE, NOWHERE};
        for (int done = 0; done < mine.all; done += TEAMS) {
            const int count = mine.count(done);
            const auto column = [=](int q) { return mine.column(done + q); };
            inner_products(row, count, column);
            __syncthreads();
            const int q = thread() / TEAM, r = thread() % TEAM;
            const int j = column(min(q, count - 1)), source = j == pivot ? row : j;
            scalar_t dot{}, less{}, taken{};
            #pragma unroll
            for (int w = r; w < WARPS; w += TEAM) dot = add(dot, s.part[w][min(q, count - 1)]);
            #pragma unroll
            for (int e = 0; e < MINE; ++e) {
                const int c = r * MINE + e;
                if (c >= k) continue;
                const scalar_t f = F[c + size(NB) * source];
                less = plus_inner(less, f, s.w[c]);
                taken = minus_product(taken, s.row[c], f);
                if (j == pivot && q < count) F[c + size(NB) * j] = f;
            }
            #pragma unroll
            for (int mask = 1; mask < TEAM; mask *= 2) {
                dot = add(dot, across(dot, mask));
                less = add(less, across(less, mask));
                taken = add(taken, across(taken, mask));
            }
            if (r == 0 && q < count) {
                const scalar_t top = a(row, j);
                const scalar_t inner = add(conj(top), mul(h.scale, dot));  // A^H v
                const scalar_t f = conj(mul(h.tau, minus_product(inner, less, scalar_t{1})));
                const scalar_t y = minus_product(add(top, taken), f, scalar_t{1});
                F[k + size(NB) * j] = f;
                a(row, j) = y;
                real_t norm = norms[source], last = exact[source];
                bool lost = false;
                if (norm != 0 && row + 1 < m) {
                    const real_t re = real(y) / norm, im = imaginary(y) / norm;
                    const real_t size = sqrt(fma(re, re, im * im));
                    real_t left = (1 + size) * (1 - size);
                    left = left > 0 ? left : real_t(0);
                    lost = left * (norm / last) * (norm / last) <= SAFE;
                    norm = norm * sqrt(left);
                }
                norms[j] = lost ? NONE : norm;
                exact[j] = last;
                if (lost) s.again = 1;
                else best.meet(Candidate::of(norm, j, j == row + 1));
            }
            __syncthreads();
        }
        for (int j = mine.first; s.again && j < n; j += mine.blocks) {
            if (norms[j] != NONE) continue;
            const real_t norm = norm_of(j, row + 1, k + 1, h.scale);
            if (thread() == 0) {
                norms[j] = exact[j] = norm;
                best.meet(Candidate::of(norm, j, j == row + 1));
            }
        }
        return best;
    }
};

// norms: room for 2 n; sums: (NB + 1) parts; places: 2 (BITS + 2) words for each block, zeros when
// the first panel begins
extern "C" __global__ void __launch_bounds__(THREADS, 1)
geqp3_panel(scalar_t* A, size lda, size m, size n, size first, size width, real_t* norms, int* jpvt,
            scalar_t* tau, scalar_t* F, scalar_t* x, scalar_t* sums, size parts, word* places)
{
    wait_for_stream();
    __shared__ Shared s;
    const Panel p{A, lda, int(m), int(n), int(first), norms, norms + n, jpvt, tau, F, x, sums,
                  int(parts), s};
    if (first == 0) p.take_norms();
    Candidate best{NONE, NOWHERE};
    for (size j = p.own(p.first) + thread() * size(gridDim.x); j < n; j += size(THREADS) * gridDim.x)
        best.meet(Candidate::of(norms[j], int(j), j == p.first));
    for (int k = 0; k < width; ++k) {
        const int row = p.first + k;
        const Candidate chosen = best_of_grid(best, Choice{places, unsigned(row + 1)}, s.best);
        const int pivot = chosen.place;
        const Power up = to_one(chosen.norm);
        const bool part = int(blockIdx.x) < p.parts;
        if (part) p.bring(k, pivot, up);
        if (blockIdx.x == 0 && thread() == 0 && pivot != row) {
            const int j = jpvt[pivot];
            jpvt[pivot] = jpvt[row], jpvt[row] = j;
        }
        const Meeting<1> meeting{places + 2 * (BITS + 1) * gridDim.x, unsigned(row + 1)};
        __syncthreads();
        if (warp() == 0) {
            if (lane() == 0 && part) meeting.tell({0});
            meeting.hear(p.parts, [](const unsigned (&)[1]) {});
        }
        __syncthreads();
        const Reflector h = p.reflect(k);
        if (part)
            for (int i = max(p.from(), row) + thread(); i < p.to(); i += THREADS)
                p.a(i, row) = i > row ? mul(x[i], h.scale) : scalar_t{up.inverse().times(h.beta)};
        if (blockIdx.x == 0 && thread() == 0) tau[row] = h.tau;
        __syncthreads();
        best = p.finish(k, pivot, h);
    }
}
