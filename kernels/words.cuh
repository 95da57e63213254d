// words.cuh: words that blocks on the GPU together send each other through memory that was EMPTY
// before: each tells by itself whether it is there, so that nothing is announced and nothing ordered.
// Who waits asks for all it wants at once, and again for what was not there.
#pragma once

constexpr unsigned EMPTY = 0xffffffffu;
constexpr unsigned ALL = 0xffffffffu;

struct alignas(16) Four {
    unsigned x[4];
    __device__ bool there() const
    {
        return x[0] != EMPTY && x[1] != EMPTY && x[2] != EMPTY && x[3] != EMPTY;
    }
};

__device__ inline Four look(const unsigned* p)
{
    Four w;
#ifndef BLASX_SIM
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(w.x[0]), "=r"(w.x[1]), "=r"(w.x[2]), "=r"(w.x[3]) : "l"(p) : "memory");
#else
    memcpy(&w, p, 16);
#endif
    return w;
}

__device__ inline void show(unsigned* p, unsigned word)
{
#ifndef BLASX_SIM
    asm volatile("st.relaxed.gpu.global.u32 [%0],%1;" :: "l"(p), "r"(word) : "memory");
#else
    *p = word;
#endif
}

// What other blocks want may have to run first.
__device__ inline void give_way()
{
#ifdef BLASX_SIM
    sim::give_way();
#endif
}
