// gemm_block.cu: C := alpha A B + beta C of every member of a batch, larger members.
//
// A block owns a BM x BN tile of one member's C, a warp TM x TN of it in registers (multiply.cuh).
// Slices of A and B, BK deep, pass through shared memory by asynchronous copies, STAGES of them on
// their way at once: one barrier a slice. A slice lies in shared memory as its operand does in
// memory, by rows or by columns, 16 bytes a copy where neighbours are that long, so that every
// layout and transpose is read in whole sectors and multiplied without bank conflicts.
//
// symmetric = 1: A is symmetric, 2: Hermitian; only its elements (i, j), i >= j, are read.
// half = 1: only the elements i >= j of C are computed; 2: and it is Hermitian.
//
// Floor: (m k + k n + m n) elements a member, and 2 m n k operations. A block reads
// (BM + BN) k elements for 2 BM BN k operations, of which its neighbours find most in L2.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int BM = 64, BN = 64;   // the tile of a block
constexpr int TM = 32, TN = 32;   // of a warp
constexpr int BK = 16;            // of k in a slice
constexpr int STAGES = 3;         // slices in shared memory, at least 2
constexpr int BLOCKS = 1;         // per multiprocessor for which registers are rationed
#endif
#include "async.cuh"
#include "gemm.cuh"

static_assert(WARPS == BM / TM * (BN / TN) && BK % 4 == 0);
static_assert((BM & (BM - 1)) == 0 && (BN & (BN - 1)) == 0 && (BK & (BK - 1)) == 0);

// Shared memory of a slice, of a matrix of R x BK or BK x R
__host__ __device__ constexpr int slice(int R)
{
    return leading(BK) * R > leading(R) * BK ? leading(BK) * R : leading(R) * BK;
}
constexpr int STAGE = slice(BM) + slice(BN);  // of which the launch gives STAGES

// to(r, c) := the r x c part of x that begins at (i, j), zeros past its edges `rows`, `columns`.
// What lies by rows in memory does so in shared memory, with rows of `ld` numbers.
template <int R, int C>
__device__ void fetch_slice(scalar_t* to, const Operand& x, bool by_rows, bool vectors, int rows,
                            int columns)
{
    const int inner = by_rows ? C : R, outer = by_rows ? R : C, ld = by_rows ? leading(C)
                                                                             : leading(R);
    const int inner_end = by_rows ? columns : rows, outer_end = by_rows ? rows : columns;
    const size step = by_rows ? x.cs : x.rs, stride = by_rows ? x.rs : x.cs;
    const int V = vectors ? VECTOR : 1;
    constexpr int bytes = sizeof(scalar_t);
    const int few = inner / V, bits = __ffs(few) - 1;  // a power of two
    for (int e = thread(); e < few * outer; e += THREADS) {
        const int o = e >> bits, f = (e & (few - 1)) * V;
        const int left = o < outer_end && f < inner_end ? inner_end - f : 0;
        const scalar_t* from = left ? x.p + o * stride + f * step : x.p;
        if (vectors) copy_async<16>(to + o * ld + f, from, (left < V ? left : V) * bytes);
        else copy_async<bytes>(to + o * ld + f, from, left ? bytes : 0);
    }
}

// The same of a symmetric or Hermitian matrix of which the lower triangle is stored; the slice
// begins at (i, j) of it.
template <int R, int C>
__device__ void fetch_symmetric(scalar_t* to, const Operand& x, bool hermitian, int i, int j,
                                int rows, int columns)
{
    const Operand raw{x.p, x.rs, x.cs, 0};  // conjugated when it is read from shared memory
    for_each(R, C, (x.cs == 1) == (i >= j), [=](int r, int c) {
        const int s = i + r, t = j + c;
        scalar_t value{};
        if (r < rows && c < columns) {
            value = s >= t ? raw(s, t) : raw(t, s);
            if (hermitian && s < t) value = conj(value);
            if (hermitian && s == t) value = real_part(value);
        }
        to[r * leading(C) + c] = value;
    });
}

// Conjugated if so; neighbours are where they were
template <class X> struct Perhaps {
    X x;
    bool conjugated;
    __device__ scalar_t operator()(int i, int j) const
    {
        return conjugated ? conj(x(i, j)) : x(i, j);
    }
};
template <class X> constexpr int along<Perhaps<X>> = along<X>;
template <class X> __device__ Vector vector_of(const Perhaps<X>& x, int i, int j)
{
    return x.conjugated ? vector_of(conjugate(x.x), i, j) : vector_of(x.x, i, j);
}

struct Work {  // a member's product, as the block sees it
    int m, n, k, i, j, half, symmetric;
    Operand a, b;
    bool a_by_rows, b_by_rows, a_vectors, b_vectors, out_vectors;
    Strided<const scalar_t> c;
    Strided<scalar_t> o;
    scalar_t alpha, beta;
};

