// stedc_merge.cu: two parts of a tridiagonal matrix made one, by divide and conquer, for a batch:
//
//     diag(Z_1, Z_2) (diag(d) + rho z z^T) diag(Z_1, Z_2)^T = (diag(Z_1, Z_2) U) diag(w) (...)^T,
//
// z being the last row of Z_1 and the first of Z_2. This finds w and U; products of a batch make
// Z_i U_i of it.
//
// A block has a part of m rows, its numbers in shared memory. Sorted, where z_i is nothing or two d
// are as good as equal (then a rotation makes one z nothing) d_i is an eigenvalue as it is, and its
// column of U a unit vector's: one thread looks at them one after the other. For the k others a
// thread finds a root of 1 / rho + sum z_i^2 / (d_i - w), from the d beside it that is nearer, so
// that every d_i - w is right to its last digits; z is then made anew such that these are the exact
// roots, and columns z_i / (d_i - w_j) are orthogonal however close roots are (Gu, Eisenstat, SIAM
// J. Matrix Anal. 15, 1994; LAPACK's dlaed2 to 4). Some 10 k^2 divisions, of which half are the
// roots'; m^2 numbers of U to memory, by rows, a thread having a column.
#include "block.cuh"
#include "launch.cuh"
#include "reciprocal.cuh"
#include "tridiagonal.cuh"

constexpr bool WIDE = sizeof(real_t) == 8;
constexpr real_t EPS = WIDE ? real_t(0x1p-53) : real_t(0x1p-24);
constexpr int STEPS = 60;  // of the search for a root; three to seven are usual

// Columns a and b of diag(Z_1, Z_2) turn by (c, s): places among the sorted
struct Rotation { real_t c, s; int a, b; };

struct Counts { int poles, rotations; };

// A part's numbers in shared memory, all of them among the sorted. Compiled loops read what is past
// the end of an array, too, of which they make no use: what is written while one is read is not
// behind it.
struct Part {
    Rotation* rotations;
    real_t* off;        // w of the poles less that it is found from
    real_t* pole;       // d and z of those that are not taken as they are
    real_t* weight;
    real_t* z;
    real_t* d;          // the eigenvalues of both halves, then the part's
    int* from;          // which pole that is
    int* row;           // where they come from
    int* kept;          // the places of the poles
    int* number;        // of a place: its pole, or -1
    int* rank;          // of a place: its column of U
    int* at;            // the place of a column
};

template <class T> __device__ void take(T*& x, char*& p, int m)
{
    x = reinterpret_cast<T*>(p);
    p += m * sizeof(T);
}
__device__ inline Part part_of(char* p, int m)
{
    Part part;
    take(part.rotations, p, m);
    take(part.off, p, m);
    take(part.pole, p, m);
    take(part.weight, p, m);
    take(part.z, p, m);
    take(part.d, p, m);
    take(part.from, p, m);
    take(part.row, p, m);
    take(part.kept, p, m);
    take(part.number, p, m);
    take(part.rank, p, m);
    take(part.at, p, m);
    return part;
}

// How many of `count` rising numbers are less than x, or no more if `equal`
__device__ inline int less(const real_t* p, int count, real_t x, bool equal)
{
    int low = 0;
    while (low < count) {
        const int middle = (low + count) / 2;
        if (p[middle] < x || (equal && p[middle] == x)) low = middle + 1;
        else count = middle;
    }
    return low;
}

// Takes out what is an eigenvalue as it is; the number of poles and of rotations. By one thread.
__device__ inline Counts deflate(const Part& part, real_t rho, real_t most, int m)
{
    int k = 0, rotations = 0, last = -1;
    const real_t nothing = 8 * EPS * most;
    for (int j = 0; j < m; ++j) {
        part.number[j] = -1;
        const real_t z = part.z[j];
        if (!(rho * fabs(z) > nothing)) continue;
        if (last >= 0) {
            const real_t before = part.z[last], both = sqrt(fma(before, before, z * z));
            const real_t c = z / both, s = -before / both, a = part.d[last], b = part.d[j];
            if (fabs((b - a) * c * s) <= nothing) {
                part.z[j] = both;
                part.rotations[rotations++] = {c, s, last, j};
                part.d[last] = fma(a * c, c, b * s * s);
                part.d[j] = fma(a * s, s, b * c * c);
            } else {
                part.number[last] = k;
                part.kept[k++] = last;
            }
        }
        last = j;
    }
    if (last >= 0) {
        part.number[last] = k;
        part.kept[k++] = last;
    }
    return {k, rotations};
}

// Sums over poles of z^2 / (d - w), and of its slope: those up to `split` and those above
struct Sums {
    real_t low, low_slope, high, high_slope, error;

