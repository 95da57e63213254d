// flags.cuh: one block tells others that what it wrote is there.
#pragma once

// By one thread, after a barrier of its block: who sees `value` sees what the block wrote before.
__device__ inline void announce(int* flag, int value)
{
#ifndef BLASX_SIM
    asm volatile("fence.acq_rel.gpu;\n\tst.relaxed.gpu.global.s32 [%0], %1;"
                 :: "l"(flag), "r"(value) : "memory");
#else
    *flag = value;
#endif
}

// Waits until a flag has reached `value`.
__device__ inline void await(const int* flag, int value)
{
#ifndef BLASX_SIM
    int seen;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    while (seen < value);
#else
    while (*flag < value) sim::give_way();
#endif
}
