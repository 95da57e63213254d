// getrf_panel.cu: LU with partial pivoting of a panel of a large matrix, its columns and all rows
// below them, by one cluster.
//
// The panel is factored in leaves of W columns, a leaf in registers, ROWS rows to a thread. A row
// stays where it is: it carries its place, where LAPACK's interchanges would have brought it. A column
// is one exchange: warps offer their best rows to their block, which sends the best of these, as a
// whole, to all blocks; of CLUSTER rows that have come every block knows the best without asking
// again: heads fly ahead, and are compared while rows are on their way. Messages fly while the
// products of the column before are made. Columns turn through the registers, the one at hand first,
// so that the loop is short; with every STAGE columns less of a row is kept up. The pivot is LAPACK's,
// the largest |re| + |im|, of equals the one in the lowest place; a nan is larger than any number.
//
// After a leaf the rows that moved are put in their places, the panel's columns beside it have theirs
// interchanged, in those to its right the rows of U are solved, a column to a warp, and taken off what
// is below, on the tensor cores.
//
// The panel crosses memory once each way, and once more for every leaf. The floor is a column's way,
// about twelve steps that wait for each other: 0.65 us where rows are few.
#include "block.cuh"
#include "cluster.cuh"
#include "launch.cuh"
#include "pivot.cuh"
#include "shuffle.cuh"
#include "tensor.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int CLUSTER = 8, ROWS = 1, W = 32;
#endif

constexpr int VECTOR = 16 / sizeof(scalar_t), STAGE = W > 32 ? W / 4 : W > 8 ? 8 : W;
constexpr int NOWHERE = 1 << 30, LD = W + 1;
static_assert(CLUSTER <= 16 && WARPS <= 32 && THREADS >= W && STAGE % VECTOR == 0 && STAGE > 1);

struct alignas(16) Pack { scalar_t x[VECTOR]; };

struct alignas(16) Head {  // what is said of a block's best row before it comes
    unsigned hi, lo;
    int place, row;
};
struct alignas(16) Message {  // the row, from the column at hand on
    alignas(16) scalar_t inverse;
    alignas(16) scalar_t x[W];
};

struct alignas(16) Offer {  // a warp's
    unsigned hi, lo;
    int place, from;  // the row `from` / THREADS of thread `from` % THREADS
    alignas(16) scalar_t value;
};

struct Shared {
    Message message[4][CLUSTER];
    Head head[4][CLUSTER];
    Offer offer[2][WARPS];
    alignas(16) scalar_t own[W], factor;  // the row that is sent, and its l
    word barrier[4][2];       // for heads, for rows
    int from[W], to[W];       // the rows that come to the top, and where those there go
    scalar_t top[W * LD];     // L and U of the top, by columns
};

struct Leaf {
    scalar_t* A;              // of which this is the top left
    size lda;
    int steps, rank, count;   // of columns before this leaf
    int* piv;
    int first;                // the place of the top in the matrix
    Shared& s;
    int zero;                 // the first column, from 1, whose pivot is zero
    scalar_t a[ROWS][W];      // the column at hand first
    scalar_t l[ROWS];         // of the column before it, whose pivot was
    const Message* pivot;
    Head head;
    int place[ROWS];          // -1: there is no such row
    int to;                   // the place of the row that was this thread's number from the top

    __device__ size row(int q) const { return (size(rank) * ROWS + q) * THREADS + thread(); }

