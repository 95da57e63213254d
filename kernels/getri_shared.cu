// getri_shared.cu: the inverses of a batch of n x n matrices, n <= N, from their LU factors, which
// lie in shared memory, a block to each.
//
// inv(A) = inv(U) inv(L) P. A warp holds R columns of inv(L) in registers (column_strips.cuh), of
// which the rows above the first are zero: it solves with L from there down and with U from the end
// up, 8 rows at a time, and waits for no other warp. The tiles on the diagonal are inverted first,
// so that all of it are products of 8 x 8 tiles, by the tensor cores. Rows that are solved go to the
// end of the strip, which is turned over between the two: loops are short, and their arrays are
// indexed by constants. Columns go to where P brings them by way of the factors' memory, when all
// are done with these.
//
// A number of single precision counts by two parts (tensor.cuh), of which those below 2^-114 have no
// second. Beside others of their column they need none; where all of U's diagonal is tiny, or so
// huge that the inverse is tiny, U is multiplied by a power of two, and the inverse, too.
//
// The floor: the factors read and X written once, 2 n^2 numbers; 4/3 n^3 operations. A member with
// a zero on U's diagonal, whose first is `info`, keeps its factors.
#define SPLIT true
#include "launch.cuh"
#include "column_strips.cuh"
#include "interchanges.cuh"
#include "moves.cuh"
#include "reciprocal.cuh"
#include "shuffle.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int TIGHT = 0;    // 1: no gap between rows, where another block has room then
#endif
// Two or four rows that are read together begin in other halves or quarters of the banks.
constexpr int GAP = VECTOR == 1 ? 1 : N % 16 ? 0 : 8;
constexpr int LD = N + (TIGHT ? 0 : GAP);
constexpr bool IN_PARTS = sizeof(real_t) == 4;
static_assert(N % 8 == 0 && N <= WARPS * R);

struct Shared {
    int pivot[N], column[N];  // where column c of inv(U) inv(L) is to go
    scalar_t inverse[N];      // of the diagonal of U
    int zero;                 // the first that is zero there, from 1, or N + 1
    unsigned most, least;     // of single precision: what else there is, as bits
};

__device__ inline scalar_t* square() { return reinterpret_cast<scalar_t*>(dynamic_shared); }
// The inverses of the tiles on L's diagonal, one below the other, 8 numbers to a row
__device__ inline scalar_t* lower_tiles() { return square() + N * LD; }

// Zeros from n to the end of the last tiles
__device__ inline void fill_tiles(int n)
{
    const int all = (n + 7) / 8 * 8, past = all - n;
    for (int e = thread(); e < past * all; e += THREADS) {
        square()[(n + e % past) * LD + e / past] = scalar_t{};
        square()[e / past * LD + n + e % past] = scalar_t{};
    }
}

// The interchanges bring row q to some place: the column of that goes to q. A barrier stands before
// and after. Pivots that are no rows bring none out of what is there.
__device__ inline void follow(Shared& s, int n)
{
    for (int q = thread(); q < n; q += THREADS) {
        const int place = brought(s.pivot, n, q);
        if (unsigned(place) < unsigned(n)) s.column[place] = q;
    }
}

