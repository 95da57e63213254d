// getrf_panel.cu: LU with partial pivoting of a panel of a large matrix, its columns and all rows
// below them, by one cluster.
//
// The panel is factored in leaves of W columns, a leaf in registers, ROWS rows to a thread. A row
// stays where it is: it carries its place, where LAPACK's interchanges would have brought it. A column
// is one exchange: warps offer their best rows to their block, which tells all blocks of the best of
// these (`Head`: its size and place, and what the next column needs of it). Of the CLUSTER heads every
// block knows the best without asking again, and the next column is brought up to date and searched;
// the rest of the row follows from its block alone, and has till the next exchange. Between blocks 14
// bytes a clock are sent (measured): whole rows from all would take longer than all else. While
// messages fly the products of the column before are made. A warp of its own sends and keeps the
// books: in any other all would wait for it. Columns turn through the registers, the
// one at hand first, so that the loop is short; with every STAGE columns less of a row is kept up. The
// pivot is LAPACK's, the largest |re| + |im|, of equals the one in the lowest place; a nan is larger
// than any number.
//
// After a leaf the rows that moved are put in their places, the panel's columns beside it have theirs
// interchanged, in those to its right the rows of U are solved, a column to a warp, and taken off what
// is below, on the tensor cores: by each warp in its own rows of the next leaf, which stays in its
// registers, so that nobody waits for another's.
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
constexpr int CREW = THREADS + 32;  // threads, with those of the helping warp, which has no rows
static_assert(CLUSTER <= 16 && WARPS < 32 && THREADS >= W && STAGE % VECTOR == 0 && STAGE > 1);

struct alignas(16) Pack { scalar_t x[VECTOR]; };

struct alignas(16) Head {     // a block's best row, for all
    unsigned hi, lo;
    int place, row;
    alignas(16) scalar_t inverse;  // of its number in the column at hand
    scalar_t next;            // in the next one
};

struct alignas(16) Offer {    // a warp's, for its block
    unsigned hi, lo;
    int place;
    unsigned from;            // the row `from` / THREADS of thread `from` % THREADS
    alignas(16) scalar_t value;
};

struct Shared {
    Head head[4][CLUSTER];
    alignas(16) scalar_t u[4][W];  // rows of U, from the column at hand on
    Offer offer[2][WARPS];
    alignas(16) scalar_t own[W];   // the best row of this block
    word heads[4], rows[4], staged;  // barriers: they have come; `own` is there
    int from[W], to[W];       // the rows that come to the top, and where those there go
    scalar_t top[W * LD];     // L and U of the top, by columns
};
// and after it, where there is more than one leaf, 32 rows of one for each warp, LD numbers a row, and
// -U to the right of a leaf, LDU numbers a column
constexpr int SHARE = 32 * LD, LDU = W + 4;

struct Leaf {
    scalar_t* A;              // of which this is the top left
    size lda;
    int steps, rank, count;   // of columns before this leaf
    int* piv;
    int first;                // the place of the top in the matrix
    Shared& s;
    int zero;                 // the first column, from 1, whose pivot is zero
    scalar_t a[ROWS][W];      // the column at hand first
    scalar_t l[ROWS];         // of the column before it
    int place[ROWS];          // -1: there is no such row
    int to;                   // the place of the row that was this thread's number from the top

    static __device__ bool helps() { return warp() == WARPS; }
    __device__ int slot(int j) const { return (count + j) % 4; }
    __device__ int phase(int j) const { return (count + j) / 4 % 2; }
    __device__ size row(int q) const { return (size(rank) * ROWS + q) * THREADS + thread(); }

    // put(e, get(e)) for e below `count`, the threads sharing them, TURN of each under way together
    template <int TURN, class Get, class Put> static __device__ void share(int count, Get get, Put put)
    {
        for (int first = thread(); first < count; first += TURN * CREW) {
            scalar_t x[TURN];
            #pragma unroll
            for (int q = 0; q < TURN; ++q)
                if (first + q * CREW < count) x[q] = get(first + q * CREW);
            #pragma unroll
            for (int q = 0; q < TURN; ++q)
                if (first + q * CREW < count) put(first + q * CREW, x[q]);
        }
    }

