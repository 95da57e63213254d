// products.cuh: C := alpha A B + beta C of every member of a batch, by tiles of C.
//
// TEAM warps own a BM x BN tile of one member's C, a warp TM x TN of it in registers
// (product_tiles.cuh). Slices of A and B, BK deep, come to shared memory by asynchronous copies,
// each as its operand lies in memory, by rows or by columns, 16 bytes a copy where neighbours are
// that long: every layout and transpose is read in whole sectors. Which of the two is a constant of
// the program, for each layout multiplies in loops of its own, which take seconds to compile.
//
// RESIDENT = 1: all k fits into STAGES slices, which arrive one after the other, and nothing is
// overwritten: one barrier a slice. Blocks are small, and while one waits another multiplies.
// RESIDENT = 0: a ring of STAGES slices, of which all but one are on their way.
// A team is the block, or a warp, of which a block then has WARPS with tiles of their own.
// BORDER > 0: the team's part of C has as many rows and columns more than its warps have tiles for,
// which of a member that is a little larger would be nearly empty. Its threads sum the elements of
// these one product after the other, from the same slices, RESIDENT.
//
// GENERAL     C any
// SYMMETRIC   A = A^T, or A^H, of which only elements (i, j), i >= j, are read, BK = BM: slices of
//             the other triangle are read from where their mirror images are, as these lie, and
//             of one on the diagonal half is read, and multiplied as if it were all there
// RANK_K      B = A^T or A^H and only the elements i >= j of C: tiles above are left out, and tiles
//             on the diagonal bring one slice, not two. UPPER_OF_C: the elements i <= j, and tiles
//             below; OTHERS_ZERO: C is new, and what is left out is zero (operands.cuh)
#pragma once
#include "async.cuh"
#include "product_tiles.cuh"

#ifndef BLASX               // the launcher writes them; the values here let the file compile alone
constexpr int A_ACROSS = 0, B_ACROSS = 0;  // 1: neighbours in a column are next to each other
#endif

enum Kind { GENERAL, SYMMETRIC, RANK_K };

constexpr int TEAM = BM / TM * (BN / TN), TEAM_THREADS = 32 * TEAM, TEAMS = WARPS / TEAM;
static_assert(BM % TM == 0 && BN % TN == 0 && WARPS % TEAM == 0 && (TEAM == 1 || TEAMS == 1)
              && (RESIDENT || BORDER == 0));

__host__ __device__ constexpr int larger(int a, int b) { return a > b ? a : b; }

// Numbers of shared memory for a slice of R x BK or BK x R, and for a stage of A's and B's, which
// may be the same
__host__ __device__ constexpr int slice(int R)
{
    return larger(R * pitch(BK, true), BK * pitch(R, false));
}
__host__ __device__ constexpr int stage_of(int kind)
{
    return slice(HIGH) + (kind == RANK_K && RESIDENT ? 0 : slice(WIDE));
}

// Of a warp's sums on their way to memory, and of all that a team has
__host__ __device__ constexpr int pitch_of_sums(int n) { return n + 16 / int(sizeof(real_t)); }
constexpr int ROUND = 16 * pitch_of_sums(TN);
__host__ __device__ constexpr int room_of(int kind)
{
    return larger(STAGES * stage_of(kind),
                  TEAM * ROUND * int(sizeof(sum_t)) / int(sizeof(scalar_t)));
}

// How slices of B lie: of RANK_K it is A the other way round
__host__ __device__ constexpr bool b_by_rows(int kind)
{
    return kind == RANK_K ? A_ACROSS : !B_ACROSS;
}

struct Product {  // one member's, and the tile of C that begins at (i, j)
    int m, n, k, i, j;
    Operand a, b;
    bool a_vectors, b_vectors, c_vectors, hermitian, read, upper, clear;
    Strided<const scalar_t> c;
    Strided<scalar_t> o;
    sum_t alpha, beta;
};