// What is on U's diagonal. A barrier stands before and after.
__device__ inline void look_at(Shared& s, int n)
{
    unsigned most = 0, least = ALL;
    for (int i = thread(); i < n; i += THREADS) {
        const real_t some = abs1(square()[i * (LD + 1)]);
        if (some == 0) atomicMin(&s.zero, i + 1);
        if constexpr (IN_PARTS)
            most = max(most, __float_as_uint(some)), least = min(least, __float_as_uint(some));
    }
    if constexpr (IN_PARTS) {
        most = __reduce_max_sync(ALL, most), least = ~__reduce_max_sync(ALL, ~least);
        if (lane() == 0) atomicMax(&s.most, most), atomicMin(&s.least, least);
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

// The tiles on the diagonal: inv(U)'s take the place of both factors' there, with zeros, inv(L)'s
// go to lower_tiles(). A column of either is a lane's, so 16 lanes have a tile.
__device__ inline void invert_tiles(const Shared& s, int tiles)
{
    const int lane_of_tile = thread() % 16, c = lane_of_tile % 8;
    const bool upper = lane_of_tile < 8;
    #pragma unroll 1
    for (int J = thread() / 16; J < (tiles + 1) / 2 * 2; J += THREADS / 16) {
        const bool there = J < tiles;
        const int first = 8 * (there ? J : J - 1);  // what the other half of the warp reads
        scalar_t* const tile = square() + first * (LD + 1);
        scalar_t x[8];
        #pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = scalar_t(real_t(i == c));
        if (upper)
            #pragma unroll
            for (int i = 7; i >= 0; --i) {
                #pragma unroll
                for (int k = i + 1; k < 8; ++k)
                    x[i] = minus_product(x[i], tile[i * LD + k], x[k]);
                x[i] = mul(s.inverse[first + i], x[i]);
            }
        else
            #pragma unroll
            for (int i = 1; i < 8; ++i)
                #pragma unroll
                for (int k = 0; k < i; ++k)
                    x[i] = minus_product(x[i], tile[i * LD + k], x[k]);
        __syncwarp();  // no lane needs the tile any more
        #pragma unroll
        for (int i = 0; i < 8; ++i)
            if (there) (upper ? tile + i * LD : lower_tiles() + 8 * (first + i))[c] = x[i];
    }
}

__device__ inline void read(Strip::Tile& tile, const scalar_t* from, int pitch)
{
    Strip::read(tile, [=](int r, int c) {
        return *reinterpret_cast<const Few*>(from + r * pitch + c);
    });
}

// The first 8 rows of the strip are solved with the inverse of their tile on the diagonal and taken
// off the next `others` times 8 by tiles `apart` from each other, their own being the first. All
// others go one place on, and -1 times these to the end: of two solves the signs cancel.
__device__ inline void solve_rows(Strip& strip, const scalar_t* inverse, int pitch, int others,
                                  const scalar_t* tile, int apart)
{
    Strip::Operand o;
    Strip::Tile own;
    Strip::Rows solved;
    Strip::operand_of<-1>(o, strip.x[0]);
    read(own, inverse, pitch);
    Strip::add(solved, Strip::Rows{}, o, own);
    Strip::operand_of<1>(o, solved);
    #pragma unroll
    for (int first = 1; first < NT; first += GROUP) {
        Strip::Tile tiles[GROUP];
        Strip::Rows sums[GROUP];  // under way together: there is no branch between them
        if (first > others) {
            #pragma unroll
            for (int q = first; q < NT && q < first + GROUP; ++q) strip.x[q - 1] = strip.x[q];
            continue;
        }
        #pragma unroll
        for (int q = first; q < NT && q < first + GROUP; ++q)
            read(tiles[q - first], tile + min(q, others) * apart, LD);
        #pragma unroll
        for (int q = first; q < NT && q < first + GROUP; ++q)
            Strip::add(sums[q - first], strip.x[q], o, tiles[q - first]);
        #pragma unroll
        for (int q = first; q < NT && q < first + GROUP; ++q)
            strip.x[q - 1] = q <= others ? sums[q - first] : strip.x[q];
    }
    strip.x[NT - 1] = solved;
}

__device__ inline void turn_over(Strip& strip)
{
    #pragma unroll
    for (int q = 0; q < NT / 2; ++q) {
        const Strip::Rows rows = strip.x[q];
        strip.x[q] = strip.x[NT - 1 - q], strip.x[NT - 1 - q] = rows;
    }
}

// X := lift inv(U) inv(L), its columns in their places, where the factors were. All wait at the end.
__device__ inline void invert(const Shared& s, real_t lift, int n, int tiles)
{
    const int begin = warp() * (R / 8);
    Strip strip;
    strip.clear();
    #pragma unroll
    for (int I = 0; I < R / 8 && I < NT; ++I)
        strip.each(I, [=](int k, int c, scalar_t) { return scalar_t(real_t(8 * I + k == c)); });
    #pragma unroll
    for (int up = 0; up < 2; ++up) {  // with L, then, from the end, with U
        #pragma unroll 1
        for (int left = begin < tiles ? up ? tiles : tiles - begin : 0; left > 0; --left) {
            const int J = up ? left - 1 : tiles - left;
            const scalar_t* const diagonal = square() + 8 * J * (LD + 1);
            solve_rows(strip, up ? diagonal : lower_tiles() + 64 * J, up ? LD : 8, left - 1,
                       diagonal, up ? -8 * LD : 8 * LD);
        }
        if (!up) turn_over(strip);
    }
    __syncthreads();
    #pragma unroll
    for (int I = 0; I < NT; ++I)
        strip.each(NT - 1 - I, [&](int k, int c, scalar_t x) {
            const int i = 8 * I + k, j = 8 * begin + c;
            if (i < n && j < n) square()[i * LD + s.column[j]] = mul(x, lift);
            return x;
        });
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
getri_shared(const scalar_t* LU, size lu_row, size lu_col, size lu_next, const int* piv,
             scalar_t* X, size x_row, size x_col, size x_next, int* info, size ns)
{
    wait_for_stream();
    __shared__ Shared s;
    const size b = blockIdx.x;
    const int n = int(ns), tiles = (n + 7) / 8;
    begin_fetch<LD>(square(), {LU + b * lu_next, lu_row, lu_col}, n, n);
    fill_tiles(n);
    for (int k = thread(); k < n; k += THREADS) s.pivot[k] = piv[b * n + k], s.column[k] = k;
    if (thread() == 0) s.zero = N + 1, s.most = 0, s.least = ALL;
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
        invert(s, lift, n, tiles);
    }
    send<LD>({X + b * x_next, x_row, x_col}, square(), n, n);
}
