// half.cuh: half precision and bfloat16: as numbers in memory, and their products on the tensor
// cores, summed in single precision.
#pragma once
#include "turing.cuh"

template <class T> struct real_of;  // scalar.cuh
struct half;
struct bfloat16;
template <> struct real_of<half> { using type = float; };
template <> struct real_of<bfloat16> { using type = float; };

struct half {
    unsigned short bits;
    half() = default;
    __device__ explicit half(float x)
    {
#ifndef BLASX_SIM
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
        const _Float16 rounded = _Float16(x);
        memcpy(&bits, &rounded, 2);
#endif
    }
    __device__ explicit operator float() const
    {
        float x;
#ifndef BLASX_SIM
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
#else
        _Float16 short_one;
        memcpy(&short_one, &bits, 2);
        x = float(short_one);
#endif
        return x;
    }
};

struct bfloat16 {
    unsigned short bits;
    bfloat16() = default;
    __device__ explicit bfloat16(float x)
    {
#if !TURING && !defined(BLASX_SIM)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
        const unsigned all = __float_as_uint(x);
        bits = x != x ? 0x7fff : (all + 0x7fff + (all >> 16 & 1)) >> 16;
#endif
    }
    __device__ explicit operator float() const { return __int_as_float(int(bits) << 16); }
};

// Two halves, the first in the lower 16 bits of a word
__device__ inline unsigned two_halves(float x, float y)
{
#if !TURING && !defined(BLASX_SIM)
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
#else
    return half(x).bits | unsigned(half(y).bits) << 16;
#endif
}
// The same of the type that is asked for
__device__ inline unsigned two_of(float x, float y, half) { return two_halves(x, y); }
__device__ inline unsigned two_of(float x, float y, bfloat16)
{
#if !TURING && !defined(BLASX_SIM)
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
#else
    return bfloat16(x).bits | unsigned(bfloat16(y).bits) << 16;
#endif
}
__device__ inline float first_of(unsigned both)
{
    half x;
    x.bits = (unsigned short)both;
    return float(x);
}
__device__ inline float second_of(unsigned both) { return first_of(both >> 16); }
__device__ inline float first_of(unsigned both, half) { return first_of(both); }
__device__ inline float second_of(unsigned both, half) { return second_of(both); }
__device__ inline float first_of(unsigned both, bfloat16) { return __int_as_float(int(both << 16)); }
__device__ inline float second_of(unsigned both, bfloat16)
{
    return __int_as_float(int(both & 0xffff0000));
}

// What sums of products are kept in
template <class T> struct sum_of { using type = T; };
template <> struct sum_of<half> { using type = float; };
template <> struct sum_of<bfloat16> { using type = float; };

__device__ inline half conj(half x) { return x; }
__device__ inline bfloat16 conj(bfloat16 x) { return x; }
__device__ inline half real_part(half x) { return x; }
__device__ inline bfloat16 real_part(bfloat16 x) { return x; }

// Four 8 x 8 tiles of 2-byte numbers in shared memory: lane l gives the address of row l % 8 of
// tile l / 8, 16 bytes. Lane (g, t) = (lane / 4, lane % 4) gets of tile i (g, 2 t) and (g, 2 t + 1)
// in x[i], or, TRANSPOSED, (2 t, g) and (2 t + 1, g).
template <bool TRANSPOSED> __device__ void load_tiles(unsigned (&x)[4], const void* row)
{
#ifndef BLASX_SIM
    const unsigned at = unsigned(__cvta_generic_to_shared(row));
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at) : "memory");
#else
    sim::load_tiles<TRANSPOSED>(x, row);
#endif
}

// The reverse, of what load_tiles<false> gives
__device__ inline void store_tiles(void* row, const unsigned (&x)[4])
{
#ifndef BLASX_SIM
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};"
                 :: "r"(unsigned(__cvta_generic_to_shared(row))), "r"(x[0]), "r"(x[1]), "r"(x[2]),
                 "r"(x[3]) : "memory");
#else
    sim::store_tiles(row, x);
#endif
}

#if TURING
template <class H>
__device__ void by_lanes(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2], H kind)
{
    #pragma unroll
    for (int k = 0; k < 2; ++k)
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
            float &x = c[2 * i], &y = c[2 * i + 1];
            turing::product(x, y, first_of(a[2 * k + i], kind), first_of(b[k], kind));
            turing::product(x, y, second_of(a[2 * k + i], kind), second_of(b[k], kind));
        }
}
#endif
// C += A B for a 16 x 8 tile, 16 of k: lane (g, t) has of A the pairs (g, 2 t ..), (g + 8, 2 t ..),
// (g, 2 t + 8 ..), (g + 8, 2 t + 8 ..), of B (2 t .., g), (2 t + 8 .., g), of C (g, 2 t ..),
// (g + 8, 2 t ..).
__device__ inline void tensor_product(float (&c)[4], const unsigned (&a)[4],
                                      const unsigned (&b)[2], half)
{
#if TURING
    by_lanes(c, a, b, half());
#elif !defined(BLASX_SIM)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    sim::mma_m16n8k16<half>(c, a, b);
#endif
}
__device__ inline void tensor_product(float (&c)[4], const unsigned (&a)[4],
                                      const unsigned (&b)[2], bfloat16)
{
#if TURING
    by_lanes(c, a, b, bfloat16());
#elif !defined(BLASX_SIM)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    sim::mma_m16n8k16<bfloat16>(c, a, b);
#endif
}
