// tridiagonal.cuh: what the kernels of a Hermitian eigenproblem agree on.
//
//     sytrd_rows, _block, _cluster    A = Q T Q^H by reflectors
//     steqr_lane    T = G diag(w) G^T: the rotations of implicit QL, in the order they were made
//     lasr_rows     V = Q G, columns in the order of w
#pragma once
#include "qr.cuh"

// Within these bounds squares of what counts beside the largest neither over- nor underflow.
__device__ inline bool is_near_one(real_t most)
{
    return most == 0 || (most >= real_t(0x1p-8) && most <= real_t(0x1p20));
}
// What T is of A times, from A's largest part
__device__ inline Power scale_of(real_t most)
{
    return is_near_one(most) ? Power{1, 1} : to_one(most);
}

__device__ inline real_t square(real_t x) { return x * x; }
__device__ inline real_t square(complex<real_t> x) { return fma(x.re, x.re, x.im * x.im); }

// s + x y
__device__ inline real_t plus(real_t s, real_t x, real_t y) { return fma(x, y, s); }
__device__ inline complex<real_t> plus(complex<real_t> s, complex<real_t> x, complex<real_t> y)
{
    return {fma(-x.im, y.im, fma(x.re, y.re, s.re)), fma(x.im, y.re, fma(x.re, y.im, s.im))};
}

// A rotation of columns i and i + 1: (x, y) := (c x - s y, s x + c y)
struct alignas(2 * sizeof(real_t)) Turn { real_t c, s; };

// How far QL of a member is: sweeps of this pass, eigenvalues found; whether T is end for end
enum { RUNNING, FINISHED, FINISHED_BEFORE };
struct State { int sweeps, low, stage, turned; };
