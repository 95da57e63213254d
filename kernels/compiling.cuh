// compiling.cuh: what makes the compiler quick and is no instruction.
#pragma once

// In a long line of loads most of the time goes into looking back from each over all before it for
// an equal one: from here on there is none before (getri_small at 64: 4.7 -> 1.8 s, the same code).
// Nor are later loads brought forward over it, to registers that there are not.
__device__ inline void look_no_further_back() { asm volatile("" ::: "memory"); }