// Numbers to a line of a slice of A
__host__ __device__ constexpr int leading_of_a(bool by_rows)
{
    return by_rows ? pitch(BK, true) : pitch(HIGH, false);
}

__device__ inline int in_team() { return TEAM == 1 ? threadIdx.x % 32 : threadIdx.x; }
__device__ inline int warp_of_team() { return TEAM == 1 ? 0 : threadIdx.x / 32; }
__device__ inline void meet()
{
    if (TEAM == 1) __syncwarp();
    else __syncthreads();
}

// A number, or 16 bytes of them, of which `valid` exist, the others zero, without waiting for it
template <int V> __device__ void copy(scalar_t* to, const scalar_t* from, int valid)
{
    constexpr int bytes = sizeof(scalar_t);
    if constexpr (V > 1) copy_async<16, true>(to, from, valid * bytes);
    else if constexpr (bytes >= 4) copy_async<bytes>(to, from, valid * bytes);
}

// Which numbers of a line are wanted: all; of a lower triangle stored by rows those up to the
// diagonal, by columns those from there on
enum Lines { WHOLE, UP_TO_DIAGONAL, FROM_DIAGONAL };

// `to` := OUTER lines of INNER numbers of an operand, `step` apart in a line, lines `stride` apart,
// of which inner_end and outer_end exist; `depth` of k are wanted, zero where there are none.
template <int INNER, int OUTER, bool ALONG_K, int V, int WANTED = WHOLE>
__device__ void fetch(scalar_t* to, const scalar_t* from, size step, size stride, int inner_end,
                      int outer_end, int depth)
{
    constexpr int LD = pitch(INNER, ALONG_K), FEW = INNER / V, T = TEAM_THREADS;
    static_assert(INNER % V == 0);
    const auto wanted = [=](int o, int f) {
        return WANTED == WHOLE || (WANTED == UP_TO_DIAGONAL ? f <= o : f + V > o);
    };
    if constexpr (T % FEW == 0 && OUTER % (T / FEW) == 0 && V == VECTOR_OF_16) {
        constexpr int DOWN = T / FEW;
        if (inner_end >= INNER && outer_end >= OUTER && depth == BK) {
            const int o = in_team() / FEW, f = in_team() % FEW * V;
            from += o * stride + f * step, to += o * LD + f;
            #pragma unroll
            for (int i = 0; i < OUTER; i += DOWN) {
                if (wanted(o + i, f)) copy<V>(to + i * LD, from, V);
                from += DOWN * stride;
            }
            return;
        }
    }
    const bool square = WANTED != WHOLE;  // with zeros on both sides of the diagonal
    const int few = (min(INNER, ALONG_K || square ? depth : inner_end) + V - 1) / V;
    const int lines = min(OUTER, ALONG_K && !square ? outer_end : depth);
    if (few <= 0) return;
    const int down = T / few, across = (T - down * few) * V, width = few * V;
    int o = in_team() / few, f = (in_team() - o * few) * V;
    from += o * stride + f * step;
    const auto valid = [=](int o, int f) {
        const int left = o < outer_end ? inner_end - f : 0;
        return left < 0 ? 0 : left < V ? left : V;
    };
    constexpr bool SHORT = sizeof(scalar_t) < 4 && V == 1;
    if (!SHORT && 4 * down * few >= 3 * T) {  // few threads are idle if each keeps its column
        if (o >= down) return;
        #pragma unroll 4
        for (; o < lines; o += down) {
            if (wanted(o, f)) copy<V>(to + o * LD + f, from, valid(o, f));
            from += down * stride;
        }
        return;
    }
    const size next = down * stride + across * step, wrap = stride - width * step;
    constexpr int TOGETHER = SHORT ? 8 : 1;  // loads under way
    #pragma unroll 4
    while (o < lines) {
        scalar_t got[TOGETHER];
        int place[TOGETHER];
        #pragma unroll
        for (int u = 0; u < TOGETHER; ++u) {
            place[u] = o < lines && wanted(o, f) ? o * LD + f : -1;
            if (SHORT) got[u] = place[u] >= 0 && valid(o, f) ? *from : scalar_t{};
            else if (place[u] >= 0) copy<V>(to + place[u], from, valid(o, f));
            o += down, f += across, from += next;
            if (f >= width) f -= width, ++o, from += wrap;
        }
        #pragma unroll
        for (int u = 0; u < TOGETHER; ++u)
            if (SHORT && place[u] >= 0) to[place[u]] = got[u];
    }
}