__device__ inline void fetch_stage(const Work& w, scalar_t* to, int p)
{
    if (w.symmetric)
        fetch_symmetric<BM, BK>(to, w.a, w.symmetric == 2, w.i, p, w.m - w.i, w.k - p);
    else
        fetch_slice<BM, BK>(to, part(w.a, w.i, p), w.a_by_rows, w.a_vectors, w.m - w.i, w.k - p);
    fetch_slice<BK, BN>(to + slice(BM), part(w.b, p, w.j), w.b_by_rows, w.b_vectors, w.k - p,
                        w.n - w.j);
}

// A slice of A is read as X, one of B as Y: by rows or columns.
template <class X, class Y> __device__ void work_on(const Work& w, X x, Y y)
{
    scalar_t* const stages = reinterpret_cast<scalar_t*>(dynamic_shared);
    const int i = warp() / (BN / TN) * TM, j = warp() % (BN / TN) * TN;
    const int m = w.m - w.i - i, n = w.n - w.j - j;
    const bool idle = w.half && w.i + i + TM <= w.j + j;
    Tile<TM, TN, Perhaps<X>, Perhaps<Y>> tile;
    tile.clear();
    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s * BK < w.k) fetch_stage(w, stages + s * STAGE, s * BK);
        end_group();
    }
    int now = 0, next = STAGES - 1;
    for (int p = 0; p < w.k; p += BK) {
        await_groups<STAGES - 2>();
        __syncthreads();
        const int later = p + (STAGES - 1) * BK;
        if (later < w.k) fetch_stage(w, stages + next * STAGE, later);
        end_group();
        x.p = stages + now * STAGE, y.p = x.p + slice(BM);
        if (!idle)
            tile.add({part(x, i, 0), w.a.conjugated != 0}, {part(y, 0, j), w.b.conjugated != 0}, m,
                     n, BK);
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }
    if (!idle)
        finish(tile, w.alpha, w.beta, {&w.c(i, j), w.c.rs, w.c.cs}, {&w.o(i, j), w.o.rs, w.o.cs},
               w.out_vectors, w.half, w.i + i, w.j + j, m, n);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gemm_block(size m, size n, size k, size half, size symmetric, const scalar_t* A, size ars,
           size acs, size abs, size conj_a, const scalar_t* B, size brs, size bcs, size bbs,
           size conj_b, const scalar_t* C, size crs, size ccs, size cbs, scalar_t* O, size ors,
           size ocs, size obs, size alpha_re, size alpha_im, size beta_re, size beta_im,
           size batch)
{
    const int across = (int(n) + BN - 1) / BN, tiles = (int(m) + BM - 1) / BM * across;
    const size member = blockIdx.x / tiles;
    const int tile = int(blockIdx.x - member * tiles);
    Work w;
    w.m = int(m), w.n = int(n), w.k = int(k), w.half = int(half), w.symmetric = int(symmetric);
    w.i = tile / across * BM, w.j = tile % across * BN;
    if (half && w.i + BM <= w.j) return;
    w.a = {A + member * abs, ars, acs, int(conj_a)};
    w.b = {B + member * bbs, brs, bcs, int(conj_b)};
    w.a_by_rows = acs == 1 || symmetric || ars != 1, w.b_by_rows = bcs == 1 || brs != 1;
    w.a_vectors = w.a_by_rows ? in_vectors(A, ars, acs, abs) : in_vectors(A, acs, ars, abs);
    w.b_vectors = w.b_by_rows ? in_vectors(B, brs, bcs, bbs) : in_vectors(B, bcs, brs, bbs);
    w.out_vectors = in_vectors(O, ors, ocs, obs);
    w.c = {C + member * cbs + w.i * crs + w.j * ccs, crs, ccs};
    w.o = {O + member * obs + w.i * ors + w.j * ocs, ors, ocs};
    w.alpha = number(alpha_re, alpha_im), w.beta = number(beta_re, beta_im);
    if constexpr (sizeof(real_t) == 8) {
        using Any = ByStrides<const scalar_t>;
        const int lda = w.a_by_rows ? leading(BK) : leading(BM);
        const int ldb = w.b_by_rows ? leading(BN) : leading(BK);
        work_on(w, w.a_by_rows ? Any{nullptr, lda, 1} : Any{nullptr, 1, lda},
                w.b_by_rows ? Any{nullptr, ldb, 1} : Any{nullptr, 1, ldb});
    } else {
        using Rows = ByRows<const scalar_t>;
        using Columns = ByColumns<const scalar_t>;
        if (w.a_by_rows && w.b_by_rows)
            work_on(w, Rows{nullptr, leading(BK)}, Rows{nullptr, leading(BN)});
        else if (w.a_by_rows)
            work_on(w, Rows{nullptr, leading(BK)}, Columns{nullptr, leading(BK)});
        else if (w.b_by_rows)
            work_on(w, Columns{nullptr, leading(BM)}, Rows{nullptr, leading(BN)});
        else
            work_on(w, Columns{nullptr, leading(BM)}, Columns{nullptr, leading(BK)});
    }
}
