// qr_shared.cuh: QR factorization of an m x n matrix in shared memory, m, n <= N, by a warp.
//
// The matrix lies in shared memory by columns. Panels of 8 columns are factored in registers: of
// tiles of 8 x 8 lane (g, t) = (lane / 4, lane % 4) has rows 2 t and 2 t + 1 of column g, so that a
// sum over rows is the lane's own and one over four lanes. With H_1 ... H_8 = I - V T V^H the
// columns after the panel are 16 at a time
//
//     A := A - V T^H V^H A, that is  A^T := A^T - ((A^T conj V) conj T) V^T
//
// by the tensor cores, whose operands and sums are the parts of tiles that lanes have: numbers k
// = t and t + 4 of a product are 2 t and 2 t + 1 of the tile's. What takes the time are the n
// reflectors, one after the other, of as many matrices as the shared memory holds. A right-hand
// SIDE is the first column of a tile more, the others of which come to nothing.
#pragma once
#include "async.cuh"
#include "block.cuh"
#include "pivot.cuh"
#include "qr.cuh"
#include "shuffle.cuh"
#include "tensor.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 64;       // the largest order
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
constexpr int HEIGHTS = 1;  // of panels that share a copy of the code: more outrun its cache
#endif
constexpr int NB = 8, TILES = N / NB;
// Columns are N apart: room is what decides how many matrices are at work. An odd number of eights
// meets no bank twice by columns. Else the quarters of a line, 32 bytes, change places from column
// to column, TURNS of them among each other, so that tiles meet none twice, by rows (but where a
// column is a line and a half) or by columns.
// Columns of complex double precision are whole lines and 16 bytes.
constexpr bool WIDE = sizeof(scalar_t) == 16;
constexpr int LD = WIDE ? N + 1 : N, QUARTER = 32 / sizeof(scalar_t);
constexpr int TURNS = WIDE || N / NB % 2 ? 1 : N % (4 * QUARTER) == 0 ? 4 : 2;
constexpr bool NEAR = sizeof(scalar_t) == sizeof(real_t);
constexpr int PERIOD = TURNS == 1 ? 1 : TURNS * QUARTER / NB;  // tiles that change places
static_assert(N % NB == 0 && N > NB && WARPS == 1);

struct alignas(WIDE ? 16 : 2 * sizeof(scalar_t)) Two { scalar_t x[2]; };

struct Shared {
    scalar_t t[NB][NB];      // [c][l]: v_l^H v_c, l < c, of the panel; then T, from the diagonal on
    scalar_t tau[NB];
    alignas(16) scalar_t column[2][N + NB * (HEIGHTS - 1)];  // of a panel, two in turn
    real_t back[N];          // what takes the scaling of a column out of R
    alignas(16) scalar_t side[SIDE ? N : 1];
};

__device__ inline int g() { return threadIdx.x / 4; }
__device__ inline int t() { return threadIdx.x % 4; }

// What the rows of column j, or of any column 8 more or less, change places by
__device__ inline int turn(int j)
{
    const int high = TURNS == 4 ? (j >> 2 ^ j) & 1 : 0, low = TURNS > 1 ? j >> 1 & 1 : 0;
    return (2 * high + low) * QUARTER;
}
// Element (i, j) of the matrix at A
__device__ inline scalar_t& at(scalar_t* A, int i, int j) { return A[j * LD + (i ^ turn(j))]; }

// Element (i, j) and those 8 r rows below it, r known to the compiler: addresses are numbers then
struct Tiles {
    scalar_t* p[PERIOD];

    // turned: turn(j)
    __device__ Tiles(scalar_t* A, int i, int j, int turned)
    {
        #pragma unroll
        for (int u = 0; u < PERIOD; ++u) p[u] = A + j * LD + ((i + NB * u) ^ turned);
    }
    // Of one column
    __device__ Tiles(scalar_t* column, int i)
    {
        #pragma unroll
        for (int u = 0; u < PERIOD; ++u) p[u] = column + i + NB * u;
    }
    __device__ scalar_t& one(int r) const { return p[r % PERIOD][NB * (r - r % PERIOD)]; }
    __device__ Two& two(int r) const { return reinterpret_cast<Two&>(one(r)); }
};

