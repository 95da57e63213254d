// small_reflectors.cuh: reflectors of geqrf for matrices of m <= N rows, in shared memory: V by
// columns, with its zeros and ones, whole packs of which reach all lanes of a team at once, and tau.
#pragma once
#include "block.cuh"
#include "qr.cuh"

#ifndef BLASX               // the launcher writes it; the value here lets the file compile alone
constexpr int N = 32;       // the largest m
#endif
static_assert(N % 4 == 0);

constexpr int FEW = 16 / sizeof(scalar_t);      // numbers that are read at once
constexpr int STEP = N < 8 ? N : 8;             // rows
// From a column of V to the next: an odd number of packs, so that lanes which write a row of it
// meet a bank as seldom as can be
constexpr int LD = N / FEW % 2 ? N : N + FEW;

struct alignas(16) Vector { scalar_t x[FEW]; };

// V's m x k numbers and tau to shared memory, zeros in the rows from m on, by lane `lane` of `lanes`;
// where V lies by rows a lane takes columns, or, BOXES, a warp boxes as wide as 32 bytes: they meet
// fewer banks of one kind
template <bool BOXES = false>
__device__ inline void load(scalar_t* V, scalar_t* taus, const Strided<const scalar_t>& qr,
                            const scalar_t* tau, int m, int k, bool conjugated, bool adjoint,
                            int lane, int lanes)
{
    const auto place = [&](int i, int j) {
        const scalar_t x = i > j && i < m ? qr(i, j) : scalar_t{real_t(i == j)};
        V[j * LD + i] = conjugated ? conj(x) : x;
    };
    if (qr.rs == 1)
        for (int j = 0; j < k; ++j)
            for (int i = lane; i < N; i += lanes) place(i, j);
    else if (BOXES) {
        constexpr int ACROSS = 32 / sizeof(scalar_t), DOWN = 32 / ACROSS;
        for (int j = lane / 32 * ACROSS + lane % ACROSS; j < k; j += lanes / 32 * ACROSS)
            #pragma unroll 8
            for (int i = lane % 32 / ACROSS; i < N; i += DOWN) place(i, j);
    } else
        for (int j = lane; j < k; j += lanes)
            #pragma unroll 8
            for (int i = 0; i < N; ++i) place(i, j);
    for (int j = lane; j < k; j += lanes) taus[j] = conjugated != adjoint ? conj(tau[j]) : tau[j];
}

// f(row, number of v) for the rows that the reflector j reaches, and some before it
template <class F> __device__ void each(const scalar_t* v, int j, F f)
{
    #pragma unroll
    for (int first = 0; first < N; first += STEP) {
        if (first + STEP <= j) continue;
        #pragma unroll
        for (int i = first; i < first + STEP && i < N; i += FEW) {
            const Vector x = *reinterpret_cast<const Vector*>(v + i);
            #pragma unroll
            for (int e = 0; e < FEW; ++e) f(i + e, x.x[e]);
        }
    }
}

// a := H_j a, a column, H_j = I - tau v v^H
__device__ inline void reflect(scalar_t (&a)[N], const scalar_t* v, scalar_t tau, int j)
{
    if (abs1(tau) == 0) return;
    scalar_t sums[2] = {};
    each(v, j, [&](int i, scalar_t x) { sums[i % 2] = plus_inner(sums[i % 2], x, a[i]); });
    const scalar_t w = mul(tau, add(sums[0], sums[1]));
    each(v, j, [&](int i, scalar_t x) { a[i] = minus_product(a[i], x, w); });
}
