// getri_shared.cu: the inverses of a batch of n x n matrices, n <= N, from their LU factors, which
// lie in shared memory, a block to each.
//
// inv(A) = inv(U) inv(L) P, by strips of columns (inverse_strips.cuh). Columns go to where P brings
// them by way of the factors' memory, when all are done with these.
//
// A number of single precision counts by two parts (tensor.cuh), of which those below 2^-114 have
// no second. Beside others of their column they need none; where all of U's diagonal is tiny, or so
// huge that the inverse is tiny, U is multiplied by a power of two, and the inverse, too.
//
// The floor: the factors read and X written once, 2 n^2 numbers; 4/3 n^3 operations. A member with
// a zero on U's diagonal, whose first is `info`, keeps its factors.
constexpr bool CHOLESKY = false;
#include "inverse_strips.cuh"
#include "interchanges.cuh"
#include "launch.cuh"

struct Places {
    int pivot[N], column[N];  // where column c of inv(U) inv(L) is to go
};
struct Shared : Places, Found {};

// The interchanges bring row q to some place: the column of that goes to q. A barrier stands before
// and after. Pivots that are no rows bring none out of what is there.
__device__ inline void follow(Shared& s, int n)
{
    for (int q = thread(); q < n; q += THREADS) {
        const int place = brought(s.pivot, n, q);
        if (unsigned(place) < unsigned(n)) s.column[place] = q;
    }
}

// The power of two by which U is to be multiplied: inverses are as large as its diagonal is small.
__device__ inline real_t lift_of(const Shared& s)
{
    if constexpr (IN_PARTS) {
        if (s.most < __float_as_uint(0x1p-64f)) return 0x1p64f;
        if (s.least >= __float_as_uint(0x1p96f)) return 0x1p-32f;
    }
    return 1;
}
__device__ inline void multiply_u(real_t lift, int n)
{
    for (int i = warp(); i < n; i += WARPS)
        for (int j = i + lane(); j < n; j += 32)
            square()[i * LD + j] = mul(square()[i * LD + j], lift);
    __syncthreads();
}

// The reciprocals of U's diagonal, ones past its end; those of numbers so tiny that they would
// overflow on the way are lifted there.
__device__ inline void invert_diagonal(Shared& s, int n)
{
    for (int i = thread(); i < (n + 7) / 8 * 8; i += THREADS) {
        const scalar_t d = i < n ? square()[i * (LD + 1)] : scalar_t{1};
        const bool tiny = abs1(d) < TINY;
        s.inverse[i] = tiny ? mul(reciprocal(mul(d, LIFT)), LIFT) : reciprocal(d);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getri_shared(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
             scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    const size b = blockIdx.x;
    const int n = int(ns), tiles = (n + 7) / 8;
    const Strided<scalar_t> x{X + b * x_next, x_row, x_col};
    begin_fetch<LD>(square(), {LU + b * lu_next, lu_row, lu_col}, n, n);
    fill_tiles(n);
    for (int k = thread(); k < n; k += THREADS) s.pivot[k] = piv[b * n + k], s.column[k] = k;
    if (thread() == 0) s.clear();
    __syncthreads();
    follow(s, n);
    await_all();
    look_at(s, n);
    __syncthreads();
    const int zero = s.zero <= N ? s.zero : 0;
    if (thread() == 0) info[b] = zero;
    if (!zero) {
        const real_t lift = lift_of(s);
        if (lift != 1) multiply_u(lift, n);
        invert_diagonal(s, n);
        __syncthreads();
        invert_tiles(s, tiles);
        __syncthreads();
        invert(n, tiles, x, [=](int i, int j, scalar_t v) {
            square()[i * LD + s.column[j]] = mul(v, lift);
        });
    }
    send<LD>(x, square(), n, n);
}