// Whether a panel of `left` tiles, LEFT at most, has tile r: known to the compiler of all but the
// last ones
template <int LEFT> __device__ bool has(int left, int r) { return r <= LEFT - HEIGHTS || r < left; }
template <int LEFT> __device__ Two tile(const Tiles& tiles, int left, int r)
{
    return has<LEFT>(left, r) ? tiles.two(r) : Two{};
}

// The sum, or what is largest, over the lanes of a column
template <class T> __device__ T of_column(T x)
{
    x = add(x, across(x, 1));
    return add(x, across(x, 2));
}
__device__ inline real_t most_of_column(real_t x)
{
    x = larger(x, across(x, 1));
    return larger(x, across(x, 2));
}

// f(i, j, x, p) for all i < m, j < n, x being the element of A and p where it is in global memory;
// eight neighbours there to eight lanes
template <class T, class F>
__device__ void each(scalar_t* A, Strided<T> of, int m, int n, F f)
{
    const int high = threadIdx.x / 8, low = threadIdx.x % 8;
    if (of.cs == 1) {
        for (int i = high; i < m; i += 4) {
            scalar_t* x = &at(A, i, low);
            T* p = of.p + i * of.rs + low;
            #pragma unroll 4
            for (int j = 0; j < n; j += 8, x += 8 * LD, p += 8)  // as often by all lanes
                if (j + low < n) f(i, j + low, *x, p);
        }
    } else {
        const size next = 8 * of.rs;
        for (int j = high; j < n; j += 4) {
            scalar_t* const x = A + j * LD;
            const int turned = turn(j);
            T* p = of.p + low * of.rs + j * of.cs;
            #pragma unroll 4
            for (int i = 0; i < m; i += 8, p += next)
                if (i + low < m) f(i + low, j, x[(i + low) ^ turned], p);
        }
    }
}

// Columns whose squares might overflow or be lost are scaled by powers of two. True if there are.
__device__ inline bool scale_columns(scalar_t* A, Shared& s, int m, int n, int columns)
{
    const unsigned least = upper_word(SMALL), largest = upper_word(LARGE);
    const int turned = turn(g());
    bool any = false;
    for (int j = g(); j < columns; j += NB) {
        const scalar_t* const x = A + j * LD;
        unsigned most = 0;
        #pragma unroll 4
        for (int i = 2 * t(); i < m; i += NB) {
            const Two v = reinterpret_cast<const Two&>(x[i ^ turned]);
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const unsigned upper = upper_word(v.x[e]);
                most = upper > most ? upper : most;
            }
        }
        const bool usual = j >= n || (most >= least && most < largest);
        if (!__any_sync(ALL, !usual)) continue;
        any = true;
        real_t size = 0;
        for (int i = 2 * t(); i < m; i += NB)
            for (int e = 0; e < 2; ++e) size = larger(size, at(A, i + e, j));
        size = most_of_column(size);
        const Power power = is_usual(size) ? Power{1, 1} : to_one(size);
        for (int i = 2 * t(); i < m; i += NB)
            for (int e = 0; e < 2; ++e) at(A, i + e, j) = power.times(at(A, i + e, j));
        if (t() == 0) s.back[j] = power.inverse().times(real_t(1));
    }
    return any;
}

// factor's step c where a column of `rows` rows is zero, tiny or nan: scales it, x and y, once more
// where it lies, s.column, by a power of two. Leaves the sums y^H x in the other s.column, after
// them tau, scale and R's corner. On its own, for what is rare would be most of the code between
// what is not.
__device__ __noinline__ void rescue(scalar_t* A, Shared& s, int k0, int c, int rows)
{
    scalar_t* const y = s.column[c % 2];
    scalar_t* const found = s.column[(c + 1) % 2];
    real_t most = 0;
    for (int i = c + 1 + t(); i < rows; i += 4) most = larger(most, y[i]);
    most = most_of_column(most);
    const scalar_t alpha = y[c];
    const Power power = to_one(larger(most, alpha));
    __syncwarp();
    if (g() == c)
        for (int i = c + 1 + t(); i < rows; i += 4) y[i] = power.times(y[i]);
    __syncwarp();
    scalar_t squares{}, inner{};
    for (int i = c + 1 + t(); i < rows; i += 4) {
        squares = plus_inner(squares, y[i], y[i]);
        inner = plus_inner(inner, y[i], at(A, k0 + i, k0 + g()));
    }
    inner = of_column(inner), squares = of_column(squares);
    const bool none = most == 0 && imaginary(alpha) == 0;
    const Reflector h = reflector<NEAR>(power.times(alpha), real(squares), none);
    if (t() == 0) found[g()] = inner;
    if (threadIdx.x == 0)
        found[NB] = h.tau, found[NB + 1] = h.scale,
        found[NB + 2] = none ? alpha : scalar_t{power.inverse().times(h.beta)};
    __syncwarp();
}

