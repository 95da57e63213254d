// crt_join.cu: C := alpha A B^T + beta C in double precision, from the remainders of the product of
// integers that stand for A and B (crt_split.cu, gemm_crt.cu), and which elements to compute again.
//
// Complex numbers: of the three bytes of an element the two that its parts are made of (moduli.cuh).
//
// A warp has a block of 16 x 16 elements of C, lane (g, t) of it (g, t) = (lane / 4, lane % 4), those
// that the tensor cores gave it: rows g and g + 8, columns 8 s + 2 t and the next, s = 0, 1.
//
// The integer x is exact to its last bit: w_i and P are three numbers of 40 bits each, so that
// sums of 15 products with numbers up to 256, and what q takes from them, have less than 53, and
// only their sum is rounded (Knuth's two-sum first). So products of integers that lines hold exactly
// are exact.
//
// Elements that might not be good (moduli.cuh), and those of lines that are not finite, have a bit in
// `again`, 16 to a row of a block; and C keeps what it was there, until gemm_tiled has computed them.
// Without `again` all are taken for good, but those of lines of an infinite loss are nan. `half`: of
// C the elements not right of the diagonal (1), or not left of it (2), nothing else is touched.
//
// Floor: MODULI + 8 bytes an element, 8 more with beta: 0.36 ms at 8192, 4.3 TB/s. Four operations of
// double precision an element and modulus: 0.30 ms.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;     // of a block
constexpr int BLOCKS = 2;    // per multiprocessor for which registers are rationed
constexpr int FEWER = 0;     // 1: 14 moduli, not 15
#endif
#include "launch.cuh"
#include "operands.cuh"
#include "scalar.cuh"
#include "shuffle.cuh"
#include "moduli.cuh"

using size = long long;

__device__ inline unsigned byte_of(unsigned x, int e) { return __byte_perm(x, 0, 0x4440 | e); }
__device__ inline int signed_byte(unsigned x, int e) { return int(x << (24 - 8 * e)) >> 24; }

// x - SHIFT: in the last digits of 2^52 it is a number of double precision at once
template <int SHIFT> __device__ double in_double(unsigned x)
{
    return __hiloint2double(0x43300000, x) - (0x1p52 + SHIFT);
}

// The integer with remainders remainder(i) modulo p_i, or larger ones, up to 256
template <class F> __device__ double integer_of(F remainder)
{
    double sums[3] = {};
    #pragma unroll
    for (int i = 0; i < MODULI; ++i) {
        const double c = remainder(i);
        #pragma unroll
        for (int d = 0; d < 3; ++d) sums[d] = fma(c, TABLE.weights[d][i], sums[d]);
    }
    // The third part is too small to matter to q: |x| < P / 2 (1 - 2^-12).
    constexpr double of_P = 1 / (TABLE.product[0] + TABLE.product[1] * 0x1p-40);
    const double q = rint((sums[0] + sums[1] * 0x1p-40) * of_P);
    #pragma unroll
    for (int d = 0; d < 3; ++d) sums[d] = fma(-q, TABLE.product[d], sums[d]);
    const double x = sums[0] * 0x1p80, y = sums[1] * 0x1p40, both = x + y, of_y = both - x;
    return both + ((x - (both - of_y) + (y - of_y)) + sums[2]);
}

// x 2^e, rounded once
__device__ inline double scaled(double x, int e)
{
    e = max(-2044, min(e, 2044));
    return x * power(e >> 1) * power(e - (e >> 1));
}

// Real numbers, and complex ones of two parts
__device__ inline void set_part(double& x, int, double part) { x = part; }
__device__ inline void set_part(complex<double>& x, int p, double part) { (p ? x.im : x.re) = part; }
__device__ inline double get_part(double x, int) { return x; }
__device__ inline double get_part(complex<double> x, int p) { return p ? x.im : x.re; }
__device__ inline double size_of(double x) { return fabs(x); }
__device__ inline double size_of(complex<double> x) { return fmax(fabs(x.re), fabs(x.im)); }

// a x + b y; real factors leave parts alone that are not finite
__device__ inline double combined(double a, double x, double b, double y) { return fma(a, x, b * y); }
__device__ inline complex<double> times(complex<double> x, complex<double> y)
{
    if (x.im == 0) return {x.re * y.re, x.re * y.im};
    return {fma(x.re, y.re, -(x.im * y.im)), fma(x.re, y.im, x.im * y.re)};
}
__device__ inline complex<double> combined(complex<double> a, complex<double> x,
                                           complex<double> b, complex<double> y)
{
    const complex<double> u = times(a, x), v = times(b, y);
    return {u.re + v.re, u.im + v.im};
}

struct Result {
    scalar_t alpha, beta;
    scalar_t* C;
    size ld;
    bool whole;  // two neighbours can be moved at once, of real numbers

    __device__ bool reads() const { return get_part(beta, 0) != 0 || get_part(beta, 1) != 0; }
    __device__ void put(scalar_t x, size i, size j) const
    {
        scalar_t& c = C[i * ld + j];
        c = combined(alpha, x, beta, reads() ? c : scalar_t{});
    }
    __device__ void put(const double (&x)[2], size i, size j) const
    {
        double2& c = *reinterpret_cast<double2*>(C + i * ld + j);
        const double2 before = reads() ? c : make_double2(0, 0);
        const double a = get_part(alpha, 0), b = get_part(beta, 0);
        c = make_double2(combined(a, x[0], b, before.x), combined(a, x[1], b, before.y));
    }
    __device__ void put(const complex<double> (&x)[2], size i, size j) const {}
};