// The same of an operand by rows or columns of R x C; `vectors`: 16 bytes at a time
template <int R, int C, bool ALONG_K, bool BY_ROWS, int WANTED = WHOLE>
__device__ void fetch(scalar_t* to, const Operand& x, bool vectors, int rows, int columns,
                      int depth)
{
    constexpr int INNER = BY_ROWS ? C : R, OUTER = BY_ROWS ? R : C;
    const size step = BY_ROWS ? x.cs : x.rs, stride = BY_ROWS ? x.rs : x.cs;
    const int inner = BY_ROWS ? columns : rows, outer = BY_ROWS ? rows : columns;
    if (vectors)
        fetch<INNER, OUTER, ALONG_K, VECTOR_OF_16, WANTED>(to, x.p, 1, stride, inner, outer, depth);
    else
        fetch<INNER, OUTER, ALONG_K, 1, WANTED>(to, x.p, step, stride, inner, outer, depth);
}

// A slice of a SYMMETRIC A from column p on: below the diagonal as it is stored, above as its
// mirror image is, of one on the diagonal the lower half.
template <bool A_BY_ROWS>
__device__ void fetch_symmetric(scalar_t* to, const Product& w, int p, int depth)
{
    const int rows = w.m - w.i, columns = w.k - p;
    const Operand mirrored{w.a.p, w.a.cs, w.a.rs, 0};
    if (p < w.i)
        fetch<BM, BK, A_BY_ROWS, A_BY_ROWS>(to, part(w.a, w.i, p), w.a_vectors, rows, columns,
                                            depth);
    else if (p > w.i)
        fetch<BM, BK, !A_BY_ROWS, !A_BY_ROWS>(to, part(mirrored, w.i, p), w.a_vectors, rows,
                                              columns, depth);
    else
        fetch<BM, BK, A_BY_ROWS, A_BY_ROWS, A_BY_ROWS ? UP_TO_DIAGONAL : FROM_DIAGONAL>(
            to, part(w.a, w.i, p), w.a_vectors, rows, columns, depth);
}

// Numbers of k in the slice from p on, in whole steps
template <int STEP> __device__ int depth_of(const Product& w, int p)
{
    return min(BK, (w.k - p + STEP - 1) / STEP * STEP);
}

template <int KIND, bool A_BY_ROWS, bool B_BY_ROWS, int STEP>
__device__ void fetch_stage(const Product& w, scalar_t* to, int p)
{
    const int depth = depth_of<STEP>(w, p), left = w.k - p;
    if constexpr (KIND == SYMMETRIC)
        fetch_symmetric<A_BY_ROWS>(to, w, p, depth);
    else
        fetch<HIGH, BK, A_BY_ROWS, A_BY_ROWS>(to, part(w.a, w.i, p), w.a_vectors, w.m - w.i, left,
                                              depth);
    if (KIND == RANK_K && (RESIDENT || w.i == w.j)) return;
    fetch<BK, WIDE, !B_BY_ROWS, B_BY_ROWS>(to + slice(HIGH), part(w.b, p, w.j), w.b_vectors, left,
                                           w.n - w.j, depth);
}

