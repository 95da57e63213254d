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
