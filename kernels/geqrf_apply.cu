// geqrf_apply.cu: C := Q^H C by the reflectors of a leaf, Q^H = I - V T^H V^H; BATCH columns of C to
// a cluster.
//
// V is in registers as in the leaf (reflectors.cuh), the rows of C are in shared memory. Inner
// products with V are taken for one column after the other; those of all blocks go to the one of the
// cluster that makes T^H of them, and back to all. V crosses memory once, C twice; 2 W fused
// multiplications and additions an element of C, and some 26 shuffles a warp for each of its columns:
// the floor is the products', 8 us for 32 columns of 8192 rows in double precision by 16 blocks.
#include "launch.cuh"
#include "reflectors.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int BATCH = 32;
#endif

constexpr int MINE = BATCH / CLUSTER;       // columns whose sums a block gets
constexpr int AT_ONCE = ROWS < 16 ? 2 : 1;  // columns in registers
constexpr int HIGH = 8 * ROWS * WARPS, LD = HIGH + 8;
static_assert(BATCH % CLUSTER == 0 && BATCH % 4 == 0);

struct Shared {
    word gathered, spread;
    Pack gather[CLUSTER][MINE][CHUNKS], products[MINE][CHUNKS], mine[MINE][CHUNKS];
    Pack y[BATCH][CHUNKS], parts[BATCH][WARPS][CHUNKS];
    scalar_t TH[W * W], C[BATCH * LD];
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS)
geqrf_apply(const scalar_t* V, size ldv, size m, size steps, const scalar_t* TH, size ldt,
            scalar_t* C, size ldc, size columns)
{
    wait_for_stream();
    Shared& s = *reinterpret_cast<Shared*>(dynamic_shared);
    const int begin = int(blockIdx.x) / CLUSTER * BATCH, count = min(int(columns) - begin, BATCH);
    Rows rows;
    rows.m = int(m), rows.rank = int(blockIdx.x) % CLUSTER;
    const int rank = rows.rank, r = rows.r(), g = rows.g(), first = rank * MINE;
    const int mine = min(max(count - first, 0), MINE);
    const auto at = [=](int q) { return (q * WARPS + warp()) * 8; };  // of eight rows in s.C
    const unsigned gathered = shared_address(&s.gathered), spread = shared_address(&s.spread);
    C += begin * ldc;
    if (thread() == 0) {
        make_barrier(gathered, 1), make_barrier(spread, 1);
        show_barriers();
    }
    rows.load(V, ldv, int(steps));
    #pragma unroll 2
    for (int b = g; b < count; b += 4)
        #pragma unroll
        for (int q = 0; q < ROWS; ++q)
            s.C[b * LD + at(q) + r] = rows.row(q) < rows.m ? C[rows.row(q) + b * ldc] : scalar_t{};
    for (int e = thread(); e < W * W; e += THREADS)
        s.TH[e] = e % W < int(steps) && e / W < int(steps) ? TH[e % W + e / W * ldt] : scalar_t{};
    __syncwarp();
    #pragma unroll (AT_ONCE)
    for (int b = 0; b < count; ++b) {
        scalar_t x[ROWS], t[COLUMNS];
        #pragma unroll
        for (int q = 0; q < ROWS; ++q) x[q] = s.C[b * LD + at(q) + r];
        rows.inner_products(t, x);  // of C^H V
        sum_over<0, 3>(t);
        if (r < COLUMNS) numbers(s.parts[b][warp()])[rows.column(r)] = conj(t[0]);
    }
    meet_cluster();
    if (thread() == 0) {
        expect(gathered, CLUSTER * mine * CHUNKS * 16);
        expect(spread, count * CHUNKS * 16);
    }
    for (int b = warp(); b < count; b += WARPS) {
        const Pack sum = combined<false, WARPS>(s.parts[b]);
        const unsigned to = shared_address(&s.gather[rank][b % MINE][lane() % CHUNKS]);
        if (lane() < CHUNKS)
            send(address_in(to, b / MINE), bits_of(sum), address_in(gathered, b / MINE));
    }
    if (mine) {
        await(gathered, 0);
        for (int e = thread(); e < mine * CHUNKS; e += THREADS) {
            Pack sum = s.gather[0][e / CHUNKS][e % CHUNKS];
            #pragma unroll
            for (int k = 1; k < CLUSTER; ++k)
                #pragma unroll
                for (int i = 0; i < VECTOR; ++i)
                    sum.x[i] = add(sum.x[i], s.gather[k][e / CHUNKS][e % CHUNKS].x[i]);
            s.products[e / CHUNKS][e % CHUNKS] = sum;
        }
        __syncthreads();
        for (int e = thread(); e < mine * W; e += THREADS) {  // T^H: zeros above its diagonal
            scalar_t y[4] = {};
            #pragma unroll
            for (int k = 0; k < W; ++k)
                y[k % 4] = minus_product(y[k % 4], s.TH[e % W + k * W],
                                         numbers(s.products[e / W])[k]);
            numbers(s.mine[e / W])[e % W] = add(add(y[0], y[1]), add(y[2], y[3]));
        }
        __syncthreads();
        for (int e = thread(); e < mine * CHUNKS * CLUSTER; e += THREADS) {
            const int chunk = e % CHUNKS, b = e / CHUNKS % mine, to = e / CHUNKS / mine;
            send(address_in(shared_address(&s.y[first + b][chunk]), to), bits_of(s.mine[b][chunk]),
                 address_in(spread, to));
        }
    }
    await(spread, 0);
    #pragma unroll (AT_ONCE)
    for (int b = 0; b < count; ++b) {
        scalar_t x[ROWS] = {};
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            const scalar_t y = numbers(s.y[b])[rows.column(c)];
            #pragma unroll
            for (int q = 0; q < ROWS; ++q) x[q] = minus_product(x[q], rows.a[q][c], y);
        }
        sum_over<3, 2>(x);
        constexpr int KEPT = ROWS > 4 ? ROWS / 4 : 1, STEP = ROWS < 4 ? ROWS : 4;
        #pragma unroll
        for (int p = 0; p < KEPT; ++p) {
            const int q = p * STEP + g % STEP, i = rows.row(q);
            if (i < rows.m && g < STEP)
                C[i + b * ldc] = minus_product(s.C[b * LD + at(q) + r], x[p], scalar_t{1});
        }
    }
}