    __device__ Sums(const real_t* pole, const real_t* weight, real_t origin, real_t off, int split,
                    int k)
        : low(0), low_slope(0), high(0), high_slope(0), error(0)
    {
        #pragma unroll 4
        for (int i = 0; i <= split; ++i) {
            const real_t z = weight[i], q = z * near_reciprocal((pole[i] - origin) - off);
            low = fma(z, q, low);
            low_slope = fma(q, q, low_slope);
            error += fabs(low);
        }
        #pragma unroll 4
        for (int i = k - 1; i > split; --i) {
            const real_t z = weight[i], q = z * near_reciprocal((pole[i] - origin) - off);
            high = fma(z, q, high);
            high_slope = fma(q, q, high_slope);
            error += fabs(high);
        }
    }
};

// The root between poles j and j + 1, or above the last: its distance from pole `from`.
__device__ inline real_t root(const real_t* pole, const real_t* weight, real_t rho, int j, int k,
                              int& from)
{
    from = j;
    if (k == 1) return rho * weight[0] * weight[0];
    const real_t inverse = 1 / rho;
    const bool last = j == k - 1;
    const int a = last ? k - 2 : j, b = a + 1;  // the poles that count most
    const real_t gap = pole[b] - pole[a], za = weight[a] * weight[a], zb = weight[b] * weight[b];
    real_t low = 0, high = gap / 2;
    if (last) {
        real_t sum = 0;
        for (int i = 0; i < k; ++i) sum = fma(weight[i], weight[i], sum);
        high = rho * sum * (1 + 4 * EPS);
    }
    // All other poles at a middle, and these two, whose root is where the search begins
    const real_t origin = pole[j], middle = high / 2 * (last ? 1 : 2);
    real_t others = inverse;
    #pragma unroll 4
    for (int i = 0; i < k; ++i) {
        const real_t x = weight[i] * weight[i] * near_reciprocal((pole[i] - origin) - middle);
        others += i == a || i == b ? real_t(0) : x;
    }
    real_t off;
    if (last) {
        const real_t p = fma(-others, gap, za + zb), q = zb * gap;
        const real_t wide = sqrt(fabs(fma(p, p, 4 * q * others)));
        off = p < 0 ? 2 * q / (wide - p) : (p + wide) / (2 * others);
    } else if (others + za / -high + zb / high >= 0) {
        const real_t p = fma(others, gap, za + zb), q = za * gap;
        const real_t wide = sqrt(fabs(fma(p, p, -4 * q * others)));
        off = p > 0 ? 2 * q / (p + wide) : (p - wide) / (2 * others);
    } else {
        from = b;
        const real_t p = fma(others, gap, -(za + zb)), q = zb * gap;
        const real_t wide = sqrt(fabs(fma(p, p, 4 * q * others)));
        off = p < 0 ? 2 * q / (p - wide) : -(p + wide) / (2 * others);
        low = -high;
        high = 0;
    }
    if (!(off > low && off < high)) off = low + (high - low) / 2;
    const real_t start = pole[from];
    real_t width = high - low;
    for (int step = 1; step <= STEPS; ++step) {
        const Sums f(pole, weight, start, off, a, k);
        const real_t value = inverse + f.low + f.high, slope = f.low_slope + f.high_slope;
        const real_t error = fma(real_t(8), fabs(f.low) + fabs(f.high),
                                 f.error + 2 * inverse + fabs(off) * slope);
        if (fabs(value) <= EPS * error) break;
        if (value < 0) low = off;
        else high = off;
        // The poles beside the root as they are, what else there is as a constant
        const real_t da = (pole[a] - start) - off, db = (pole[b] - start) - off;
        real_t c = value - da * f.low_slope - db * f.high_slope;
        const real_t p = fma(da + db, value, -(da * db * slope)), q = da * db * value;
        if (last) c = fabs(c);
        const real_t wide = sqrt(fabs(fma(p, p, -4 * q * c)));
        real_t move;
        if (c == 0) move = q / p;
        else if ((p <= 0) != last) move = (p - (last ? -wide : wide)) / (2 * c);
        else move = 2 * q / (p + (last ? -wide : wide));
        if (!(value * move < 0)) move = -value / slope;
        real_t next = off + move;
        const bool slow = step % 4 == 0 && high - low > width / 2;
        if (step % 4 == 0) width = high - low;
        if (!(next > low && next < high) || slow) next = low + (high - low) / 2;
        if (next == off || !(next > low && next < high)) break;
        off = next;
    }
    return off;
}

