// async.cuh: copies to shared memory that go on while the thread does something else.
#pragma once
#include "turing.cuh"

// BYTES (4, 8 or 16) from global to shared memory, zeros in place of those after `valid`;
// PAST_L1: 16 bytes that nobody else on the multiprocessor wants
template <int BYTES, bool PAST_L1 = false>
__device__ void copy_async(void* to, const void* from, int valid)
{
#if TURING
    using part = unsigned short;
    for (int i = 0; i < BYTES / 2; ++i)
        static_cast<part*>(to)[i] = 2 * i < valid ? static_cast<const part*>(from)[i] : part(0);
#elif !defined(BLASX_SIM)
    const unsigned at = unsigned(__cvta_generic_to_shared(to));
    if constexpr (PAST_L1)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(at), "l"(from), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :: "r"(at), "l"(from), "n"(BYTES), "r"(valid) : "memory");
#else
    if ((uintptr_t(to) | uintptr_t(from)) % BYTES) sim::fail("a copy of bytes", __LINE__);
    memset(to, 0, BYTES);
    memcpy(to, from, valid);
#endif
}

// Closes a group of this thread's copies.
__device__ inline void end_group()
{
#if !TURING && !defined(BLASX_SIM)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `later` groups of this thread's copies are still under way.
template <int later> __device__ void await_groups()
{
#if !TURING && !defined(BLASX_SIM)
    asm volatile("cp.async.wait_group %0;" :: "n"(later) : "memory");
#endif
}

// Brings the line of 128 bytes at p to the L2 cache.
__device__ inline void prefetch([[maybe_unused]] const void* p)
{
#ifndef BLASX_SIM
    asm volatile("prefetch.global.L2 [%0];" :: "l"(p));
#endif
}