    __device__ void load(int m)
    {
        to = thread(), zero = 0;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            place[q] = row(q) < m ? int(row(q)) : -1;
            const scalar_t* p = A + row(q);
            const int columns = row(q) < m ? steps : 0;
            #pragma unroll
            for (int c = 0; c < W; ++c, p += lda) a[q][c] = c < columns ? *p : scalar_t{};
        }
    }

    // The warp's best row for column j
    __device__ void bid(int j)
    {
        unsigned hi = 0, lo = 0;
        int at = NOWHERE, own = 0;
        scalar_t value{};
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            const real_t size = abs1(a[q][0]);
            const unsigned h = upper_word(size), l = lower_word(size);
            const bool better = place[q] >= j
                && (h > hi || (h == hi && (l > lo || (l == lo && place[q] < at))));
            hi = better ? h : hi, lo = better ? l : lo, at = better ? place[q] : at;
            own = better ? q : own, value = better ? a[q][0] : value;
        }
        if (lane_id() == winner(hi, lo, at))
            s.offer[j % 2][warp()] = {hi, lo, at, own * THREADS + thread(), value};
    }

    // What the column before takes off the columns from the second on, which move up; WIDTH of them
    // are kept up, and one that the stage before has left.
    template <int WIDTH> __device__ void update()
    {
        constexpr int END = WIDTH < W ? WIDTH + 1 : W;
        #pragma unroll
        for (int c = 0; c < END; c += VECTOR) {
            const Pack v = *reinterpret_cast<const Pack*>(pivot->x + c);
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e)
                #pragma unroll
                for (int q = 0; q < ROWS; ++q)
                    if (c + e >= 2 && c + e < END)
                        a[q][c + e - 1] = minus_product(a[q][c + e], l[q], v.x[e]);
        }
    }

    // Column j of L, under the diagonal, and what is known of its pivot
    __device__ void store(int j)
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (place[q] > j) A[row(q) + j * lda] = l[q];
        if (warp() < WARPS - 1) return;
        for (int c = lane_id(); c < steps - j; c += 32) s.top[(j + c) * LD + j] = pivot->x[c];
        if (lane_id()) return;
        s.from[j] = head.row;
        if (rank == 0) piv[j] = first + head.place;
        if (abs1(pivot->x[0]) == 0 && !zero) zero = j + 1;
    }

    // What is at `p` of this block, of block `rank`
    static __device__ unsigned in(unsigned rank, const void* p)
    {
        return address_in(shared_address(p), rank);
    }

    // The best row of this block, which is one of this warp, to all. PENDING: what the column before
    // takes off it is still to be taken; here the lanes do, at once, and `update` does it again.
    template <int WIDTH, bool PENDING> __device__ void push(int j, const Offer& best)
    {
        const int mine = best.from / THREADS, slot = (count + j) % 4;
        const Head head{best.hi, best.lo, best.place,
                        (rank * ROWS + mine) * THREADS + best.from % THREADS};
        Chunk x;
        memcpy(&x, &head, sizeof x);
        if (lane_id() < CLUSTER)
            send(in(lane_id(), &s.head[slot][rank]), x, in(lane_id(), &s.barrier[slot][0]));
        if (thread() == best.from % THREADS) {
            #pragma unroll
            for (int c = 0; c < WIDTH; c += VECTOR) {
                Pack v;
                #pragma unroll
                for (int q = 0; q < ROWS; ++q)
                    #pragma unroll
                    for (int e = 0; e < VECTOR; ++e) {
                        const int k = c + e && PENDING ? min(c + e + 1, W - 1) : c + e;
                        v.x[e] = q == 0 || q == mine ? a[q][k] : v.x[e];
                    }
                *reinterpret_cast<Pack*>(s.own + c) = v;
            }
            scalar_t its = l[0];
            #pragma unroll
            for (int q = 1; q < ROWS; ++q) its = q == mine ? l[q] : its;
            s.factor = its;
        }
        scalar_t inverse = near_reciprocal(best.value);
        if (best.hi - upper_word(TINY) >= upper_word(HUGE) - upper_word(TINY))
            inverse = inverse_of(best.value);
        __syncwarp();
        constexpr int CHUNKS = 1 + WIDTH / VECTOR;
        const unsigned to = in(0, &s.message[slot][rank]), barrier = in(0, &s.barrier[slot][1]);
        const unsigned next = in(1, &s) - in(0, &s);
        #pragma unroll
        for (int first = 0; first < CHUNKS; first += 32) {
            const int i = first + lane_id(), c = max(i - 1, 0) * VECTOR;
            if (i >= CHUNKS) continue;
            Pack v = *reinterpret_cast<const Pack*>(s.own + c);
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e) {
                if (PENDING && c + e && c + e + 1 < W)
                    v.x[e] = minus_product(v.x[e], s.factor, pivot->x[c + e + 1]);
                if (i == 0) v.x[e] = inverse;
            }
            memcpy(&x, &v, sizeof x);
            #pragma unroll 4
            for (int r = 0; r < CLUSTER; ++r) send(to + 16 * i + r * next, x, barrier + r * next);
        }
    }

    template <int WIDTH> __device__ void step(int j)
    {
        const int slot = (count + j) % 4, phase = (count + j) / 4 % 2;
        const unsigned heads = shared_address(&s.barrier[slot][0]), rows = heads + sizeof(word);
        if (thread() == 0) {
            expect(heads, CLUSTER * sizeof(Head));
            expect(rows, CLUSTER * (1 + WIDTH / VECTOR) * 16);
        }
        __syncthreads();
        const bool one = lane_id() < WARPS, other = lane_id() < CLUSTER;
        const Offer* const offers = s.offer[j % 2];
        const Offer& offer = offers[one ? lane_id() : 0];
        int best = winner(one ? offer.hi : 0, one ? offer.lo : 0, one ? offer.place : NOWHERE);
        if (offers[best].from % THREADS / 32 == warp()) {
            if (WIDTH == W && j == 0) push<WIDTH, false>(j, offers[best]);
            else push<WIDTH, true>(j, offers[best]);
        }
        if (j) {
            update<WIDTH>();
            store(j - 1);
        }
        await_messages(heads, phase);
        const Head& its = s.head[slot][other ? lane_id() : 0];
        best = winner(other ? its.hi : 0, other ? its.lo : 0, other ? its.place : NOWHERE);
        pivot = &s.message[slot][best];
        head = s.head[slot][best];
        const int p = head.place;
        const bool tiny = head.hi < upper_word(TINY);
        await_messages(rows, phase);
        const scalar_t next = pivot->x[1], scale = pivot->inverse;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            if (tiny) a[q][0] = mul(a[q][0], LIFT);
            l[q] = mul(a[q][0], scale);
            a[q][0] = minus_product(a[q][1], l[q], next);
            place[q] = place[q] == p ? j : place[q] == j ? p : place[q];
        }
        to = to == p ? j : to == j ? p : to;
        bid(j + 1);
    }

    // Columns W - WIDTH and after
    template <int WIDTH> __device__ void factor()
    {
        #pragma unroll 1
        for (int j = W - WIDTH; j < W - WIDTH + STAGE && j < steps; ++j) step<WIDTH>(j);
        if constexpr (WIDTH > STAGE) factor<WIDTH - STAGE>();
    }

    // The rows that moved go where they belong, by way of registers and shared memory. Between the
    // two meetings of the cluster they are read, after them written.
    __device__ void settle()
    {
        store(steps - 1);
        if (thread() < steps) s.to[thread()] = to;
        meet_cluster();
        for (int e = thread(); e < steps * steps; e += THREADS) {
            const int i = e % steps, c = e / steps;
            if (c < i) s.top[c * LD + i] = A[s.from[i] + c * lda];
        }
        const int moved = rank == 0 && thread() < steps && to >= steps ? steps : 0;
        scalar_t* p = A + thread();
        #pragma unroll
        for (int c = 0; c < W; ++c, p += lda)
            if (c < moved) a[0][c] = *p;
        meet_cluster();
        p = A + to;
        #pragma unroll
        for (int c = 0; c < W; ++c, p += lda)
            if (c < moved) *p = a[0][c];
        if (rank == CLUSTER - 1)
            for (int e = thread(); e < steps * steps; e += THREADS)
                A[e % steps + e / steps * lda] = s.top[e / steps * LD + e % steps];
    }

    // A column beside the leaf by a warp, whose rows are interchanged, and solved with L
    __device__ void beside(scalar_t* column, bool solved) const
    {
        constexpr int MINE = (W + 31) / 32;
        scalar_t y[MINE], old[MINE];
        #pragma unroll
        for (int q = 0; q < MINE; ++q) {
            const int i = lane_id() + 32 * q;
            y[q] = i < steps ? column[s.from[i]] : scalar_t{};
            old[q] = i < steps ? column[i] : scalar_t{};
        }
        __syncwarp();
        if (solved)
            #pragma unroll
            for (int part = 0; part < MINE; ++part)
                for (int j = 32 * part; j < min(steps, 32 * part + 32); ++j) {
                    const scalar_t x = of_lane(y[part], j % 32);
                    #pragma unroll
                    for (int q = part; q < MINE; ++q) {
                        const int i = lane_id() + 32 * q;
                        if (i > j && i < steps) y[q] = minus_product(y[q], s.top[j * LD + i], x);
                    }
                }
        #pragma unroll
        for (int q = 0; q < MINE; ++q) {
            const int i = lane_id() + 32 * q;
            if (i >= steps) continue;
            if (s.to[i] >= steps) column[s.to[i]] = old[q];
            column[i] = y[q];
        }
    }

    // The rows below the leaf, m with it, lose their products with U in columns to its right. A warp
    // has 16 rows of 8 TILES columns at a time.
    __device__ void multiply(int m, int columns) const
    {
        constexpr int TILES = sizeof(scalar_t) == 16 ? 2 : 4, WIDE = 8 * TILES;
        const int g = lane_id() / 4, t = lane_id() % 4, rows = m - steps;
        const scalar_t* const L = A + steps;
        for (int row = 16 * (rank * WARPS + warp()); row < rows; row += 16 * CLUSTER * WARPS)
            for (int col = 0; col < columns; col += WIDE) {
                const scalar_t* const U = A + (steps + col) * lda;
                scalar_t* const C = A + steps + (steps + col) * lda;
                scalar_t c[TILES][4];
                const auto i = [=](int e) { return min(row + g + e * 8, rows - 1); };
                const auto j = [=](int n, int e) { return min(8 * n + e, columns - col - 1); };
                #pragma unroll
                for (int n = 0; n < TILES; ++n)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) c[n][e] = C[i(e / 2) + j(n, 2 * t + e % 2) * lda];
                #pragma unroll
                for (int k = 0; k < W; k += 8) {
                    scalar_t x[4], y[2];
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int p = k + t + e / 2 * 4;
                        x[e] = p < W ? mul(L[i(e % 2) + p * lda], real_t(-1)) : scalar_t{};
                    }
                    #pragma unroll
                    for (int n = 0; n < TILES; ++n) {
                        #pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            const int p = k + t + e * 4;
                            y[e] = p < W ? U[p + j(n, g) * lda] : scalar_t{};
                        }
                        tensor_product(c[n], x, y);
                    }
                }
                #pragma unroll
                for (int n = 0; n < TILES; ++n)
                    #pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int r = row + g + e / 2 * 8, j = 8 * n + 2 * t + e % 2;
                        if (r < rows && col + j < columns) C[r + j * lda] = c[n][e];
                    }
            }
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
getrf_panel(scalar_t* A, size lda, size ms, size width, int* piv, size first, int* info)
{
    wait_for_stream();
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    const int rank = blockIdx.x, n = int(width);
    if (thread() == 0) {
        for (int i = 0; i < 8; ++i) make_barrier(shared_address(&s.barrier[0][0] + i), 1);
        show_barriers();
    }
    meet_cluster();
    for (int k = 0; k < n; k += W) {
        const int m = int(ms) - k, steps = min(W, n - k), right = n - k - steps;
        Leaf leaf{A + k * (lda + 1), lda, steps, rank, k, piv + k, int(first) + k, s};
        leaf.load(m);
        leaf.bid(0);
        leaf.factor<W>();
        leaf.settle();
        if (rank == 0 && thread() == THREADS - 32 && (leaf.first == 0 || (leaf.zero && *info == 0)))
            *info = leaf.zero ? leaf.first + leaf.zero : 0;
        for (int j = rank * WARPS + warp(); j < k + right; j += CLUSTER * WARPS)
            leaf.beside(leaf.A + (j < k ? j - k : j - k + steps) * lda, j >= k);
        if (!right) return;
        meet_cluster();
        leaf.multiply(m, right);
        meet_cluster();
    }
}
