// factors.cuh: what a factorization in lanes leaves besides the matrix.
#pragma once
#include "lanes.cuh"

// piv keeps the interchanges, order the rows in their order, inverse the reciprocals of the pivots
// (those of bit k in `lifted` are of LIFT times the pivot).
struct Factors {
    int piv[KEEP], order[KEEP], info;
    scalar_t inverse[KEEP];
    unsigned lifted;
};
