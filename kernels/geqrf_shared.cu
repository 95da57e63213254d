// geqrf_shared.cu: QR factorization of a batch of m x n matrices, m, n <= N, real: a warp to each.
//
// The matrix lies in shared memory by columns. Panels of 8 columns are factored in registers: of
// tiles of 8 x 8 lane (g, t) = (lane / 4, lane % 4) has rows 2 t and 2 t + 1 of column g, so that a
// sum over rows is the lane's own and one over four lanes. With H_1 ... H_8 = I - V T V^H the
// columns after the panel are 16 at a time
//
//     A := A - V T^H V^H A, that is  A^T := A^T - ((A^T V) T) V^T
//
// by the tensor cores, whose operands and sums are the parts of tiles that lanes have: numbers k
// = t and t + 4 of a product are 2 t and 2 t + 1 of the tile's. Memory is read and written once: the
// floor is 2 m n scalars; what takes the time are the n reflectors, one after the other, of as many
// matrices as the shared memory holds.
#include "async.cuh"
#include "block.cuh"
#include "launch.cuh"
#include "pivot.cuh"
#include "qr.cuh"
#include "shuffle.cuh"
#include "tensor.cuh"

#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int N = 64;       // the largest order
constexpr int BLOCKS = 1;   // blocks per multiprocessor for which registers are rationed
#endif
constexpr int NB = 8, TILES = N / NB;
// Columns are LD apart. Where they are whole lines of 128 bytes quarters of a line, 32 bytes, change
// places in seven of eight columns, so that tiles meet no bank twice, by rows or by columns. Else
// LD is an odd number of eights, so that they meet none twice by columns: less room, which is what
// decides how many matrices are at work.
constexpr int QUARTER = 32 / sizeof(scalar_t);
constexpr bool TURNED = N % (4 * QUARTER) == 0;
constexpr int LD = TURNED || N / 8 % 2 ? N : N + 8;
static_assert(N % NB == 0 && WARPS == 1);

struct alignas(2 * sizeof(scalar_t)) Two { scalar_t x[2]; };

struct Shared {
    scalar_t inner[NB][NB];  // [c][l]: v_l^H v_c, l < c, of the panel
    scalar_t t[NB][NB];      // T
    scalar_t tau[NB];
    alignas(16) scalar_t column[2][N];  // of a panel, two in turn
    real_t back[N];          // what takes the scaling of a column out of R
};

__device__ inline int g() { return threadIdx.x / 4; }
__device__ inline int t() { return threadIdx.x % 4; }

// Where the rows of column j are
__device__ inline int turn(int j)
{
    return TURNED ? (((j >> 2 ^ j) & 1) << 1 | (j >> 1 & 1)) * QUARTER : 0;
}
// Element (i, j) of the matrix at A
__device__ inline scalar_t& at(scalar_t* A, int i, int j) { return A[j * LD + (i ^ turn(j))]; }
__device__ inline Two& two_at(scalar_t* A, int i, int j)
{
    return reinterpret_cast<Two&>(at(A, i, j));
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
            for (int j = low; j < n; j += 8, x += 8 * LD, p += 8) f(i, j, *x, p);
        }
    } else {
        const size next = 8 * of.rs;
        for (int j = high; j < n; j += 4) {
            scalar_t* const x = A + j * LD;
            const int turned = turn(j);
            T* p = of.p + low * of.rs + j * of.cs;
            #pragma unroll 4
            for (int i = low; i < m; i += 8, p += next) f(i, j, x[i ^ turned], p);
        }
    }
}

