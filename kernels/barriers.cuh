// barriers.cuh: barriers in shared memory that count arrivals and bytes, named by their addresses.
//
// Who waits keeps the phase of a barrier, 0 or 1, which changes whenever it is completed: of a
// barrier that nobody has completed yet phase 1 has passed.
#pragma once

#ifndef BLASX_SIM           // the launch says how much
extern __shared__ __align__(128) char dynamic_shared[];
#endif

using word = unsigned long long;

__device__ inline unsigned shared_address(const void* p)
{
#ifndef BLASX_SIM
    return unsigned(__cvta_generic_to_shared(p));
#else
    return sim::offset_of(p);
#endif
}

// `arrivals` and all bytes expected complete a phase. One thread makes the barriers, and
// show_barriers(), then __syncthreads(), lets the copies and the other threads see them.
__device__ inline void make_barrier(unsigned at, unsigned arrivals)
{
#ifndef BLASX_SIM
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(arrivals) : "memory");
#else
    sim::make_barrier(at, arrivals);
#endif
}
__device__ inline void show_barriers()
{
#ifndef BLASX_SIM
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ inline void arrive(unsigned at)
{
#ifndef BLASX_SIM
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at) : "memory");
#else
    sim::arrive(at, 0);
#endif
}
// Arrives, and lets the phase wait for so many bytes.
__device__ inline void expect(unsigned at, unsigned bytes)
{
#ifndef BLASX_SIM
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(at), "r"(bytes) : "memory");
#else
    sim::arrive(at, bytes);
#endif
}
// Returns when `phase` has been completed. The loop is inside one statement: as a loop of C++ it
// costs products around it up to a quarter of their rate.
__device__ inline void await(unsigned at, unsigned phase)
{
#ifndef BLASX_SIM
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(at), "r"(phase) : "memory");
#else
    sim::await(at, phase);
#endif
}

// Bytes, whole packs of 16 from a multiple of it to one, to shared memory, that complete on
// a barrier: Hopper's, by a unit of its own
__device__ inline void copy_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier)
{
#ifndef BLASX_SIM
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
#else
    sim::copy_bytes(to, from, bytes, barrier);
#endif
}

// Bytes, whole packs of 16 from a multiple of it to one, from shared memory, when all threads of the
// block have written; the first of them waits until they are read. Hopper's, by a unit of its own
__device__ inline void return_bytes(void* to, unsigned from, unsigned bytes)
{
#ifndef BLASX_SIM
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"
                     :: "l"(to), "r"(from), "r"(bytes) : "memory");
#else
    __syncthreads();
    if (threadIdx.x == 0) sim::return_bytes(to, from, bytes);
#endif
}
