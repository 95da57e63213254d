// ormqr_strips.cu: op(Q) C for a batch, Q the product of the first k reflectors of geqrf, by strips
// of C's columns (qr_strips.cuh).
//
// C is m x n; 4 m n k - 2 n k^2 operations. C op(Q) is this for the transposes: what the launcher
// says by strides, `conjugated` and `adjoint`.
#include "launch.cuh"
#include "qr_strips.cuh"

// Single precision is multiplied in two parts, the second of which underflows where C is tiny:
// columns are scaled then, as their squares ask for it in geqrf
constexpr bool IN_PARTS = sizeof(real_t) == 4;
struct Scales {
    real_t most[WARPS], sizes[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
ormqr_strips(const scalar_t* QR, size q_row, size q_col, size q_next, const scalar_t* TS,
             size ts_next, scalar_t* C, size c_row, size c_col, size c_next, size ms, size ns,
             size ks, size conjugated, size adjoint, size strips)
{
    wait_for_stream();
    const size b = blockIdx.x / strips;
    const int first = int(blockIdx.x % strips) * COLUMNS, m = size_of(ms, b);
    const int left = size_of(ns, b) - first, width = left < COLUMNS ? left : COLUMNS;
    if (width <= 0) return;
    const auto c = matrix_of(C, c_row, c_col, c_next, b);
    const Strided<scalar_t> out{c.p + first * c.cs, c.rs, c.cs};
    scalar_t* const strip = reinterpret_cast<scalar_t*>(dynamic_shared);
    __shared__ Scales s;
    bool unusual = false;
    // conj(Q) C = conj(Q conj(C))
    const auto read = [=](scalar_t x) { return conjugated ? conj(x) : x; };
    moved<COLUMNS>((m + 7) / 8 * 8, COLUMNS, out.cs == 1,
        [=](int i, int j) { return i < m && j < width ? out(i, j) : scalar_t{}; },
        [&](int i, int j, scalar_t x) {
            if (IN_PARTS && !is_usual(larger(0, x))) unusual = true;
            strip[i * LD + j] = read(x);
        });
    __syncthreads();
    const bool scaled = IN_PARTS && scale_columns(strip, s, unusual, m);
    apply_panels(matrix_of(QR, q_row, q_col, q_next, b), array_of(TS, ts_next, b), strip, adjoint,
                 false, m, size_of(ks, b), first);
    if (scaled) {
        for_each(m, COLUMNS, true, [&](int i, int j) {
            if (!is_usual(s.sizes[j]))
                strip[i * LD + j] = to_one(s.sizes[j]).inverse().times(strip[i * LD + j]);
        });
        __syncthreads();
    }
    moved<COLUMNS>(m, width, out.cs == 1, [=](int i, int j) { return read(strip[i * LD + j]); },
                   [=](int i, int j, scalar_t x) { out(i, j) = x; });
}