template <int KIND> __device__ bool wanted(const Product& w, int i, int j)
{
    return KIND != RANK_K || (w.upper ? i <= j : i >= j);
}
// Whether none of R x C elements from (i, j) on is
template <int KIND, int R, int C> __device__ bool unwanted(const Product& w, int i, int j)
{
    return KIND == RANK_K && (w.upper ? j + C <= i : i + R <= j);
}

// alpha x + beta old, element (i, j) of C; of a diagonal nothing imaginary counts
template <int KIND>
__device__ sum_t finished(const Product& w, sum_t x, scalar_t old, int i, int j)
{
    const bool real_one = KIND == RANK_K && w.hermitian && i == j;
    if (real_one) old = real_part(old);
    const sum_t before = w.read ? mul(w.beta, sum_t(old)) : sum_t{};
    const sum_t value = plus_product(before, w.alpha, x);
    return real_one ? real_part(value) : value;
}

// V neighbours in a row of C, from (i, j) on; VECTORS: at once where all are wanted
template <int KIND, int V, bool VECTORS>
__device__ void finish(const Product& w, const sum_t* x, int i, int j)
{
    constexpr int bytes = V * sizeof(scalar_t);
    struct alignas(!VECTORS ? sizeof(scalar_t) : bytes > 16 ? 16 : bytes) Few { scalar_t x[V]; };
    if (i >= w.m || j >= w.n) return;
    const bool clear = KIND == RANK_K && w.clear;
    const auto all = [&] { return wanted<KIND>(w, i, j) && wanted<KIND>(w, i, j + V - 1); };
    if (VECTORS && j + V <= w.n && (clear || all())) {
        Few few{};
        if (w.read) few = *reinterpret_cast<const Few*>(&w.c(i, j));
        #pragma unroll
        for (int e = 0; e < V; ++e)
            few.x[e] = clear && !wanted<KIND>(w, i, j + e)
                           ? scalar_t{}
                           : scalar_t(finished<KIND>(w, x[e], few.x[e], i, j + e));
        *reinterpret_cast<Few*>(&w.o(i, j)) = few;
    } else {
        #pragma unroll
        for (int e = 0; e < V; ++e) {
            if (j + e >= w.n) continue;
            if (wanted<KIND>(w, i, j + e))
                w.o(i, j + e) = scalar_t(finished<KIND>(
                    w, x[e], w.read ? w.c(i, j + e) : scalar_t{}, i, j + e));
            else if (clear) w.o(i, j + e) = scalar_t{};
        }
    }
}

// ROWS rows of a tile of a warp to shared memory
template <class T> __device__ void put_rows(T& tile, int g, sum_t* room)
{
    __syncwarp();
    tile.runs(g, [=](int r, int c, sum_t (&x)[T::RUN]) {
        #pragma unroll
        for (int e = 0; e < T::RUN; ++e) room[r * pitch_of_sums(TN) + c + e] = x[e];
    });
    __syncwarp();
}

// A tile of a warp, from (i, j) on, to memory: ROWS rows at a time by way of shared memory, and
// from there V neighbours a lane, in whole sectors.
template <int KIND, int V, class T>
__device__ void store_in_lines(T& tile, const Product& w, sum_t* room, int i, int j)
{
    constexpr int LD = pitch_of_sums(TN);
    const int few = (min(TN, w.n - j) + V - 1) / V, lane = threadIdx.x % 32;
    if (few <= 0) return;
    const int down = 32 / few, across = (32 - down * few) * V, width = few * V;
    #pragma unroll
    for (int g = 0; g < T::GROUPS; ++g) {
        put_rows(tile, g, room);
        int r = lane / few, c = (lane - r * few) * V;
        while (r < T::ROWS) {
            struct alignas(V > 1 ? 16 : sizeof(sum_t)) Sums { sum_t x[V]; };
            const Sums sums = *reinterpret_cast<const Sums*>(room + r * LD + c);
            finish<KIND, V, (V > 1)>(w, sums.x, i + g * T::ROWS + r, j + c);
            r += down, c += across;
            if (c >= width) c -= width, ++r;
        }
    }
}