extern "C" __global__ void __launch_bounds__(THREADS)
stedc_merge(real_t* values, const real_t* E, const real_t* most, const real_t* Z, real_t* U,
            real_t* w, int* info, size ns, size parts)
{
    wait_for_stream();
    const int me = thread();
    const size b = blockIdx.x / parts, index = blockIdx.x - b * parts;
    const int n = size_of(ns, b);
    const int first = int(index * n / parts), middle = int((2 * index + 1) * n / (2 * parts)),
              m = int((index + 1) * n / parts) - first, half = middle - first;
    real_t* const u = array_of(U, size(n) * n, b) + size(first) * (n + 1);
    const real_t nan = *array_of(most, 1, b) - *array_of(most, 1, b);
    if (!(nan == 0)) {
        for_each(m, m, true, [=](int i, int j) { u[size(i) * n + j] = nan; });
        for (int i = me; i < m && w; i += THREADS) array_of(w, n, b)[first + i] = nan;
        if (me == 0 && w) *array_of(info, 1, b) = 1;
        return;
    }

    const Part part = part_of(dynamic_shared, m);
    real_t* const d = array_of(values, n, b) + first;
    // Two rows of it, one for each
    const real_t* const z = array_of(Z, size(n) * n, b) + size(middle - 1) * n + first;
    const real_t joins = array_of(E, n, b)[middle - 1], rho = 2 * fabs(joins);
    const real_t unit = real_t(0.70710678118654752440);
    for (int i = me; i < m; i += THREADS) {
        const bool upper = i < half;
        const real_t x = d[i];
        const int place = upper ? i + less(d + half, m - half, x, false)
                                : i - half + less(d, half, x, true);
        part.d[place] = x;
        part.z[place] = (upper ? z[i] : joins < 0 ? -z[n + i] : z[n + i]) * unit;
        part.row[place] = i;
    }
    __syncthreads();

    __shared__ Counts counts;
    if (me < 32) {
        real_t largest = fmax(fabs(part.d[0]), fabs(part.d[m - 1]));
        for (int i = me; i < m; i += 32) largest = fmax(largest, fabs(part.z[i]));
        for (int lanes = 16; lanes; lanes /= 2)
            largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
        __syncwarp();
        if (me == 0) counts = deflate(part, rho, largest, m);
    }
    __syncthreads();
    const int k = counts.poles;
    for (int i = me; i < k; i += THREADS) {
        part.pole[i] = part.d[part.kept[i]];
        part.weight[i] = part.z[part.kept[i]];
    }
    __syncthreads();
    for (int j = me; j < k; j += THREADS)
        part.off[j] = root(part.pole, part.weight, rho, j, k, part.from[j]);
    __syncthreads();

    // z such that these are the roots; and these where the poles were
    for (int i = me; i < k; i += THREADS) {
        const real_t pole = part.pole[i];
        real_t square = (pole - part.pole[part.from[i]]) - part.off[i];
        #pragma unroll 4
        for (int j = 0; j < k; ++j) {
            const real_t x = ((pole - part.pole[part.from[j]]) - part.off[j])
                             * near_reciprocal(pole - part.pole[j]);
            square *= j == i ? real_t(1) : x;
        }
        part.z[i] = copysign(sqrt(fabs(square)), part.weight[i]);
        part.d[part.kept[i]] = part.pole[part.from[i]] + part.off[i];
    }
    __syncthreads();
    for (int i = me; i < m; i += THREADS) {
        const real_t x = part.d[i];
        int rank = 0;
        for (int j = 0; j < m; ++j) rank += part.d[j] < x || (part.d[j] == x && j < i);
        part.rank[i] = rank;
        part.at[rank] = i;
        if (w) array_of(w, n, b)[rank] = scale_of(*array_of(most, 1, b)).inverse().times(x);
        else d[rank] = x;
    }
    __syncthreads();

    for (int column = me; column < m; column += THREADS) {
        const int place = part.at[column], own = part.number[place];
        real_t origin = 0, off = 0, length = 0;
        if (own >= 0) {
            origin = part.pole[part.from[own]];
            off = part.off[own];
            #pragma unroll 4
            for (int i = 0; i < k; ++i) {
                const real_t x = part.z[i] * near_reciprocal((part.pole[i] - origin) - off);
                length = fma(x, x, length);
            }
            length = 1 / sqrt(length);
        }
        #pragma unroll 4
        for (int i = 0; i < m; ++i) {
            const int pole = part.number[i], any = pole < 0 ? 0 : pole;
            const real_t x = part.z[any] * near_reciprocal((part.pole[any] - origin) - off);
            u[size(part.row[i]) * n + column] =
                own < 0 ? real_t(i == place) : pole < 0 ? real_t(0) : x * length;
        }
        for (int r = counts.rotations - 1; r >= 0; --r) {
            const Rotation turn = part.rotations[r];
            real_t& x = u[size(part.row[turn.a]) * n + column];
            real_t& y = u[size(part.row[turn.b]) * n + column];
            const real_t before = x;
            x = fma(turn.c, before, -(turn.s * y));
            y = fma(turn.s, before, turn.c * y);
        }
    }
}
