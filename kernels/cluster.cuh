// cluster.cuh: the blocks of a cluster, which see each other's shared memory: a barrier of all their
// threads, and messages. A message is sent without waiting; at the block that gets it, its bytes
// complete on a barrier (barriers.cuh) of the same address as the sender's.
#pragma once
#include "barriers.cuh"

struct alignas(16) Chunk { word first, second; };  // what is sent at once

// All threads of the cluster meet; what was written before they arrive is seen by all after.
__device__ inline void arrive_at_cluster()
{
#ifndef BLASX_SIM
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ inline void await_cluster()
{
#ifndef BLASX_SIM
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    sim::wait(sim::AT_CLUSTER, __LINE__);
#endif
}
__device__ inline void meet_cluster()
{
    arrive_at_cluster();
    await_cluster();
}

// The same where a cluster of one is a block.
template <int CLUSTER> __device__ void meet_cluster()
{
    if constexpr (CLUSTER > 1) meet_cluster();
    else __syncthreads();
}

// The same without a word about memory, in two: a block that others have read from does not end
// before they have arrived. Who arrives has used what it read: the arrival overtakes loads.
template <int CLUSTER> __device__ void done_in_cluster()
{
#ifndef BLASX_SIM
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
template <int CLUSTER> __device__ void await_all_done()
{
#ifndef BLASX_SIM
    if constexpr (CLUSTER > 1) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// What is at `at` of this block's shared memory, of block `rank`
__device__ inline unsigned address_in(unsigned at, unsigned rank)
{
#ifndef BLASX_SIM
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
#else
    return sim::address_in(at, rank);
#endif
}

// 16 bytes to `to`, completing on `barrier`: addresses of address_in
__device__ inline void send(unsigned to, Chunk x, unsigned barrier)
{
#ifndef BLASX_SIM
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];"
                 :: "r"(to), "l"(x.first), "l"(x.second), "r"(barrier) : "memory");
#else
    sim::send(to, &x, sizeof x, barrier);
#endif
}

// What block `block` of the cluster has where this one has `mine`, 4 or 8 bytes
template <int CLUSTER, class T> __device__ T in_cluster(const T& mine, unsigned block)
{
    if constexpr (CLUSTER == 1) return mine;
#ifndef BLASX_SIM
    T x;
    const unsigned at = address_in(unsigned(__cvta_generic_to_shared(&mine)), block);
    if constexpr (sizeof(T) == 4)
        asm volatile("ld.shared::cluster.b32 %0, [%1];"
                     : "=r"(reinterpret_cast<unsigned&>(x)) : "r"(at) : "memory");
    else
        asm volatile("ld.shared::cluster.b64 %0, [%1];"
                     : "=l"(reinterpret_cast<word&>(x)) : "r"(at) : "memory");
    return x;
#else
    return sim::in_cluster(mine, block);
#endif
}

// How a kernel of clusters is marked that is for GPUs without any, too, by blocks alone
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define BY_CLUSTERS
#else
#define BY_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#endif