// The same where neighbours in a column of C are next to each other. Of a SYMMETRIC product it would
// take registers that the sums need.
template <int KIND, class T>
__device__ void store_in_columns(T& tile, const Product& w, sum_t* room, int i, int j)
{
    #pragma unroll
    for (int g = 0; g < T::GROUPS; ++g) {
        put_rows(tile, g, room);
        #pragma unroll 4
        for (int e = threadIdx.x % 32; e < T::ROWS * TN; e += 32) {
            const int r = e % T::ROWS, c = e / T::ROWS;
            finish<KIND, 1, false>(w, room + r * pitch_of_sums(TN) + c, i + g * T::ROWS + r, j + c);
        }
    }
}

template <int KIND, class T>
__device__ void store(T& tile, const Product& w, sum_t* room, int i, int j)
{
    constexpr bool SHORT = sizeof(scalar_t) < 4;
    if (w.c_vectors && !SHORT) {
        #pragma unroll
        for (int g = 0; g < T::GROUPS; ++g)
            tile.runs(g, [=, &w](int r, int c, sum_t (&x)[T::RUN]) {
                finish<KIND, T::RUN, true>(w, x, i + g * T::ROWS + r, j + c);
            });
    } else {
        meet();
        if (w.c_vectors) store_in_lines<KIND, VECTOR_OF_16>(tile, w, room, i, j);
        else if (KIND == RANK_K && w.o.rs == 1) store_in_columns<KIND>(tile, w, room, i, j);
        else store_in_lines<KIND, 1>(tile, w, room, i, j);
    }
}

// A warp's TN x TM zeros of C from (i, j) on, V neighbours in a row at a time: a C to be cleared has
// no gaps, so that n is a multiple of V if its rows are
template <int V> __device__ void store_zeros(const Product& w, int i, int j)
{
    struct alignas(V > 1 ? 16 : sizeof(scalar_t)) Few { scalar_t x[V]; };
    constexpr int FEW = TM / V;
    #pragma unroll 4
    for (int e = threadIdx.x % 32; e < TN * FEW; e += 32) {
        const int r = i + e / FEW, c = j + e % FEW * V;
        if (r < w.m && c < w.n) *reinterpret_cast<Few*>(&w.o(r, c)) = Few{};
    }
}

// Whether any number of a warp's tile is not finite, of the rows and columns that there are: what
// lies beyond comes of what the shared memory held before, and must not decide how others are summed
template <class T> __device__ bool any_not_finite(T& tile, int rows, int columns)
{
    float zero = 0;  // nan if a number is not finite, whether it is there or not
    #pragma unroll
    for (int g = 0; g < T::GROUPS; ++g)
        tile.runs(g, [&](int, int, sum_t (&x)[T::RUN]) {
            #pragma unroll
            for (int e = 0; e < T::RUN; ++e) zero = fmaf(as_one(x[e]), 0.0f, zero);
        });
    bool found = false;
    if (!__any_sync(0xffffffffu, zero != zero)) return found;
    #pragma unroll
    for (int g = 0; g < T::GROUPS; ++g)
        tile.runs(g, [&](int r, int c, sum_t (&x)[T::RUN]) {
            #pragma unroll
            for (int e = 0; e < T::RUN; ++e)
                found |= g * T::ROWS + r < rows && c + e < columns
                         && !(as_one(x[e]) - as_one(x[e]) == 0);
        });
    return __any_sync(0xffffffffu, found);
}

