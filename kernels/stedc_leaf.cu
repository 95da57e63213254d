// stedc_leaf.cu: the leaves of divide and conquer: eigenvalues and -vectors of parts of up to 32
// rows of real tridiagonal matrices, T_i = Z_i diag(d_i) Z_i^T, for a batch.
//
// T is cut in `leaves` parts of alike many rows; what joins two parts, rho = |T(i, i - 1)|, is taken
// off both elements beside the cut, so that T is the parts and rho v v^T for each cut, which
// stedc_merge.cu adds (Cuppen, Numer. Math. 36, 1981).
//
// A warp has a leaf: all lanes find the same rotations of implicit QL with Wilkinson's shift, and
// lane r applies them to row r of Z, in shared memory. 1.2 m^2 rotations one after the other, 0.1 to
// 0.2 us each. d comes rising, and Z by rows to its place on the diagonal of an n x n matrix.
// (EISPACK's imtql2; LAPACK's dsteqr.)
#include "block.cuh"
#include "launch.cuh"
#include "reciprocal.cuh"
#include "tridiagonal.cuh"

constexpr int MOST = 32, PITCH = MOST + 1;  // rows of a leaf
constexpr int SWEEPS = 30;  // to a row, of all rows together: the first may take more than most
constexpr bool WIDE = sizeof(real_t) == 8;
// The largest element of all is near one. FLOOR is nothing beside it; below its square squares lose
// digits.
constexpr real_t EPS = WIDE ? real_t(0x1p-53) : real_t(0x1p-24),
                 FLOOR = WIDE ? real_t(0x1p-450) : real_t(0x1p-50), NOTHING = FLOOR * FLOOR;

struct Leaf { real_t z[MOST * PITCH], d[MOST], e[MOST]; };

// QL of the leaf; whether it converged. The same in all lanes; row: the lane's of Z.
__device__ inline bool diagonal(Leaf& leaf, real_t* row, int m)
{
    real_t* const d = leaf.d;
    real_t* const e = leaf.e;
    const bool first = threadIdx.x % 32 == 0;
    const auto set = [=](real_t& x, real_t to) {
        if (first) x = to;
        __syncwarp();
    };
    for (int l = 0, sweeps = 0; l < m;) {
        int end = l;
        while (end < m - 1 && fabs(e[end]) > fma(EPS, fabs(d[end]) + fabs(d[end + 1]), FLOOR)) ++end;
        if (end == l) {
            ++l;
            continue;
        }
        if (sweeps++ == SWEEPS * m) return false;
        const real_t half = (d[l + 1] - d[l]) / (2 * e[l]), root = sqrt(fma(half, half, real_t(1)));
        real_t g = d[end] - d[l] + e[l] / (half + copysign(root, half));
        real_t s = 1, c = 1, p = 0;
        int i = end - 1;
        for (; i >= l; --i) {
            const real_t f = s * e[i], b = c * e[i], next = d[i + 1], square = fma(f, f, g * g);
            const bool together = square > NOTHING;
            const real_t q = near_rsqrt(together ? square : real_t(1));
            __syncwarp();
            set(e[i + 1], together ? square * q : real_t(0));
            if (!together) break;
            s = f * q;
            c = g * q;
            g = next - p;
            const real_t w = fma(d[i] - g, s, 2 * c * b);
            p = s * w;
            set(d[i + 1], g + p);
            g = fma(c, w, -b);
            const real_t x = row[i], y = row[i + 1];
            row[i + 1] = fma(s, x, c * y);
            row[i] = fma(c, x, -(s * y));
        }
        const real_t below = i < l ? d[l] - p : d[i + 1] - p;
        __syncwarp();
        set(d[i < l ? l : i + 1], below);
        if (i < l) set(e[l], g);
        set(e[end], 0);
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS)
stedc_leaf(const real_t* D, const real_t* E, const real_t* most, real_t* values, real_t* Z, int* info,
           size ns, size leaves, size batch)
{
    wait_for_stream();
    const int lane = threadIdx.x % 32;
    const size index = size(blockIdx.x) * WARPS + warp(), b = index / leaves, k = index % leaves;
    if (b >= batch) return;
    const int n = size_of(ns, b);
    Leaf& leaf = reinterpret_cast<Leaf*>(dynamic_shared)[warp()];
    const int low = int(k * n / leaves), m = int((k + 1) * n / leaves) - low;
    const real_t largest = *array_of(most, 1, b);
    if (!(largest - largest == 0)) return;  // stedc_merge says so
    if (lane < m) {
        const real_t* const e = array_of(E, n, b) + low;
        real_t d = array_of(D, n, b)[low + lane];
        if (lane == 0 && low > 0) d -= fabs(e[-1]);
        if (lane == m - 1 && low + m < n) d -= fabs(e[lane]);
        leaf.d[lane] = d;
        leaf.e[lane] = lane < m - 1 ? e[lane] : real_t(0);
    }
    real_t* const row = leaf.z + lane * PITCH;
    for (int j = 0; j < m; ++j) row[j] = j == lane;
    __syncwarp();
    const bool converged = diagonal(leaf, row, m);
    if (!converged && lane == 0) atomicAdd(array_of(info, 1, b), 1);
    int rank = 0;
    if (lane < m) {
        const real_t x = leaf.d[lane];
        for (int j = 0; j < m; ++j) rank += leaf.d[j] < x || (leaf.d[j] == x && j < lane);
        array_of(values, n, b)[low + rank] = x;
        real_t* const to = array_of(Z, size(n) * n, b) + size(low) * (n + 1);
        for (int i = 0; i < m; ++i) to[size(i) * n + rank] = leaf.z[i * PITCH + lane];
    }
}
