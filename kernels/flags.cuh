// flags.cuh: warps tell others of the grid that what they wrote is there.
#pragma once

// Adds `value` to a flag: whoever sees the sum sees what the warp wrote before.
__device__ inline void arrive(int* flag, int value)
{
    __syncwarp();
#ifndef BLASX_SIM
    if (threadIdx.x % 32 == 0)
        asm volatile("fence.acq_rel.gpu;\n\tred.relaxed.gpu.global.add.s32 [%0], %1;"
                     :: "l"(flag), "r"(value) : "memory");
#else
    if (threadIdx.x % 32 == 0) *flag += value;
#endif
}

// Waits until a flag has come to `value`; returns what it has come to.
__device__ inline int await(const int* flag, int value)
{
    int seen;
#ifndef BLASX_SIM
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    while (seen < value);
#else
    while ((seen = *flag) < value) sim::give_way();
#endif
    return seen;
}

// The multiprocessor that a block runs on
__device__ inline int multiprocessor()
{
    int number = 0;
#ifndef BLASX_SIM
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
#endif
    return number;
}