// A tile of a warp in which sums of parts are not finite: all its elements one product after the
// other, as they would be without parts
template <int KIND> __device__ void store_sums_in_turn(const Product& w, int i0, int j0)
{
    if (!w.c_vectors) meet();  // as in `store`, for the others of the team
    #pragma unroll 1
    for (int e = threadIdx.x % 32; e < TM * TN; e += 32) {
        const int i = i0 + e / TN, j = j0 + e % TN;
        if (i >= w.m || j >= w.n) continue;
        const scalar_t *a = w.a.p + i * w.a.rs, *b = w.b.p + j * w.b.cs;
        sum_t sum{};
        #pragma unroll 1
        for (int p = 0; p < w.k; ++p, a += w.a.cs, b += w.b.rs)
            sum = plus_product(sum, turned(sum_t(*a), w.a.conjugated),
                               turned(sum_t(*b), w.b.conjugated));
        finish<KIND, 1, false>(w, &sum, i, j);
    }
}

// Slice S of a RESIDENT product, and those after it, each when it is there
template <int S, class Add> __device__ void add_as_they_come(int k, Add add)
{
    if constexpr (S < STAGES) {
        if (S * BK >= k) return;
        await_groups<STAGES - 1 - S>();
        meet();
        add(S, S * BK);
        add_as_they_come<S + 1>(k, add);
    }
}

// The tile at (i, j) of a team's += the slice on the diagonal of a SYMMETRIC A, which is at `a`.
// What is all below or above the diagonal is multiplied as other slices are.
template <bool A_BY_ROWS, bool B_BY_ROWS, class T>
__device__ void add_diagonal(T& tile, const Product& w, const scalar_t* a, int i, int j)
{
    constexpr int LDA = leading_of_a(A_BY_ROWS), down = A_BY_ROWS ? LDA : 1;
    constexpr int along = A_BY_ROWS ? 1 : LDA, STEP = T::STEP;
    const scalar_t* b = a + slice(HIGH) + j * (B_BY_ROWS ? 1 : T::LDB);
    const int depth = depth_of<STEP>(w, w.i);
    for (int q = 0; q < depth; q += STEP) {
        if (q + STEP <= i)
            tile.template step<A_BY_ROWS, LDA>(a + i * down + q * along, b, w.a.conjugated,
                                               w.b.conjugated);
        else if (q >= i + TM)
            tile.template step<!A_BY_ROWS, LDA>(a + q * down + i * along, b,
                                                w.a.conjugated != w.hermitian, w.b.conjugated);
        else
            tile.step_folded({a, down, along, w.a.conjugated != 0, w.hermitian}, i, q, b,
                             w.b.conjugated);
        b += STEP * (B_BY_ROWS ? T::LDB : 1);
    }
}

// The tile at (i, j) of a team's += the slice from p on, which is at `a`
template <int KIND, bool A_BY_ROWS, bool B_BY_ROWS, class T>
__device__ void add_slice(T& tile, const Product& w, const scalar_t* a, int p, int i, int j,
                          bool conj_a)
{
    constexpr int LDA = leading_of_a(A_BY_ROWS), STEP = T::STEP;
    const scalar_t* b = KIND == RANK_K && (RESIDENT || w.i == w.j) ? a : a + slice(HIGH);
    a += i * (A_BY_ROWS ? LDA : 1), b += j * (B_BY_ROWS ? 1 : T::LDB);
    const int depth = depth_of<STEP>(w, p);
    #pragma unroll 2
    for (int q = 0; q < depth; q += STEP) {
        tile.template step<A_BY_ROWS, LDA>(a, b, conj_a, w.b.conjugated);
        a += STEP * (A_BY_ROWS ? 1 : LDA), b += STEP * (B_BY_ROWS ? T::LDB : 1);
    }
}

