// dropout.cu: y = x m, where m is `scale`, or 0 where the number drawn for the element is below
// `limit`; the same numbers as blasx/nn/dropout.py draws, so that nobody has to keep a mask.
//
// Floor: x read, y written, once.
#ifndef BLASX               // the launcher writes these; the values here let the file compile alone
constexpr int WARPS = 8;    // of a block
constexpr int PACKS = 2;    // of 16 bytes, of each array in a thread
#endif
#include "elements.cuh"
#include "launch.cuh"

// Each bit of the result depends on all of h and of the word (the last step of MurmurHash3)
__device__ inline unsigned mixed(unsigned h, unsigned word)
{
    h ^= word;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

extern "C" __global__ void __launch_bounds__(THREADS)
dropout(const scalar_t* X, scalar_t* Y, size first, size second, size limit, size scale,
        size count)
{
    wait_for_stream();
    const real_t there = number(scale);
    map(Y, X, nullptr, count, [=](real_t x, real_t, size i) {
        const unsigned drawn = mixed(mixed(unsigned(i), unsigned(first)), unsigned(second));
        return x * (drawn >= limit ? there : real_t(0));
    });
}
