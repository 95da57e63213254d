// cluster.cuh: the blocks of a cluster, which see each other's shared memory. A cluster of one is a
// block, also on the CPU.
#pragma once

// Waits for all threads of the cluster, and what they wrote.
template <int CLUSTER> __device__ void meet_cluster()
{
#ifndef BLASX_SIM
    if constexpr (CLUSTER > 1)
        asm volatile("barrier.cluster.arrive.release.aligned;\n"
                     "barrier.cluster.wait.acquire.aligned;" ::: "memory");
    else
#endif
        __syncthreads();
}


// The same without a word about memory, in two: a block that others have read from does not end
// before they have arrived.
template <int CLUSTER> __device__ void arrive_at_cluster()
{
#ifndef BLASX_SIM
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
template <int CLUSTER> __device__ void await_cluster()
{
#ifndef BLASX_SIM
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// What block `block` of the cluster has where this one has `mine`
template <int CLUSTER> __device__ unsigned in_cluster(const unsigned& mine, unsigned block)
{
#ifndef BLASX_SIM
    if constexpr (CLUSTER > 1) {
        unsigned x;
        asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %1, %2;\n"
                     "ld.shared::cluster.u32 %0, [there];\n}"
                     : "=r"(x) : "r"(unsigned(__cvta_generic_to_shared(&mine))), "r"(block)
                     : "memory");
        return x;
    }
#endif
    return mine;
}