// Factors columns k0 ... k0 + 7, of which `steps` have a reflector, in the `left` tiles from row
// k0 on. x: what the lane has of V, below R.
template <int LEFT>
__device__ void factor(scalar_t* A, Shared& s, scalar_t (&x)[LEFT][2], scalar_t* tau, int k0,
                       int steps, int left)
{
    const Tiles own(A, k0 + 2 * t(), k0 + g(), turn(g()));
    #pragma unroll
    for (int r = 0; r < LEFT; ++r) {
        const Two v = tile<LEFT>(own, left, r);
        x[r][0] = v.x[0], x[r][1] = v.x[1];
    }
    scalar_t scale{1}, own_tau{};  // scale: what makes v of x
    #pragma unroll 1
    for (int c = 0; c < steps; ++c) {
        scalar_t* const column = s.column[c % 2];
        if (g() == c)
            #pragma unroll
            for (int r = 0; r < LEFT; ++r)
                reinterpret_cast<Two&>(column[NB * r + 2 * t()]) = {x[r][0], x[r][1]};
        __syncwarp();
        scalar_t y[LEFT][2], sums[2][2] = {};  // column c below the diagonal
        #pragma unroll
        for (int r = 0; r < LEFT; ++r) {
            const Two v = reinterpret_cast<const Two&>(column[NB * r + 2 * t()]);
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                y[r][e] = r > 0 || 2 * t() + e > c ? v.x[e] : scalar_t{};
                sums[r % 2][e] = plus_inner(sums[r % 2][e], y[r][e], x[r][e]);
            }
        }
        const scalar_t alpha = column[c];
        const scalar_t top = of_lane<4>(c % 2 ? x[0][1] : x[0][0], c / 2);
        scalar_t inner = of_column(add(add(sums[0][0], sums[0][1]), add(sums[1][0], sums[1][1])));
        const real_t squares = real(of_lane(inner, 4 * c));
        Reflector h;
        scalar_t corner;  // of R
        if (!__any_sync(ALL, !(squares >= LEAST))) {
            h = reflector<NEAR>(alpha, squares, false);
            corner = scalar_t{h.beta};
        } else {  // rare: the column is zero, tiny or nan
            #pragma unroll
            for (int r = 0; r < LEFT; ++r)
                if (has<LEFT>(left, r)) own.two(r) = {x[r][0], x[r][1]};
            rescue(A, s, k0, c, NB * left);
            const scalar_t* const found = s.column[(c + 1) % 2];
            inner = found[g()], h.tau = found[NB], h.scale = found[NB + 1], corner = found[NB + 2];
            __syncwarp();
            #pragma unroll
            for (int r = 0; r < LEFT; ++r) {
                const Two v = tile<LEFT>(own, left, r);
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int row = NB * r + 2 * t() + e;
                    y[r][e] = r > 0 || row > c ? column[row] : scalar_t{};
                    x[r][e] = g() == c && (r > 0 || row > c) ? y[r][e] : v.x[e];
                }
            }
        }
        const scalar_t sum = plus_inner(top, h.scale, inner);
        if (g() < c && t() == 0) s.t[c][g()] = conj(mul(scale, sum));
        scale = g() == c ? h.scale : scale, own_tau = g() == c ? h.tau : own_tau;
        const bool right = g() > c;
        const scalar_t down = right ? mul(mul(conj(h.tau), h.scale), sum) : scalar_t{};
        const scalar_t diagonal = right ? minus_product(top, conj(h.tau), sum)
                                  : g() == c ? corner : top;
        #pragma unroll
        for (int r = 0; r < LEFT; ++r)
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const scalar_t less = minus_product(x[r][e], y[r][e], down);
                const int row = 2 * t() + e;
                x[r][e] = r > 0 || row > c ? less : row == c ? diagonal : x[r][e];
            }
    }
    if (t() == 0 && g() < steps) {
        s.tau[g()] = own_tau;
        if (!SIDE) tau[g()] = own_tau;
    }
    #pragma unroll
    for (int r = 0; r < LEFT; ++r) {
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            if (r > 0 || 2 * t() + e > g()) x[r][e] = mul(x[r][e], scale);
        if (has<LEFT>(left, r)) own.two(r) = {x[r][0], x[r][1]};
    }
}