// The elements of the team's part of C that no warp has in its tile, an element to a thread
template <int KIND, bool A_BY_ROWS, bool B_BY_ROWS>
__device__ void sum_border(const Product& w, const scalar_t* stages)
{
    constexpr int LDA = leading_of_a(A_BY_ROWS);
    constexpr int LDB = B_BY_ROWS ? pitch(WIDE, false) : pitch(BK, true);
    constexpr int down = A_BY_ROWS ? LDA : 1, a_next = A_BY_ROWS ? 1 : LDA;
    constexpr int across = B_BY_ROWS ? 1 : LDB, b_next = B_BY_ROWS ? LDB : 1;
    const int rows = min(HIGH, w.m - w.i), columns = min(WIDE, w.n - w.j);
    const int below = max(0, rows - BM) * columns, right = max(0, columns - BN);
    const int all = below + min(rows, BM) * right;
    for (int e = in_team(); e < all; e += TEAM_THREADS) {
        const bool is_below = e < below;
        const int place = is_below ? e : e - below, width = is_below ? columns : right;
        const int row = place / width, column = place - row * width;
        const int i = is_below ? BM + row : row, j = is_below ? column : BN + column;
        const scalar_t *a = stages + i * down, *b = stages + slice(HIGH) + j * across;
        sum_t sum{};
        for (int p = 0; p < w.k; p += BK) {
            const int depth = min(BK, w.k - p);
            #pragma unroll 4
            for (int q = 0; q < depth; ++q)
                sum = plus_product(sum, turned(sum_t(a[q * a_next]), w.a.conjugated),
                                   turned(sum_t(b[q * b_next]), w.b.conjugated));
            a += stage_of(KIND), b += stage_of(KIND);
        }
        finish<KIND, 1, false>(w, &sum, w.i + i, w.j + j);
    }
}

template <int KIND> __device__ void compute(const Product& w)
{
    constexpr bool A_BY_ROWS = !A_ACROSS, B_BY_ROWS = b_by_rows(KIND);
    using T = typename Choice<scalar_t, TM, TN, !A_BY_ROWS && KIND != SYMMETRIC, B_BY_ROWS>::type;
    constexpr int STEP = T::STEP, STAGE = stage_of(KIND);
    static_assert(BK % STEP == 0);
    scalar_t* const room = reinterpret_cast<scalar_t*>(dynamic_shared)
                           + (TEAM == 1 ? warp() : 0) * room_of(KIND);
    const int i = warp_of_team() / (BN / TN) * TM, j = warp_of_team() % (BN / TN) * TN;
    const bool idle = w.i + i >= w.m || w.j + j >= w.n || unwanted<KIND, TM, TN>(w, w.i + i, w.j + j);
    T tile{};
    const auto bring = [&](int stage, int p) {
        fetch_stage<KIND, A_BY_ROWS, B_BY_ROWS, STEP>(w, room + stage * STAGE, p);
    };
    const auto add = [&](int stage, int p) {
        const scalar_t* const at = room + stage * STAGE;
        if (idle) return;
        if constexpr (KIND == SYMMETRIC) {
            if (p == w.i)
                add_diagonal<A_BY_ROWS, B_BY_ROWS>(tile, w, at, i, j);
            else if (p < w.i)
                add_slice<KIND, A_BY_ROWS, B_BY_ROWS>(tile, w, at, p, i, j, w.a.conjugated);
            else
                add_slice<KIND, !A_BY_ROWS, B_BY_ROWS>(tile, w, at, p, i, j,
                                                       w.a.conjugated != w.hermitian);
        } else {
            add_slice<KIND, A_BY_ROWS, B_BY_ROWS>(tile, w, at, p, i, j, w.a.conjugated);
        }
    };
    constexpr int AHEAD = RESIDENT ? STAGES : STAGES - 1;
    #pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        if (s * BK < w.k) bring(s, s * BK);
        end_group();
    }
    if (KIND == RANK_K && w.clear && w.i != w.j) {  // where the tile's mirror image is
        if (w.c_vectors && TM % VECTOR_OF_16 == 0) store_zeros<VECTOR_OF_16>(w, w.j + j, w.i + i);
        else store_zeros<1>(w, w.j + j, w.i + i);
    }
    if constexpr (RESIDENT) {
        add_as_they_come<0>(w.k, add);
        if constexpr (BORDER > 0) sum_border<KIND, A_BY_ROWS, B_BY_ROWS>(w, room);
    } else {
        int now = 0, next = AHEAD;
        for (int p = 0; p < w.k; p += BK) {
            await_groups<AHEAD - 1>();
            meet();
            if (p + AHEAD * BK < w.k) bring(next, p + AHEAD * BK);
            end_group();
            add(now, p);
            now = now + 1 == STAGES ? 0 : now + 1;
            next = next + 1 == STAGES ? 0 : next + 1;
        }
    }
    if constexpr (SPLIT) {
        tile.end();
        if (any_not_finite(tile, w.m - w.i - i, w.n - w.j - j))
            return store_sums_in_turn<KIND>(w, w.i + i, w.j + j);
    }
    store<KIND>(tile, w, reinterpret_cast<sum_t*>(room) + warp_of_team() * ROUND, w.i + i, w.j + j);
}