// Columns whose squares might overflow or be lost are scaled by powers of two. True if there are.
__device__ inline bool scale_columns(scalar_t* A, Shared& s, int m, int n, int columns)
{
    const unsigned least = upper_word(SMALL), largest = upper_word(LARGE);
    bool any = false;
    for (int j = g(); j < columns; j += NB) {
        unsigned most = 0;
        #pragma unroll 4
        for (int i = 2 * t(); i < m; i += NB) {
            const Two v = two_at(A, i, j);
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
            for (int e = 0; e < 2; ++e) size = larger(size, two_at(A, i, j).x[e]);
        size = most_of_column(size);
        const Power power = is_usual(size) ? Power{1, 1} : to_one(size);
        for (int i = 2 * t(); i < m; i += NB)
            for (int e = 0; e < 2; ++e) at(A, i + e, j) = power.times(at(A, i + e, j));
        if (t() == 0) s.back[j] = power.inverse().times(real_t(1));
    }
    return any;
}

// Factors columns k0 ... k0 + 7, of which `steps` have a reflector, in the LEFT tiles from row
// k0 on. x: what the lane has of V, below R.
template <int LEFT>
__device__ void factor(scalar_t* A, Shared& s, scalar_t (&x)[LEFT][2], scalar_t* tau, int k0,
                       int steps)
{
    #pragma unroll
    for (int r = 0; r < LEFT; ++r) {
        const Two v = two_at(A, k0 + NB * r + 2 * t(), k0 + g());
        x[r][0] = v.x[0], x[r][1] = v.x[1];
    }
    scalar_t scale = real_t(1), own_tau{};  // scale: what makes v of x
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
        scalar_t alpha = column[c];
        const scalar_t top = of_lane<4>(c % 2 ? x[0][1] : x[0][0], c / 2);
        scalar_t inner = of_column(add(add(sums[0][0], sums[0][1]), add(sums[1][0], sums[1][1])));
        real_t squares = of_lane(inner, 4 * c);
        Reflector h;
        scalar_t corner;  // of R
        if (!__any_sync(ALL, !(squares >= LEAST))) {
            h = reflector<true>(alpha, squares, false);
            corner = h.beta;
        } else {  // rare: the column is zero, tiny or nan
            real_t most = 0;
            #pragma unroll
            for (int r = 0; r < LEFT; ++r)
                #pragma unroll
                for (int e = 0; e < 2; ++e) most = larger(most, y[r][e]);
            most = most_of_column(most);
            const bool none = most == 0;
            const Power power = to_one(larger(most, alpha));
            scalar_t own{};
            inner = scalar_t{};
            #pragma unroll
            for (int r = 0; r < LEFT; ++r)
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    y[r][e] = power.times(y[r][e]);
                    own = plus_inner(own, y[r][e], y[r][e]);
                    inner = plus_inner(inner, y[r][e], x[r][e]);
                    if (g() == c && (r > 0 || 2 * t() + e > c)) x[r][e] = y[r][e];
                }
            inner = of_column(inner);
            h = reflector(power.times(alpha), of_column(own), none);
            corner = none ? alpha : power.inverse().times(h.beta);
        }
        const scalar_t sum = plus_inner(top, h.scale, inner);
        if (g() < c && t() == 0) s.inner[c][g()] = mul(scale, sum);
        scale = g() == c ? h.scale : scale, own_tau = g() == c ? h.tau : own_tau;
        const bool right = g() > c;
        const scalar_t down = right ? mul(mul(h.tau, h.scale), sum) : scalar_t{};
        const scalar_t diagonal = right ? minus_product(top, h.tau, sum) : g() == c ? corner : top;
        #pragma unroll
        for (int r = 0; r < LEFT; ++r)
            #pragma unroll
            for (int e = 0; e < 2; ++e) {
                const scalar_t less = minus_product(x[r][e], y[r][e], down);
                const int row = 2 * t() + e;
                x[r][e] = r > 0 || row > c ? less : row == c ? diagonal : x[r][e];
            }
    }
    if (t() == 0 && g() < steps) tau[g()] = s.tau[g()] = own_tau;
    #pragma unroll
    for (int r = 0; r < LEFT; ++r) {
        #pragma unroll
        for (int e = 0; e < 2; ++e)
            if (r > 0 || 2 * t() + e > g()) x[r][e] = mul(x[r][e], scale);
        two_at(A, k0 + NB * r + 2 * t(), k0 + g()) = {x[r][0], x[r][1]};
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
        for (int l = 0; l < c; ++l) sum = minus_product(sum, row[l], s.inner[c][l]);
        row[c] = c >= steps || c < i ? scalar_t{}
                 : c == i ? s.tau[c] : mul(s.tau[c], sum);
    }
    if (threadIdx.x < NB)
        #pragma unroll
        for (int c = 0; c < NB; ++c) s.t[i][c] = row[c];
    __syncwarp();
}

