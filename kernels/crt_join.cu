// crt_join.cu: C := alpha A B^T + beta C in double precision, from the remainders of the product of
// integers that stand for A and B (crt_split.cu, gemm_crt.cu), and which elements to compute again.
//
// A warp has a block of 16 x 16 elements of C, lane (g, t) of it (g, t) = (lane / 4, lane % 4), those
// that the tensor cores gave it: rows g and g + 8, columns 8 s + 2 t and the next, s = 0, 1.
//
// The integer x is exact to its last bit: w_i and P are three numbers of 40 bits each, so that
// sums of 15 products with bytes, and what q takes from them, have less than 53, and only their sum
// is rounded (Knuth's two-sum first). So products of integers that lines hold exactly are exact.
//
// Elements that might not be good (moduli.cuh), and those of lines that are not finite, have a bit in
// `again`, 16 to a row of a block; and C keeps what it was there, until gemm_tiled has computed them.
//
// Floor: MODULI + 8 bytes an element, 8 more with beta: 0.36 ms at 8192, 4.3 TB/s. Four operations of
// double precision an element and modulus: 0.30 ms.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;     // of a block
constexpr int BLOCKS = 2;    // per multiprocessor for which registers are rationed
#endif
#include "launch.cuh"
#include "scalar.cuh"
#include "shuffle.cuh"
#include "moduli.cuh"

using size = long long;

// A byte of a word, with its sign
__device__ inline int byte_of(unsigned x, int e) { return int(x << (24 - 8 * e)) >> 24; }

// The integer with remainders byte e of words[2 i + s] modulo p_i
__device__ inline double integer_of(const unsigned (&words)[2 * MODULI], int s, int e)
{
    double sums[3] = {};
    #pragma unroll
    for (int i = 0; i < MODULI; ++i) {
        const double c = byte_of(words[2 * i + s], e);
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

struct Result {
    double alpha, beta;
    double* C;
    size ld, m, n;
    bool whole;  // two neighbours can be moved at once

    __device__ double of(double x, double before) const
    {
        return fma(alpha, x, beta == 0 ? 0 : beta * before);
    }
    __device__ void put(double x, size i, size j) const
    {
        double& c = C[i * ld + j];
        c = of(x, beta == 0 ? 0 : c);
    }
    __device__ void put(double x, double y, size i, size j) const
    {
        double2& c = *reinterpret_cast<double2*>(C + i * ld + j);
        const double2 before = beta == 0 ? make_double2(0, 0) : c;
        c = make_double2(of(x, before.x), of(y, before.y));
    }
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
    // `bits`: of the product of sizes, 0 where there is none
    __device__ bool good(double x, unsigned bits, const Line& a, const Line& b) const
    {
        const float d = most * (a.length * b.loss + b.length * a.loss);
        const float pairs = float(int(a.fair) + int(b.fair) - k);
        if (d <= fabsf(float(UNIT * x)) * (1 - 0x1p-20f) || d <= of_fair * pairs) return true;
        const int e = int(bits) - 1 + int(a.top) + int(b.top) - 2 * SIZE;
        return bits && d <= float(UNIT * power(e));
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
crt_join(size m, size n, size k, const uint2* planes, const unsigned* unsure, const Line* a,
         const Line* b, unsigned short* again, size alpha, size beta, double* C, size ldc)
{
    wait_for_stream();
    const size down = (m + 15) / 16, across_ = (n + 15) / 16;
    const size block = size(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (block >= down * across_) return;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const size i = block / across_ * 16 + g, j = block % across_ * 16 + 2 * t;
    const Result result{__longlong_as_double(alpha), __longlong_as_double(beta), C, ldc, m, n,
                        (size(C) | 8 * ldc) % 16 == 0};
    const Judge judge(k);
    unsigned words[2 * MODULI];
    #pragma unroll
    for (int p = 0; p < MODULI; ++p) {
        const uint2 bytes = planes[(p * down * across_ + block) * 32 + lane];
        words[2 * p] = bytes.x, words[2 * p + 1] = bytes.y;
    }
    uint2 sizes{0, 0};
    if (*unsure) sizes = planes[(MODULI * down * across_ + block) * 32 + lane];
    Line rows[2];
    #pragma unroll
    for (int r = 0; r < 2; ++r) rows[r] = a[i + 8 * r < m ? i + 8 * r : m - 1];
    unsigned bits[2] = {};
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
        const size col = j + 8 * s;
        const Line cols[2] = {b[col < n ? col : n - 1], b[col + 1 < n ? col + 1 : n - 1]};
        #pragma unroll
        for (int r = 0; r < 2; ++r) {
            double x[2];
            bool put[2];
            #pragma unroll
            for (int c = 0; c < 2; ++c) {
                const double integer = integer_of(words, s, 2 * r + c);
                const bool there = i + 8 * r < m && col + c < n;
                const unsigned bits_of = byte_of(s ? sizes.y : sizes.x, 2 * r + c);
                put[c] = there && judge.good(integer, bits_of, rows[r], cols[c]);
                if (there && !put[c]) bits[r] |= 1u << (8 * s + 2 * t + c);
                x[c] = scaled(integer, -rows[r].shift - cols[c].shift);
            }
            if (result.whole && put[0] && put[1]) {
                result.put(x[0], x[1], i + 8 * r, col);
            } else {
                if (put[0]) result.put(x[0], i + 8 * r, col);
                if (put[1]) result.put(x[1], i + 8 * r, col + 1);
            }
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; ++r) {
        bits[r] |= across(bits[r], 1);
        bits[r] |= across(bits[r], 2);
        if (t == r && i + 8 * r < m)
            again[(i + 8 * r) * across_ + block % across_] = (unsigned short)bits[r];
    }
}