// T, a lane to a row: T(i, c) = -tau_c (T(i, i) v_i^H v_c + ... + T(i, c - 1) v_(c-1)^H v_c)
__device__ inline void make_t(Shared& s, int steps)
{
    const int i = threadIdx.x % NB;
    scalar_t row[NB];
    #pragma unroll
    for (int c = 0; c < NB; ++c) {
        scalar_t sum{};
        #pragma unroll
        for (int l = 0; l < c; ++l) sum = minus_product(sum, row[l], s.t[c][l]);
        row[c] = c >= steps || c < i ? scalar_t{}
                 : c == i ? s.tau[c] : mul(s.tau[c], sum);
    }
    if (threadIdx.x < NB)
        #pragma unroll
        for (int c = 0; c < NB; ++c) if (c >= i) s.t[i][c] = row[c];
    __syncwarp();
}

// One copy for panels of all heights
__device__ __noinline__ void make_t_apart(Shared& s, int steps) { make_t(s, steps); }

__device__ inline scalar_t of_upper(scalar_t x, int row, int column)
{
    return row <= column ? x : scalar_t{};
}
// v, or what V has in its place: ones on the diagonal, zeros above
__device__ inline scalar_t of_v(scalar_t v, int row, int column)
{
    return row > column ? v : row == column ? scalar_t{1} : scalar_t{};
}

// Columns k0 + 8 ... n - 1, and the side, := Q^H times them, in the `left` tiles from row k0 on
template <int LEFT>
__device__ void update(scalar_t* A, Shared& s, scalar_t (&v)[LEFT][2], int k0, int n,
                       int left)
{
    const int turned = turn(g());
    const Tiles own(A, k0 + 2 * t(), k0 + g(), turned);
    scalar_t down[LEFT][2];  // V with a row to a group of lanes
    if (HEIGHTS > 1)         // a call would have to save v
        #pragma unroll
        for (int r = 0; r < LEFT; ++r) {
            const Two x = tile<LEFT>(own, left, r);
            v[r][0] = x.x[0], v[r][1] = x.x[1];
        }
    #pragma unroll
    for (int e = 0; e < 2; ++e) {
        const int j = 2 * t() + e;
        const Tiles across(A, k0 + g(), k0 + j, turn(j));
        #pragma unroll
        for (int r = 0; r < LEFT; ++r)
            down[r][e] = has<LEFT>(left, r) ? across.one(r) : scalar_t{};
        down[0][e] = of_v(down[0][e], g(), j);
        v[0][e] = of_v(v[0][e], j, g());
        #pragma unroll
        for (int r = 0; r < LEFT; ++r) v[r][e] = conj(v[r][e]);
    }
    scalar_t of_t[2];
    #pragma unroll
    for (int e = 0; e < 2; ++e) of_t[e] = conj(of_upper(s.t[2 * t() + e][g()], 2 * t() + e, g()));
    const int end = SIDE ? n + NB : n;  // the side's other columns are what lies there, for nothing
    const auto from = [&](int j) {
        return SIDE && j == n ? Tiles(g() ? s.column[0] : s.side, k0 + 2 * t())
                              : Tiles(A, k0 + 2 * t(), j + g(), turned);
    };
    for (int j = k0 + NB; j < end; j += 2 * NB) {
        // where one tile of columns is left both are the same
        const int next = j + NB < end ? NB : 0;
        const Tiles first = from(j), second = from(j + next);
        const bool put_first = !SIDE || j < n || g() == 0;
        const bool put_second = !SIDE || j + next < n || g() == 0;
        Two a[LEFT][2];
        scalar_t sums[2][4] = {}, w[4] = {};
        #pragma unroll
        for (int r = 0; r < LEFT; ++r) {
            a[r][0] = tile<LEFT>(first, left, r), a[r][1] = tile<LEFT>(second, left, r);
            tensor_product(sums[r % 2], {a[r][0].x[0], a[r][1].x[0], a[r][0].x[1], a[r][1].x[1]},
                           v[r]);
        }
        #pragma unroll
        for (int e = 0; e < 4; ++e) sums[0][e] = add(sums[0][e], sums[1][e]);
        tensor_product(w, {sums[0][0], sums[0][2], sums[0][1], sums[0][3]}, of_t);
        const scalar_t less[4] = {mul(w[0], real_t(-1)), mul(w[2], real_t(-1)),
                                  mul(w[1], real_t(-1)), mul(w[3], real_t(-1))};
        #pragma unroll
        for (int r = 0; r < LEFT; ++r) {
            // complex tiles would take too many registers
            const Two p = NEAR ? a[r][0] : tile<LEFT>(first, left, r);
            const Two q = NEAR ? a[r][1] : tile<LEFT>(second, left, r);
            scalar_t x[4] = {p.x[0], p.x[1], q.x[0], q.x[1]};
            tensor_product(x, less, down[r]);
            if (has<LEFT>(left, r) && put_first) first.two(r) = {x[0], x[1]};
            if (has<LEFT>(left, r) && put_second) second.two(r) = {x[2], x[3]};
        }
    }
    __syncwarp();
}