// What makes an element good: D, in units of BOUND, times `most` is no more than its size; in units
// that floats hold
struct Judge {
    static constexpr double UNIT = 0x1p-100;
    float most, of_fair;
    int k;

    __device__ explicit Judge(size k)
        : most(float(UNIT * BOUND * 0x1p53 / double(k) * (1 + 0x1p-20))),
          of_fair(float(UNIT * fair_from(double(k)) * fair_from(double(k)) * (1 - 0x1p-20))),
          k(int(k)) {}
    // x: its size; `bits`: of the product of sizes, 0 where there is none
    __device__ bool good(double x, unsigned bits, const Line& a, const Line& b) const
    {
        const float d = most * (a.length * b.loss + b.length * a.loss);
        const float pairs = float(int(a.fair) + int(b.fair) - k);
        if (d <= float(UNIT * x) * (1 - 0x1p-20f) || d <= of_fair * pairs) return true;
        const int e = int(bits) - 1 + int(a.top) + int(b.top) - 2 * SIZE;
        return bits && d <= float(UNIT * power(e));
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
crt_join(size m, size n, size k, const uint2* planes, const unsigned* unsure, const Line* a,
         const Line* b, unsigned short* again, size alpha, size alpha_im, size beta, size beta_im,
         scalar_t* C, size ldc, size half)
{
    wait_for_stream();
    const size down = (m + 15) / 16, across_ = (n + 15) / 16;
    const size block = size(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (block >= down * across_) return;
    const size left = block % across_ - block / across_;  // of the diagonal, if negative
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if ((half == 1 && left > 0) || (half == 2 && left < 0)) {
        const size row = block / across_ * 16 + lane;
        if (again && lane < 16 && row < m) again[row * across_ + block % across_] = 0;
        return;
    }
    const size i = block / across_ * 16 + g, j = block % across_ * 16 + 2 * t;
    const Result result{number(alpha, alpha_im), number(beta, beta_im), C, ldc,
                        REALS == 1 && (size(C) | 8 * ldc) % 16 == 0};
    const Judge judge(k);
    const auto mine = [=](int plane) {
        return planes + (plane * down * across_ + block) * 32 + lane;
    };
    // Of real numbers all bytes come at once, of complex ones, three times as many, as they are used
    uint2 words[REALS == 1 ? MODULI : 1];
    if constexpr (REALS == 1)
        #pragma unroll
        for (int p = 0; p < MODULI; ++p) words[p] = *mine(p);
    uint2 sizes{0, 0};
    if (again && *unsure) sizes = *mine(PARTS * MODULI);
    unsigned bits = 0;  // of row g, then of row g + 8
    #pragma unroll REALS == 1 ? 4 : 1
    for (int q = 0; q < 4; ++q) {  // two elements at a time
        const int s = q / 2, r = q % 2;
        const size row = i + 8 * r, col = j + 8 * s;
        const Line of_row = a[row < m ? row : m - 1];
        const Line cols[2] = {b[col < n ? col : n - 1], b[col + 1 < n ? col + 1 : n - 1]};
        unsigned parts[REALS == 1 ? 1 : PARTS * MODULI];
        if constexpr (REALS == 2)
            #pragma unroll
            for (int p = 0; p < PARTS * MODULI; ++p)
                parts[p] = reinterpret_cast<const unsigned short*>(mine(p))[q] ^ 0x8080u;
        scalar_t x[2];
        bool put[2];
        #pragma unroll
        for (int c = 0; c < 2; ++c) {
            scalar_t integer{};
            if constexpr (REALS == 1) {
                set_part(integer, 0, integer_of([&](int i) {
                    return double(signed_byte(s ? words[i].y : words[i].x, 2 * r + c));
                }));
            } else {
                const auto part = [&](int i, int p) { return byte_of(parts[PARTS * i + p], c); };
                set_part(integer, 0, integer_of([&](int i) {
                    return in_double<256>(part(i, 0) - part(i, 1) + 256);
                }));
                set_part(integer, 1, integer_of([&](int i) {
                    const int c = int(part(i, 2) - part(i, 0) - part(i, 1)) + 128;
                    const int p = int(TABLE.p[i]);
                    return in_double<512>(c + (c < -256 ? p : c > 256 ? -p : 0) + 512);
                }));
            }
            const bool there = row < m && col + c < n && !(half == 1 && col + c > row)
                               && !(half == 2 && col + c < row);
            #pragma unroll
            for (int p = 0; p < REALS; ++p)
                set_part(x[c], p, scaled(get_part(integer, p), -of_row.shift - cols[c].shift));
            const unsigned bits_of = byte_of(s ? sizes.y : sizes.x, 2 * r + c);
            put[c] = there && (!again || judge.good(size_of(integer), bits_of, of_row, cols[c]));
            if (there && !put[c]) bits |= 1u << (16 * r + 8 * s + 2 * t + c);
            if (!again && of_row.loss + cols[c].loss == __int_as_float(0x7f800000))
                set_part(x[c], 0, __longlong_as_double(-1));
        }
        if (result.whole && put[0] && put[1]) {
            result.put(x, row, col);
        } else {
            if (put[0]) result.put(x[0], row, col);
            if (put[1]) result.put(x[1], row, col + 1);
        }
    }
    if (!again) return;
    bits |= across(bits, 1);
    bits |= across(bits, 2);
    if (t < 2 && i + 8 * t < m)
        again[(i + 8 * t) * across_ + block % across_] = (unsigned short)(bits >> 16 * t);
}