    // m rows, as they are
    __device__ void load(int m)
    {
        to = thread(), zero = 0;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            place[q] = row(q) < m && !helps() ? int(row(q)) : -1;
            const scalar_t* p = A + row(q);
            const int columns = place[q] < 0 ? 0 : steps;
            #pragma unroll
            for (int c = 0; c < W; ++c, p += lda) a[q][c] = c < columns ? *p : scalar_t{};
        }
    }

    // m rows, of which these columns, more than the leaf's, lose their products with the leaf before.
    // `rows` and `U`: shared memory after Shared.
    __device__ void load(int m, int columns, scalar_t* rows, scalar_t* U)
    {
        to = thread(), zero = 0;
        constexpr int TURN = W / (WARPS > 8 ? 8 : 4);
        share<(TURN > 0 ? TURN : 1)>(W * columns, [=](int e) { return A[e % W - W + e / W * lda]; },
                 [=](int e, scalar_t x) { U[e / W * LDU + e % W] = mul(x, real_t(-1)); });
        __syncthreads();
        rows += warp() * SHARE;
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) {
            place[q] = row(q) < m && !helps() ? int(row(q)) : -1;
            const int first = int(row(q)) - lane_id();
            if (first < m && !helps())
                #pragma unroll 1
                for (int half = 0; half < 32; half += 16)
                    multiply(first + half, m, columns, rows + half * LD, U);
            __syncwarp();
            #pragma unroll
            for (int c = 0; c < W; ++c)
                a[q][c] = c < steps && place[q] >= 0 ? rows[lane_id() * LD + c] : scalar_t{};
            __syncwarp();
        }
    }

    // 16 rows from this one on, for a warp: the leaf's columns go to `rows`, others back to memory.
    // Those of WIDE columns are under way while the ones before are multiplied.
    __device__ void multiply(int row, int m, int columns, scalar_t* rows, const scalar_t* U) const
    {
        constexpr int MOST = sizeof(scalar_t) > sizeof(real_t) ? 1 : 2, K = (W + 7) / 8;
        constexpr int TILES = K < MOST ? K : MOST, WIDE = 8 * TILES;
        const int g = lane_id() / 4, t = lane_id() % 4;
        const bool there[2] = {row + g < m, row + g + 8 < m};
        scalar_t x[K][4], c[TILES][4], next[TILES][4];
        scalar_t* at = A + row + g + 2 * t * lda;  // this lane's first number of C
        const auto bring = [&](scalar_t (&to)[TILES][4], const scalar_t* from, int col) {
            #pragma unroll
            for (int n = 0; n < TILES; ++n, from += 8 * lda)
                #pragma unroll
                for (int e = 0; e < 4; ++e)
                    to[n][e] = there[e / 2] && col + 8 * n + 2 * t + e % 2 < columns
                        ? from[e % 2 * lda + e / 2 * 8] : scalar_t{};
        };
        bring(c, at, 0);
        const scalar_t* l = A + row + g + (t - W) * lda;
        #pragma unroll
        for (int k = 0; k < K; ++k, l += 8 * lda)
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                x[k][e] = there[e % 2] && 8 * k + t + e / 2 * 4 < W
                    ? l[e / 2 * 4 * lda + e % 2 * 8] : scalar_t{};
        #pragma unroll 1
        for (int col = 0; col < columns; col += WIDE) {
            bring(next, at + WIDE * lda, col + WIDE);
            #pragma unroll
            for (int n = 0; n < TILES; ++n) {
                const scalar_t* const u = U + min(col + 8 * n + g, columns - 1) * LDU + t;
                #pragma unroll
                for (int k = 0; k < K; ++k) {
                    scalar_t y[2];
                    #pragma unroll
                    for (int e = 0; e < 2; ++e)
                        y[e] = 8 * k + t + e * 4 < W ? u[8 * k + e * 4] : scalar_t{};
                    tensor_product(c[n], x[k], y);
                }
            }
            #pragma unroll
            for (int n = 0; n < TILES; ++n)
                #pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int j = 8 * n + 2 * t + e % 2;
                    if (col + j < W) rows[(g + e / 2 * 8) * LD + col + j] = c[n][e];
                    else if (there[e / 2] && col + j < columns)
                        at[(8 * n + e % 2) * lda + e / 2 * 8] = c[n][e];
                    c[n][e] = next[n][e];
                }
            at += WIDE * lda;
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
            s.offer[j % 2][warp()] = {hi, lo, at, unsigned(own * THREADS + thread()), value};
    }

    // What column j takes off the columns from the second after it on, which move up; WIDTH of them
    // are kept up, and one that the stage before has left.
    template <int WIDTH> __device__ void update(int j)
    {
        constexpr int END = WIDTH < W ? WIDTH + 1 : W;
        #pragma unroll
        for (int c = 0; c < END; c += VECTOR) {
            const Pack v = *reinterpret_cast<const Pack*>(s.u[slot(j)] + c);
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e)
                #pragma unroll
                for (int q = 0; q < ROWS; ++q)
                    if (c + e >= 2 && c + e < END)
                        a[q][c + e - 1] = minus_product(a[q][c + e], l[q], v.x[e]);
        }
    }

    // Column j of L, under the diagonal
    __device__ void store(int j) const
    {
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            if (place[q] > j) A[row(q) + j * lda] = l[q];
    }

    // What is at `p` of this block, of block `other`
    static __device__ unsigned in(int other, const void* p)
    {
        return address_in(shared_address(p), other);
    }

    // The best row of this block, which is one of this warp, is told to all
    __device__ void tell(int j, const Offer& best) const
    {
        const int mine = best.from / THREADS, lane = best.from % 32;
        scalar_t next = a[0][1], second = a[0][W > 2 ? 2 : 1], its = l[0];
        #pragma unroll
        for (int q = 1; q < ROWS; ++q)
            if (q == mine) next = a[q][1], second = a[q][W > 2 ? 2 : 1], its = l[q];
        if (j) next = minus_product(second, its, s.u[slot(j - 1)][W > 2 ? 2 : 1]);
        scalar_t inverse = near_reciprocal(best.value);
        if (best.hi - upper_word(TINY) >= upper_word(HUGE) - upper_word(TINY))
            inverse = inverse_of(best.value);
        const Head head{best.hi, best.lo, best.place,
                        (rank * ROWS + mine) * THREADS + int(best.from % THREADS), inverse,
                        of_lane(next, lane)};
        Chunk x[sizeof head / 16];
        memcpy(x, &head, sizeof head);
        if (lane_id() >= CLUSTER) return;
        const unsigned to = in(lane_id(), &s.head[slot(j)][rank]);
        #pragma unroll
        for (int i = 0; i < int(sizeof head / 16); ++i)
            send(to + 16 * i, x[i], in(lane_id(), &s.heads[slot(j)]));
    }

    // It is laid out, in case it is the pivot
    template <int WIDTH> __device__ void stage(const Offer& best) const
    {
        const int mine = best.from / THREADS;
        if (unsigned(thread()) != best.from % THREADS) return;
        #pragma unroll
        for (int c = 0; c < WIDTH; c += VECTOR) {
            Pack v;
            #pragma unroll
            for (int q = 0; q < ROWS; ++q)
                #pragma unroll
                for (int e = 0; e < VECTOR; ++e)
                    v.x[e] = q == 0 || q == mine ? a[q][c + e] : v.x[e];
            *reinterpret_cast<Pack*>(s.own + c) = v;
        }
        arrive(shared_address(&s.staged));
    }

    // It is, and goes to all
    template <int WIDTH> __device__ void push(int j) const
    {
        await(shared_address(&s.staged), (count + j) % 2);
        if (lane_id() >= WIDTH / VECTOR) return;
        const Chunk x = reinterpret_cast<const Chunk*>(s.own)[lane_id()];
        #pragma unroll
        for (int r = 0; r < CLUSTER; ++r)
            send(in(r, s.u[slot(j)] + lane_id() * VECTOR), x, in(r, &s.rows[slot(j)]));
    }

    __device__ void sync() const { __syncthreads(); }

    // The block whose row is the pivot of column j
    __device__ int chosen(int j) const
    {
        await(shared_address(&s.heads[slot(j)]), phase(j));
        const bool one = lane_id() < CLUSTER;
        const Head& head = s.head[slot(j)][one ? lane_id() : 0];
        return winner(one ? head.hi : 0, one ? head.lo : 0, one ? head.place : NOWHERE);
    }

    template <int WIDTH> __device__ void step(int j)
    {
        sync();
        const bool one = lane_id() < WARPS;
        const Offer& offer = s.offer[j % 2][one ? lane_id() : 0];
        const int best = winner(one ? offer.hi : 0, one ? offer.lo : 0, one ? offer.place : NOWHERE);
        const Offer& own = s.offer[j % 2][best];
        const bool mine = own.from % THREADS / 32 == unsigned(warp());
        if (j) await(shared_address(&s.rows[slot(j - 1)]), phase(j - 1));
        if (mine) tell(j, own);
        if (j) update<WIDTH>(j - 1);
        if (mine) stage<WIDTH>(own);
        if (j) store(j - 1);
        const Head& head = s.head[slot(j)][chosen(j)];
        const int p = head.place;
        const scalar_t next = head.next, scale = head.inverse;
        const bool tiny = head.hi < upper_word(TINY);
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

    // The helping warp's part of it
    template <int WIDTH> __device__ void help(int j)
    {
        if (lane_id() == 0) {
            expect(shared_address(&s.heads[slot(j)]), CLUSTER * sizeof(Head));
            expect(shared_address(&s.rows[slot(j)]), WIDTH * sizeof(scalar_t));
        }
        sync();
        const int best = chosen(j);
        if (best == rank) push<WIDTH>(j);
        const Head& head = s.head[slot(j)][best];
        if (lane_id() == 0) {
            s.from[j] = head.row;
            if (rank == 0) piv[j] = first + head.place;
            if (head.hi == 1 && head.lo == 0 && !zero) zero = j + 1;
        }
        await(shared_address(&s.rows[slot(j)]), phase(j));
        #pragma unroll
        for (int first = 0; first < W; first += 32) {
            const int c = first + lane_id();
            if (c < steps - j) s.top[(j + c) * LD + j] = s.u[slot(j)][c];
        }
    }

    // Columns W - WIDTH and after
    template <int WIDTH, bool HELP> __device__ void factor()
    {
        #pragma unroll 1
        for (int j = W - WIDTH; j < W - WIDTH + STAGE && j < steps; ++j) {
            if (HELP) help<WIDTH>(j);
            else step<WIDTH>(j);
        }
        if constexpr (WIDTH > STAGE) factor<WIDTH - STAGE, HELP>();
    }

    // A column beside the leaf, by a warp: the rows that come to its top, and those there
    struct Column {
        static constexpr int MINE = (W + 31) / 32;
        scalar_t* p;
        scalar_t y[MINE], old[MINE];
    };
    __device__ Column column(scalar_t* p) const
    {
        Column c{p};
        #pragma unroll
        for (int q = 0; q < Column::MINE; ++q) {
            const int i = lane_id() + 32 * q;
            if (p && i < steps) c.y[q] = p[s.from[i]], c.old[q] = p[i];
        }
        return c;
    }
    // The rows are interchanged, and solved with L
    __device__ void beside(Column& c, bool solved) const
    {
        __syncwarp();
        if (solved)
            #pragma unroll
            for (int part = 0; part < Column::MINE; ++part)
                for (int j = 32 * part; j < min(steps, 32 * part + 32); ++j) {
                    const scalar_t x = of_lane(c.y[part], j % 32);
                    #pragma unroll
                    for (int q = part; q < Column::MINE; ++q) {
                        const int i = lane_id() + 32 * q;
                        if (i > j && i < steps) c.y[q] = minus_product(c.y[q], s.top[j * LD + i], x);
                    }
                }
        #pragma unroll
        for (int q = 0; q < Column::MINE; ++q) {
            const int i = lane_id() + 32 * q;
            if (i >= steps) continue;
            if (s.to[i] >= steps) c.p[s.to[i]] = c.old[q];
            c.p[i] = c.y[q];
        }
    }

    // The rows that moved go where they belong, by way of registers and shared memory, in the leaf
    // and in the `left` and `right` columns beside it.
    __device__ void settle(int left, int right)
    {
        store(steps - 1);
        if (thread() < steps) s.to[thread()] = to;
        meet_cluster();
        const auto beyond = [=](int j) {
            return j < left + right ? A + (j < left ? j - left : j - left + steps) * lda : nullptr;
        };
        int j = rank * (WARPS + 1) + warp();
        Column c = column(beyond(j));
        share<W * W / CREW < 4 ? W * W / CREW + 1 : 4>(W * steps, [=](int e) {
            const int i = e % W, k = e / W;
            return k < i && i < steps ? A[s.from[i] + k * lda] : scalar_t{};
        }, [=](int e, scalar_t x) {
            if (e / W < e % W) s.top[e / W * LD + e % W] = x;
        });
        const int moved = rank == 0 && thread() < steps && to >= steps ? steps : 0;
        scalar_t* p = A + thread();
        #pragma unroll
        for (int k = 0; k < W; ++k, p += lda)
            if (k < moved) a[0][k] = *p;
        __syncthreads();
        arrive_at_cluster();  // what is written from here on is read by nobody before it
        for (; j < left + right; j += CLUSTER * (WARPS + 1)) {
            beside(c, j >= left);
            c = column(beyond(j + CLUSTER * (WARPS + 1)));
        }
        await_cluster();
        p = A + to;
        #pragma unroll
        for (int k = 0; k < W; ++k, p += lda)
            if (k < moved) *p = a[0][k];
        if (rank == CLUSTER - 1)
            for (int e = thread(); e < steps * steps; e += CREW)
                A[e % steps + e / steps * lda] = s.top[e / steps * LD + e % steps];
    }
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(CREW, 1)
getrf_panel(scalar_t* A, size lda, size ms, size width, int* piv, size first, int* info)
{
    wait_for_stream();
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    const int rank = blockIdx.x, n = int(width);
    if (thread() == 0) {
        for (int i = 0; i < 9; ++i) make_barrier(shared_address(s.heads + i), 1);
        show_barriers();
    }
    meet_cluster();
    scalar_t* const rows = reinterpret_cast<scalar_t*>(dynamic_shared + sizeof(Shared));
    for (int k = 0; k < n; k += W) {
        const int m = int(ms) - k, steps = min(W, n - k), right = n - k - steps;
        Leaf leaf{A + k * (lda + 1), lda, steps, rank, k, piv + k, int(first) + k, s};
        if (k == 0) leaf.load(m);
        else leaf.load(m, n - k, rows, rows + WARPS * SHARE);
        if (Leaf::helps()) leaf.factor<W, true>();
        else leaf.bid(0), leaf.factor<W, false>();
        leaf.settle(k, right);
        if (rank == 0 && thread() == THREADS && (leaf.first == 0 || (leaf.zero && *info == 0)))
            *info = leaf.zero ? leaf.first + leaf.zero : 0;
        if (!right) return;
        meet_cluster();
    }
}