// The product of tile number `work` of the batch: `down` x `across` tiles to each member, of
// RANK_K half of those; `hermitian`: 1 if A, or C, is, and these two
template <int KIND>
__device__ void product(size m, size n, size k, size hermitian, size down, size across,
                        const scalar_t* A, size ars, size acs, size abs, size conj_a,
                        const scalar_t* B, size brs, size bcs, size bbs, size conj_b,
                        const scalar_t* C, size crs, size ccs, size cbs, scalar_t* O, size ors,
                        size ocs, size obs, size alpha_re, size alpha_im, size beta_re,
                        size beta_im, size batch)
{
    static_assert((KIND != RANK_K || BM == BN) && (KIND != SYMMETRIC || BM == BK));
    const unsigned tiles = KIND == RANK_K ? down * (down + 1) / 2 : down * across;
    const size work = TEAM == 1 ? size(blockIdx.x) * TEAMS + warp() : size(blockIdx.x);
    const size member = tiles == 1 ? work : work / tiles;
    if (member >= batch) return;  // the whole team, and nothing waits for it
    int row = 0, column = int(work - member * tiles);
    if (KIND == RANK_K) {
        while (column > row) column -= ++row;
    } else {
        row = column / int(across), column -= row * int(across);
    }
    Product w;
    w.m = size_of(m, member), w.n = size_of(n, member), w.k = size_of(k, member);
    if (row * HIGH >= w.m || column * WIDE >= w.n) return;
    w.hermitian = hermitian & 1, w.clear = KIND == RANK_K && hermitian & OTHERS_ZERO;
    const auto a = matrix_of(A, ars, acs, abs, member), b = matrix_of(B, brs, bcs, bbs, member);
    w.c = matrix_of(C, crs, ccs, cbs, member), w.o = matrix_of(O, ors, ocs, obs, member);
    w.upper = KIND == RANK_K && hermitian & UPPER_OF_C;
    w.i = (w.upper ? column : row) * HIGH, w.j = (w.upper ? row : column) * WIDE;
    w.a = {a.p, a.rs, a.cs, int(conj_a)}, w.b = {b.p, b.rs, b.cs, int(conj_b)};
    w.a_vectors = in_vectors(a.p, A_ACROSS ? a.cs : a.rs, A_ACROSS ? a.rs : a.cs, 0);
    w.b_vectors = b_by_rows(KIND) ? in_vectors(b.p, b.rs, b.cs, 0) : in_vectors(b.p, b.cs, b.rs, 0);
    w.alpha = number<sum_t>(alpha_re, alpha_im), w.beta = number<sum_t>(beta_re, beta_im);
    w.read = ((beta_re | beta_im) & 0x7fffffffffffffff) != 0;  // not a zero of either sign
    w.c_vectors = in_vectors(w.o.p, w.o.rs, w.o.cs, 0)
                  && (!w.read || in_vectors(w.c.p, w.c.rs, w.c.cs, 0));
    compute<KIND>(w);
}