// v, or what V has in its place: ones on the diagonal, zeros above
__device__ inline scalar_t of_v(scalar_t v, int row, int column)
{
    return row > column ? v : row == column ? scalar_t{1} : scalar_t{};
}

// Columns k0 + 8 ... n - 1 := Q^H times them, in the LEFT tiles from row k0 on
template <int LEFT>
__device__ void update(scalar_t* A, const Shared& s, scalar_t (&v)[LEFT][2], int k0, int n)
{
    scalar_t down[LEFT][2];  // V with a row to a group of lanes
    #pragma unroll
    for (int r = 0; r < LEFT; ++r) {
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            down[r][e] = at(A, k0 + NB * r + g(), k0 + 2 * t() + e);
            if (r > 0) continue;
            down[r][e] = of_v(down[r][e], g(), 2 * t() + e);
            v[r][e] = of_v(v[r][e], 2 * t() + e, g());
        }
    }
    const scalar_t of_t[2] = {s.t[2 * t()][g()], s.t[2 * t() + 1][g()]};
    for (int j = k0 + NB; j < n; j += 2 * NB) {
        const bool both = j + NB < n;
        const int j0 = j + g(), j1 = both ? j0 + NB : j0;
        Two a[LEFT][2];
        scalar_t sums[2][4] = {}, w[4] = {};
        #pragma unroll
        for (int r = 0; r < LEFT; ++r) {
            const int i = k0 + NB * r + 2 * t();
            a[r][0] = two_at(A, i, j0), a[r][1] = two_at(A, i, j1);
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
            const int i = k0 + NB * r + 2 * t();
            scalar_t x[4] = {a[r][0].x[0], a[r][0].x[1], a[r][1].x[0], a[r][1].x[1]};
            tensor_product(x, less, down[r]);
            two_at(A, i, j0) = {x[0], x[1]};
            if (both) two_at(A, i, j1) = {x[2], x[3]};
        }
    }
    __syncwarp();
}

// All panels from column k0 on, which has LEFT tiles or fewer
template <int LEFT>
__device__ void panels(scalar_t* A, Shared& s, scalar_t* tau, int k0, int rows, int columns,
                       int order)
{
    if (LEFT == (rows - k0) / NB) {
        const int steps = order - k0 < NB ? order - k0 : NB;
        scalar_t v[LEFT][2];
        factor<LEFT>(A, s, v, tau + k0, k0, steps);
        __syncwarp();
        k0 += NB;
        if (k0 < columns) {
            make_t(s, steps);
            update<LEFT>(A, s, v, k0 - NB, columns);
        }
        if (k0 >= order) return;
    }
    if constexpr (LEFT > 1) panels<LEFT - 1>(A, s, tau, k0, rows, columns, order);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
geqrf_shared(const scalar_t* A, size a_row, size a_col, size a_next, scalar_t* QR, size q_row,
             size q_col, size q_next, scalar_t* TAU, size ms, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    scalar_t* const a = reinterpret_cast<scalar_t*>(dynamic_shared);
    const size b = blockIdx.x;
    const int m = size_of(ms, b), n = size_of(ns, b), order = m < n ? m : n;
    const int rows = (m + NB - 1) / NB * NB, columns = (n + NB - 1) / NB * NB;
    const auto in = matrix_of(A, a_row, a_col, a_next, b);
    const auto out = matrix_of(QR, q_row, q_col, q_next, b);
    scalar_t* const tau = array_of(TAU, order, b);

    each(a, in, rows, columns, [=](int i, int j, scalar_t& x, const scalar_t* p) {
        const bool is = i < m && j < n;
        copy_async<sizeof(scalar_t)>(&x, is ? p : in.p, is ? sizeof(scalar_t) : 0);
    });
    for (int j = threadIdx.x; j < N; j += 32) s.back[j] = 1;
    end_group();
    await_groups<0>();
    __syncwarp();
    const bool scaled = scale_columns(a, s, rows, n, columns);
    __syncwarp();
    panels<TILES>(a, s, tau, 0, rows, columns, order);
    if (scaled)
        for (int j = 0; j < n; ++j)
            for (int i = threadIdx.x; i <= j && i < m; i += 32) at(a, i, j) *= s.back[j];
    __syncwarp();
    each(a, out, m, n, [](int, int, scalar_t& x, scalar_t* p) { *p = x; });
}