// All panels from column k0 on, which has LEFT tiles or fewer
template <int LEFT>
__device__ void panels(scalar_t* A, Shared& s, scalar_t* tau, int k0, int rows, int columns,
                       int order)
{
    #pragma unroll 1
    for (int left = (rows - k0) / NB; left > LEFT - HEIGHTS; --left) {
        const int steps = order - k0 < NB ? order - k0 : NB;
        scalar_t v[LEFT][2];
        factor<LEFT>(A, s, v, tau + k0, k0, steps, left);
        __syncwarp();
        k0 += NB;
        if (SIDE || k0 < columns) {
            HEIGHTS > 1 ? make_t_apart(s, steps) : make_t(s, steps);
            update<LEFT>(A, s, v, k0 - NB, columns, left);
        }
        if (k0 >= order) return;
    }
    if constexpr (LEFT > HEIGHTS) panels<LEFT - HEIGHTS>(A, s, tau, k0, rows, columns, order);
}

// The matrix at A, m x n and fetched, := its factors, R's scaling taken out of it; tau: where these
// go, unless there is a side.
__device__ inline void qr_in_shared(scalar_t* A, Shared& s, scalar_t* tau, int m, int n)
{
    const int rows = (m + NB - 1) / NB * NB, columns = (n + NB - 1) / NB * NB;
    // Columns past n are what lies there: nothing that becomes of them comes to others. But a side
    // takes 0 times them.
    for (int i = m + t(); i < rows; i += 4)
        for (int j = g(); j < n; j += NB) at(A, i, j) = scalar_t{};
    if (SIDE)
        for (int j = n; j < columns; ++j)
            for (int i = threadIdx.x; i < rows; i += 32) at(A, i, j) = scalar_t{};
    for (int j = threadIdx.x; j < N; j += 32) s.back[j] = 1;
    await_groups<0>();
    __syncwarp();
    const bool scaled = scale_columns(A, s, rows, n, columns);
    __syncwarp();
    panels<(TILES + HEIGHTS - 1) / HEIGHTS * HEIGHTS>(A, s, tau, 0, rows, columns, m < n ? m : n);
    if (scaled)
        for (int j = 0; j < n; ++j)
            for (int i = threadIdx.x; i <= j && i < m; i += 32)
                at(A, i, j) = mul(at(A, i, j), s.back[j]);
    __syncwarp();
}

// A := a matrix, which is under way then; and a matrix := A
__device__ inline void fetch(scalar_t* A, const Strided<const scalar_t>& from, int m, int n)
{
    each(A, from, m, n, [](int, int, scalar_t& x, const scalar_t* p) {
        copy_async<sizeof(scalar_t)>(&x, p, sizeof(scalar_t));
    });
    end_group();
}
__device__ inline void store(scalar_t* A, const Strided<scalar_t>& to, int m, int n)
{
    each(A, to, m, n, [](int, int, scalar_t& x, scalar_t* p) { *p = x; });
}
