// potri_shared.cu: the inverses of a batch of positive definite n x n matrices, n <= N, from their
// Cholesky factors, a block to each: the lower triangle of inv(A) from that of L. An upper triangle
// comes with swapped strides, and the inverse is conj(inv(A)), which by its rows is inv(A) again.
//
// inv(A) = inv(L^H) inv(L), by strips of columns (inverse_strips.cuh) whose way up ends at the
// diagonal. The triangle lies in shared memory as it lies in global memory, by its rows or by its
// columns, and is then brought to the other one, too. What c has there is another's: in place it is
// neither read nor written, else a copy of it goes to X before.
//
// A number of single precision counts by two parts (tensor.cuh), of which those below 2^-114 have
// no second. The inverse is as small as the square of L is large: where it is, L is made smaller by
// a power of two, and the inverse by its square. Tiny numbers of L lose nothing, for what it is
// multiplied by is large then.
//
// The floor: a triangle read and written, n^2 numbers, out of place 2 n^2; 2/3 n^3 operations. A
// member with a zero on L's diagonal, whose first is `info`, keeps its factor.
constexpr bool CHOLESKY = true;
#include "inverse_strips.cuh"
#include "launch.cuh"

// The numbers of a square below the diagonal, or above it, and on it but for `strictly`
struct Half {
    bool upper, strictly;

    __device__ bool has(int i, int j) const
    {
        return upper ? j >= i + strictly : i >= j + strictly;
    }
    // of V neighbours from j on: any, all
    __device__ bool begins(int i, int j, int V) const { return has(i, upper ? j + V - 1 : j); }
    __device__ bool covers(int i, int j, int V) const { return has(i, upper ? j : j + V - 1); }
    __device__ Half other() const { return {!upper, !strictly}; }
};

// The square := a half of C, under way until await_all(), or `all` of C
template <int V>
__device__ void begin_fetch_of(Strided<const scalar_t> C, int n, Half half, bool all)
{
    constexpr int bytes = V * sizeof(scalar_t);
    each_at<V, false>(Strided<scalar_t>{square(), LD, 1}, C, n, n,
                      [=](scalar_t* x, const scalar_t* y, int i, int j) {
                          if (all || half.begins(i, j, V)) copy_async<bytes>(x, y, bytes);
                      });
}

// A half of X := the square's
template <int V> __device__ void send_in_packs(Strided<scalar_t> X, int n, Half half)
{
    const auto put = [=](scalar_t* x, const scalar_t* y, int i, int j) {
        if (half.covers(i, j, V)) {
            if constexpr (V > 1)
                *reinterpret_cast<Vector*>(x) = *reinterpret_cast<const Vector*>(y);
            else *x = *y;
        } else if (half.begins(i, j, V))
            #pragma unroll
            for (int e = 0; e < V; ++e)
                if (half.has(i, j + e)) x[e] = y[e];
    };
    each_at<V, true>(X, Strided<const scalar_t>{square(), LD, 1}, n, n, put);
}
__device__ inline void send_half(Strided<scalar_t> X, int n, Half half)
{
    if (X.in_packs<VECTOR>(n, 0)) send_in_packs<VECTOR>(X, n, half);
    else send_in_packs<1>(X, n, half);
}

// The power of two by which L is to be multiplied
__device__ inline real_t lift_of(const Found& s)
{
    if constexpr (IN_PARTS)
        if (s.most >= __float_as_uint(0x1p48f) && s.least >= __float_as_uint(0x1p-16f))
            return 0x1p-32f;
    return 1;
}

// Of L, times lift: the reciprocals of its diagonal, ones past its end, and below and above that L
// and L^H; the square has L or, `upper`, L^T.
__device__ inline void spread(Found& s, bool upper, real_t lift, int n, int tiles)
{
    for (int i = thread(); i < 8 * tiles; i += THREADS)
        s.inverse[i] = reciprocal(i < n ? mul(square()[i * (LD + 1)], lift) : scalar_t{1});
    for (int e = warp(); e < tiles * tiles; e += WARPS) {
        const int I = e / tiles, J = e - I * tiles;
        if (I < J) continue;
        #pragma unroll
        for (int h = 0; h < 8; h += 4) {  // 8 x 4 of them: few meet a bank twice
            const int i = 8 * I + lane() % 8, j = 8 * J + h + lane() / 8;
            if (i <= j || i >= n) continue;
            scalar_t& below = square()[i * LD + j];
            scalar_t& above = square()[j * LD + i];
            below = mul(upper ? above : below, lift);
            above = conj(below);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
potri_shared(const scalar_t* C, size c_row, size c_col, size c_next,
             scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns)
{
    wait_for_stream();
    __shared__ Found s;
    const size b = blockIdx.x;
    const int n = int(ns), tiles = (n + 7) / 8;
    const Strided<const scalar_t> c{C + b * c_next, c_row, c_col};
    const Strided<scalar_t> x{X + b * x_next, x_row, x_col};
    const bool apart = X != C;
    const Half given{!by_rows(c), false}, made{!by_rows(x), false};
    const Strided<const scalar_t> lying = given.upper ? transposed(c) : c;
    if (lying.in_packs<VECTOR>(n, 0)) begin_fetch_of<VECTOR>(lying, n, given, apart);
    else begin_fetch_of<1>(lying, n, given, apart);
    fill_tiles(n);
    if (thread() == 0) s.clear();
    await_all();
    look_at(s, n);
    if (apart) send_half(given.upper ? transposed(x) : x, n, given.other());
    __syncthreads();
    const int zero = s.zero <= N ? s.zero : 0;
    if (thread() == 0) info[b] = zero;
    if (zero) {
        if (apart) send_half(given.upper ? transposed(x) : x, n, given);
        return;
    }
    const real_t lift = lift_of(s);
    spread(s, given.upper, lift, n, tiles);
    __syncthreads();
    invert_tiles(s, tiles);
    __syncthreads();
    invert(n, tiles, x, [=](int i, int j, scalar_t v) {
        if (i == j) v = scalar_t(real(v));  // real, but for how it was rounded
        square()[made.upper ? j * LD + i : i * LD + j] = mul(v, lift * lift);
    });
    send_half(made.upper ? transposed(x) : x, n, made);
}
