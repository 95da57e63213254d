// trsm_block.cu: L X = alpha B for a batch, L lower triangular.
//
// A block solves WARPS R columns, a warp R of them in registers (triangular.cuh), N rows at a time.
// Of these 8 at a time are solved by substitution, a lane having a column, and taken off the rows
// below by products. Rows past the first N first lose what the rows above them, read again from
// memory, take off. A member with an info other than zero gets X := B.
//
// The floor, where n <= N: B read and X written once, the triangle read by every block (from the L2
// cache by all but the first): (n^2 / 2 + 2 n nrhs) numbers; n^2 nrhs operations.
#include "launch.cuh"
#include "triangular.cuh"

// The diagonal of L inverted; below TINY the reciprocal may overflow: numbers are lifted first.
struct Diagonal {
    scalar_t inverse[N];
    real_t lift[N];
    int lifted;  // where any number is
};

// The 8 rows of a block := inverse of the 8 x 8 triangle times them, a lane having a column
__device__ inline void substitute(scalar_t* block, const scalar_t* tile, const scalar_t* inverse,
                                  const real_t* lift, bool lifted)
{
    if (lane() >= R) return;
    scalar_t y[8];
    #pragma unroll
    for (int k = 0; k < 8; ++k) y[k] = block[in_block(k, lane())];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        #pragma unroll
        for (int k = 0; k < i; k += VECTOR) {
            const Vector l = in_tile_from(tile, i, k);
            #pragma unroll
            for (int e = 0; e < VECTOR; ++e)
                if (k + e < i) y[i] = minus_product(y[i], l.x[e], y[k + e]);
        }
        if (lifted) y[i] = mul(y[i], lift[i]);
        y[i] = mul(inverse[i], y[i]);
    }
    #pragma unroll
    for (int k = 0; k < 8; ++k) block[in_block(k, lane())] = y[k];
}

// m rows of the strip, from `first` on, of the columns of X. What is solved leaves the strip, and
// the rows below move up: the loop is short, and its arrays are indexed by constants.
__device__ inline void solve(Strip& strip, const scalar_t* tiles, const Diagonal& diagonal,
                             int first, int m, const Columns<scalar_t>& X, bool conjugated,
                             scalar_t* block)
{
    const scalar_t* tile = tiles;  // the next on the diagonal
    #pragma unroll 1
    for (int j = 0; j < m; j += 8) {
        Strip::give(strip.x[0], block);
        __syncwarp();
        substitute(block, tile, diagonal.inverse + j, diagonal.lift + j, diagonal.lifted);
        __syncwarp();
        Strip::Operand o;
        Strip::operand<-1>(o, block, false);
        if (!Strip::store(o, X, first + j, conjugated)) {
            scalar_t* p = X.from(first + j);
            X.each(p, first + j, [=](int, int k, int c, scalar_t* at, bool there) {
                const scalar_t x = block[in_block(k, c)];
                if (there) *at = conjugated ? conj(x) : x;
            });
        }
        const int J = j / 8, last = (m - j - 1) / 8;
        add_tiles<1, false>(strip, o, 1, last, [=](int I) {
            const int i = min(I, last);  // tile (J + i, J), counted from (J, J)
            return tile + (i * J + i * (i + 1) / 2) * TILE;
        });
        tile += (j / 8 + 2) * TILE;
        __syncwarp();
    }
}

__device__ inline void invert(Diagonal& diagonal, const scalar_t* tiles, int m, bool unit)
{
    for (int i = thread(); i < (m + 7) / 8 * 8; i += THREADS) {
        const scalar_t d = i < m && !unit ? tiles[(i / 8 * (i / 8 + 3) / 2) * TILE
                                                  + in_tile(i % 8, i % 8)] : scalar_t{1};
        const bool small = abs1(d) < TINY;
        diagonal.inverse[i] = reciprocal(small ? mul(d, LIFT) : d);
        diagonal.lift[i] = small ? LIFT : real_t(1);
        if (small) diagonal.lifted = 1;
    }
}

__device__ inline void solve_columns(const Lower& L, Strided<const scalar_t> in,
                                     Strided<scalar_t> out, int columns, scalar_t alpha,
                                     bool conjugated, scalar_t* room)
{
    __shared__ Diagonal diagonal;
    const int n = L.n, mine = min(columns - warp() * R, R), most = min(n, N), nt = (most + 7) / 8;
    scalar_t* const ring = room + nt * (nt + 1) / 2 * TILE;  // and before it, a warp's block
    scalar_t* const block = ring + warp() * BLOCK;
    const Columns<const scalar_t> B(part(in, 0, warp() * R), n, mine);
    const Columns<scalar_t> X(part(out, 0, warp() * R), n, mine);
    const Columns<const scalar_t> known({X.x.p, X.x.rs, X.x.cs}, n, mine);
    #pragma unroll 1
    for (int first = 0; first < (RESIDENT ? 1 : n); first += N) {
        const int m = min(n - first, N);
        if (first) __syncthreads();  // nobody reads the tiles before any more
        fetch_triangle(room, L, first, m);
        end_group();
        if (thread() == 0) diagonal.lifted = 0;
        Strip strip;
        if (mine > 0) strip.load(B, first, alpha, conjugated, block);
        if (!RESIDENT && first) {
            __syncthreads();  // a block lies where the ring does
            add_product<-1, false>(strip, L, first, m, 0, first, known, conjugated, ring);
        }
        await_groups<0>();
        __syncthreads();
        invert(diagonal, room, m, L.unit);
        __syncthreads();
        if (mine > 0) solve(strip, room, diagonal, first, m, X, conjugated, block);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
trsm_block(const scalar_t* A, size a_row, size a_col, size a_next,
           const scalar_t* B, size b_row, size b_col, size b_next,
           scalar_t* X, size x_row, size x_col, size x_next,
           size alpha_re, size alpha_im, const int* info, size ns, size nrhs, size conjugated,
           size unit, size slabs)
{
    wait_for_stream();
    const unsigned parts = unsigned(slabs);
    const size b = blockIdx.x / parts, first = size(blockIdx.x % parts) * (WARPS * R);
    const int n = size_of(ns, b);
    const int columns = int(min(size(WARPS * R), size_of(nrhs, b) - first));
    if (columns <= 0) return;
    const auto in = part(matrix_of(B, b_row, b_col, b_next, b), 0, int(first));
    const auto out = part(matrix_of(X, x_row, x_col, x_next, b), 0, int(first));
    if (info && *array_of(info, size(1), b)) {
        if (in.p != out.p)
            for_each(n, columns, by_rows(out), [=](int i, int j) { out(i, j) = in(i, j); });
        return;
    }
    solve_columns({matrix_of(A, a_row, a_col, a_next, b), n, unit != 0}, in, out, columns,
                  number<scalar_t>::of(alpha_re, alpha_im), conjugated != 0,
                  reinterpret_cast<scalar_t*>(dynamic_shared));
}
