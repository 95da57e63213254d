// getrf_leaf.cu: LU with partial pivoting of a leaf of a large matrix, up to W columns and all rows
// below them, by one cluster; and what follows of it for the columns beside it.
//
// Row i of the leaf is in registers of one thread, ROWS rows to a thread, and stays there: it
// carries its place, where LAPACK's interchanges would have brought it. A column is one exchange:
// warps offer their best rows to their block, which sends the best of these, as a whole, to all
// blocks; of CLUSTER rows that have come every block knows the best without asking again. Messages
// fly while the products of the column before are made. Columns turn through the registers, the one
// at hand first, so that the loop is short; with every STAGE columns less of a row is kept up.
// The pivot is LAPACK's, the largest |re| + |im|, of equals the one in the lowest place; a nan is
// larger than any number.
//
// At the end the rows that moved are put in their places, and columns beside the leaf have theirs
// interchanged, `left` of them before it, `right` of them after; in these the rows of U are solved.
//
// The leaf crosses memory once each way; beside it 4 W numbers a column. The floor is a column's
// way, about twelve steps that wait for each other: 0.65 us where rows are few.
#include "block.cuh"
#include "cluster.cuh"
#include "launch.cuh"
#include "pivot.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int CLUSTER = 8, ROWS = 1, W = 32;
#endif

constexpr int VECTOR = 16 / sizeof(scalar_t), STAGE = W > 32 ? W / 4 : W > 8 ? 8 : W;
constexpr int NOWHERE = 1 << 30, LD = W + 1;
static_assert(CLUSTER <= 16 && WARPS <= 32 && THREADS >= W && STAGE % VECTOR == 0 && STAGE > 1);

struct alignas(16) Pack { scalar_t x[VECTOR]; };

struct alignas(16) Head {
    unsigned hi, lo;
    int place, row;
};

struct alignas(16) Message {  // a block's best row, from the column at hand on
    Head head;
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
    Offer offer[2][WARPS];
    alignas(16) scalar_t own[W], factor;  // the row that is sent, and its l
    word barrier[4];
    int from[W], to[W];       // the rows that come to the top, and where those there go
    scalar_t top[W * LD];     // L and U of the top, by columns
};

struct Leaf {
    scalar_t* A;              // of which this is the top left
    size lda;
    int steps, rank;
    int* piv;
    int first;                // the place of the top in the matrix
    Shared& s;
    int zero;                 // the first column, from 1, whose pivot is zero
    scalar_t a[ROWS][W];      // the column at hand first
    scalar_t l[ROWS];         // of the column before it, whose pivot was
    const Message* pivot;
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
        s.from[j] = pivot->head.row;
        if (rank == 0) piv[j] = first + pivot->head.place;
        if (abs1(pivot->x[0]) == 0 && !zero) zero = j + 1;
    }

    // The best row of this block, which is one of this warp, to all. PENDING: what the column before
    // takes off it is still to be taken; here the lanes do, at once, and `update` does it again.
    template <int WIDTH, bool PENDING> __device__ void push(int j, const Offer& best)
    {
        const int mine = best.from / THREADS;
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
        const real_t size = abs1(best.value);
        if (!(size >= TINY && size < HUGE)) inverse = inverse_of(best.value);
        __syncwarp();
        constexpr int CHUNKS = 2 + WIDTH / VECTOR;
        const unsigned to = address_in(shared_address(&s.message[j % 4][rank]), 0);
        const unsigned barrier = address_in(shared_address(&s.barrier[j % 4]), 0);
        const unsigned next = address_in(0, 1) - address_in(0, 0);
        #pragma unroll
        for (int first = 0; first < CHUNKS; first += 32) {
            const int i = first + lane_id(), c = (i - 2) * VECTOR;
            if (i >= CHUNKS) continue;
            Chunk x{};
            if (i == 0) {
                const int row = (rank * ROWS + mine) * THREADS + best.from % THREADS;
                const Head head{best.hi, best.lo, best.place, row};
                memcpy(&x, &head, sizeof x);
            } else if (i == 1) {
                memcpy(&x, &inverse, sizeof inverse);
            } else {
                Pack v = *reinterpret_cast<const Pack*>(s.own + c);
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    if (PENDING && c + e && c + e + 1 < W)
                        v.x[e] = minus_product(v.x[e], s.factor, pivot->x[c + e + 1]);
                memcpy(&x, &v, sizeof x);
            }
            #pragma unroll 4
            for (int r = 0; r < CLUSTER; ++r)
                send(to + 16 * i + r * next, x, barrier + r * next);
        }
    }

    template <int WIDTH> __device__ void step(int j)
    {
        const unsigned barrier = shared_address(&s.barrier[j % 4]);
        if (thread() == 0) expect(barrier, CLUSTER * (2 + WIDTH / VECTOR) * 16);
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
        await_messages(barrier, j / 4 % 2);
        const Message* const messages = s.message[j % 4];
        const Message& its = messages[other ? lane_id() : 0];
        best = winner(other ? its.head.hi : 0, other ? its.head.lo : 0, other ? its.head.place : NOWHERE);
        pivot = messages + best;
        const int p = pivot->head.place;
        const scalar_t next = pivot->x[1], scale = pivot->inverse;
        const bool tiny = pivot->head.hi < upper_word(TINY);
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
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS, 1)
getrf_leaf(scalar_t* A, size lda, size m, size steps, size left, size right, int* piv, size first,
           int* info)
{
    wait_for_stream();
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    Leaf leaf{A, lda, int(steps), int(blockIdx.x), piv, int(first), s};
    leaf.load(int(m));
    if (thread() == 0) {
        for (word& barrier : s.barrier) make_barrier(shared_address(&barrier), 1);
        show_barriers();
    }
    meet_cluster();
    leaf.bid(0);
    leaf.factor<W>();
    leaf.settle();
    if (blockIdx.x == 0 && thread() == THREADS - 32 && (first == 0 || (leaf.zero && *info == 0)))
        *info = leaf.zero ? int(first) + leaf.zero : 0;
    const int columns = int(left + right);
    for (int j = int(blockIdx.x) * WARPS + warp(); j < columns; j += CLUSTER * WARPS)
        leaf.beside(A + (j < left ? j - left : j - left + steps) * lda, j >= left);
}
